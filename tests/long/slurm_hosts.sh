#!/usr/bin/env bash
# srun on two hosts, with one process on each: nobody is there to tell the one that the other has died. The two hosts
# are network namespaces with a slurmd each. Needs root, and the packages of `tools/install-packages.sh slurm`.
#
# Usage: LOCKSTEP=build/lockstep SOURCE=. tests/long/slurm_hosts.sh, in an empty folder
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/slurm.bash"
source "$SOURCE/tests/support/two_hosts.bash"

slurm_or_skip
has_mpi || skip "this lockstep was built without MPI"
two_hosts_start || skip "$two_hosts_reason"

tear_down() {
    ./on_a scancel --full --state RUNNING >/dev/null 2>&1 || true
    stop_daemons
    two_hosts_stop
}
trap tear_down EXIT

# on_a, on_b: a command on that host. Its Slurm has a folder of its own for what hosts keep in /tmp.
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
    {
        slurm_settings
        cat <<END
SlurmctldHost=host-a($two_hosts_network.1)
SlurmctldPort=6817
SlurmdPort=6818
NodeName=host-a NodeHostname=host-a NodeAddr=$two_hosts_network.1 CPUs=$(nproc) State=UNKNOWN
NodeName=host-b NodeHostname=host-b NodeAddr=$two_hosts_network.2 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=host-a,host-b Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:4
END
    } >conf-$host/slurm.conf
done

start_munge
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
run=(./on_a srun --mpi=pmix -N 2 -n 2 ./noted "$LOCKSTEP" train --model model --train train.tsv --threads 1
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
