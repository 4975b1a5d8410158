#!/usr/bin/env bash
# The virtual environment of the benchmarks beside DeepSpeed, in .cache/bench-venv: tools/bench-requirements.txt
# over what tools/make-venv.sh has installed. Does nothing when it is there. Prints its interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

below=$(tools/make-venv.sh)
venv=.cache/bench-venv
stamp=$venv/requirements.txt
if ! cat tools/peer-requirements.txt tools/bench-requirements.txt | cmp -s - "$stamp"; then
    [[ -x $venv/bin/python ]] || python3 -m venv "$venv" >&2
    "$below" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
        >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/below.pth"
    # Nothing is compiled: the optimizer is PyTorch's.
    DS_BUILD_OPS=0 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --requirement tools/bench-requirements.txt >&2
    cat tools/peer-requirements.txt tools/bench-requirements.txt >"$stamp"
fi
echo "$PWD/$venv/bin/python"
