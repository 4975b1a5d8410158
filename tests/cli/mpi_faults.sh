# A rank that is killed or stopped ends the run with status 4, naming it, on every rank; signals ask for an
# end; nothing is left behind.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/mpi.bash"
mpi_or_skip

write_reviews train.tsv 102 1
train=("$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --batch-size 32 --quiet
    --max-steps 100000000 --threads 1 --strategy ddp --output out)

# begin START... : run in the background, until it trains.
begin() {
    rm -rf out
    mpi_note
    "$@" >out.txt 2>err.txt </dev/null &
    run=$!
    mpi_wait_for out/metrics.jsonl '"step": 20' 60
}

# ended WITHIN RANK... : all these ranks end with status 4 in so many seconds.
ended() {
    local end=$((SECONDS + $1)) rank
    shift
    for rank; do
        until [[ -s status.$rank ]]; do
            [[ $SECONDS -lt $end ]] || { cat err.txt && fail "rank $rank still runs"; }
            sleep 0.05
        done
        [[ $(cat status.$rank) -eq 4 ]] || { cat err.txt && fail "rank $rank ends with $(cat status.$rank)"; }
    done
}

# killed RANK OTHERS START...: kill it at some moment.
killed() {
    local rank=$1 others=$2
    shift 2
    begin "$@"
    sleep "0.$((RANDOM % 10))"
    kill -KILL "$(cat "pid.$rank")"
    # shellcheck disable=SC2086
    ended 5 $others
    wait $run || true
    grep -Eq "^lockstep: rank $rank on .* is gone .*: rank [0-9]+ on .* waits for rank [0-9]+ on .* in step [0-9]+, for |^lockstep: a process of this run is gone: rank [0-9]+ on .* waits for .* in step [0-9]+, for " err.txt ||
        { cat err.txt && fail "does not say who is gone"; }
    mpi_nothing_left
}

killed 1 "0 2" mpi_one 3 ./mpi_noted "${train[@]}"
killed 0 "1 2" mpi_one 3 ./mpi_noted "${train[@]}"
killed 1 "0" mpi_one 2 ./mpi_noted "${train[@]}"

# Stopped: a warning after ten seconds, the end after --timeout.
begin mpi_one 3 ./mpi_noted "${train[@]}" --timeout 12
kill -STOP "$(cat pid.2)"
mpi_wait_for err.txt "rank 2 on" 13
says err.txt "s late" "waits for rank 2"
ended 10 0 1
says err.txt "did not come within 12 s (--timeout)"
wait $run || true
mpi_nothing_left

# SIGUSR1, which mpirun passes on: all stop after the same step, with the model.
begin mpi_one 3 "${train[@]}"
kill -USR1 "$(pgrep -P $run mpirun || echo $run)"
status=0
wait $run || status=$?
[[ $status -eq 75 ]] || { cat err.txt && fail "SIGUSR1 gives $status"; }
says out.txt "stopped after"
[[ -s out/model.safetensors ]] || fail "SIGUSR1 leaves no model"

# SIGTERM from mpirun: a peer is gone, within a second, even while a rank computes.
begin mpi_one 2 ./mpi_noted "${train[@]}"
kill -TERM "$(cat pid.0)" "$(cat pid.1)"
ended 3 0 1
wait $run || true

if ! two_hosts_start; then
    echo "only one host: $two_hosts_reason"
    exit 0
fi
trap two_hosts_stop EXIT
killed 1 "0 2 3" two_hosts_mpirun 2 2 ./mpi_noted "${train[@]}"
killed 3 "0 1 2" two_hosts_mpirun 2 2 ./mpi_noted "${train[@]}"
killed 1 "0" two_hosts_mpirun 1 1 ./mpi_noted "${train[@]}"

# What started it does not report the end of the one on the other host: the connection between the two does.
parent_of() { ps -o ppid= -p "$1" | tr -d ' '; }
begin two_hosts_mpirun 1 1 ./mpi_noted "${train[@]}"
starter=$(parent_of "$(parent_of "$(cat pid.1)")")
[[ $(tr '\0' ' ' <"/proc/$starter/cmdline") == *orted* ]] || fail "$starter is no daemon of Open MPI's on the other host"
kill -STOP "$starter"
kill -KILL "$(cat pid.1)"
ended 5 0
kill -CONT "$starter"
wait $run || true
says err.txt "rank 0 on host-a waits for rank 1 on host-b in step"
mpi_nothing_left
