#!/usr/bin/env bash
# A one-machine Slurm, started here and torn down again: srun starts the ranks, through PMIx where the
# program has MPI. Needs root, and the packages of `tools/install-packages.sh slurm`.
#
# Usage: LOCKSTEP=build/lockstep SOURCE=. tests/long/slurm.sh, in an empty folder
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/slurm.bash"

slurm_or_skip

host=$(hostname -s)
tear_down() {
    export SLURM_CONF=$folder/slurm.conf
    scancel --full --state RUNNING >/dev/null 2>&1 || true
    stop_daemons
}
trap tear_down EXIT

# Two ports that nobody listens on; both daemons are of this machine.
read -r control_port node_port < <(python3 - <<'PYTHON'
import socket
sockets = [socket.socket() for _ in range(2)]
for one in sockets:
    one.bind(("", 0))
print(*(one.getsockname()[1] for one in sockets))
PYTHON
)
export SLURM_CONF=$folder/slurm.conf
{
    slurm_settings
    cat <<END
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$control_port
SlurmdPort=$node_port
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:4
END
} >slurm.conf
start_munge
start slurmctld.out slurmctld -D -f "$SLURM_CONF"
await 30 scontrol ping || { cat slurmctld.log slurmctld.out && fail "slurmctld does not start"; }
start slurmd.out slurmd -D -f "$SLURM_CONF" -N "$host"
node_is_idle() {
    sinfo --noheader --format %t | grep -qx idle
}
await 60 node_is_idle || { cat slurmd.out && fail "slurmd does not start: $(sinfo)"; }

# Negative control: the tasks are two, and Slurm knows.
expect 0 srun --mpi=none -n 2 -O bash -c 'echo task $SLURM_PROCID of $SLURM_STEP_NUM_TASKS'
says out.txt "task 0 of 2" "task 1 of 2"

fresh_model
write_reviews train.tsv 200 1
settings=(--model model --train train.tsv --threads 1 --quiet --strategy ddp)
train=(train "${settings[@]}" --max-steps 6)
run=(srun --mpi=pmix -n 2 -O "$LOCKSTEP" train "${settings[@]}")
expect 0 "$LOCKSTEP" "${train[@]}" --output single

if ! has_mpi; then
    expect 0 srun --mpi=none -n 1 "$LOCKSTEP" "${train[@]}" --output out
    cmp single/model.safetensors out/model.safetensors || fail "under srun another model is trained"
    echo "one task only: this program has no MPI"
    exit 0
fi
srun --mpi=list >kinds.txt 2>&1
grep -q pmix kinds.txt || skip "this srun has no --mpi=pmix"
expect 0 "${run[@]}" --max-steps 6 --output out
cmp single/model.safetensors out/model.safetensors || fail "two tasks of srun train another model"
rm -r out
# The page's own command.
(
    source "$SOURCE/tests/support/documented.bash"
    documented_start
    while IFS= read -r -d '' block; do
        if [[ $block != srun* ]]; then continue; fi
        expect 0 bash -euo pipefail -c "$block"
        [[ -s out/model.safetensors ]] || fail "no model of: $block"
        exit
    done < <(documented_blocks "$SOURCE/docs/several-hosts.md" hosts)
    fail "the page has no command of srun"
)
# As when the job's time is up soon.
"${run[@]}" --epochs 100000 --output out >out.txt 2>err.txt &
await 60 test -s out/metrics.jsonl || { cat err.txt && fail "no step is made"; }
scancel --signal=TERM "$(squeue --noheader --format %i)"
status=0
wait $! || status=$?
[[ $status -eq 75 ]] || { cat out.txt err.txt && fail "SIGTERM to the step gives status $status instead of 75"; }
# Two programs that do not know of one another would both write the folder.
expect 1 srun --mpi=none -n 2 -O "$LOCKSTEP" "${train[@]}" --output none
grep -qi pmix err.txt || { cat err.txt && fail "it does not say what to do"; }
[[ ! -e none ]] || fail "a refused run left an output folder"
