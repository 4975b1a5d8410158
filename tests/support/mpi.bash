# Sourced by tests that start processes with mpirun, on this host or on two (two_hosts.bash).
#
#   mpi_or_skip                        # ends the test with 77 and a reason where it cannot run
#   mpi_one PROCESSES COMMAND...       # on this host
#   mpi_noted ...                      # as a command: notes its number in pid.RANK and its end in status.RANK
source "$SOURCE/tests/support/two_hosts.bash"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

mpi_or_skip() {
    if ! mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
        echo "no Open MPI: tools/install-packages.sh build installs it"
        exit 77
    fi
    if mpirun -np 2 --oversubscribe "$LOCKSTEP" plan --model none 2>&1 | grep -q 'built without MPI'; then
        echo "this lockstep was built without MPI"
        exit 77
    fi
    # MPI keeps memory until the process ends.
    if is_sanitized; then export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"; fi
}

mpi_one() {
    local count=$1
    shift
    mpirun -np "$count" --oversubscribe --bind-to none "$@"
}

# Between mpirun and the program, so that the status of each process is seen. Signals are passed on.
mpi_note() {
    cat >mpi_noted <<'NOTE'
#!/usr/bin/env python3
import os, signal, subprocess, sys
rank = os.environ["OMPI_COMM_WORLD_RANK"]
child = None
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, frame: child and child.send_signal(number))
child = subprocess.Popen(sys.argv[1:])
with open("pid." + rank, "w") as file:
    print(child.pid, file=file)
status = child.wait()
with open("status." + rank, "w") as file:
    print(status, file=file)
sys.exit(status if status >= 0 else 128 - status)
NOTE
    chmod +x mpi_noted
    rm -f pid.* status.*
}

# mpi_wait_for FILE TEXT SECONDS: until the text stands in the file.
mpi_wait_for() {
    local end=$((SECONDS + $3))
    until grep -qF -- "$2" "$1" 2>/dev/null; do
        [[ $SECONDS -lt $end ]] || { cat "$1" && fail "no '$2' in $1 after $3 s"; }
        sleep 0.05
    done
}

# Files in shared memory that no process of this machine has: those of other runs do not count.
mpi_shared_files() {
    comm -23 <(find /dev/shm -newer mpi_noted \( -name 'osc_*' -o -name 'vader_segment*' \) 2>/dev/null | sort) \
        <(cat /proc/[0-9]*/maps 2>/dev/null | grep -oE '/dev/shm/(osc_|vader_segment)[^ ]*' | sort -u)
}

# Nothing of a run is left: no process, no shared memory.
mpi_nothing_left() {
    local pid
    for pid in pid.*; do
        if kill -0 "$(cat "$pid")" 2>/dev/null; then fail "$pid still runs"; fi
    done
    # Other runs make theirs before they have them, and a process that ends takes a moment.
    local left end=$((SECONDS + 20))
    left=$(mpi_shared_files)
    while [[ -n $left && $SECONDS -lt $end ]]; do
        sleep 0.2
        left=$(comm -12 <(echo "$left") <(mpi_shared_files))
    done
    [[ -z $left ]] || fail "left in shared memory: $left"
}
