# A host leaves in the middle of a run: its network is gone while its processes still run. The supervisor goes on
# with the other host's, to the undisturbed run's bits; without one the run ends and says who is gone.
source "$SOURCE/tests/faults/common.bash"
source "$SOURCE/tests/support/far_host.bash"
far_host_start || { echo "$far_host_reason" && exit 77; }
trap far_host_stop EXIT
if is_sanitized; then export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"; fi
has_mpi || { echo "this lockstep was built without MPI" && exit 77; }
# So many steps that the cable is pulled in the middle of them.
train+=(--batch-size 16 --epochs 80 --save-every 20 --save-total-limit 99 --strategy zero1 --learning-rate 1e-4)
expect 0 "${train[@]}" --output alone
wanted=$(sha)

# leave STATUS FLAG...: launch on both hosts, pull the cable once step 40 is saved.
leave() {
    local wanted_status=$1 job
    shift
    rm -rf run
    far_host_back
    "$LOCKSTEP" launch --processes 3 --hosts hosts "$@" -- "${train[@]:1}" --output run --log-ranks all >out.txt 2>err.txt </dev/null &
    job=$!
    for ((i = 0; i < 1200; i++)); do
        if [[ -d run/checkpoint-40 ]]; then break; fi
        kill -0 $job 2>/dev/null || break
        sleep 0.05
    done
    [[ -d run/checkpoint-40 ]] || { cat err.txt && fail "it does not train on two hosts"; }
    cp run/rank-2.log rank-2.log
    ip link set "$far_host_near" down
    status=0
    wait $job || status=$?
    [[ $status -eq $wanted_status ]] || { cat err.txt && fail "status $status instead of $wanted_status"; }
    says err.txt "host $far_host no longer answers"
    # Its own processes end as well, though nobody can tell them to.
    local pid
    pid=$(grep -oE 'process number [0-9]+' rank-2.log | cut -d ' ' -f 3)
    for ((i = 0; i < 600; i++)); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.1
    done
    fail "rank 2 outlives its host's network"
}

leave 0 --max-restarts 2 --min-processes 1
says err.txt "from checkpoint-" "1 process on 1 host" "going on from run/checkpoint-"
[[ $(sha) == "$wanted" ]] || fail "after a host left: another model"
[[ -z $(find run -name '*.tmp-*') ]] || fail "left: $(find run -name '*.tmp-*')"
expect 0 "$LOCKSTEP" audit run
leave 4
[[ $(grep -c '^lockstep launch: ' err.txt) -ge 1 ]] || { cat err.txt && fail "no first cause"; }
expect 0 "${train[@]}" --output run --resume auto
[[ $(sha) == "$wanted" ]] || fail "gone on by hand: another model"
