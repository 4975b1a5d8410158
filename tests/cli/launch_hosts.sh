# Two hosts, the second a network namespace of this machine: ranks are started on both, and when the
# second falls silent the run goes on with the ranks of the first.
source "$SOURCE/tests/cli/common.bash"

space=lockstep$$
near=lsa$$ far=lsb$$
[[ $(id -u) -eq 0 ]] || { echo "network namespaces are made by root only" && exit 77; }
command -v ip >/dev/null || { echo "no ip: install the package iproute2" && exit 77; }
mpirun --version 2>/dev/null | grep -q 'Open MPI' || { echo "no mpirun of Open MPI: install openmpi-bin" && exit 77; }
trap 'ip netns del $space 2>/dev/null; ip link del $near 2>/dev/null || true' EXIT
if ! { ip netns add $space && ip link add $near type veth peer name $far && ip link set $far netns $space; } 2>netns.txt
then
    echo "network namespaces are not allowed here: $(tail -n 1 netns.txt)" && exit 77
fi
network=10.$((64 + $$ % 64)).$(($$ / 64 % 256))
ip addr add "$network.1/24" dev $near
ip link set $near up
ip netns exec $space ip addr add "$network.2/24" dev $far
ip netns exec $space ip link set $far up
ip netns exec $space ip link set lo up

# What ssh is elsewhere. The namespace has a host name of its own.
cat >agent <<END
#!/bin/sh
host=\$1
shift
ip netns exec $space ip link show $far | grep -q LOWER_UP || { echo "no route to \$host" >&2; exit 255; }
exec ip netns exec $space unshare --uts sh -c "hostname far-away; \$*"
END
chmod +x agent
# A silent host is noticed after seconds instead of half a minute.
export OMPI_MCA_plm_rsh_agent=$PWD/agent OMPI_MCA_oob_tcp_if_include=$network.0/24 \
    OMPI_MCA_btl_tcp_if_include=$network.0/24 OMPI_MCA_oob_tcp_keepalive_time=2 \
    OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=2
export LOCKSTEP_LAUNCH_PROGRAM=$SOURCE/tests/cli/stand_in.py
printf 'localhost slots=1\n%s slots=2\n' "$network.2" >hosts
write_reviews train.tsv 40 1
train=(train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --output out)
launch=("$LOCKSTEP" launch --processes 3 --hosts hosts)

expect 0 "${launch[@]}" -- "${train[@]}"
says err.txt "3 processes on 2 hosts" "     1  $network.2  part 1 of 2 of its cores" "step 20"
[[ $(cat attempts.txt) == "3 train "* && -s pids.2 ]] || { cat attempts.txt && fail "not three ranks"; }

# A rank over there dies: it is named with its host.
rm -rf out pids.* attempts.txt
STAND_IN_DIE=2:3:9 expect 4 "${launch[@]}" -- "${train[@]}"
says err.txt "rank 2 on $network.2 was ended by SIGKILL (Killed); its last line: rank 2 had step 3"

# The cable is pulled at step 30 or so.
rm -rf out pids.* attempts.txt
(
    until [[ -d out/checkpoint-30 ]]; do sleep 0.1; done
    ip link set $near down
) &
STAND_IN_STEPS=300 STAND_IN_SAVE=10 expect 0 "${launch[@]}" --max-restarts 2 --min-processes 1 -- "${train[@]}"
says err.txt "host $network.2 no longer answers" "host $network.2 does not answer" "1 process on 1 host" \
    "step 300"
tail -n 1 attempts.txt | grep -q '^1 train .* --resume auto$' || { cat attempts.txt && fail "not one rank, resumed"; }

# It stays down. Without leave to shrink the run is given up; nothing starts at all where it must be there.
rm -rf out pids.* attempts.txt
expect 1 "${launch[@]}" --max-restarts 2 -- "${train[@]}"
says err.txt "no route to $network.2"
[[ ! -e attempts.txt ]] || fail "a rank was started"
