# Ranks in processes, on one host and on two: the bits of one device. A sample of the layouts, all of them
# with LOCKSTEP_TEST_LONG=1; what differs is refused; one process prints and writes.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/mpi.bash"
mpi_or_skip

# Batches of eight leaves; the last one of an epoch has six samples.
write_reviews train.tsv 102 1
write_reviews validation.tsv 41 2
train=("$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --quiet
    --validation validation.tsv --batch-size 32 --max-steps 30 --learning-rate 1e-3 --threads 1)
# Of model.safetensors, on any machine and layout.
known=8ed059ae479ee1418243004a0ca8ce744d8b8a8805c953f970d03d89917ee72d
hosts=one
if two_hosts_start; then
    hosts="one two"
    trap two_hosts_stop EXIT
else
    echo "only one host: $two_hosts_reason"
fi

# What a run computed, with all its digits; not how long it took.
numbers() {
    jq -c '{evaluation, step, epoch, loss, learning_rate, gradient_norm, samples, tokens, accuracy, macro_f1, confusion}' "$1"
}

# one_device FOLDER: what the layouts are held against, in $golden, $moments and single.txt.
one_device() {
    expect 0 "${train[@]}" --output "$1" --save-every 30
    golden=$(sha256sum <"$1/model.safetensors")
    moments=$(sha256sum <"$1/checkpoint-30/optimizer.safetensors")
    numbers "$1/metrics.jsonl" >single.txt
}
one_device single
[[ $golden == "$known  -" ]] || fail "other weights than on any machine: $golden"

# check HOSTS PROCESSES DEVICES THREADS BUCKET PASS [STRATEGY [FLAGS...]]
check() {
    local hosts=$1 processes=$2 devices=$3 start=(mpi_one "$2") strategy=${7:-ddp} flags=("${@:8}")
    shift 3
    if [[ $hosts == two ]]; then start=(two_hosts_mpirun $(((processes + 1) / 2)) $((processes / 2))); fi
    expect 0 "${start[@]}" "${train[@]}" --output out --strategy "$strategy" --devices "$devices" \
        --threads "$1" --bucket-size "$2" --samples-per-pass "$3" --save-every 30 "${flags[@]}"
    local what="$hosts host, $processes processes of $devices devices, $*"
    [[ $(sha256sum <out/model.safetensors) == "$golden" ]] || fail "$what: other weights"
    [[ $(sha256sum <out/checkpoint-30/optimizer.safetensors) == "$moments" ]] || fail "$what: another optimizer state"
    rm -r out/checkpoint-30
    numbers out/metrics.jsonl | cmp -s - single.txt || fail "$what: other metrics"
    [[ $(grep -c '^trained 30 steps' out.txt) -eq 1 ]] || { cat out.txt && fail "$what: not said once"; }
    [[ $(jq '.planned_bytes == .measured_bytes' out/run.json) == true ]] || fail "$what: other memory than planned"
    ran=$((ran + 1))
}

ran=0
if [[ -n ${LOCKSTEP_TEST_LONG:-} ]]; then
    for host in $hosts; do
        for ranks in 1 2 3 4 8; do
            [[ $host == one || $ranks -gt 1 ]] || continue
            for threads in 1 2; do
                for bucket in 16KiB 25MiB; do
                    for pass in 2 all; do check $host $ranks 1 $threads $bucket $pass; done
                done
            done
        done
        for strategy in zero1 zero2 zero3 zero3+offload zero3+recompute; do
            for ranks in 1 2 3 4 8; do
                [[ $host == one || $ranks -gt 1 ]] || continue
                for pass in 4 all; do check $host $ranks 1 1 16KiB $pass $strategy; done
            done
            check $host 2 2 1 25MiB all $strategy
        done
        for ranks in 1 2 3 4 8; do
            [[ $host == one || $ranks -gt 1 ]] || continue
            check $host $ranks 1 1 16KiB all zero3 --offload-optimizer disk --offload-parameters disk \
                --offload-path "$PWD" --offload-block-size 8KiB
        done
        for threads in 1 2; do
            check $host 2 2 $threads 16KiB 2
            check $host 2 4 $threads 25MiB all
            check $host 3 2 $threads 16KiB all
            check $host 4 2 $threads 16KiB 2
        done
    done
else
    check one 2 1 1 25MiB all
    check one 3 1 2 16KiB 2
    check one 2 2 1 16KiB all
    check one 3 1 1 16KiB 4 zero3
    for host in ${hosts#one}; do
        check two 2 1 2 16KiB 2
        check two 3 1 1 25MiB all
        check two 2 4 1 16KiB all
        check two 4 1 1 16KiB 2
        check two 3 1 1 16KiB 4 zero2
        check two 2 2 1 25MiB all zero3
    done
fi

# Three passes of all ranks: batches of 96, each rank's share of a third in a pass.
if [[ -n ${LOCKSTEP_TEST_LONG:-} ]]; then
    of_32=$golden
    train+=(--batch-size 96)
    one_device single96
    for host in $hosts; do
        for strategy in zero2 zero3; do
            for ranks in 1:32 2:16 3:12 4:8 8:4; do
                [[ $host == one || $ranks != 1:* ]] || continue
                check $host ${ranks%:*} 1 1 16KiB ${ranks#*:} $strategy
            done
        done
    done
    train+=(--batch-size 32)
    golden=$of_32
fi
echo "$ran layouts"

# One exchange a step, whatever the passes, and what each rank did.
expect 0 mpi_one 2 "${train[@]}" --output out --strategy ddp --devices 2 --log-ranks all
for rank in 0 1 2 3; do
    says out/rank-$rank.log "rank $rank of 4" "step 30: loss" "end"
done
expect 0 mpi_one 2 "${train[@]}" --output out --strategy ddp
[[ ! -e out/rank-0.log ]] || fail "a former run's log stays"

# different TEXT ARGUMENTS -- ARGUMENTS: two processes with different arguments are refused, by one line.
different() {
    local text=$1 first=()
    shift
    while [[ $1 != -- ]]; do first+=("$1") && shift; done
    shift
    expect 1 mpirun --oversubscribe --bind-to none -np 1 "${train[@]}" --output new --strategy ddp "${first[@]}" \
        : -np 1 "${train[@]}" --output new --strategy ddp "$@"
    says err.txt "process 1 on" "process 0 on" "$text"
    [[ $(grep -c '^lockstep: ' err.txt) -eq 1 ]] || { cat err.txt && fail "not one line"; }
    [[ ! -e new ]] || fail "a refused run leaves its folder"
}
head -n 60 train.tsv >short.tsv
fresh_model
python3 "$SOURCE/tests/cli/damage.py" model weights 'put_float(body, word, 5, 0.5)'
different "--seed 2" --seed 1 -- --seed 2
different "--devices 2" --devices 1 -- --devices 2
different "rows of --train" -- --train short.tsv
different "weights of --model" -- --model "$PWD/model"
cp "$LOCKSTEP" other && printf ' ' >>other
expect 1 mpirun --oversubscribe -np 1 "${train[@]}" --output new --strategy ddp : -np 1 ./other "${train[@]:1}" --output new --strategy ddp
says err.txt "program: version"

# What one process finds, all stop for, and one says.
expect 1 mpirun --oversubscribe -np 1 "${train[@]}" --output new --strategy ddp : -np 1 "${train[@]}" --train none.tsv --output new --strategy ddp
says err.txt "none.tsv"
expect 2 mpi_one 9 "${train[@]}" --output new --strategy ddp
says err.txt "9 ranks (9 processes of --devices 1)" "8 leaves"
expect 2 mpi_one 2 "${train[@]}" --output new
says err.txt "--strategy single runs on one rank"
# The same tensor and samples as on one device.
wild=(--learning-rate 1e6 --weight-decay 1e6 --weight-decay-all --max-grad-norm 0)
expect 5 "${train[@]}" --output out "${wild[@]}"
grep '^lockstep: ' err.txt >alone.txt
says alone.txt "nothing was updated in this step; first in tensor "
expect 5 mpi_one 3 "${train[@]}" --output out --strategy ddp "${wild[@]}"
grep '^lockstep: ' err.txt | cmp - alone.txt || { cat err.txt && fail "other words than on one device"; }
[[ ! -e new ]] || fail "a refused run leaves its folder"

# The plan counts what travels between hosts.
plan=("$LOCKSTEP" plan --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --batch-size 32 --strategy ddp)
expect 0 mpi_one 2 "${plan[@]}"
[[ $(grep -c 'total on the device' out.txt) -eq 1 ]] || fail "the plan is not printed once"
# Between hosts buckets are smaller, unless said otherwise.
buckets() {
    expect 0 "$@" --output out --strategy ddp
    jq -c '.settings.bucket_size | [.value, .given]' out/run.json
}
[[ $(buckets mpi_one 2 "${train[@]}") == '[26214400,"auto"]' ]] || fail "not 25 MiB on one host"
if [[ $hosts == *two* ]]; then
    [[ $(buckets two_hosts_mpirun 1 1 "${train[@]}") == '[4194304,"auto"]' ]] || fail "not 4 MiB between hosts"
    [[ $(buckets two_hosts_mpirun 1 1 "${train[@]}" --bucket-size 25MiB) == '[26214400,null]' ]] || fail "not as said"
    expect 0 two_hosts_mpirun 1 1 "${plan[@]}"
    says out.txt "messages between hosts"
    # A folder of the one host is none of the other: here, a mount that only its namespace has.
    mkdir -p own
    expect 1 two_hosts_mpirun 1 1 sh -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
        exec unshare --mount sh -c "mount -t tmpfs none own && exec \"\$@\"" sh "$@"; fi; exec "$@"' sh \
        "${train[@]}" --output own/out --strategy ddp
    says err.txt "does not see the output folder of process 0 on host-a"
fi

# Buckets travel beside the backward pass, or after it, with the same bits; a profile shows it.
beside() {
    expect 0 "$@" --output out --strategy ddp --bucket-size 16KiB --profile
    [[ $(sha256sum <out/model.safetensors) == "$golden" ]] || fail "$*: other weights"
    read -r early every < <(python3 "$SOURCE/tests/cli/overlap.py" out/profile/trace.json)
    [[ $every -ge 20 ]] || fail "$*: the trace has only $every sums"
}
starts=("mpi_one 2")
if [[ $hosts == *two* ]]; then starts+=("two_hosts_mpirun 1 1"); fi
for start in "${starts[@]}"; do
    # shellcheck disable=SC2086
    beside $start "${train[@]}"
    [[ $early -gt 0 ]] || fail "$start: no bucket travels beside the backward pass"
    # shellcheck disable=SC2086
    beside $start "${train[@]}" --overlap-communication=false
    [[ $early -eq 0 ]] || fail "$start: $early of $every buckets travel beside the backward pass"
done
if [[ $hosts == *two* ]]; then
    jq -e '[.traceEvents[] | select(.ph == "X" and .name == "gather bucket" and .tid == 5)] | length > 20' out/profile/trace.json >shown.txt ||
        fail "gathers between hosts have no thread of their own"
fi
expect 2 "$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --output new --strategy zero2 --overlap-communication=false
says err.txt "--overlap-communication false needs --strategy ddp or zero1" "zero2"

# Started as one of several by something else than MPI's own mpirun.
expect 1 env SLURM_STEP_NUM_TASKS=2 "${train[@]}" --output new
says err.txt "one of 2" "srun --mpi=pmix"

# The learning rate of a larger batch.
expect 0 mpi_one 2 "${train[@]}" --output out --strategy ddp --learning-rate-scaling sqrt --base-batch-size 8
says err.txt "learning rate 0.002: 0.001 for a batch of 8, times 2 for one of 32"
[[ $(jq '.settings.learning_rate.value' out/run.json) == 0.002 ]] || fail "run.json has another learning rate"
expect 0 mpi_one 2 "${train[@]}" --output out --strategy ddp --learning-rate-scaling linear --base-batch-size 8
says err.txt "learning rate 0.004: 0.001 for a batch of 8, times 4 for one of 32"
expect 2 "${train[@]}" --output new --learning-rate-scaling cubic --base-batch-size 8
says err.txt "--learning-rate-scaling: 'cubic'" "none, linear, sqrt"
