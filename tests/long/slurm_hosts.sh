#!/usr/bin/env bash
# srun on two hosts, with one process on each: nobody is there to tell the one that the other has died. The two hosts
# are network namespaces with a slurmd each. Needs root, and the packages of `tools/install-packages.sh slurm`.
#
# Usage: LOCKSTEP=build/lockstep SOURCE=. tests/long/slurm_hosts.sh, in an empty folder
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/two_hosts.bash"

skip() {
    echo "$*"
    exit 77
}
[[ $(id -u) -eq 0 ]] || skip "slurmctld and slurmd are started by root only"
for program in munged slurmctld slurmd srun scontrol nsenter; do
    command -v $program >/dev/null || skip "no $program: tools/install-packages.sh slurm"
done
has_mpi || skip "this lockstep was built without MPI"
two_hosts_start || skip "$two_hosts_reason"

folder=$PWD
started=()
# What was started last ends first; children of a job end with slurmd's step.
tear_down() {
    local index
    ./on_a scancel --full --state RUNNING >/dev/null 2>&1 || true
    for ((index = ${#started[@]} - 1; index >= 0; index--)); do
        kill "${started[index]}" 2>/dev/null || true
        wait "${started[index]}" 2>/dev/null || true
    done
    two_hosts_stop
}
trap tear_down EXIT

# start LOG COMMAND...: a daemon in the background, in the place of its shell.
start() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 </dev/null &
    started+=($!)
}

# await SECONDS COMMAND...: until it succeeds.
await() {
    local left=$(($1 * 10))
    shift
    until "$@" >await.log 2>&1; do
        left=$((left - 1))
        [[ $left -gt 0 ]] || return 1
        sleep 0.1
    done
}

# on_a, on_b: a command on that host. Its Slurm has a folder of its own for what hosts keep in /tmp.
chmod 755 "$folder"
mkdir state
dd if=/dev/urandom of=munge.key bs=128 count=1 status=none
chmod 400 munge.key
for host in a b; do
    namespace=two_hosts_$host
    cat >on_$host <<END
#!/bin/sh
export SLURM_CONF=$folder/conf-$host/slurm.conf
exec nsenter --net=/run/netns/${!namespace} unshare --uts sh -c 'hostname host-$host; exec "\$@"' sh "\$@"
END
    chmod +x on_$host
    mkdir conf-$host temporary-$host spool-host-$host
    echo "PMIxCliTmpDirBase=$folder/temporary-$host" >conf-$host/mpi.conf
    cat >conf-$host/slurm.conf <<END
ClusterName=lockstep
SlurmctldHost=host-a($two_hosts_network.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
SlurmctldPort=6817
SlurmdPort=6818
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
NodeName=host-a NodeHostname=host-a NodeAddr=$two_hosts_network.1 CPUs=$(nproc) State=UNKNOWN
NodeName=host-b NodeHostname=host-b NodeAddr=$two_hosts_network.2 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=host-a,host-b Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:4
END
done

start munged.log munged --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
    --pid-file="$folder/munge.pid" --seed-file="$folder/munge.seed" --log-file="$folder/munge.log"
await 20 test -S munge.socket || { cat munged.log && fail "munged does not start"; }
start slurmctld.out ./on_a slurmctld -D
await 30 ./on_a scontrol ping || { cat slurmctld.log slurmctld.out && fail "slurmctld does not start"; }
start slurmd-a.out ./on_a slurmd -D -N host-a
start slurmd-b.out ./on_b slurmd -D -N host-b
both_are_idle() {
    [[ $(./on_a sinfo --noheader --format '%D %t') == "2 idle" ]]
}
await 60 both_are_idle || { cat slurmd-*.out && fail "slurmd does not start: $(./on_a sinfo)"; }

./on_a srun --mpi=list >kinds.txt 2>&1
grep -q pmix kinds.txt || skip "this srun has no --mpi=pmix"

fresh_model
write_reviews train.tsv 200 1
export OMPI_MCA_btl_tcp_if_include=$two_hosts_network.0/24
# Each one notes its number and its end.
cat >noted <<'END'
#!/usr/bin/env bash
"$@" &
echo $! >"pid.$SLURM_PROCID"
status=0
wait $! || status=$?
echo $status >"status.$SLURM_PROCID"
exit $status
END
chmod +x noted
run=(./on_a srun --mpi=pmix -N 2 -n 2 "$@" ./noted "$LOCKSTEP" train --model model --train train.tsv --threads 1
    --quiet --strategy ddp --output out)

# killed RANK: the other one ends within five seconds with status 4, and says who is gone and what it waited for.
killed() {
    local dead=$1 left=$((1 - $1)) launched
    rm -rf out pid.* status.*
    "${run[@]}" --epochs 100000 >out.txt 2>err.txt &
    launched=$!
    await 60 grep -q '"step": 20' out/metrics.jsonl || { cat err.txt && fail "no step is made"; }
    kill -KILL "$(cat "pid.$dead")"
    await 5 test -s "status.$left" || { cat err.txt && fail "rank $left still runs"; }
    wait $launched || true
    [[ $(cat "status.$left") -eq 4 ]] || { cat err.txt && fail "rank $left ends with $(cat "status.$left")"; }
    grep -Eq "^lockstep: rank $dead on host-. is gone \(its connection has ended\): rank $left on host-. waits for .* in step [0-9]+, for " err.txt ||
        { cat err.txt && fail "it does not say who is gone"; }
}
killed 1
killed 0
