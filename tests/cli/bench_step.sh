# lockstep bench step: where the time of a step goes, on one device and on several.
source "$SOURCE/tests/cli/common.bash"
write_reviews train.tsv 70 1
bench=("$LOCKSTEP" bench step --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --max-steps 4 --threads 1)

expect 0 "${bench[@]}"
says out.txt "weight_gradient" "adamw" "4 steps, median"
! grep -qE 'exchange|gather' out.txt || fail "one device exchanges"

for strategy in ddp zero1 zero2 zero3 zero3+offload; do
    expect 0 "${bench[@]}" --strategy "$strategy" --devices 2
    says out.txt "exchange_gradients" "wait" "ops of the first of 2 devices" "4 steps, median"
    grep -qE 'exchanges: (0\.00[1-9]|0\.0[1-9]|0\.[1-9]|[1-9])[0-9.]* MB read' out.txt || { cat out.txt && fail "$strategy reads nothing from the other device"; }
    [[ $strategy == ddp ]] || says out.txt "gather"
done
says out.txt "fetch" "store"
