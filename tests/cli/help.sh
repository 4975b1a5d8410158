# --help and --version answer on standard output, each command has its own help.
source "$SOURCE/tests/cli/common.bash"

expect 0 "$LOCKSTEP" --version
grep -qE '^lockstep [0-9]+\.[0-9]+\.[0-9]+' out.txt || fail "--version says $(cat out.txt)"

expect 0 "$LOCKSTEP" --help
commands="train evaluate predict inspect tokenize plan config compare"
for command in $commands; do
    says out.txt "$command"
done
for command in $commands; do
    expect 0 "$LOCKSTEP" "$command" --help
    says out.txt "lockstep $command" "--model"
    awk 'length > 80 { exit 1 }' out.txt || fail "$command --help is wider than 80 columns"
    [[ ! -s err.txt ]] || fail "$command --help writes to standard error"
done

expect 0 "$LOCKSTEP" launch --help
says out.txt "lockstep launch" "--processes" "--hosts" "--max-restarts" "--min-processes" "--dry-run"
awk 'length > 80 { exit 1 }' out.txt || fail "launch --help is wider than 80 columns"

expect 0 "$LOCKSTEP" train --help
for flag in --model --train --validation --test --output --epochs --max-steps --batch-size --leaf-size \
    --samples-per-pass --threads --max-length --seed --learning-rate --weight-decay --lr-scheduler-type \
    --warmup-steps --warmup-ratio --max-grad-norm --text-column --text-pair-column --label-column \
    --devices --strategy --deepspeed --optimizer --warmup-type --tensorboard --csv --prometheus --profile \
    --profile-steps --log-every; do
    says out.txt "$flag"
done
