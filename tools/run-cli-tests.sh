#!/usr/bin/env bash
# Run tests/cli/*.sh against a built program, each in an empty folder of its own. A test passes with
# exit status 0 and is skipped with 77, giving its reason on the last line.
#
# Usage: tools/run-cli-tests.sh [--build FOLDER] [--from FOLDER] [NAME...]        e.g. tools/run-cli-tests.sh help
set -euo pipefail
cd "$(dirname "$0")/.."

build=build
from=tests/cli
while [[ ${1:-} == --* ]]; do
    case $1 in
    --build) build=$2 ;;
    --from) from=$2 ;;
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
passed=0 failed=0 skipped=0
for script in "${scripts[@]}"; do
    folder=$(mktemp -d)
    status=0
    (cd "$folder" && timeout $limit bash "$SOURCE/$script" >output.log 2>&1) || status=$?
    name=$(basename "$script" .sh)
    case $status in
    0)
        passed=$((passed + 1))
        echo "ok $name"
        ;;
    77)
        skipped=$((skipped + 1))
        echo "skipped $name: $(tail -n 1 "$folder/output.log")"
        ;;
    *)
        failed=$((failed + 1))
        echo "FAILED $name (exit status $status)"
        tail -n 30 "$folder/output.log" | sed 's/^/    /'
        ;;
    esac
    # A test may have taken away its own right to write.
    chmod -R u+rwX "$folder"
    rm -rf "$folder"
done
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 && $((passed + skipped)) -gt 0 ]]
