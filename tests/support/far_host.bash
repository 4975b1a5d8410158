# Sourced by tests of `lockstep launch` on two hosts: this one, and a network namespace with a host name of its
# own, at the other end of a virtual cable. Needs root.
#
#   far_host_start || { echo "$far_host_reason"; exit 77; }   # writes the host file `hosts`: 1 slot here, 2 there
#   trap far_host_stop EXIT
#   ip link set "$far_host_near" down; far_host_back          # pulls the cable, and puts it in again

far_host_reason=
far_host_space=lockstep$$
far_host_near=lsa$$
far_host_network=10.$((64 + $$ % 64)).$(($$ / 64 % 256))
far_host=$far_host_network.2

far_host_start() {
    local far=lsb$$ log=far_host.log
    far_host_reason="network namespaces are made by root only"
    [[ $(id -u) -eq 0 ]] || return 1
    far_host_reason="no ip: install the package iproute2"
    command -v ip >/dev/null || return 1
    far_host_reason="no mpirun of Open MPI: install openmpi-bin"
    mpirun --version 2>/dev/null | grep -q 'Open MPI' || return 1
    {
        ip netns add "$far_host_space" &&
            ip link add "$far_host_near" type veth peer name "$far" && ip link set "$far" netns "$far_host_space" &&
            ip addr add "$far_host_network.1/24" dev "$far_host_near" && ip link set "$far_host_near" up &&
            ip -n "$far_host_space" addr add "$far_host/24" dev "$far" &&
            ip -n "$far_host_space" link set "$far" up && ip -n "$far_host_space" link set lo up
    } >"$log" 2>&1 || {
        far_host_reason="network namespaces are not allowed here: $(tail -n 1 "$log")"
        far_host_stop
        return 1
    }
    # What ssh is elsewhere.
    cat >agent <<AGENT
#!/bin/sh
host=\$1
shift
ip netns exec $far_host_space ip link show $far | grep -q LOWER_UP || { echo "no route to \$host" >&2; exit 255; }
exec ip netns exec $far_host_space unshare --uts sh -c "hostname far-away; \$*"
AGENT
    chmod +x agent
    printf 'localhost slots=1\n%s slots=2\n' "$far_host" >hosts
    # A silent host is noticed after seconds instead of half a minute.
    export OMPI_MCA_plm_rsh_agent=$PWD/agent OMPI_MCA_oob_tcp_if_include=$far_host_network.0/24 \
        OMPI_MCA_btl_tcp_if_include=$far_host_network.0/24 OMPI_MCA_oob_tcp_keepalive_time=2 \
        OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=2
}

# The cable is in again: not before both ends reach each other.
far_host_back() {
    local answer i
    ip link set "$far_host_near" up
    ip neigh flush dev "$far_host_near"
    for ((i = 0; i < 50; i++)); do
        # Nobody listens: refused at once where there is a way.
        answer=$(timeout 1 ip netns exec "$far_host_space" bash -c "echo >/dev/tcp/$far_host_network.1/9" 2>&1 || true)
        if [[ $answer == *refused* ]]; then return 0; fi
        sleep 0.1
    done
    fail "the other host cannot be reached again"
}

far_host_stop() {
    ip netns del "$far_host_space" 2>/dev/null || true
    ip link del "$far_host_near" 2>/dev/null || true
}
