# Checkpoints of ranks in processes: the files are those of one device, runs go on from them on any layout,
# and a process that is killed takes no checkpoint along.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/mpi.bash"
mpi_or_skip
fresh_model
write_reviews train.tsv 200 1
write_reviews validation.tsv 60 2
settings=(--model model --train train.tsv --validation validation.tsv --threads 1 --quiet)
train=("$LOCKSTEP" train "${settings[@]}" --epochs 2)
sha() { grep -o 'sha256 .*' out.txt; }
# metrics FILE: the lines without what a clock said.
metrics() { sed -E 's/, "step_seconds".*//; s/, "seconds": [^,]*//' "$1"; }

expect 0 "${train[@]}" --output whole --save-every 3 --save-total-limit 9 --keep-best loss
wanted=$(sha)
# same FOLDER: the run's model and history are the undisturbed run's.
same() {
    [[ $(sha) == "$wanted" ]] || { cat out.txt && fail "$1: another model"; }
    diff <(metrics whole/metrics.jsonl) <(metrics "$1/metrics.jsonl") || fail "$1: another history"
    [[ $(jq '.planned_bytes == .measured_bytes' "$1/run.json") == true ]] || fail "$1: other memory than planned"
    [[ -z $(find "$1" -name '*.tmp-*') ]] || fail "$1: $(find "$1" -name '*.tmp-*') stays"
}

# --- saved by processes: the tensors of one device, whoever wrote them --------------------------------
expect 0 mpi_one 2 "${train[@]}" --output ddp --strategy ddp --save-every 3 --save-total-limit 9 --keep-best loss --audit-every 4
same ddp
expect 0 mpi_one 2 "${train[@]}" --output zero3 --strategy zero3 --save-every 3 --save-total-limit 9 --save-async=false --keep-best loss
same zero3
for saved in ddp zero3; do
    [[ $(ls -d $saved/checkpoint-*) == "$(ls -d whole/checkpoint-* | sed s/whole/$saved/)" ]] || fail "$saved: $(ls $saved)"
    [[ $(jq -c .best_checkpoint $saved/run.json) == "$(jq -c .best_checkpoint whole/run.json)" ]] || fail "$saved: another best"
    for step in 3 12; do
        expect 0 "$LOCKSTEP" verify $saved/checkpoint-$step
        expect 0 "$LOCKSTEP" verify $saved/checkpoint-$step whole/checkpoint-$step
    done
    expect 0 "$LOCKSTEP" audit $saved
done

# --- going on, on other layouts ------------------------------------------------------------------------
expect 0 "${train[@]}" --output one --resume ddp/checkpoint-3
same one
expect 0 mpi_one 3 "${train[@]}" --output three --resume zero3/checkpoint-6 --strategy zero1
says err.txt "going on from zero3/checkpoint-6, after step 6 of 14"
same three
expect 0 "${train[@]}" --output two --resume zero3/checkpoint-9 --strategy ddp --devices 2
same two
expect 0 mpi_one 2 "${train[@]}" --output back --resume whole/checkpoint-6 --strategy zero3+offload --save-every 4
same back
# The newest one is not whole: one process says so, all go on from the same. What a process left that was killed
# at its start goes.
printf 'x' >>back/checkpoint-12/model.safetensors
: >back/.lockstep-0123456789abcdef
: >back/.lockstep-fedcba9876543210.tmp-123
expect 0 mpi_one 3 "${train[@]}" --output back --resume auto --strategy zero2
[[ $(grep -c 'skipped checkpoint-12, which is not whole' err.txt) -eq 1 ]] || { cat err.txt && fail "not said once"; }
says err.txt "going on from back/checkpoint-8"
same back
[[ -z $(find back -name '.lockstep-*') ]] || fail "left: $(find back -name '.lockstep-*')"

# --- what is refused, by one line -------------------------------------------------------------------
refused_start() {
    local text=$1
    shift
    expect 1 mpirun --oversubscribe --bind-to none "$@"
    says err.txt "$text"
    [[ $(grep -c '^lockstep: ' err.txt) -eq 1 ]] || { cat err.txt && fail "not one line"; }
    [[ ! -e new ]] || fail "a refused run leaves its folder"
}
two=("${train[@]}" --output new --strategy ddp)
refused_start "are not given the same --resume" -np 1 "${two[@]}" --resume whole/checkpoint-3 : -np 1 "${two[@]}"
refused_start "ddp/checkpoint-6: process 1 on $(hostname) does not see the checkpoint that process 0 on" \
    -np 1 "${two[@]}" --resume whole/checkpoint-3 : -np 1 "${two[@]}" --resume ddp/checkpoint-6
expect 2 mpi_one 2 "${two[@]}" --resume whole/checkpoint-3 --seed 7
says err.txt "the run cannot go on with other numbers: seed is 42 there and 7 here"
expect 2 mpi_one 2 "${train[@]}" --output ddp --strategy ddp
says err.txt "ddp: holds checkpoints of a former run, checkpoint-14 the newest"

# --- a stop, and deaths ----------------------------------------------------------------------------------
long=("${settings[@]}" --epochs 40 --batch-size 16 --strategy ddp)
expect 0 "$LOCKSTEP" train "${long[@]}" --output long
wanted=$(sha)
mpi_one 3 "$LOCKSTEP" train "${long[@]}" --output stopped >out.txt 2>err.txt </dev/null &
run=$!
mpi_wait_for stopped/metrics.jsonl '"step": 20' 60
kill -USR1 "$(pgrep -P $run mpirun || echo $run)"
status=0
wait $run || status=$?
[[ $status -eq 75 ]] || { cat err.txt && fail "a stop gives status $status"; }
[[ -d stopped/checkpoint-$(grep -oE 'stopped after [0-9]+' out.txt | cut -d ' ' -f 3) ]] || fail "a stop leaves no checkpoint: $(ls stopped)"
expect 0 mpi_one 2 "$LOCKSTEP" train "${long[@]}" --output stopped --resume auto
[[ $(sha) == "$wanted" ]] || fail "after a stop: another model"

# A rank is killed while every step is saved; the run that goes on finds nothing that is half.
pid_of() { grep -oE 'process number [0-9]+' "$1" | cut -d ' ' -f 3; }
for rank in 0 1; do
    rm -rf killed
    mpi_one 2 "$LOCKSTEP" train "${long[@]}" --output killed --save-every 1 --log-ranks all >out.txt 2>err.txt </dev/null &
    run=$!
    mpi_wait_for killed/metrics.jsonl '"step": 12' 60
    kill -KILL "$(pid_of killed/rank-$rank.log)"
    wait $run && fail "a killed rank gives status 0"
    expect 0 "$LOCKSTEP" train "${long[@]}" --output killed --resume auto
    grep -qF skipped err.txt && { cat err.txt && fail "half a checkpoint under a whole one's name"; }
    says err.txt "going on from killed/checkpoint-"
    [[ $(sha) == "$wanted" ]] || fail "after the death of rank $rank: another model"
done

# Supervised: it goes on by itself.
"$LOCKSTEP" launch --processes 2 --max-restarts 3 -- train "${long[@]}" --output watched --save-every 10 --log-ranks all \
    >out.txt 2>err.txt </dev/null &
run=$!
mpi_wait_for watched/metrics.jsonl '"step": 25' 60
kill -KILL "$(pid_of watched/rank-1.log)"
wait $run || { cat err.txt && fail "a supervised run does not end well"; }
# On a busy machine the other rank may have missed it, and ended, before mpirun had its status.
grep -qE 'rank 1 on .* (was ended by SIGKILL|is gone)' err.txt || { cat err.txt && fail "no first cause"; }
says err.txt "restart 1 of 3 in 1 s from checkpoint-"
[[ $(sha) == "$wanted" ]] || { cat out.txt && fail "a supervised run: another model"; }
expect 0 "$LOCKSTEP" audit watched

# --- on two hosts ------------------------------------------------------------------------------------
if ! two_hosts_start; then
    echo "only one host: $two_hosts_reason"
    exit 0
fi
trap two_hosts_stop EXIT
wanted=$(grep -o 'sha256 .*' <<<"sha256 $(sha256sum <one/model.safetensors | cut -d ' ' -f 1)")
rm -rf one
expect 0 two_hosts_mpirun 2 1 "${train[@]}" --output apart --strategy zero3 --save-every 4
same apart
expect 0 "$LOCKSTEP" verify apart/checkpoint-8
expect 0 "${train[@]}" --output one --resume apart/checkpoint-8
same one
expect 0 two_hosts_mpirun 1 1 "${train[@]}" --output apart --strategy ddp --resume auto
says err.txt "going on from apart/checkpoint-12"
same apart
