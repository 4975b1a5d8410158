# An output folder that cannot take the model: said before the run where that can be known, and never
# anything half-written; a run that fails on its input leaves a former run's files as they are.
source "$SOURCE/tests/cli/common.bash"
fresh_model
write_reviews train.tsv 40 1
train=("$LOCKSTEP" train --model model --train train.tsv --max-steps 2 --quiet)

# What a folder holds: names and contents.
contents() {
    (cd "$1" && find . -type f | sort | xargs -r sha256sum)
}

# unchanged FOLDER COMMAND...: the command fails and the folder stays as it was.
unchanged() {
    local folder=$1 status=0
    shift
    contents "$folder" >before.txt
    "$@" >out.txt 2>err.txt </dev/null || status=$?
    [[ $status -eq 1 || $status -eq 2 || $status -eq 5 ]] || { cat err.txt && fail "status $status: $*"; }
    contents "$folder" | cmp - before.txt || fail "changed: $*"
}

# --- something else is there -------------------------------------------------------------------------
mkdir other && echo mine >other/notes.txt
unchanged other "${train[@]}" --output other
says err.txt "other: the output folder holds something else (notes.txt)"
unchanged other "${train[@]}" --output other/notes.txt
says err.txt "other/notes.txt: exists and is not a folder"
unchanged other "${train[@]}" --output other/notes.txt/deeper
cp -r model another
unchanged another "${train[@]}" --output another
says err.txt "holds something else (files, but no run.json)"
mkdir other/run.json
unchanged other "${train[@]}" --output other

# --- a former run's folder ---------------------------------------------------------------------------
expect 0 "${train[@]}" --output out
printf 'text\tlabel\ngood\ta\nbad\n' >bad.tsv
cp -r model damaged
python3 "$SOURCE/tests/cli/damage.py" damaged weights 'put_float(body, word, 10, math.nan)'
unchanged out "${train[@]}" --output out --train bad.tsv
unchanged out "${train[@]}" --output out --validation bad.tsv
unchanged out "${train[@]}" --output out --test nowhere.tsv
unchanged out "${train[@]}" --output out --model damaged
unchanged out "${train[@]}" --output out --model nowhere
unchanged out "${train[@]}" --output out --max-length 1000
unchanged out "${train[@]}" --output out --device-memory 1000
unchanged out "${train[@]}" --output out --strategy zero9
unchanged out "${train[@]}" --output out --strategy ddp --devices 60
# Its model may not be overwritten while it is read.
unchanged out "$LOCKSTEP" train --model out --train train.tsv --output out
says err.txt "out: --output is the --model folder"
ln -s out alias
unchanged out "$LOCKSTEP" train --model out --train train.tsv --output alias/
# A run that was killed while it wrote does not stand in the way of the next.
touch out/model.safetensors.tmp-123
expect 0 "${train[@]}" --output out
[[ ! -e out/model.safetensors.tmp-123 ]] || fail "a killed run's file stays"
touch out/notes.txt
unchanged out "${train[@]}" --output out
rm out/notes.txt
# However early it was killed.
for left in run.json.tmp-123 lockstep-tokens-a1B2c3 lockstep-offload-a1B2c3 .lockstep-0123456789abcdef; do
    rm -rf early && mkdir early && touch early/$left
    expect 0 "${train[@]}" --output early
    [[ ! -e early/$left ]] || fail "$left stays"
done

# --- folders that were made go again -----------------------------------------------------------------
for folder in new new/ new/er/est "$PWD/new//er/"; do
    expect 1 "${train[@]}" --output "$folder" --train nowhere.tsv
    [[ ! -e new ]] || fail "$folder stays"
done
mkdir new
expect 1 "${train[@]}" --output new --train nowhere.tsv
[[ -d new ]] || fail "an empty folder that was there is gone"
expect 0 "${train[@]}" --output new/er/est
[[ -s new/er/est/model.safetensors ]] || fail "no model in a folder below a new one"

# --- no right to write -------------------------------------------------------------------------------
mkdir readonly && chmod 555 readonly
if [[ $(id -u) -eq 0 ]]; then
    # Root may write anywhere: an immutable mount says no to everyone, where it may be made.
    if unshare --mount true 2>/dev/null; then
        for folder in readonly readonly/new; do
            expect 1 unshare --mount bash -c 'mount -t tmpfs -o ro none readonly && exec "$@"' - \
                "${train[@]}" --output $folder
            grep -qE "readonly.*Read-only file system" err.txt || { cat err.txt && fail "$folder"; }
        done
    fi
fi
if [[ $(id -u) -ne 0 ]] || can_be_other; then
    other=()
    [[ $(id -u) -ne 0 ]] || other=(as_other)
    expect 1 "${other[@]}" "${train[@]}" --output readonly
    says err.txt "readonly: cannot write to the output folder: Permission denied"
    expect 1 "${other[@]}" "${train[@]}" --output readonly/new
    says err.txt "readonly/new: cannot make the folder: Permission denied"
fi

# --- no room -----------------------------------------------------------------------------------------
# whole FOLDER: the records of a run at most; nothing of a model, nothing half-written.
whole() {
    local file
    for file in $(ls -A "$1" 2>/dev/null); do
        [[ $file == run.json || $file == metrics.jsonl ]] || fail "$file stays after a full disk"
    done
    [[ ! -e $1/run.json ]] || jq -e . "$1/run.json" >parsed.txt || fail "half a run.json"
}
for blocks in 1 2 8 40 90; do
    rm -rf full
    expect 1 bash -c "ulimit -f $blocks && exec \"\$@\"" - "${train[@]}" --output full
    says err.txt "File too large"
    whole full
done
expect 0 "${train[@]}" --output full
write_reviews many.tsv 4000 1
rm -rf full
expect 1 bash -c 'ulimit -f 40 && exec "$@"' - "${train[@]}" --output full --train many.tsv
says err.txt "cannot write the token cache after" "File too large" "make room, or choose another folder"
[[ ! -e full ]] || fail "a folder without room for the cache stays"
if [[ $(id -u) -eq 0 ]] && unshare --mount true 2>/dev/null; then
    mkdir small
    for size in 4k 8k 12k 20k 28k 40k 100k; do
        # What is left has to be looked at before the mount goes with its namespace.
        expect 1 unshare --mount bash -c 'mount -t tmpfs -o size=$0 none small && status=0 && { "$@" || status=$?; } &&
            cp -r small left && exit $status' $size "${train[@]}" --output small/full
        says err.txt "No space left on device"
        whole left/full
        rm -r left
    done
fi

# --- predictions -------------------------------------------------------------------------------------
rm -rf out && expect 0 "${train[@]}" --output out
expect 1 "$LOCKSTEP" evaluate --model out --data train.tsv --predictions nowhere/predictions.jsonl
says err.txt "nowhere/predictions.jsonl"
expect 1 bash -c 'ulimit -f 1 && exec "$@"' - "$LOCKSTEP" evaluate --model out --data train.tsv \
    --predictions predictions.jsonl
[[ -z $(find . -maxdepth 1 -name 'predictions*') ]] || fail "half of the predictions"
