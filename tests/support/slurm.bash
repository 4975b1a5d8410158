# Sourced by tests that start a Slurm of their own, in an empty folder, after tests/cli/common.bash. Needs root, and the
# packages of `tools/install-packages.sh slurm`.
#
#   slurm_or_skip               # ends the test with 77 and a reason where there can be none
#   slurm_settings >slurm.conf  # all of it but the ports, the controller and the nodes
#   start_munge                 # start LOG COMMAND...: any other daemon, in the background
#   stop_daemons                # those that were started, the last one first
#   await SECONDS COMMAND...    # until it succeeds

folder=$PWD
started=()

skip() {
    echo "$*"
    exit 77
}

slurm_or_skip() {
    local program
    [[ $(id -u) -eq 0 ]] || skip "slurmctld and slurmd are started by root only"
    for program in munged slurmctld slurmd srun scontrol; do
        command -v $program >/dev/null || skip "no $program: tools/install-packages.sh slurm"
    done
}

# Children of a job end with slurmd's step.
stop_daemons() {
    local index
    for ((index = ${#started[@]} - 1; index >= 0; index--)); do
        kill "${started[index]}" 2>/dev/null || true
        wait "${started[index]}" 2>/dev/null || true
    done
}

start() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 </dev/null &
    started+=($!)
}

await() {
    local left=$(($1 * 10))
    shift
    until "$@" >await.log 2>&1; do
        left=$((left - 1))
        [[ $left -gt 0 ]] || return 1
        sleep 0.1
    done
}

slurm_settings() {
    cat <<END
ClusterName=lockstep
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
END
}

start_munge() {
    chmod 755 "$folder"
    mkdir state
    dd if=/dev/urandom of=munge.key bs=128 count=1 status=none
    chmod 400 munge.key
    start munged.log munged --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
        --pid-file="$folder/munge.pid" --seed-file="$folder/munge.seed" --log-file="$folder/munge.log"
    await 20 test -S munge.socket || { cat munged.log && fail "munged does not start"; }
}
