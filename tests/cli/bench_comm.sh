# lockstep bench comm: a line for each collective and size, with bandwidths that follow from the time.
source "$SOURCE/tests/cli/common.bash"
expect 2 "$LOCKSTEP" bench comm
says err.txt "nobody to exchange with"
expect 0 "$LOCKSTEP" bench comm --devices 2
[[ $(grep -cE '^(all-reduce|reduce-scatter|all-gather|broadcast) ' out.txt) -eq 20 ]] || { cat out.txt && fail "not 20 lines"; }
says out.txt "2 ranks: 1 process of 2 devices, 1 host"
# algorithm bandwidth = bytes / time, bus bandwidth of an all-reduce of 2 the same, of the other two half of it.
# The time is printed to a tenth of a microsecond.
awk '/^(all-reduce|reduce-scatter|all-gather|broadcast) / {
    part = ($1 == "all-reduce" || $1 == "broadcast") ? 1 : 0.5
    low = $2 / ($3 + 0.06) / 1000; high = $3 > 0.06 ? $2 / ($3 - 0.06) / 1000 : 1e9
    if ($4 < low - 0.02 || $4 > high + 0.02 || $5 < part * low - 0.02 || $5 > part * high + 0.02) exit 1
}' out.txt || { cat out.txt && fail "bandwidths do not follow from times"; }
