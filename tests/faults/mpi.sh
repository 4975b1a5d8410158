# Ranks in processes, one of which fails or dies: a save that fails in one process fails for all and is told
# with that rank's name; a process that is killed in a save leaves the checkpoints whole; audits and numbers
# that are not finite are the same as with ranks in one process.
source "$SOURCE/tests/faults/common.bash"
source "$SOURCE/tests/support/mpi.bash"
mpi_or_skip
train+=(--output run --strategy ddp)

# --- a save that fails in one process ---------------------------------------------------------------
cases=0
# unsaved RANK SITE:COUNT:ERROR TEXT...: of the first save; training goes on, later ones succeed.
unsaved() {
    local rank=$1 rules=$2
    shift 2
    for async in true false; do
        rm -rf run
        with $rank 2 "$rules" --save-every 6 --save-async=$async
        [[ $status -eq 0 ]] || { cat err.txt && fail "$rules in rank $rank: status $status"; }
        says err.txt "checkpoint-6 was not saved, training goes on: rank $rank on $(hostname): run/checkpoint-6.tmp-" "$@"
        [[ $(grep -c 'was not saved' err.txt) -eq 1 ]] || { cat err.txt && fail "not said once"; }
        same run "$rules in rank $rank"
        [[ ! -e run/checkpoint-6 && -z $(find run -name '*.tmp-*') ]] || fail "$rules: $(ls run)"
        expect 0 "$LOCKSTEP" verify run/checkpoint-12
        cases=$((cases + 1))
    done
}
unsaved 1 write:1:ENOSPC "model.safetensors: cannot write: No space left on device"
unsaved 1 open:2:EIO "optimizer.safetensors: cannot open: Input/output error"
unsaved 1 fsync:2:EIO "optimizer.safetensors: cannot sync: Input/output error"
unsaved 0 allocate:2:ENOSPC "optimizer.safetensors: cannot make room for all of it"
unsaved 0 mkdir:1:EIO "cannot make the folder: Input/output error"
rm -rf run
with 1 2 "close:1+:EIO" --save-every 6
[[ $status -eq 1 ]] || { cat err.txt && fail "no checkpoint could be saved: status $status"; }
says err.txt "lockstep: the last 2 checkpoints could not be saved: rank 1 on $(hostname): run/checkpoint-12.tmp-"
[[ $(grep -c '^lockstep: ' err.txt) -eq 1 && -s run/model.safetensors ]] || { cat err.txt && fail "$(ls run)"; }

# --- a process that dies in a save ----------------------------------------------------------------------
rm -rf run
failing "" "${train[@]}" --save-every 4 --save-total-limit 3
[[ $status -eq 0 ]] || fail "status $status"
rm -rf start && mv run start && rm -r start/checkpoint-12
# killed RANK SITE: at that call of the save of step 8, which is there, or of step 12, which is new.
killed() {
    local rank=$1 site=$2 n stride=3
    [[ $site != write ]] || stride=80
    for ((n = 1; n < 200; n += long ? 1 : 1 + RANDOM % stride)); do
        rm -rf run && cp -r start run
        with $rank 2 "$site:$n:kill" --resume run/checkpoint-4 --save-every 4 --save-async=$([[ $((n % 2)) -eq 0 ]] && echo true || echo false)
        [[ $status -ne 0 ]] || return 0
        [[ $status -eq 137 || $status -eq 4 ]] || { cat err.txt && fail "$site:$n in rank $rank: status $status"; }
        expect 0 "${train[@]}" --resume auto --devices 3 --save-every 4
        grep -qF "going on from run/checkpoint-" err.txt || { cat err.txt && fail "$site:$n in rank $rank: neither the old nor the new one loads"; }
        grep -qF "skipped" err.txt && { cat err.txt && fail "$site:$n in rank $rank: half a checkpoint"; }
        same run "$site:$n in rank $rank"
        [[ -z $(find run -name '*.tmp-*') ]] || fail "$site:$n in rank $rank: $(find run -name '*.tmp-*') stays"
        cases=$((cases + 1))
    done
}
for site in write fsync close; do killed 1 $site; done
for site in write rename exchange rmdir; do killed 0 $site; done
echo "$cases cases"

# --- an error of the machine, in one process ------------------------------------------------------------
# caught RANK RULES TEXT ARGUMENT...: three processes.
caught() {
    local rank=$1 rules=$2 text=$3
    shift 3
    rm -rf run
    with $rank 3 "$rules" --audit-every 4 --save-every 1 --save-total-limit 20 "$@"
    [[ $status -eq 6 ]] || { cat err.txt && fail "$rules: status $status instead of 6"; }
    says err.txt "$text" "no checkpoint is written"
    [[ $(grep -c '^lockstep: ' err.txt) -eq 1 && ! -e run/model.safetensors ]] || { cat err.txt && fail "$(ls run)"; }
}
caught 2 weights.rank2:5:flip "audit before step 8: tensor bert.embeddings.word_embeddings.weight is not the same on all ranks: rank 2 is in the minority"
caught 1 gradient.rank1:8:flip "audit of step 8: the gradient of tensor classifier.bias is not the same when the pass of rank 1 is computed again by rank 2"
caught 2 gradient.rank2:12:flip "when the pass of rank 2 is computed again by rank 0"
caught 1 audit.rank3:1:flip "rank 3 is in the minority" --strategy zero1 --devices 2

# --- not finite -----------------------------------------------------------------------------------------
# A word of one row, whose embedding overflows in the layer norm: the same is said and skipped as on one device.
sed -i '20s/\tpositive/ funny\tpositive/; 20s/\tnegative/ funny\tnegative/' train.tsv
awk 'NR == 1 || NR == 20 || !/funny/' train.tsv >rare.tsv
row=$(($(grep -n '^funny$' model/vocab.txt | cut -d : -f 1) - 1))
python3 "$SOURCE/tests/cli/damage.py" model weights "[put_float(body, word, $row * 36 + i, 3e38 * (-1) ** i) for i in range(36)]"
rare=("$LOCKSTEP" train --model model --train rare.tsv --epochs 2 --threads 1 --quiet --save-every 3)
said() { grep -E 'not finite|skipped|nothing was updated' err.txt; }
for on_nan in stop skip; do
    wanted_status=$([[ $on_nan == stop ]] && echo 5 || echo 0)
    rm -rf alone run
    expect "$wanted_status" "${rare[@]}" --output alone --on-nan $on_nan
    said >alone.txt
    alone=$(sha || true)
    for layout in "3 ddp 1" "2 zero3 2"; do
        # shellcheck disable=SC2086
        set -- $layout
        rm -rf run
        expect "$wanted_status" mpi_one "$1" "${rare[@]}" --output run --on-nan $on_nan --strategy "$2" --devices "$3"
        said | cmp - alone.txt || { cat err.txt && fail "$layout: other words than on one device"; }
        [[ $(sha || true) == "$alone" ]] || fail "$layout: another model"
    done
done
