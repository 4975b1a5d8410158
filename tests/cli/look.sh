# inspect, tokenize and plan: what can be seen without training.
source "$SOURCE/tests/cli/common.bash"
model=$SOURCE/tests/data/tiny-bert

expect 0 "$LOCKSTEP" inspect "$model"
says out.txt "embeddings.word_embeddings.weight" "F32" "[64, 36]" "tensors," "bytes"
cp out.txt folder.txt
expect 0 "$LOCKSTEP" inspect --model="$model/model.safetensors"
cmp out.txt folder.txt || fail "a folder and its file are inspected differently"
printf 'x' >broken.safetensors
expect 1 "$LOCKSTEP" inspect broken.safetensors
says err.txt "broken.safetensors"
[[ ! -s out.txt ]] || fail "half an answer about a broken file"

printf 'the film\n\nthe film was good' >text.txt
expect 0 "$LOCKSTEP" tokenize --model "$model" --data text.txt
[[ $(wc -l <out.txt) -eq 3 ]] || fail "not a line a text"
grep -qvE '^[0-9]+( [0-9]+)+$' out.txt && fail "not ids parted by spaces: $(cat out.txt)"
[[ $(sed -n 2p out.txt | wc -w) -eq 2 ]] || fail "an empty line has more than the special tokens"
"$LOCKSTEP" tokenize --model "$model" <text.txt >piped.txt
cmp out.txt piped.txt || fail "a file and standard input differ"
expect 0 "$LOCKSTEP" tokenize --model "$model" --data text.txt --max-length 3
[[ $(sed -n 3p out.txt | wc -w) -eq 3 ]] || fail "--max-length does not cut"

expect 0 "$LOCKSTEP" plan --model "$model" --strategy single --batch-size 8
says out.txt "total on the device"
expect 0 "$LOCKSTEP" plan --model "$model" --strategy single --batch-size 8 --print
says out.txt "linear" "attention"

# Errors of the disk reach the user.
status=0
"$LOCKSTEP" inspect "$model" >/dev/full 2>err.txt || status=$?
[[ $status -eq 1 ]] || fail "a full disk gives status $status"
says err.txt "No space left"
