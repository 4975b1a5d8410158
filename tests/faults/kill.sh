# SIGKILL at random points (steps, updates, exchanges, system calls of a save, moments of the clock), again
# and again, on another number of devices each time: the run that gets to its end has the undisturbed
# run's bits and history, and used every sample once.
source "$SOURCE/tests/faults/common.bash"
wanted_kills=$([[ $long ]] && echo 200 || echo 12)
kills=0
devices=(1 2 3 4 8)
strategies=(ddp zero1 zero2 zero3 zero3+offload)
sites=(step update exchange write fsync rename "" "")

# One that its clock ends: $1 milliseconds.
timed() {
    local milliseconds=$1
    shift
    "$@" >out.txt 2>err.txt </dev/null &
    local child=$!
    sleep "$(printf '%d.%03d' $((milliseconds / 1000)) $((milliseconds % 1000)))"
    kill -KILL $child 2>/dev/null || true
    status=0
    wait $child 2>/dev/null || status=$?
}

for ((round = 0; kills < wanted_kills; round++)); do
    rm -rf run
    for ((attempt = 0; attempt < 200; attempt++)); do
        command=("${train[@]}" --output run --resume auto --save-every $((1 + RANDOM % 4)) --strategy ${strategies[RANDOM % 5]}
            --devices ${devices[RANDOM % 5]} --save-async=$([[ $((RANDOM % 2)) -eq 0 ]] && echo true || echo false))
        site=${sites[RANDOM % 8]}
        if [[ -z $site ]]; then
            timed $((5 + RANDOM % 80)) "${command[@]}"
        else
            failing "$site:$((1 + RANDOM % 40)):kill" "${command[@]}"
        fi
        if grep -qF "skipped" err.txt; then cat err.txt && fail "a checkpoint is not whole"; fi
        if [[ $status -eq 0 ]]; then break; fi
        [[ $status -eq 137 ]] || { cat err.txt && fail "status $status after ${command[*]}"; }
        kills=$((kills + 1))
    done
    [[ $status -eq 0 ]] || fail "200 attempts did not get to the end"
    same run "round $round"
    expect 0 "$LOCKSTEP" audit run
    [[ -z $(find run -name '*.tmp-*') ]] || fail "something is left: $(find run -name '*.tmp-*')"
done
echo "$kills kills in $round rounds"
