# Every system call that writes, made to fail in turn: the old checkpoint or the new one loads, never
# neither, and the run that goes on ends with the undisturbed run's bits.
source "$SOURCE/tests/faults/common.bash"

# A run that has checkpoints 4 and 8 and goes on from 4: it writes 8 again (an exchange), then 12 (a new
# one, with 4 removed).
expect 0 "${train[@]}" --output start --save-every 4 --save-total-limit 3
rm -r start/checkpoint-12
cases=0

# try RULES: resume with fail points, see what is left, resume without.
try() {
    rm -rf run && cp -r start run
    failing "$1" "${train[@]}" --output run --resume run/checkpoint-4 --save-every 4
    local first=$status
    case $first in
    0) same run "$1" ;;
    1) grep -qE "^lockstep: .*\(errno|\(errno [0-9]+\)" err.txt || { cat err.txt && fail "$1: no word on what failed"; } ;;
    137) ;;
    *) cat err.txt && fail "$1: status $first" ;;
    esac
    # A failure that the run survived was told, or was none (a short write).
    if [[ $first -eq 0 && $1 != *short && $1 != *kill ]] && ! [[ -s err.txt && $(grep -c errno err.txt) -gt 0 ]]; then
        ended=1
    fi
    if [[ $first -eq 0 && $1 == *kill ]]; then ended=1; fi
    expect 0 "${train[@]}" --output run --resume auto --save-every 4
    grep -qF "going on from run/checkpoint-" err.txt || { cat err.txt && fail "$1: neither the old nor the new one loads"; }
    if grep -qF "skipped" err.txt; then cat err.txt && fail "$1: half a checkpoint under a whole one's name"; fi
    same run "$1, resumed"
    expect 0 "$LOCKSTEP" verify run/checkpoint-12
    [[ -z $(find run -name '*.tmp-*') ]] || fail "$1: $(find run -name '*.tmp-*') stays"
    cases=$((cases + 1))
}

for async in true false; do
    train+=(--save-async=$async)
    for site in open allocate write fsync close rename exchange mkdir rmdir unlink; do
        for action in EIO ENOSPC kill short; do
            if [[ $action == short && $site != write ]]; then continue; fi
            if [[ $action == ENOSPC && $site != write && $site != allocate && $site != mkdir ]]; then continue; fi
            if [[ $async == false && -z $long && $action != kill ]]; then continue; fi
            ended=0
            # All calls of a kind, or a sample.
            for ((n = 1; n < 400 && !ended; n += long ? 1 : 1 + RANDOM % 29)); do
                try "$site:$n:$action"
                # Nobody sees a short write: there are as many calls as could fail.
                if [[ $action == short && $n -ge $calls ]]; then ended=1; fi
            done
            calls=$n
            [[ $ended -eq 1 ]] || fail "$site:$action: a save has more than 400 calls"
        done
    done
done
echo "$cases cases"

# --- a failure that stays: training goes on, the model is written, and the status says that the last
# --- checkpoint is missing.
rm -rf run && cp -r start run
failing "allocate:1:ENOSPC" "${train[@]}" --output run --resume run/checkpoint-4 --save-every 4
[[ $status -eq 0 ]] || { cat err.txt && fail "a save that failed once: status $status"; }
says err.txt "checkpoint-8 was not saved, training goes on: run/checkpoint-8.tmp-" \
    "model.safetensors: cannot make room for all of it: No space left on device (errno 28)"
same run "a save that failed once"
[[ -d run/checkpoint-8 && -d run/checkpoint-12 ]] || fail "not both checkpoints: $(ls run)"
rm -rf run && cp -r start run
failing "exchange:1+:EIO,mkdir:1+:EIO" "${train[@]}" --output run --resume run/checkpoint-4 --save-every 4
[[ $status -eq 1 ]] || fail "no checkpoint could be saved: status $status"
says err.txt "checkpoint-8 was not saved, training goes on" "checkpoint-12 was not saved, training goes on" \
    "lockstep: the last 2 checkpoints could not be saved: run/checkpoint-12.tmp-"
[[ -s run/model.safetensors && -d run/checkpoint-8 && ! -e run/checkpoint-12 ]] || fail "$(ls run)"
expect 0 "$LOCKSTEP" verify run undisturbed
