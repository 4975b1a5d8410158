# lockstep bench comm: a line for each collective and size, with bandwidths that follow from the time.
source "$SOURCE/tests/cli/common.bash"
expect 2 "$LOCKSTEP" bench comm
says err.txt "nobody to exchange with"
expect 0 "$LOCKSTEP" bench comm --devices 2
[[ $(grep -cE '^(all-reduce|reduce-scatter|all-gather|broadcast) ' out.txt) -eq 20 ]] || { cat out.txt && fail "not 20 lines"; }
says out.txt "2 ranks: 1 process of 2 devices, 1 host"
# algorithm bandwidth = bytes / time, bus bandwidth of an all-reduce of 2 the same, of the other two half of it.
awk '/^(all-reduce|reduce-scatter|all-gather|broadcast) / {
    rate = $2 / $3 / 1000; bus = ($1 == "all-reduce" || $1 == "broadcast") ? rate : rate / 2
    if (rate - $4 > 0.02 + rate / 50 || $4 - rate > 0.02 + rate / 50) exit 1
    if (bus - $5 > 0.02 + bus / 50 || $5 - bus > 0.02 + bus / 50) exit 1
}' out.txt || { cat out.txt && fail "bandwidths do not follow from times"; }
