# Several devices train to the file that one device trains to; what they cannot do is refused by name.
source "$SOURCE/tests/cli/common.bash"
fresh_model
write_reviews train.tsv 70 1
train=("$LOCKSTEP" train --model model --train train.tsv --epochs 2 --threads 1 --quiet)

expect 0 "${train[@]}" --output single
for devices in 1 2 3 8; do
    expect 0 "${train[@]}" --output out --strategy ddp --devices "$devices" --bucket-size 16KiB
    cmp single/model.safetensors out/model.safetensors || fail "$devices devices train another model"
    grep -qF '"devices": {"value": '"$devices," out/run.json || fail "run.json does not say $devices devices"
done
for layout in "zero1 2" "zero1 3" "zero2 2 --samples-per-pass 4" "zero3 3" "zero3 4 --samples-per-pass 4"; do
    # shellcheck disable=SC2086
    expect 0 "${train[@]}" --output out --validation train.tsv --bucket-size 16KiB --strategy ${layout/ / --devices }
    cmp single/model.safetensors out/model.safetensors || fail "$layout trains another model"
    grep -qF '"strategy": {"value": "'"${layout%% *}"'"' out/run.json || fail "run.json does not say ${layout%% *}"
    planned=$(grep -o '"planned_bytes": [0-9]*' out/run.json) && grep -q "measured_bytes\": ${planned#*: }" out/run.json ||
        fail "$layout: other bytes than planned"
done
# The former run's folder is taken by a run on other devices.
expect 0 "${train[@]}" --output single --strategy ddp --devices 2 --samples-per-pass 3
cmp single/model.safetensors out/model.safetensors || fail "passes of 3 samples train another model"
rm -r out

# So do activations that are made again instead of being kept.
for layers in "--strategy ddp+recompute --devices 2" "--recompute attention --samples-per-pass 6"; do
    # shellcheck disable=SC2086
    expect 0 "${train[@]}" --output out $layers
    cmp single/model.safetensors out/model.safetensors || fail "$layers trains another model"
done
says out/run.json '"recompute": {"value": "attention"'
expect 2 "$LOCKSTEP" plan --model model --strategy ddp+recompute --recompute none
says err.txt "--strategy ddp+recompute" "--recompute none" "contradict"
rm -r out

# More devices than cores take turns, and say so.
expect 0 "$LOCKSTEP" train --model model --train train.tsv --output out --max-steps 1 --strategy ddp --devices 2 \
    --threads "$(nproc)" --quiet
[[ $(nproc) -eq 1 ]] || says err.txt "2 devices of $(nproc) threads on "
rm -r out

expect 0 "$LOCKSTEP" plan --model model --strategy ddp --devices 2 --batch-size 8 --print
says out.txt "exchange exchange_gradients(roots) bucket=0"
expect 0 "$LOCKSTEP" plan --model model --strategy zero3 --devices 4 --batch-size 32 --print
says out.txt "communication buffers"
says out.txt "pass gather() bucket="
says out.txt "parameter unit=1 decay sharded"
says out.txt " owned  # bert.embeddings.word_embeddings.weight"
expect 0 "$LOCKSTEP" plan --model model --strategy single --print
! grep -q exchange_gradients out.txt || fail "one device exchanges gradients"

refused 2 "--devices 9 is more than the 8 leaves of a batch (32 samples, --leaf-size 4): use --leaf-size 3" \
    --strategy ddp --devices 9 --train train.tsv
refused 2 "--devices: 2 devices with --strategy single, which runs on one" --devices 2 --train train.tsv
refused 2 "--devices 9 is more than the 8 leaves of a batch (32 samples, --leaf-size 4): use --leaf-size 3" \
    --strategy zero3 --devices 9 --train train.tsv
refused 2 "--samples-per-pass 6 is no multiple of --leaf-size 4: with --strategy zero2 a pass holds whole leaves; use --leaf-size 3" \
    --strategy zero2 --devices 2 --samples-per-pass 6 --train train.tsv
refused 1 "--device-memory allows 200000: zero3 on 4 devices has " \
    --strategy zero3 --devices 4 --device-memory 200000 --train train.tsv
refused 2 "--bucket-size" --strategy ddp --devices 2 --bucket-size 0 --train train.tsv
for command in "evaluate --data train.tsv" predict; do
    for setting in "--devices 2" "--strategy ddp" "--bucket-size 1MiB"; do
        # shellcheck disable=SC2086
        expect 2 "$LOCKSTEP" $command --model model $setting
        says err.txt "${command%% *} has no ${setting%% *}"
    done
done
# Diverges on all devices at the same step, with one device's words.
diverge=(--learning-rate 1e6 --weight-decay 1e6 --weight-decay-all --max-grad-norm 0 --max-steps 40)
expect 5 "${train[@]}" --output out "${diverge[@]}"
cp err.txt single.txt
expect 5 "${train[@]}" --output out "${diverge[@]}" --strategy ddp --devices 3
grep '^lockstep: step' single.txt | grep -qxFf - err.txt || { cat single.txt err.txt && fail "other words"; }
