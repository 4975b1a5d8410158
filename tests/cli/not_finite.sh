# A run that diverges stops with status 5, says at which step, and writes no model.
source "$SOURCE/tests/cli/common.bash"

write_reviews train.tsv 200 1
expect 5 "$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --output out --quiet \
    --learning-rate 1e6 --weight-decay 1e6 --weight-decay-all --max-grad-norm 0 --max-steps 40
says err.txt "lockstep: step" "nan"
[[ ! -e out/model.safetensors ]] || fail "the model of a diverged run was written"
