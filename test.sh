#!/usr/bin/env bash
# Build and test Lockstep. Installs the Debian packages that are missing, as root or through sudo.
#
# Usage:
#   ./test.sh            everything that needs no PyTorch (about a quarter of an hour on two cores)
#   ./test.sh peers      against PyTorch and Transformers, in a virtual environment made here
#   ./test.sh faults     every crash, full disk and flipped bit that the fault tests know (half an hour)
#   ./test.sh long       every layout of devices, processes and hosts, a Slurm of one machine, the demonstration, accuracy over five
#                        seeds, minutes of fuzzing for each target
#   ./test.sh PART...    single parts: see the list of each tier below
#
# A failing part does not stop the next ones. Logs are in build/test-logs. The last line says
# "N passed, N failed", counting single tests; the exit status is 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")"

normal_parts="packages format lint build symbols unit cli faults-short clang sanitize cli-sanitize thread fuzz install"
peers_parts="packages build venv fetch peers"
long_parts="packages build long-unit long-mpi long-slurm venv fetch long-demo long-peers long-fuzz"

jobs=$(nproc)
logs=build/test-logs
asan=build/address-undefined
# An exit status that no test expects: an error that is wanted is told from one of memory.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1:exitcode=99}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:exitcode=99}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}

passed=0
failed=0
failed_parts=()

# A part's result counts as one test unless the part itself reports "count PASSED FAILED".
count() {
    echo "$1 $2" >>"$logs/counts"
}

# A command whose output ends with our own runners' summary, as counts.
counted() {
    local output=$logs/output status=0 summary
    "$@" >"$output" 2>&1 || status=$?
    cat "$output"
    summary=$(sed -nE -e 's/^([0-9]+) passed, ([0-9]+) failed.*$/\1 \2/p' "$output" | tail -n 1)
    if [[ -n $summary ]]; then count $summary; fi
    return $status
}

# unit_tests BUILD COMMAND...: ctest in BUILD; each test of a program counts, from what cmocka wrote. The output of
# programs that failed is repeated at the end, since only the end of a part's log is printed.
unit_tests() {
    local log=$1/Testing/Temporary status=0 name
    shift
    rm -rf "$log"
    "$@" || status=$?
    if [[ -e $log/LastTestsFailed.log ]]; then
        cut -d: -f2 "$log/LastTestsFailed.log" | while read -r name; do
            awk -v begin="Testing: $name" 'substr($0, length($0) - length(begin) + 1) == begin { on = 1 } on; /^<end of output>/ { on = 0 }' "$log/LastTest.log"
        done
    fi
    count "$(grep -c '^\[       OK \]' "$log/LastTest.log")" "$(cat "$log/LastTestsFailed.log" 2>/dev/null | wc -l)"
    return $status
}

run_part() {
    local name=$1 start=$SECONDS status=0 part_passed=0 part_failed=0 good bad
    local log=$logs/$name.log
    : >"$logs/counts"
    ("part_${name//-/_}") >"$log" 2>&1 || status=$?
    while read -r good bad; do
        part_passed=$((part_passed + good))
        part_failed=$((part_failed + bad))
    done <"$logs/counts"
    if [[ $part_failed -eq 0 && $status -ne 0 ]]; then part_failed=1; fi
    if [[ $part_failed -eq 0 && $part_passed -eq 0 ]]; then part_passed=1; fi
    passed=$((passed + part_passed))
    failed=$((failed + part_failed))
    if [[ $status -eq 0 && $part_failed -eq 0 ]]; then
        printf 'ok      %-13s %5d s  %d\n' "$name" $((SECONDS - start)) "$part_passed"
    else
        failed_parts+=("$name")
        printf 'FAILED  %-13s %5d s  %d of %d, %s\n' "$name" $((SECONDS - start)) "$part_failed" \
            $((part_passed + part_failed)) "$log"
        tail -n 40 "$log" | sed 's/^/    /'
    fi
}

part_packages() { tools/install-packages.sh build fetch test; }
part_format() { make format-check; }
part_lint() { make lint; }
part_build() { make -s -j"$jobs" all; }
part_symbols() { tools/check-symbols.sh build; }
part_cli() { counted tools/run-cli-tests.sh; }
# On a file system in memory, where there is one: these tests sync a disk thousands of times.
run_faults() {
    if [[ -w /dev/shm ]]; then export TMPDIR=/dev/shm; fi
    make -s -j"$jobs" FAIL_POINTS=1 all && counted tools/run-cli-tests.sh --build build/faults --from tests/faults
}
part_faults_short() { run_faults; }
part_faults() { LOCKSTEP_TEST_LONG=1 run_faults; }
part_venv() { tools/make-venv.sh; }
part_fetch() { tools/fetch.py model && tools/fetch.py rt-polarity; }

part_unit() { make -s -j"$jobs" tests && unit_tests build make -s test; }

# All is compiled, for what Clang warns of. Of the tests those run where another compiler may come to other numbers,
# and those that hold whole runs against the same digests as GCC's.
part_clang() {
    local numbers='^(base|comm|data|kernels|ops|optimizers|program|tokenizer)/|^engine/test_(golden|same_bits|steps|heads|model_files)$'
    local flags=(CC=clang BUILD=build/clang "CFLAGS=-O2 -g1")
    make -s -j"$jobs" "${flags[@]}" all tests build/clang/CTestTestfile.cmake &&
        unit_tests build/clang ctest --test-dir build/clang --output-on-failure -j "$jobs" -R "$numbers"
}

part_sanitize() {
    make -s -j"$jobs" SANITIZE=address,undefined all tests &&
        unit_tests "$asan" make -s SANITIZE=address,undefined test
}

# Each command, all its parsing and its errors. Not what other scripts do with more layouts or larger runs, in which
# a sanitizer sees the same code again, and not what takes its time from a clock or a browser.
part_cli_sanitize() {
    local again=' compare_runs documented documented_comparisons documented_hosts launch_hosts memory mpi_checkpoint mpi_faults progress report resume ' script scripts=()
    for script in tests/cli/*.sh; do
        script=$(basename "$script" .sh)
        if [[ $again != *" $script "* ]]; then scripts+=("$script"); fi
    done
    make -s -j"$jobs" SANITIZE=address,undefined all &&
        counted tools/run-cli-tests.sh --build "$asan" "${scripts[@]}"
}

# Only folders that start threads, without the planner's test, whose threads are those of the others: the thread
# sanitizer is slow.
part_thread() {
    local folders='base|comm|data|devices|engine|monitor' programs runner=()
    programs=$(find tests/unit -name 'test_*.c' | grep -E "^tests/unit/($folders)/" | grep -v '/engine/test_plans' |
        sed -e 's|^tests/unit/|build/thread/tests/|' -e 's|\.c$||')
    # The sanitizer's memory layout does not bear a randomised address space on every kernel.
    if setarch -R true 2>/dev/null; then runner=(setarch -R); fi
    make -s -j"$jobs" SANITIZE=thread $programs build/thread/CTestTestfile.cmake &&
        unit_tests build/thread "${runner[@]}" ctest --test-dir build/thread --output-on-failure -j "$jobs" \
            -R "^($folders)/" -E '^engine/test_plans$'
}

fuzz_for() {
    compgen -G 'tests/fuzz/fuzz_*.c' >/dev/null || { echo "no fuzz targets" && return 1; }
    make -s -j"$jobs" fuzz && counted tools/run-fuzz.sh "$1"
}

part_fuzz() { fuzz_for 5; }
# Every combination of layouts where ./test.sh unit takes one for each pair.
part_long_unit() {
    export LOCKSTEP_TEST_LONG=1
    make -s -j"$jobs" tests build/CTestTestfile.cmake &&
        unit_tests build ctest --test-dir build --output-on-failure -R \
            "$(grep -l 'test_all()' tests/unit/*/test_*.c | sed -e 's|^tests/unit/|^|' -e 's|\.c$|$|' | paste -sd '|')"
}
part_long_mpi() { make -s -j"$jobs" all && LOCKSTEP_TEST_LONG=1 counted tools/run-cli-tests.sh mpi; }
part_long_fuzz() { fuzz_for 300; }
# The demonstration as a user starts it: within its ten minutes, and all strategies come to the same.
part_long_demo() {
    timeout 600 ./demo.sh && jq -e '.rows | all(.state == "done") and
        (map([.weights_sha256, .final_loss, .accuracy, .macro_f1]) | unique | length == 1)' build/demo/comparison/compare.json
}
# Packages that nothing else needs, so that only this part installs them.
part_long_slurm() { tools/install-packages.sh slurm && counted tools/run-cli-tests.sh --from tests/long; }

# Install below a staging folder and build the example as a user of the library would.
part_install() {
    # Global within the part's subshell: the trap runs when that ends.
    stage=$(mktemp -d) || return 1
    trap 'rm -rf "$stage"' EXIT
    make -s install DESTDIR="$stage" PREFIX=/usr || return 1
    export PKG_CONFIG_PATH=$stage/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage
    pkg-config --exists --print-errors lockstep || return 1
    "$stage/usr/bin/lockstep" --version || return 1
    cc -std=c17 -Wall -Wextra -Werror $(pkg-config --cflags lockstep) -o "$stage/finetune" \
        examples/finetune.c $(pkg-config --libs lockstep) || return 1
    source tests/cli/common.bash
    write_reviews "$stage/train.tsv" 64 1
    LD_LIBRARY_PATH=$stage/usr/lib "$stage/finetune" tests/data/tiny-bert "$stage/train.tsv" \
        "$stage/output" || return 1
    test -s "$stage/output/model.safetensors" -a -s "$stage/output/config.json"
}

# A script prints "ok" or "FAILED" for each thing it checks and ends with 0, 1, or 77 where it cannot
# run, giving the reason.
run_peers() {
    local python script status start output=$logs/output
    python=$(tools/make-venv.sh) || return 1
    export LOCKSTEP=$PWD/build/lockstep MODEL=$PWD/.cache/all-MiniLM-L6-v2 REVIEWS=$PWD/.cache/rt-polarity
    export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
    for script in "$@"; do
        status=0
        start=$SECONDS
        echo "--- $script"
        "$python" "$script" >"$output" 2>&1 || status=$?
        cat "$output"
        count "$(grep -c '^ok ' "$output")" "$(grep -c '^FAILED ' "$output")"
        case $status in
        0) ;;
        77) echo "skipped $script" ;;
        *) grep -q '^FAILED ' "$output" || count 0 1 ;;
        esac
        echo "--- $((SECONDS - start)) s"
    done
}

part_peers() { make -s -j"$jobs" peers && run_peers tests/peers/check_*.py; }
part_long_peers() { run_peers tests/peers/long_*.py; }

case ${1:-normal} in
normal) read -ra parts <<<"$normal_parts" ;;
peers) read -ra parts <<<"$peers_parts" ;;
long) read -ra parts <<<"$long_parts" ;;
*) parts=("$@") ;;
esac
for part in "${parts[@]}"; do
    if ! declare -F "part_${part//-/_}" >/dev/null; then
        echo "test.sh: no part '$part'; there are $normal_parts, and the tiers peers and long" >&2
        exit 2
    fi
done

mkdir -p "$logs"
for part in "${parts[@]}"; do
    run_part "$part"
done
if [[ ${#failed_parts[@]} -gt 0 ]]; then
    echo "failed: ${failed_parts[*]}, after $SECONDS s"
else
    echo "all parts passed after $SECONDS s"
fi
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
