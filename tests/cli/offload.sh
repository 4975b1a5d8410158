# Optimizer state in host memory and on a disk: the same model, another plan; what cannot be is refused
# before anything is changed.
source "$SOURCE/tests/cli/common.bash"
fresh_model
write_reviews train.tsv 70 1
mkdir disk
train=("$LOCKSTEP" train --model model --train train.tsv --epochs 2 --threads 1 --quiet)
small=(--offload-block-size 8KiB)

expect 0 "${train[@]}" --output single
for layout in "--strategy single+offload" "--strategy ddp+offload+recompute --devices 2" \
    "--offload-optimizer disk --offload-path disk" \
    "--strategy zero3+offload --devices 2" "--strategy zero3+offload --offload-path disk --offload-parameters disk" \
    "--strategy ddp+offload --devices 3 --offload-optimizer disk --offload-path disk"; do
    # shellcheck disable=SC2086
    expect 0 "${train[@]}" --output out "${small[@]}" $layout
    cmp single/model.safetensors out/model.safetensors || fail "$layout trains another model"
    [[ -z $(ls disk) ]] || fail "$layout leaves $(ls disk)"
done
says out/run.json '"offload_optimizer": {"value": "disk"' '"strategy": {"value": "ddp+offload"'
grep -qE '"planned_file_bytes": [1-9]' out/run.json || fail "run.json does not say how large the file is"

# bytes NAME: of that line of the plan.
bytes() {
    sed -nE "s/^$1 +([0-9]+) bytes.*/\1/p" out.txt
}
expect 0 "$LOCKSTEP" plan --model model --strategy single
[[ $(bytes "optimizer state") -gt 0 && -z $(bytes staging) ]] || fail "the moments are not on the device"
state=$(bytes "optimizer state") total=$(bytes "total on the device")
expect 0 "$LOCKSTEP" plan --model model --strategy single+offload "${small[@]}" --print
[[ $(bytes staging) -eq 32768 && $(bytes "optimizer state") -eq 0 ]] || fail "staging: $(bytes staging)"
[[ $(bytes "in host memory") -ge $state ]] || fail "$(bytes "in host memory") bytes do not hold $state"
[[ $(bytes "total on the device") -eq $((total - state + 32768)) ]] || fail "the total is another"
says out.txt "= fetch(first_moments, second_moments) elements=0..2048" "update await(first_moments.block.0"
expect 0 "$LOCKSTEP" plan --model model --strategy zero3+offload --devices 2
[[ $(bytes parameters) -eq 0 && $(bytes "in host memory") -gt $((state / 2)) ]] || fail "parameters are on the device"
expect 0 "$LOCKSTEP" plan --model model --strategy single --offload-optimizer disk
[[ $(bytes "in a file") -ge $state ]] || fail "no file is planned"

rm -r out
refused 2 "--offload-optimizer disk needs --offload-path" --train train.tsv --offload-optimizer disk
refused 2 "--offload-path disk is of no use without --offload-optimizer disk or --offload-parameters disk" --train train.tsv \
    --strategy single+offload --offload-path disk
refused 2 "--strategy single+offload and --offload-optimizer none contradict" --train train.tsv \
    --strategy single+offload --offload-optimizer none
refused 2 "--offload-parameters host needs --strategy zero3" --train train.tsv --offload-parameters host
refused 2 "--strategy zero3+offload and --offload-parameters none contradict" --train train.tsv \
    --strategy zero3+offload --offload-parameters none
refused 2 "'+offlaod' is not known: known endings are +offload, +recompute" --train train.tsv \
    --strategy single+offlaod
refused 1 "--offload-path missing: cannot make a file there: No such file" --train train.tsv \
    --offload-optimizer disk --offload-path missing
if can_be_other; then
    mkdir locked && chmod 755 locked
    expect 1 as_other "$LOCKSTEP" train --model model --train train.tsv --output out2 --quiet \
        --offload-optimizer disk --offload-path locked
    says err.txt "--offload-path locked: cannot make a file there: Permission denied"
    [[ ! -e out2 ]] || fail "a refused run leaves a folder"
fi

# A file system with too little room, where one can be mounted.
if mkdir full && mount -t tmpfs -o size=128k none full 2>/dev/null; then
    trap 'umount full' EXIT
    refused 1 "--offload-path full: cannot take" --train train.tsv --offload-optimizer disk \
        --offload-path full
    says err.txt "No space left on device"
    mount -o remount,size=4m full
    expect 0 "${train[@]}" --output out --offload-optimizer disk --offload-path full
    cmp single/model.safetensors out/model.safetensors || fail "tmpfs trains another model"
    [[ -z $(ls full) ]] || fail "left: $(ls full)"
fi
