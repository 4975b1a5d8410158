#!/usr/bin/env bash
# Run tests/cli/*.sh against a built program, each in an empty folder of its own, as many at a time as there are
# cores. A test passes with exit status 0 and is skipped with 77, giving its reason on the last line. One whose
# second line begins with "# Alone:" runs after the others, by itself.
#
# Usage: tools/run-cli-tests.sh [--build FOLDER] [--from FOLDER] [--jobs N] [NAME...]   e.g. tools/run-cli-tests.sh help
set -euo pipefail
cd "$(dirname "$0")/.."

build=build
from=tests/cli
jobs=$(nproc)
while [[ ${1:-} == --* ]]; do
    case $1 in
    --build) build=$2 ;;
    --from) from=$2 ;;
    --jobs) jobs=$2 ;;
    *) echo "run-cli-tests.sh: no flag $1" >&2 && exit 2 ;;
    esac
    shift 2
done
export LOCKSTEP=$PWD/$build/lockstep SOURCE=$PWD
if [[ ! -x $LOCKSTEP ]]; then
    echo "run-cli-tests.sh: no $LOCKSTEP; run make first" >&2
    exit 2
fi
scripts=("${@/#/$from/}")
if [[ $# -eq 0 ]]; then
    scripts=("$from"/*.sh)
else
    scripts=("${scripts[@]/%/.sh}")
fi

limit=900
if [[ -n ${LOCKSTEP_TEST_LONG:-} ]]; then limit=3600; fi
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# What it says comes out in one piece, whoever else ends at the same moment.
run_script() {
    local script=$1 name folder status=0 start=$SECONDS said
    name=$(basename "$script" .sh)
    folder=$(mktemp -d)
    (cd "$folder" && exec timeout $limit bash "$SOURCE/$script" >output.log 2>&1) || status=$?
    said=$(tail -n 30 "$folder/output.log" 2>/dev/null || true)
    case $status in
    0) said="ok $name, $((SECONDS - start)) s" ;;
    77) said="skipped $name: ${said##*$'\n'}" ;;
    *) said="FAILED $name (exit status $status), $((SECONDS - start)) s"$'\n'"$(sed 's/^/    /' <<<"$said")" ;;
    esac
    echo $status >"$results/$name"
    printf '%s\n' "$said"
    # A test may have taken away its own right to write.
    chmod -R u+rwX "$folder"
    rm -rf "$folder"
}

alone=()
for script in "${scripts[@]}"; do
    if sed -n 2p "$script" | grep -q '^# Alone:'; then alone+=("$script") && continue; fi
    while [[ $(jobs -rp | wc -l) -ge $jobs ]]; do wait -n || true; done
    run_script "$script" &
done
wait
for script in "${alone[@]}"; do run_script "$script"; done

passed=0 failed=0 skipped=0
for script in "${scripts[@]}"; do
    case $(cat "$results/$(basename "$script" .sh)") in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 && $((passed + skipped)) -gt 0 ]]
