# Sourced by tests that need two hosts: two network namespaces of this machine, joined by a pair of
# virtual Ethernet ports, with host names of their own. Needs root (CAP_NET_ADMIN, CAP_SYS_ADMIN).
#
#   two_hosts_start || { echo "$two_hosts_reason"; exit 77; }
#   trap two_hosts_stop EXIT
#   two_hosts_mpirun RANKS_ON_A RANKS_ON_B COMMAND...
#   two_hosts_first COMMAND...      # on the first one, where `mpirun` and `lockstep launch` find both by their names
#   two_hosts_slow 100mbit          # token buckets on both ends; two_hosts_fast takes them away

two_hosts_reason=
two_hosts_a=lockstep-a-$$
two_hosts_b=lockstep-b-$$
two_hosts_network=10.$((64 + $$ / 250 % 60)).$(($$ % 250))

# two_hosts_start [NAME NAME]: what the hosts call themselves and each other.
two_hosts_start() {
    two_hosts_names=("${1:-host-a}" "${2:-host-b}")
    local log=two_hosts.log
    two_hosts_reason="two hosts need root and the commands ip and unshare"
    [[ $(id -u) -eq 0 ]] && command -v ip >/dev/null && command -v unshare >/dev/null || return 1
    two_hosts_reason="two hosts need an Open MPI with mpirun"
    mpirun --version 2>/dev/null | grep -q 'Open MPI' || return 1
    two_hosts_reason="network namespaces may not be set up here"
    {
        ip netns add "$two_hosts_a" && ip netns add "$two_hosts_b" &&
            ip -n "$two_hosts_a" link add port type veth peer name port netns "$two_hosts_b" &&
            ip -n "$two_hosts_a" addr add "$two_hosts_network.1/24" dev port &&
            ip -n "$two_hosts_b" addr add "$two_hosts_network.2/24" dev port &&
            ip -n "$two_hosts_a" link set lo up && ip -n "$two_hosts_b" link set lo up &&
            ip -n "$two_hosts_a" link set port up && ip -n "$two_hosts_b" link set port up
    } >"$log" 2>&1 || {
        two_hosts_stop
        return 1
    }
    # What mpirun calls in place of ssh: HOST COMMAND...
    cat >two_hosts_agent <<AGENT
#!/bin/sh
shift
exec ip netns exec $two_hosts_b unshare --uts --mount sh -c "mount --bind $PWD/two_hosts_names /etc/hosts; hostname ${two_hosts_names[1]}; \$*"
AGENT
    chmod +x two_hosts_agent
    printf '127.0.0.1 localhost\n%s %s\n' "$two_hosts_network.1" "${two_hosts_names[0]}" "$two_hosts_network.2" \
        "${two_hosts_names[1]}" >two_hosts_names
}

two_hosts_stop() {
    ip netns del "$two_hosts_a" 2>/dev/null || true
    ip netns del "$two_hosts_b" 2>/dev/null || true
}

two_hosts_first() {
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        ip netns exec "$two_hosts_a" unshare --uts --mount sh -c 'mount --bind "$1" /etc/hosts; hostname "$2"; shift 2; exec "$@"' \
        sh "$PWD/two_hosts_names" "${two_hosts_names[0]}" "$@"
}

two_hosts_mpirun() {
    local a=$1 b=$2
    shift 2
    two_hosts_first \
        mpirun -np $((a + b)) --host "$two_hosts_network.1:$a,$two_hosts_network.2:$b" \
        --oversubscribe --bind-to none --mca plm_rsh_agent "$PWD/two_hosts_agent" \
        --mca btl_tcp_if_include "$two_hosts_network.0/24" \
        --mca oob_tcp_if_include "$two_hosts_network.0/24" \
        --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none "$@"
}

# The burst holds the 64 KiB that the kernel sends as one packet, as to a network card that cuts it
# itself; with less the kernel would cut it, at several times the work of the whole exchange.
two_hosts_slow() {
    local namespace
    for namespace in "$two_hosts_a" "$two_hosts_b"; do
        ip netns exec "$namespace" tc qdisc replace dev port root tbf rate "$1" burst 128kb latency 50ms
    done
}

two_hosts_fast() {
    local namespace
    for namespace in "$two_hosts_a" "$two_hosts_b"; do
        ip netns exec "$namespace" tc qdisc del dev port root
    done
}
