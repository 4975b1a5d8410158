# Numbers that are not finite, and numbers that a machine got wrong: named, the same on all ranks, and
# never in a checkpoint.
source "$SOURCE/tests/faults/common.bash"

# --- an error of the machine ----------------------------------------------------------------------------
# caught RULES TEXT FLAG...: the audit in every 4th step finds it.
caught() {
    local rules=$1 text=$2
    shift 2
    rm -rf run
    failing "$rules" "${train[@]}" --output run --audit-every 4 --save-every 1 --save-total-limit 20 "$@"
    [[ $status -eq 6 ]] || { cat err.txt && fail "$rules: status $status instead of 6"; }
    says err.txt "$text" "no checkpoint is written"
    [[ ! -e run/model.safetensors ]] || fail "$rules: a model is written"
    local step
    step=$(grep -oE 'step [0-9]+' err.txt | tail -n 1 | cut -d ' ' -f 2)
    [[ ! -e run/checkpoint-$step && -e run/checkpoint-$((step - 1)) ]] || fail "$rules: $(ls run)"
}
three=(--strategy ddp --devices 3)
caught weights.rank2:5:flip "audit before step 8: tensor bert.embeddings.word_embeddings.weight is not the same on all ranks: rank 2 is in the minority" "${three[@]}"
caught weights.rank0:1:flip "audit before step 4: tensor bert.embeddings.word_embeddings.weight is not the same on all ranks: rank 0 is in the minority" "${three[@]}"
caught weights.rank1:10:flip "audit before step 12: tensor bert.embeddings.word_embeddings.weight is not the same on all ranks: ranks 0, 1 differ, with no majority" \
    --strategy ddp --devices 2
caught gradient.rank0:4:flip "audit of step 4: the gradient of tensor classifier.bias is not the same when the pass of rank 0 is computed again by rank 1" "${three[@]}"
caught gradient.rank1:8:flip "when the pass of rank 1 is computed again by rank 2" "${three[@]}"
caught gradient.rank2:12:flip "when the pass of rank 2 is computed again by rank 0" "${three[@]}"
caught gradient.rank0:8:flip "when the pass of rank 0 is computed again by rank 0" --samples-per-pass 6
# Divided: an element is written over by its owner's at the next gather, so only what came after it is seen.
caught audit.rank1:2:flip "audit before step 8: tensor bert.embeddings.word_embeddings.weight is not the same on all ranks: rank 1 is in the minority" --strategy zero1 --devices 4
caught audit.rank3:1:flip "rank 3 is in the minority" --strategy zero2 --devices 4
caught gradient.rank1:8:flip "when the pass of rank 1 is computed again by rank 2" --strategy zero1 --devices 4
expect 2 "${train[@]}" --output none --audit-every 4 --strategy zero3 --devices 2
says err.txt "--audit-every: with --strategy zero3 no two ranks hold the same"
# Without an audit a comparison finds it: rank 1 is on the second device only.
failing gradient.rank1:3:flip "$LOCKSTEP" compare --model model --train train.tsv --devices 2 --strategies ddp,zero2 --max-steps 4 \
    --threads 1 --timing-rounds 1 --timing-steps 1 --quiet --output compared
[[ $status -eq 6 ]] || { cat out.txt err.txt && fail "a comparison of other bits: status $status instead of 6"; }
says out.txt "Other bits than single: ddp (batch size 32), zero2"
jq -e '[.rows[].same_bits_as_single] | .[0] == true and .[-1] == false' compared/compare.json >/dev/null || fail "compare.json does not say it"
# A sound machine: nothing is found, nothing changes, memory is as planned.
for layout in "ddp 1" "ddp 3" "ddp 8" "zero1 3" "zero2 4" "ddp+offload 2"; do
    rm -rf run
    expect 0 "${train[@]}" --output run --audit-every 2 --strategy ${layout% *} --devices ${layout#* }
    same run "audits with $layout"
    [[ $(jq .planned_bytes run/run.json) == "$(jq .measured_bytes run/run.json)" ]] || fail "memory is not as planned"
done
# What falls between two audits of gradients is not seen: that is what the documentation says.
rm -rf run
failing gradient.rank0:3:flip "${train[@]}" --output run --audit-every 4
[[ $status -eq 0 && $(sha) != "$wanted" ]] || fail "the exposure that the documentation names is not there"

# --- a gradient that is not finite while the loss is ----------------------------------------------------------
# Once, in the only device's gradient (with others an exchange may have taken it before): what is left is the state
# before the step.
for value in nan inf; do
    run=("${train[@]}" --output run --save-every 1 --save-total-limit 20)
    rm -rf run
    failing gradient.rank0:5:$value "${run[@]}"
    [[ $status -eq 5 ]] || { cat err.txt && fail "a gradient of $value: status $status instead of 5"; }
    says err.txt "lockstep: step 5: loss 0." ", gradient norm $value: nothing was updated in this step; first in the gradient of tensor "
    [[ -d run/checkpoint-4 && ! -e run/checkpoint-5 && ! -e run/model.safetensors ]] || fail "a gradient of $value: $(ls run)"
    rm -rf run
    failing gradient.rank0:5:$value "${run[@]}" --on-nan skip
    [[ $status -eq 0 ]] || { cat err.txt && fail "a gradient of $value, skipped: status $status"; }
    says err.txt "step 5: loss 0." "the step is skipped; first in the gradient of tensor "
    expect 0 "$LOCKSTEP" verify run/checkpoint-4 run/checkpoint-5
    says out.txt "equal to the bit: 123 tensors"
    expect 6 "$LOCKSTEP" verify run/checkpoint-5 run/checkpoint-6
done
# By its own numbers: a head so steep that the loss can be told, but not what the layer below it would have to change.
cp -r undisturbed steep
python3 "$SOURCE/tests/cli/damage.py" steep weights 'for name, value in (("classifier.weight", 3e38), ("bert.pooler.dense.weight", 1e3), ("bert.pooler.dense.bias", 0),
        ("bert.encoder.layer.1.output.LayerNorm.weight", 1e-6), ("bert.encoder.layer.1.output.LayerNorm.bias", 0)):
    put_float(body, header[name], 0, value)
for i in range(1, 36): put_float(body, header["bert.pooler.dense.weight"], i, 0)'
first=
for layout in "ddp 1" "ddp 3" "zero2 4" "zero3 2"; do
    name=${layout/ /-}
    rm -rf run
    expect 5 "$LOCKSTEP" train --model steep --train train.tsv --threads 1 --quiet --output run --strategy ${layout% *} --devices ${layout#* }
    grep '^lockstep' err.txt >steep.$name
    says steep.$name "nothing was updated in this step; first in tensor gradient." ", samples "
    grep -qE 'loss [0-9.]+(e\+?[0-9]+)?, gradient norm (nan|inf)' steep.$name || { cat steep.$name && fail "the loss is not finite"; }
    first=${first:-$name}
    cmp steep.$first steep.$name || fail "$name says something else"
    # Left out, such a step leaves parameters and moments as they were.
    rm -rf run
    expect 0 "$LOCKSTEP" train --model steep --train train.tsv --threads 1 --quiet --output run --strategy ${layout% *} --devices ${layout#* } \
        --on-nan skip --max-steps 2 --save-every 1
    expect 0 "$LOCKSTEP" verify run/checkpoint-1 run/checkpoint-2
done

# --- not finite --------------------------------------------------------------------------------------------
# A word that few rows have, whose embedding overflows in the layer norm.
sed -i '10s/$/ /; 20s/\tpositive/ funny\tpositive/; 20s/\tnegative/ funny\tnegative/' train.tsv
awk 'NR == 1 || NR == 20 || !/funny/' train.tsv >rare.tsv
row=$(($(grep -n '^funny$' model/vocab.txt | cut -d : -f 1) - 1))
python3 "$SOURCE/tests/cli/damage.py" model weights "[put_float(body, word, $row * 36 + i, 3e38 * (-1) ** i) for i in range(36)]"
sample=$(awk 'NR > 1 && /funny/ { print NR - 2 }' rare.tsv)
rare=("$LOCKSTEP" train --model model --train rare.tsv --epochs 2 --threads 1 --quiet --output)
first=
for layout in "ddp 1" "ddp 3" "zero1 8" "zero2 3" "zero3 4" "zero3+offload 2"; do
    devices=${layout#* } name=${layout/ /-}
    layout=(--strategy ${layout% *} --devices $devices --samples-per-pass 8)
    rm -rf stop skip
    expect 5 "${rare[@]}" stop "${layout[@]}"
    says err.txt "loss nan, gradient norm nan: nothing was updated in this step; first in tensor bert.embeddings.LayerNorm of layer_norm bert.embeddings.LayerNorm, samples $sample. Try"
    [[ ! -e stop/model.safetensors ]] || fail "a diverged model is written"
    grep '^lockstep' err.txt >stop.$name
    first=${first:-$name}
    cmp stop.$first stop.$name || fail "$name says something else"
    expect 0 "${rare[@]}" skip "${layout[@]}" --on-nan skip --save-every 2
    says err.txt "the step is skipped; first in tensor bert.embeddings.LayerNorm" "samples $sample"
    says out.txt "skipped        2 steps"
    [[ $(jq .results.skipped_steps skip/run.json) -eq 2 && $(grep -c '"skipped": true' skip/metrics.jsonl) -eq 2 ]] || fail "not two skipped steps"
    sha >skip.$name
    cmp skip.$first skip.$name || fail "$name skips to another model"
    expect 0 "$LOCKSTEP" audit skip
    says out.txt "2 steps were skipped"
    # Going on after a skipped step: as if never stopped.
    expect 0 "${rare[@]}" again --resume "$(ls -d skip/checkpoint-* | sort -V | head -n 1)" --on-nan skip
    sha | cmp skip.$first - || fail "resumed after a skipped step: another model"
    rm -rf again
done
