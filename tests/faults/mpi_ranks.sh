# Ranks in processes, one of which dies in a step, has no memory, is slow or stands still: the others end in
# time or wait for it, it is named, and what goes on ends with the undisturbed run's bits.
source "$SOURCE/tests/faults/common.bash"
source "$SOURCE/tests/support/mpi.bash"
mpi_or_skip
train+=(--output run --save-every 3)

# --- dead in the middle of a step: before its passes, in an exchange, before its update --------------------
deaths=0
for ((n = 0; n < (long ? 40 : 3); n++)); do
    rm -rf run
    sites=(exchange exchange step update) strategies=(ddp zero1 zero2 zero3)
    site=${sites[n % 4]} rank=$((RANDOM % 3)) turn=$((1 + RANDOM % 14))
    start=$SECONDS
    with $rank 3 "$site:$turn:kill" --strategy ${strategies[RANDOM % 4]}
    [[ $status -eq 137 || $status -eq 4 ]] || { cat err.txt && fail "$site:$turn in rank $rank: status $status"; }
    [[ $((SECONDS - start)) -lt 30 ]] || fail "$site:$turn in rank $rank: the others ended after $((SECONDS - start)) s"
    grep -qE 'is gone|signal 9' err.txt || { cat err.txt && fail "$site:$turn in rank $rank: nobody is named"; }
    expect 0 "${train[@]}" --resume auto --strategy zero2 --devices 2
    if grep -qF skipped err.txt; then cat err.txt && fail "$site:$turn in rank $rank: half a checkpoint"; fi
    same run "$site:$turn in rank $rank"
    deaths=$((deaths + 1))
done
echo "$deaths deaths"

# --- no memory, no thread, in one process ------------------------------------------------------------------
# missing RULES FIRST STRIDE: RULES has N in place of the turn; from the first turn on, up to the one that is no more.
missing() {
    local rules=$1 n stride=$3 rank
    for ((n = $2; n < 20000; n += 1 + RANDOM % stride)); do
        rm -rf run
        rank=$((RANDOM % 2))
        with_limit=60 with $rank 2 "${rules/N/$n}" --strategy zero3
        if [[ $status -eq 0 ]]; then break; fi
        # 4 where it had no memory to tell the others: they see that it is gone.
        [[ $status -eq 1 || $status -eq 4 ]] || { cat err.txt && fail "${rules/N/$n} in rank $rank: status $status"; }
        grep -qE 'out of memory|cannot start|too small' err.txt || { cat err.txt && fail "${rules/N/$n}: does not say what was missing"; }
        refusals=$((refusals + 1))
    done
    [[ $status -eq 0 ]] || fail "$rules never passed"
    same run "$rules, past the last turn"
}
refusals=0
missing thread:N:EAGAIN 1 $([[ $long ]] && echo 1 || echo 4)
missing map:N:ENOMEM 1 $([[ $long ]] && echo 3 || echo 30)
missing memory:N:ENOMEM $((1 + RANDOM % 200)) $([[ $long ]] && echo 60 || echo 3000)
echo "$refusals refusals"

# --- other exchanges than the rest ---------------------------------------------------------------------------
for flags in "--strategy ddp --bucket-size 16KiB|--strategy ddp --bucket-size 1MiB" "--strategy zero1|--strategy zero2"; do
    rm -rf run
    failing "" mpirun --oversubscribe --bind-to none -np 1 "${train[@]}" ${flags%|*} : -np 1 "${train[@]}" ${flags#*|}
    [[ $status -eq 1 ]] || { cat err.txt && fail "$flags: status $status"; }
    says err.txt "process 1 on" "process 0 on"
    [[ $(grep -c '^lockstep: ' err.txt) -eq 1 && ! -e run ]] || { cat err.txt && fail "$flags: not one line, or a folder stays"; }
done

# --- slow: the run goes on, the profile names the rank and what it costs ---------------------------------------
rm -rf run
with 1 2 "op:1+:slow" --strategy ddp --profile
[[ $status -eq 0 ]] || { cat err.txt && fail "a slow process: status $status"; }
same run "a slow process"
[[ $(jq .straggler run/profile/summary.json) -eq 1 ]] || { cat run/profile/summary.txt && fail "another straggler of two processes"; }
rm -rf run
failing "op.rank1:1+:slow" "${train[@]}" --strategy ddp --devices 3 --profile
[[ $status -eq 0 ]] || { cat err.txt && fail "a slow rank: status $status"; }
same run "a slow rank"
says run/profile/summary.txt "the others wait for it" "computing ms/step" "waiting ms/step"
[[ $(jq .straggler run/profile/summary.json) -eq 1 ]] || { cat run/profile/summary.txt && fail "another straggler"; }
jq '.ranks | .[0].wait_seconds > .[1].wait_seconds and .[1].compute_seconds > 2 * .[0].compute_seconds' run/profile/summary.json |
    grep -q true || { cat run/profile/summary.txt && fail "its share is not told"; }

# --- it stands still for a while: named with its lag, then the run goes on ---------------------------------------
if [[ -z $long ]]; then exit 0; fi # ten seconds of nothing
rm -rf run
with 1 3 "step.rank1:5:stop" --strategy ddp --log-ranks all &
job=$!
mpi_wait_for err.txt "rank 1 on $(hostname) is 10 s late: rank 0 on $(hostname) waits for rank 1 on $(hostname) in step 5, for" 60
kill -CONT "$(grep -oE 'process number [0-9]+' run/rank-1.log | cut -d ' ' -f 3)"
wait $job || { cat err.txt && fail "a rank that stood still"; }
same run "a rank that stood still"
