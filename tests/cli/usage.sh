# A wrong command line ends with status 2 and names what is wrong; it writes nothing.
source "$SOURCE/tests/cli/common.bash"

expect 2 "$LOCKSTEP"
expect 2 "$LOCKSTEP" trian
says err.txt "trian" "train"
expect 2 "$LOCKSTEP" train --no-such-flag 1
says err.txt "--no-such-flag"
expect 2 "$LOCKSTEP" train --epochs
says err.txt "--epochs"

write_reviews train.tsv 8 1
model=$SOURCE/tests/data/tiny-bert
expect 2 "$LOCKSTEP" train --train train.tsv --output out
says err.txt "--model"
for setting in "--epochs many" "--batch-size 0" "--batch-size -4" "--learning-rate nan" "--threads 1x" \
    "--leaf-size 0" "--max-length 1000000000000000000000" "--samples-per-pass none"; do
    # shellcheck disable=SC2086
    expect 2 "$LOCKSTEP" train --model "$model" --train train.tsv --output out $setting
    says err.txt "${setting%% *}"
done
for strategy in zero zero4 deepspeed fsdp Single; do
    expect 2 "$LOCKSTEP" train --model "$model" --train train.tsv --output out --strategy $strategy
    says err.txt "--strategy: '$strategy' is not built yet: known strategies are single, ddp, zero1, zero2, zero3"
    expect 2 "$LOCKSTEP" plan --model "$model" --strategy=$strategy
done
expect 1 "$LOCKSTEP" train --model "$model" --train train.tsv --output out --deepspeed ds.json
says err.txt "--deepspeed: ds.json"
[[ ! -e out ]] || fail "a wrong command line left an output folder"

# What it says leads on: the nearest name, an example, the list of what is known.
expect 2 "$LOCKSTEP" train --lerning_rate 1
says err.txt "--learning-rate"
expect 2 "$LOCKSTEP" train --model "$model" --output out
says err.txt "--train" "for example: lockstep train"
expect 2 "$LOCKSTEP" train --model "$model" --train train.tsv --output out --lr_scheduler_type polynomial
says err.txt "polynomial" "linear, cosine, constant, constant_with_warmup"
expect 2 "$LOCKSTEP" train --model "$model" --train train.tsv --output out --devices 2
says err.txt "--devices" "single"
expect 2 "$LOCKSTEP" predict --model "$model" --train train.tsv
says err.txt "predict has no --train"
[[ ! -e out ]] || fail "a wrong command line left an output folder"
