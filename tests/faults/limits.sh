# Threads, memory, shared memory and file descriptors that run out; a wall clock that jumps, a process that
# forks in the middle: the undisturbed run's bits, or one line that says what was missing.
source "$SOURCE/tests/faults/common.bash"
source "$SOURCE/tests/support/mpi.bash"
refusals=0

# clean WHAT: a run that failed said why in one line, and left no model and nothing half-written.
clean() {
    [[ $status -eq 1 ]] || { cat err.txt && fail "$1: status $status"; }
    [[ $(grep -c '^lockstep: ' err.txt) -eq 1 ]] || { cat err.txt && fail "$1: not one line"; }
    [[ ! -e run/model.safetensors || $(grep -c 'could not be saved' err.txt) -eq 1 ]] || fail "$1: a model is written"
    [[ -z $(find run -name '*.tmp-*' 2>/dev/null) ]] || fail "$1: $(find run -name '*.tmp-*') stays"
    refusals=$((refusals + 1))
}

# --- threads and pages, each in turn ---------------------------------------------------------------------
# in_turn RULES TEXT STRIDE FLAG...: RULES has N in place of the turn.
in_turn() {
    local rules=$1 text=$2 stride=$3 n
    shift 3
    for ((n = 1; n < 2000; n += long ? 1 : 1 + RANDOM % stride)); do
        rm -rf run
        failing "${rules/N/$n}" "${train[@]}" --output run "$@"
        if [[ $status -eq 0 ]]; then break; fi
        clean "${rules/N/$n}"
        says err.txt "$text"
    done
    [[ $status -eq 0 && $n -gt 1 ]] || fail "$rules: never passed, or never failed"
    same run "$rules, past the last turn"
}
in_turn thread:N:EAGAIN "cannot start" 1 --strategy zero3 --devices 3 --threads 2 --save-every 5 --offload-optimizer host
in_turn map:N:ENOMEM "out of memory" 20 --strategy zero2 --devices 3 --save-every 5

# --- a limit on addresses: what is there stays, and the run that may go on does -----------------------------
if ! is_sanitized; then
    for kib in 20000 30000 36000 42000 50000 60000 70000 90000 120000 200000 400000; do
        rm -rf run
        failing update:10:kill "${train[@]}" --output run --save-every 4 --save-async=false
        status=0
        (ulimit -v $kib && exec "${train[@]}" --output run --resume auto --save-every 4 --strategy zero2 --devices 3) \
            >out.txt 2>err.txt || status=$?
        [[ $status -le 1 || $status -eq 127 ]] || { cat err.txt && fail "$kib KiB: status $status"; }
        if [[ $status -eq 1 ]]; then says err.txt "lockstep: "; fi
        expect 0 "$LOCKSTEP" verify "$(ls -d run/checkpoint-* | grep -v tmp | sort -V | tail -n 1)"
    done
    [[ $status -eq 0 ]] || { cat err.txt && fail "400 MB are too little"; }
fi

# --- less memory than the plan: refused before anything is taken ----------------------------------------------
in_namespace=
if [[ $(id -u) -eq 0 ]] && unshare --mount true 2>/dev/null; then in_namespace=yes; fi
# limited FILE TEXT COMMAND...: FILE says so in place of the machine's own.
limited() {
    local file=$1 text=$2
    shift 2
    echo "$text" >limit.txt
    # The command takes over the shell's process, so that /proc/self is what was covered.
    failing "" unshare --mount bash -c 'set -e
        if [[ $0 != /proc/* ]]; then
            echo 0::/job >group.txt
            mount --bind group.txt /proc/$$/cgroup
            mount -t tmpfs none /sys/fs/cgroup
            mkdir -p /sys/fs/cgroup/job
            touch "$0"
        fi
        mount --bind limit.txt "$0" && exec "$@"' "$file" "$@"
}
if [[ $in_namespace ]]; then
    for file in /proc/meminfo /sys/fs/cgroup/job/memory.max /sys/fs/cgroup/memory.max; do
        for devices in 1 3; do
            rm -rf run
            if [[ $file == /proc/* ]]; then little="MemTotal: 900 kB" much="MemTotal: 9000000 kB"; else little=921600 much=9216000000; fi
            limited $file "$little" "${train[@]}" --output run --strategy ddp --devices $devices
            clean "$file"
            says err.txt "the run needs" "bytes of memory on this host ($devices device" "921600: with --device-memory $((921600 / devices)) the smallest"
            [[ $file == /proc/* ]] || says err.txt "the control group of $file allows 921600"
            [[ ! -e run ]] || fail "$file: a refused run leaves its folder"
            limited $file "$much" "${train[@]}" --output run --strategy ddp --devices $devices
            [[ $status -eq 0 ]] || { cat err.txt && fail "$file: 9 GB are too little"; }
            same run "$file"
        done
    done
fi

# --- file descriptors -------------------------------------------------------------------------------------
# Few: each number below the one that is enough.
for ((count = 3; count < 60; count++)); do
    rm -rf run
    status=0
    (ulimit -n $count && exec "${train[@]}" --output run --save-every 5 --offload-optimizer disk --offload-path .) \
        >out.txt 2>err.txt </dev/null || status=$?
    if [[ $status -eq 0 ]]; then break; fi
    # Below some number the program cannot even be loaded: 127, in the loader's words.
    [[ $status -ne 127 ]] || continue
    if [[ $status -eq 1 ]] && grep -qF 'could not be saved' err.txt; then continue; fi
    clean "$count descriptors"
done
[[ $count -gt 5 && $status -eq 0 ]] || { cat err.txt && fail "$count descriptors: status $status"; }
same run "$count descriptors"
# Many: 100,000 that are open already, or as many as may be.
many=100000
if ! (ulimit -n $((many + 100))) 2>/dev/null; then many=$(($(ulimit -Hn) - 100)); fi
[[ $many -gt 2000 ]] || fail "the limit on open files is too low to try: $(ulimit -Hn)"
rm -rf run
status=0
(ulimit -n $((many + 100)) && exec python3 -c 'import os, sys
null = os.open("/dev/null", os.O_RDONLY)
for i in range(int(sys.argv[1])):
    os.set_inheritable(os.dup(null), True)
os.execv(sys.argv[2], sys.argv[2:])' $many "${train[@]}" --output run --save-every 4 --strategy zero3 --devices 2) \
    >out.txt 2>err.txt </dev/null || status=$?
[[ $status -eq 0 ]] || { cat err.txt && fail "$many open descriptors: status $status"; }
same run "$many open descriptors"

# --- clocks and forks ----------------------------------------------------------------------------------------
if ! is_sanitized; then
    cc -shared -fPIC -O1 -D_GNU_SOURCE -pthread -o disturb.so "$SOURCE/tests/faults/disturb.c"
    for layout in "ddp 1" "zero3+offload 3"; do
        rm -rf run files.txt
        expect 0 env LD_PRELOAD="$PWD/disturb.so" DISTURB_LIST="$PWD/files.txt" "${train[@]}" --output run --save-every 3 \
            --strategy ${layout% *} --devices ${layout#* }
        same run "a clock that jumps"
        jq -s 'map(select(.step_seconds)) | all(.step_seconds >= 0 and .step_seconds < 600)' run/metrics.jsonl | grep -q true ||
            fail "steps took years: $(cat run/metrics.jsonl)"
        jq '.seconds >= 0 and .seconds < 600' run/run.json | grep -q true || fail "the run took years"
        # Every file of the run is closed where another program begins.
        [[ -s files.txt ]] || fail "no child wrote down its files"
        grep -F "$PWD/" files.txt | grep -vE '/(files|out|err)\.txt$' >given.txt && { cat given.txt && fail "files that other programs get"; }
    done
fi
echo "$refusals refusals"

# --- shared memory of processes ------------------------------------------------------------------------------
[[ $in_namespace ]] || { echo "mounting a small /dev/shm needs root" && exit 0; }
(mpi_or_skip) >mpi.txt 2>&1 || { tail -n 1 mpi.txt && exit 0; }
small=0
# MPI's own memory there is kept out of it: where that has no room, mpirun does not come back.
beside=$(TMPDIR=/tmp mktemp -d)
trap 'rmdir "$beside"' EXIT
export PMIX_MCA_gds=hash OMPI_MCA_btl=self,tcp
for size in 64k 256k 320k 384k 448k 512k 576k 640k 768k 1m 64m; do
    rm -rf run
    # This folder may lie in /dev/shm itself: there it is seen by another name.
    failing "" timeout --kill-after=5 60 unshare --mount bash -c 'mount --bind . "$0" && mount -t tmpfs -o size=$1 none /dev/shm &&
        cd "$0" && shift && exec "$@"' "$beside" $size mpirun -np 2 --oversubscribe --bind-to none "${train[@]}" --output run --strategy ddp
    # Neither a signal (SIGBUS is 135) nor silence.
    [[ $status -lt 124 && -s err.txt || $status -eq 0 ]] || { cat err.txt && fail "/dev/shm of $size: status $status"; }
    if grep -qF "the shared memory of $(hostname) is too small: 2 processes need" err.txt; then small=$((small + 1)); fi
done
[[ $status -eq 0 ]] || { cat err.txt && fail "/dev/shm of 64m is too little"; }
same run "a small /dev/shm"
[[ $small -gt 0 ]] || fail "no size of /dev/shm was refused"
