# Sourced by every tests/faults/*.sh. $LOCKSTEP is a program built with fail points (make FAIL_POINTS=1).
# LOCKSTEP_TEST_LONG=1 tries every case where otherwise a seeded sample is taken.
source "$SOURCE/tests/cli/common.bash"
RANDOM=20240501
long=${LOCKSTEP_TEST_LONG:-}

fresh_model
write_reviews train.tsv 200 1
write_reviews validation.tsv 60 2
# 14 steps.
train=("$LOCKSTEP" train --model model --train train.tsv --validation validation.tsv --epochs 2 --threads 1 --quiet)

sha() { grep -o 'sha256 .*' out.txt; }
# The lines of metrics.jsonl without what a clock said.
metrics() { sed -E 's/, "step_seconds".*//; s/, "seconds": [^,]*//' "$1"; }

# failing RULES COMMAND...: run it with fail points; its status is in $status.
failing() {
    local rules=$1
    shift
    status=0
    # A shell says on its own standard error that a child was killed.
    { LOCKSTEP_FAIL=$rules "$@" >out.txt 2>err.txt </dev/null; } 2>/dev/null || status=$?
    if grep -qE 'Sanitizer|runtime error:' err.txt; then cat err.txt && fail "unclean: $rules"; fi
}

expect 0 "${train[@]}" --output undisturbed
wanted=$(sha)
# same FOLDER WHAT: the run that ended in out.txt has the undisturbed run's model and history.
same() {
    [[ $(sha) == "$wanted" ]] || { cat out.txt err.txt && fail "$2: another model"; }
    diff <(metrics undisturbed/metrics.jsonl) <(metrics "$1/metrics.jsonl") >difference.txt ||
        { cat difference.txt && fail "$2: another history"; }
}

# with RANK PROCESSES RULES ARGUMENT...: train in processes, fail points in that one alone; the status is in $status.
with() {
    local rank=$1 processes=$2 rules=$3 i start=()
    shift 3
    for ((i = 0; i < processes; i++)); do
        [[ $i -eq 0 ]] || start+=(:)
        start+=(-np 1)
        [[ $i -ne $rank ]] || start+=(env "LOCKSTEP_FAIL=$rules")
        start+=("${train[@]}" "$@")
    done
    local begun=$SECONDS
    failing "" timeout --kill-after=5 ${with_limit:-300} mpirun --oversubscribe --bind-to none "${start[@]}"
    [[ $status -ne 124 && $status -ne 137 || $SECONDS -lt $((begun + ${with_limit:-300})) ]] || { cat err.txt && fail "$rules in rank $rank: no end after ${with_limit:-300} s"; }
}
