#!/usr/bin/env bash
# The virtual environment of the peer tests, with the versions of tools/peer-requirements.txt, in
# .cache/venv. Does nothing when it is there. Prints its interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.cache/venv
stamp=$venv/requirements.txt
if ! cmp -s tools/peer-requirements.txt "$stamp"; then
    # What is there already stays: only what is new or of another version is fetched.
    mkdir -p .cache
    [[ -x $venv/bin/python ]] || python3 -m venv "$venv" >&2
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --requirement tools/peer-requirements.txt >&2
    cp tools/peer-requirements.txt "$stamp"
fi
echo "$PWD/$venv/bin/python"
