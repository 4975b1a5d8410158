# A DeepSpeed file trains to the bits of the flags it stands for; config shows where each value is from.
source "$SOURCE/tests/cli/common.bash"
fresh_model
write_reviews train.tsv 96 1

cat >ds.json <<'END'
// remarks and commas at the end are read as they are there
{
    "train_batch_size": 24,
    "train_micro_batch_size_per_gpu": 6, # two devices, two passes
    "optimizer": {
        "type": "Adam",
        "params": {"lr": 1e-3, "betas": [0.8, 0.99], "eps": 1e-7, "weight_decay": 0.05, "adam_w_mode": false}
    },
    "scheduler": {
        "type": "WarmupDecayLR",
        "params": {"warmup_min_lr": 1e-5, "warmup_max_lr": 1e-3, "warmup_num_steps": 4, "total_num_steps": "auto"}
    },
    "gradient_clipping": 0.5,
    "steps_per_print": 3,
    "zero_optimization": {"stage": 0, "reduce_bucket_size": 5e3, "overlap_comm": true},
    "fp16": {"enabled": false},
}
END
flags=(--batch-size 24 --samples-per-pass 6 --leaf-size 2 --optimizer adam --learning-rate 1e-3 --adam-beta1 0.8
    --adam-beta2 0.99 --adam-epsilon 1e-7 --weight-decay 0.05 --weight-decay-all --lr-scheduler-type warmup_decay
    --warmup-min-lr 1e-5 --warmup-steps 4 --max-grad-norm 0.5 --strategy ddp --bucket-size 20000)
train=("$LOCKSTEP" train --model model --train train.tsv --epochs 3 --threads 1)

expect 0 "${train[@]}" --output out --devices 2 --deepspeed ds.json
says err.txt "ds.json: batch of 24 = 6 samples a pass x 2 passes x 2 devices, leaves of 2" \
    "ds.json: keys without effect here: zero_optimization.overlap_comm" "gradients are clipped to norm 0.5"
[[ $(grep -cE "^step (3|6|9|12)/12 " err.txt) -eq 4 && $(grep -c "^step " err.txt) -eq 4 ]] ||
    { cat err.txt && fail "not a line every three of twelve steps"; }
says out/run.json '"source": "ds.json: optimizer.params.adam_w_mode"' \
    '"leaf_size": {"value": 2, "source": "ds.json: the largest of 4, 2, 1 that divides the micro batch 6"}'
expect 0 "${train[@]}" --output flags --devices 2 --quiet "${flags[@]}"
cmp out/model.safetensors flags/model.safetensors || fail "the file trains another model than its flags"
# One device takes four passes: the same bits. Other settings: others.
expect 0 "${train[@]}" --output one --quiet --deepspeed ds.json
! grep -qF ds.json err.txt || fail "--quiet prints notes"
cmp out/model.safetensors one/model.safetensors || fail "one device trains another model"
for other in "--optimizer adamw" "--warmup-min-lr 0" "--lr-scheduler-type warmup" "--warmup-type linear" \
    "--lr-scheduler-steps 20"; do
    # shellcheck disable=SC2086
    expect 0 "${train[@]}" --output other --quiet "${flags[@]}" $other
    ! cmp -s out/model.safetensors other/model.safetensors || fail "$other makes no difference"
done

# Every stage and offload, to the same bits; the monitors write where the file says.
offload_optimizer='"offload_optimizer": {"device": "cpu", "pin_memory": true}'
offload_param='"offload_param": {"device": "nvme", "nvme_path": "."}'
for zero in '"stage": 1' "\"stage\": 2, $offload_optimizer" \
    "\"stage\": 3, $offload_optimizer, $offload_param, \"stage3_prefetch_bucket_size\": \"auto\""; do
    sed "s|\"stage\": 0|$zero|; s|^}|\"wall_clock_breakdown\": true, \"csv_monitor\": {\"enabled\": true, \
        \"output_path\": \"csv\", \"job_name\": \"j\"}}|" ds.json >zero.json
    expect 0 "${train[@]}" --output other --devices 2 --deepspeed zero.json
    cmp out/model.safetensors other/model.safetensors || fail "$zero trains another model"
    [[ $(grep -cE '^step [0-9]+/12 +data .* forward .* backward .* exchange .* optimizer' err.txt) -eq 4 ]] ||
        { cat err.txt && fail "no times of the parts of a step"; }
    [[ -s csv/j/Train_Samples_lr.csv ]] || fail "no CSV file"
    rm -r csv
done
says other/run.json '"strategy": {"value": "zero3", "source": "zero.json: zero_optimization.stage"}' \
    '"offload_optimizer": {"value": "host", "source": "zero.json: zero_optimization.offload_optimizer.device"}' \
    '"offload_parameters": {"value": "disk", "source": "zero.json: zero_optimization.offload_param.device"}' \
    '"offload_path": {"value": ".", "source": "zero.json: zero_optimization.offload_param.nvme_path"}'

expect 0 "$LOCKSTEP" config ds.json --devices 2 --seed 7
says out.txt "command line" "ds.json: gradient_clipping" "zero_optimization.overlap_comm" "default"
grep -qE '^samples-per-pass +6 +ds.json: train_micro_batch_size_per_gpu$' out.txt || fail "no samples-per-pass"
grep -qE '^seed +7 +command line$' out.txt || fail "no seed"
expect 0 "$LOCKSTEP" config --deepspeed=ds.json --json
says out.txt '"train_batch_size"' '"batch_size": {"value": 24, "from": "ds.json: train_batch_size"}'
expect 0 "$LOCKSTEP" config
says out.txt "learning-rate"

expect 0 "$LOCKSTEP" plan --model model --deepspeed ds.json --print
says out.txt "weight_decay=0.05 l2"
expect 0 "$LOCKSTEP" bench step --model model --train train.tsv --deepspeed ds.json --max-steps 2

# The command line and the file agree or the run does not start.
expect 2 "${train[@]}" --output none --deepspeed ds.json --batch-size 32 --adam-beta1 0.9
says err.txt "--batch-size 32 (command line) and 'train_batch_size' 24" \
    "--adam-beta1 0.9 (command line) and 'optimizer.params.betas' 0.8"
expect 2 "${train[@]}" --output none --deepspeed ds.json --strategy ddp --devices 5
says err.txt "train_batch_size 24" "6" "5 devices" "nearest that fit: 30 = 6 x 1 x 5"
expect 2 "${train[@]}" --output none --deepspeed ds.json --deepspeed ds.json
expect 2 "${train[@]}" --output none --deepspeed
says err.txt "--deepspeed needs a value"
expect 1 "${train[@]}" --output none --deepspeed missing.json
says err.txt "missing.json"
expect 2 "${train[@]}" --output none --deepspeed eyJ0cmFpbl9iYXRjaF9zaXplIjogOH0=
says err.txt "base64"
printf '{"zero_optimization": {\n"stage": 2,\n"offload_model": {"device": "cpu"}}}' >bad.json
expect 1 "$LOCKSTEP" config bad.json
says err.txt "bad.json: line 3: key 'zero_optimization.offload_model'" "'zero_optimization.offload_param'"
printf '{"bf16": {"enabled": true}}' >bad.json
expect 2 "$LOCKSTEP" config bad.json
says err.txt "bf16.enabled"
expect 2 "$LOCKSTEP" predict --model model --deepspeed ds.json
[[ ! -e none ]] || fail "a refused file left an output folder"
