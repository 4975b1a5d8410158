# Processes are started where the table says, signals reach them, the first cause is named, a loss is
# followed by a restart, and nothing outlives `launch`.
source "$SOURCE/tests/cli/common.bash"

train=(train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --output out)
launch=("$LOCKSTEP" launch)
itself=(env -u LOCKSTEP_LAUNCH_PROGRAM "${launch[@]}")
export LOCKSTEP_LAUNCH_PROGRAM=$SOURCE/tests/cli/stand_in.py
write_reviews train.tsv 200 1

# --- what it refuses, and what it would do ----------------------------------------------------------
usage() {
    local text=$1
    shift
    expect 2 "$LOCKSTEP" launch "$@"
    says err.txt "$text"
    [[ $(wc -l <err.txt) -eq 1 ]] || { cat err.txt && fail "not one line of error"; }
}
usage "launch needs --processes N" -- "${train[@]}"
usage "the command to start is missing" --processes 2
usage "the command to start is missing" --processes 2 --
usage "'--model' is not expected before '--'" --processes 2 --model x -- "${train[@]}"
usage "--processes: '0' is not a whole number from 1 to 65536" --processes 0 -- "${train[@]}"
usage "--max-restarts: 'x' is not" --max-restarts=x --processes 2 -- "${train[@]}"
usage "--processes needs a value" --processes -- "${train[@]}"
usage "--min-processes 3 is more than --processes 2" --processes 2 --min_processes 3 -- "${train[@]}"
usage "it needs --max-restarts" --processes 2 --min-processes 1 -- "${train[@]}"
usage "it needs --hosts" --processes 2 --min-processes 1 --max-restarts 1 -- "${train[@]}"
usage "launch starts 'train' only, not 'predict'" --processes 2 -- predict
# The command line of train is read once, not by each process.
usage "no setting --epoch" --processes 2 -- "${train[@]}" --epoch 2

expect 0 "${itself[@]}" --processes 1 --dry-run -- "${train[@]}"
says out.txt "1 process on 1 host" "$LOCKSTEP train --model"
grep -q mpirun out.txt && fail "one process needs mpirun"
if ! has_mpi; then
    expect 1 "${itself[@]}" --processes 2 -- "${train[@]}"
    says err.txt "this lockstep was built without MPI: install libopenmpi-dev"
fi
# Without mpirun it says what to install; one process never needs it.
mkdir empty
expect 1 env PATH="$PWD/empty" "${launch[@]}" --processes 2 -- "${train[@]}"
says err.txt "no mpirun or mpiexec along PATH: install the package openmpi-bin"
expect 0 env -u LOCKSTEP_LAUNCH_PROGRAM PATH="$PWD/empty" "${launch[@]}" --processes 1 -- "${train[@]}" \
    --max-steps 2 --threads 1 --quiet
says out.txt "weights        sha256"
rm -r out
printf '#!/bin/sh\necho "LAM 7"\n' >empty/mpirun && chmod +x empty/mpirun
expect 1 env PATH="$PWD/empty:/bin" "${launch[@]}" --processes 2 -- "${train[@]}"
says err.txt "mpirun says 'LAM 7' to --version: only Open MPI's and MPICH's are known"
command -v mpirun >/dev/null || { echo "no mpirun: tools/install-packages.sh test" && exit 77; }

printf 'localhost slots=2\r\nbeta slots=4 # big\r\n' >hosts
expect 0 "${itself[@]}" --processes 3 --hosts hosts --dry-run -- "${train[@]}"
says out.txt "3 processes on 2 hosts, started by mpirun" "2  beta       all of its cores" \
    "launch-rank $LOCKSTEP train --model"
usage "--processes 7 is more than the 6 slots of 2 hosts" --processes 7 --hosts hosts -- "${train[@]}"
echo "beta slots=2" >>hosts
expect 1 "${launch[@]}" --processes 3 --hosts hosts -- "${train[@]}"
says err.txt "hosts:3: host 'beta' stands in line 2 already"
[[ ! -e out ]] || fail "something was started"
more=$(($(nproc) + 1))
expect 0 "${launch[@]}" --processes $more --dry-run -- "${train[@]}"
says out.txt "warning: $more processes on" "take turns" "launch-rank"

# --- runs of a stand-in -----------------------------------------------------------------------------
fresh() {
    rm -rf out attempts.txt pids.*
}
# Every process that a stand-in noted is gone within $1 tenths of a second.
all_gone() {
    local left=$1 pid alive
    while :; do
        alive=
        for pid in $(cat pids.*); do
            if kill -0 "$pid" 2>/dev/null && ! grep -q '^State:\sZ' "/proc/$pid/status"; then alive=$pid; fi
        done
        [[ -n $alive ]] || return 0
        left=$((left - 1))
        [[ $left -gt 0 ]] || fail "process $alive outlives launch: $(cat "/proc/$alive/cmdline" | tr '\0' ' ')"
        sleep 0.1
    done
}

fresh
expect 0 "${launch[@]}" --processes 2 -- "${train[@]}"
says err.txt "2 processes on 1 host" "step 20" "done"
[[ $(wc -l <attempts.txt) -eq 1 && $(cut -d' ' -f1 attempts.txt) -eq 2 ]] || fail "not two processes, once"
grep -q 'launch-rank\|\[1,0\]' err.txt && { cat err.txt && fail "mpirun's marks are shown"; }
# Each on its own cores, where there are two.
if [[ $(nproc) -ge 2 ]]; then
    cores=$(sed -nE 's/^cores \[(.*)\]/\1/p' out.txt)
    [[ -n $cores && $(wc -w <<<"${cores//,/}") -lt $(nproc) ]] || { cat out.txt && fail "rank 0 is not bound"; }
fi

fresh
STAND_IN_DIE=1:5:9 expect 4 "${launch[@]}" --processes 2 -- "${train[@]}"
says err.txt "lockstep launch: rank 1 on $(hostname) was ended by SIGKILL (Killed); its last line: rank 1 had step 5" \
    "[rank 1] rank 1 had step 5"
grep -q '^lockstep launch: rank 1' err.txt || { cat err.txt && fail "the cause has no line of its own"; }
grep -qE '^-----|mpirun noticed' err.txt && { cat err.txt && fail "mpirun's own words are shown"; }
all_gone 20
fresh
STAND_IN_EXIT=1:5:5 expect 5 "${launch[@]}" --processes 2 --max-restarts 3 -- "${train[@]}"
says err.txt "rank 1 on $(hostname) ended with exit status 5"
[[ $(wc -l <attempts.txt) -eq 1 ]] || fail "a run that stopped at NaN is started again"
fresh
STAND_IN_DIE=0:3:11 expect 4 "${launch[@]}" --processes 1 -- "${train[@]}"
says err.txt "rank 0 was ended by SIGSEGV (Segmentation fault); its last line: rank 0 had step 3"

# MPICH's mpirun, where there is one: the same, but it does not say which rank was the first.
if mpiexec.hydra --version >version.txt 2>&1; then
    mkdir hydra
    printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v mpiexec.hydra)" >hydra/mpirun
    chmod +x hydra/mpirun
    fresh
    expect 0 env PATH="$PWD/hydra:$PATH" "${launch[@]}" --processes 2 -- "${train[@]}"
    says err.txt "started by mpirun (MPICH" "step 20" "done"
    [[ $(cat attempts.txt) == "2 train "* ]] || fail "not two processes under MPICH"
    fresh
    expect 4 env STAND_IN_DIE=1:5:9 PATH="$PWD/hydra:$PATH" "${launch[@]}" --processes 2 -- "${train[@]}"
    says err.txt "[rank 1] rank 1 had step 5" "was ended by SIGKILL (Killed)"
    all_gone 20
fi

# --- restarts ---------------------------------------------------------------------------------------
fresh
STAND_IN_DIE=0:7:9 STAND_IN_ATTEMPTS=2 STAND_IN_SAVE=3 STAND_IN_STEPS=12 \
    expect 0 "${launch[@]}" --processes 1 --max-restarts 5 -- "${train[@]}" --seed 7
says err.txt "restart 1 of 5 in 1 s from checkpoint-6" "restart 2 of 5 in 2 s from checkpoint-6"
[[ $(wc -l <attempts.txt) -eq 3 ]] || { cat attempts.txt && fail "not three attempts"; }
head -n 1 attempts.txt | grep -q -- --resume && fail "the first attempt resumes"
tail -n 1 attempts.txt | grep -q -- '--seed 7 --resume auto$' || { cat attempts.txt && fail "no --resume auto"; }
fresh
STAND_IN_EXIT=1:4:4 STAND_IN_ATTEMPTS=1 STAND_IN_STEPS=8 \
    expect 0 "${launch[@]}" --processes 2 --max-restarts 1 -- "${train[@]}"
says err.txt "rank 1 on $(hostname) ended with exit status 4" "from the start: there is no checkpoint"
# Two restarts that make no step are enough; the limit is not reached.
fresh
STAND_IN_DIE=0:3:6 STAND_IN_SAVE=3 STAND_IN_STEPS=9 \
    expect 4 "${launch[@]}" --processes 1 --max-restarts 9 -- "${train[@]}"
says err.txt "given up after 2 restarts, the last two without a step, at step 3"
[[ $(wc -l <attempts.txt) -eq 3 ]] || fail "not three attempts"
fresh
STAND_IN_DIE=0:3:6 expect 4 "${launch[@]}" --processes 1 --max-restarts 1 -- "${train[@]}"
says err.txt "given up after 1 restart, at step 3"

# --- signals ----------------------------------------------------------------------------------------
# interrupted SIGNALS PROCESSES: launch, send it each of the signals once it runs, print status and
# seconds from the last signal.
interrupted() {
    fresh
    python3 - "$@" -- "${launch[@]}" --processes "$2" -- "${train[@]}" >result.txt 2>err.txt <<'PYTHON'
import glob, os, pathlib, signal, subprocess, sys, time
words = sys.argv[sys.argv.index("--") + 1:]
run = subprocess.Popen(words)
deadline = time.monotonic() + 20
while len(glob.glob("pids.*")) < int(sys.argv[2]):
    assert run.poll() is None and time.monotonic() < deadline, "not started"
    time.sleep(0.05)
time.sleep(0.5)
for name in sys.argv[1].split():
    run.send_signal(getattr(signal, name))
    start = time.monotonic()
    time.sleep(0.3)
print("status", run.wait(timeout=20), "seconds", int(time.monotonic() - start), flush=True)
PYTHON
}
for case in "SIGINT 1" "SIGHUP 1" "SIGTERM 2" "SIGINT 2"; do
    # shellcheck disable=SC2086
    STAND_IN_STEPS=400 interrupted $case
    says result.txt "status 75" "stopped"
    says err.txt "stopping after this step; again to end at once"
    all_gone 10
done
# An interrupt before the ranks are there waits for them.
fresh
python3 - "${launch[@]}" --processes 2 -- "${train[@]}" >result.txt 2>err.txt <<'PYTHON'
import signal, subprocess, sys
run = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, text=True)
run.stderr.readline()
run.send_signal(signal.SIGINT)
sys.stderr.write(run.communicate(timeout=60)[1])
print("status", run.returncode)
PYTHON
says result.txt "status 75"
for processes in 1 2; do
    # They do not listen: the second signal ends them all.
    STAND_IN_STEPS=400 STAND_IN_DEAF=1 interrupted "SIGINT SIGINT" $processes
    grep -qE 'status -2 seconds [0-4]$' result.txt || { cat result.txt err.txt && fail "second interrupt"; }
    says err.txt "ending all processes"
    all_gone 10
    # Killed itself, it takes everything with it within five seconds.
    STAND_IN_STEPS=400 STAND_IN_DEAF=1 interrupted SIGKILL $processes
    says result.txt "status -9"
    all_gone 50
done
# An interrupt while it waits to restart: no restart.
fresh
STAND_IN_DIE=0:2:9 "${launch[@]}" --processes 1 --max-restarts 9 -- "${train[@]}" >out.txt 2>err.txt &
for ((i = 0; i < 200; i++)); do
    if grep -q "restart 2 of 9 in 2 s" err.txt; then break; fi
    sleep 0.05
done
kill -TERM $!
status=0
wait $! || status=$?
[[ $status -eq 4 ]] || { cat err.txt && fail "status $status after an interrupt before a restart"; }
says err.txt "stopped before the restart"
[[ $(wc -l <attempts.txt) -eq 2 ]] || fail "started again after an interrupt"

# --- the program itself -----------------------------------------------------------------------------
if has_mpi; then
    fresh
    options=(--max-steps 6 --threads 1 --strategy ddp --quiet)
    expect 0 "$LOCKSTEP" "${train[@]}" "${options[@]}"
    mv out single
    # MPI keeps memory until the process ends.
    if is_sanitized; then export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"; fi
    expect 0 "${itself[@]}" --processes 2 -- "${train[@]}" "${options[@]}"
    cmp single/model.safetensors out/model.safetensors || fail "two processes train another model"
    [[ $(grep -c sha256 out.txt) -eq 1 ]] || { cat out.txt && fail "not one summary"; }
fi
