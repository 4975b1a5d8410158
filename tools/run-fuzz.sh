#!/usr/bin/env bash
# Run every fuzz target for a while, as many at a time as there are cores, from its seeds in
# tests/fuzz/corpus/NAME and from what earlier runs found (build/fuzz-found/NAME). A crash leaves its
# input in build/fuzz-crashes.
#
# Usage: tools/run-fuzz.sh SECONDS [NAME...]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=$1
shift
targets=("${@/#/build/fuzz/fuzz_}")
[[ $# -gt 0 ]] || targets=(build/fuzz/fuzz_*)
mkdir -p build/fuzz-crashes
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

fuzz() {
    local target=$1 name=$2 seeds=() status=0
    local found=build/fuzz-found/$name log=build/fuzz-crashes/$name.log
    mkdir -p "$found"
    [[ ! -d tests/fuzz/corpus/$name ]] || seeds=("tests/fuzz/corpus/$name")
    "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 \
        -artifact_prefix="build/fuzz-crashes/$name-" "$found" "${seeds[@]}" >"$log" 2>&1 || status=$?
    if [[ $status -eq 0 ]]; then
        echo "ok $name: $(awk '/number_of_executed_units/ { print $2 }' "$log") inputs"
    else
        printf '%s\n' "FAILED $name; the input is in build/fuzz-crashes, the log in $log
$(grep -m 3 -E 'ERROR|SUMMARY|runtime error' "$log" | sed 's/^/    /')"
    fi
    echo $status >"$results/$name"
}

names=()
for target in "${targets[@]}"; do
    [[ -x $target && $target != *.* ]] || continue
    while [[ $(jobs -rp | wc -l) -ge $(nproc) ]]; do wait -n || true; done
    names+=("${target##*/fuzz_}")
    fuzz "$target" "${target##*/fuzz_}" &
done
wait

passed=0 failed=0
for name in "${names[@]}"; do
    if [[ $(cat "$results/$name") -eq 0 ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 && $passed -gt 0 ]]
