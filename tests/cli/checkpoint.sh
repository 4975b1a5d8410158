# Checkpoints: what is in one, when they are written and kept, and what is said of damaged ones.
source "$SOURCE/tests/cli/common.bash"
fresh_model
write_reviews train.tsv 200 1
write_reviews validation.tsv 60 2
train=("$LOCKSTEP" train --model model --train train.tsv --epochs 2 --quiet)

# sha NAME: the trained model's hash, as the command printed it.
sha() { grep -o 'sha256 .*' out.txt; }

# --- when ------------------------------------------------------------------------------------------
expect 0 "${train[@]}" --output plain
plain=$(sha)
[[ -z $(find plain -name 'checkpoint*') ]] || fail "a checkpoint that nobody asked for"
for async in true false; do
    rm -rf out
    expect 0 "${train[@]}" --output out --save-every 5 --save-async=$async
    [[ $(sha) == "$plain" ]] || fail "saving changes the model"
    [[ $(cd out && echo checkpoint-*) == "checkpoint-10 checkpoint-5" ]] || fail "$(ls out)"
    grep -qF "planned" out.txt && diff <(grep -oE 'planned .*' out.txt | grep -oE '\(.*') \
        <(grep -oE 'measured .*' out.txt | grep -oE '\(.*') || fail "memory is not as planned"
done
expect 0 "${train[@]}" --output many --save-every 1 --save-total-limit 3
[[ $(cd many && ls -d checkpoint-* | sort -V | tr '\n' ' ') == "checkpoint-12 checkpoint-13 checkpoint-14 " ]] ||
    fail "not the three newest: $(ls many)"
expect 0 "$LOCKSTEP" plan --model model --train train.tsv --strategy single --save-every 5
says out.txt "checkpoint snapshot"
expect 0 "$LOCKSTEP" plan --model model --train train.tsv --strategy single --save-every 5 --save-async=false
if grep -qF "checkpoint snapshot" out.txt; then fail "memory is planned for a snapshot that is never taken"; fi

# The best validation stays, whatever the limit.
for metric in accuracy macro_f1 loss; do
    rm -rf best
    expect 0 "${train[@]}" --output best --validation validation.tsv --keep-best $metric --save-every 2 \
        --save-total-limit 1 --epochs 4 --learning-rate 1e-3
    best=$(jq -r .best_checkpoint best/run.json)
    # The first of the best values, by what metrics.jsonl says.
    wanted=$(jq -rs --arg metric $metric 'map(select(.evaluation)) |
        (if $metric == "loss" then min_by(.loss) else max_by(.[$metric]) end) | .step' best/metrics.jsonl)
    value=$(jq -rs --arg metric $metric --argjson step "$wanted" \
        'map(select(.evaluation and .step == $step))[0][$metric]' best/metrics.jsonl)
    [[ $(jq -r .best_value best/run.json) == "$value" ]] || fail "$metric: best is not $value"
    [[ -d best/$best ]] || fail "$metric: $best is gone"
    last=$(ls -d best/checkpoint-* | sort -V | tail -n 1)
    [[ $(jq -r .best.checkpoint "$last/trainer.json") == "$best" ]] || fail "$metric: trainer.json names another"
done
expect 2 "${train[@]}" --output none --keep-best accuracy
says err.txt "--keep-best: there is no --validation file"

# --- what ------------------------------------------------------------------------------------------
folder=out/checkpoint-10
for file in model.safetensors optimizer.safetensors config.json tokenizer.json tokenizer_config.json vocab.txt \
    trainer.json manifest.json metrics.jsonl; do
    [[ -s $folder/$file ]] || fail "no $file"
done
[[ $(jq .step $folder/trainer.json) -eq 10 && $(jq .samples_consumed $folder/trainer.json) -eq 296 ]] ||
    fail "trainer.json: $(cat $folder/trainer.json)"
[[ $(jq -r '.files | keys | length' $folder/manifest.json) -eq 8 ]] || fail "the manifest leaves files out"
expect 0 "$LOCKSTEP" evaluate --model $folder --data validation.tsv --quiet
expect 0 "$LOCKSTEP" inspect $folder/optimizer.safetensors
says out.txt "classifier.weight.first_moment" "classifier.weight.second_moment"
expect 0 "$LOCKSTEP" verify $folder
says out.txt "as the manifest says: 8 files, 123 tensors"
# The same bytes from any number of devices.
for layout in "zero1 4" "zero3 3" "zero3+offload 2" "ddp 3"; do
    rm -rf ddp
    expect 0 "${train[@]}" --output ddp --save-every 5 --strategy ${layout% *} --devices ${layout#* }
    for file in model optimizer; do
        cmp $folder/$file.safetensors ddp/checkpoint-10/$file.safetensors || fail "$file.safetensors depends on devices"
    done
done

# --- verify ------------------------------------------------------------------------------------------
expect 0 "$LOCKSTEP" verify $folder ddp/checkpoint-10
says out.txt "equal to the bit: 123 tensors"
expect 0 "$LOCKSTEP" verify out/model.safetensors plain
says out.txt "equal to the bit: 41 tensors"
expect 6 "$LOCKSTEP" verify $folder out/checkpoint-5
says err.txt "tensors differ" "units in the last place apart"
cp -r $folder changed
python3 - <<'PYTHON'
import json, struct
path = "changed/model.safetensors"
data = bytearray(open(path, "rb").read())
length = struct.unpack("<Q", data[:8])[0]
begin = json.loads(data[8 : 8 + length])["classifier.weight"]["data_offsets"][0] + 8 + length
data[begin + 4 * 38] ^= 1  # row 1, column 2, the lowest bit
open(path, "wb").write(data)
PYTHON
expect 6 "$LOCKSTEP" verify $folder changed
says err.txt "tensor classifier.weight (F32), element [1, 2]: " ", 1 unit in the last place apart" \
    "1 of 123 tensors differ"
expect 6 "$LOCKSTEP" verify changed
says err.txt "changed/model.safetensors: tensor classifier.weight has checksum"
expect 6 "$LOCKSTEP" verify $folder model
says err.txt "tensor" "is only in"
expect 1 "$LOCKSTEP" verify nowhere $folder
expect 2 "$LOCKSTEP" verify train.tsv
expect 2 "$LOCKSTEP" verify one two three

# --- damage --------------------------------------------------------------------------------------------
# damaged TEXT COMMAND...: checkpoint-10 after the command is named broken for that reason, by verify and by a
# run that resumes, which then goes on from checkpoint-5 to the same model.
damaged() {
    echo "damage: $*"
    local text=$1
    shift
    rm -rf run && cp -r out run
    (cd run/checkpoint-10 && "$@")
    expect 6 "$LOCKSTEP" verify run/checkpoint-10
    says err.txt "$text"
    expect 0 "${train[@]}" --output run --save-every 5 --resume auto
    says err.txt "skipped checkpoint-10, which is not whole: " "$text" "going on from run/checkpoint-5, after step 5 of 14"
    [[ $(sha) == "$plain" ]] || fail "$text: another model"
    expect 0 "$LOCKSTEP" verify run/checkpoint-10
}
flip() {
    python3 -c 'import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[2])] ^= 4
open(sys.argv[1], "wb").write(data)' "$@"
}
damaged "model.safetensors: the file is missing" rm model.safetensors
damaged "manifest.json: the file is missing" rm manifest.json
damaged "trainer.json: the file is missing" rm trainer.json
damaged "optimizer.safetensors: has 100 bytes, the manifest says" truncate -s 100 optimizer.safetensors
damaged "optimizer.safetensors: tensor " bash -c 'size=$(stat -c %s optimizer.safetensors) &&
    dd if=/dev/zero of=optimizer.safetensors bs=1 seek=100000 count=$((size - 100000)) conv=notrunc'
damaged "_moment has checksum" flip optimizer.safetensors -200
damaged "model.safetensors: tensor" flip model.safetensors 100000
damaged "model.safetensors: " flip model.safetensors 3
damaged "trainer.json: has checksum" flip trainer.json 60
damaged "metrics.jsonl: has checksum" flip metrics.jsonl 60
damaged "manifest.json: " flip manifest.json 0
damaged "manifest.json: " truncate -s 500 manifest.json
damaged "vocab.txt: has checksum" flip vocab.txt 3
damaged "model.safetensors: tensor" cp ../checkpoint-5/model.safetensors .
damaged "trainer.json: has" cp ../checkpoint-5/trainer.json .
# Whole, but another checkpoint than its name says.
rm -rf run && cp -r out run && rm -r run/checkpoint-10 && cp -r run/checkpoint-5 run/checkpoint-10
expect 0 "${train[@]}" --output run --resume auto
says err.txt "skipped checkpoint-10" "manifest.json: is that of step 5: files of different checkpoints are mixed"
[[ $(sha) == "$plain" ]] || fail "mixed files: another model"
