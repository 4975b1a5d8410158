#!/usr/bin/env bash
# Run every fuzz target for a while, from its seeds in tests/fuzz/corpus/NAME and from what earlier
# runs found (build/fuzz-found/NAME). A crash leaves its input in build/fuzz-crashes.
#
# Usage: tools/run-fuzz.sh SECONDS [NAME...]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=$1
shift
targets=("${@/#/build/fuzz/fuzz_}")
[[ $# -gt 0 ]] || targets=(build/fuzz/fuzz_*)
mkdir -p build/fuzz-crashes

passed=0 failed=0
for target in "${targets[@]}"; do
    [[ -x $target && $target != *.* ]] || continue
    name=${target##*/fuzz_}
    found=build/fuzz-found/$name
    log=build/fuzz-crashes/$name.log
    mkdir -p "$found"
    seeds=()
    [[ ! -d tests/fuzz/corpus/$name ]] || seeds=("tests/fuzz/corpus/$name")
    if "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 \
        -artifact_prefix="build/fuzz-crashes/$name-" "$found" "${seeds[@]}" >"$log" 2>&1; then
        passed=$((passed + 1))
        echo "ok $name: $(awk '/number_of_executed_units/ { print $2 }' "$log") inputs"
    else
        failed=$((failed + 1))
        echo "FAILED $name; the input is in build/fuzz-crashes, the log in $log"
        grep -m 3 -E 'ERROR|SUMMARY|runtime error' "$log" | sed 's/^/    /' || true
    fi
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 && $passed -gt 0 ]]
