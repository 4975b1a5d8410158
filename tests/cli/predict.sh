# predict answers lines and tables alike; evaluate shows and writes what predict says.
source "$SOURCE/tests/cli/common.bash"

write_reviews train.tsv 200 1
expect 0 "$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --output out \
    --epochs 4 --learning-rate 1e-2 --quiet
tail -n +2 train.tsv | cut -f1 >lines.txt

expect 0 "$LOCKSTEP" predict --model out --data train.tsv --quiet
cp out.txt table.txt
[[ $(wc -l <table.txt) -eq 200 ]] || fail "not a line a row"
grep -qvP '^(positive|negative)\t[01]\.\d{6}$' table.txt && fail "not label, tab, probability"
expect 0 "$LOCKSTEP" predict --model out --data lines.txt
cmp out.txt table.txt || fail "a text file's lines and a table's rows differ"
"$LOCKSTEP" predict --model out <lines.txt >piped.txt || fail "predict from standard input"
cmp piped.txt table.txt || fail "standard input and a table differ"
"$LOCKSTEP" predict --model out --batch-size 3 <lines.txt >small.txt || fail "predict with small batches"
cmp small.txt table.txt || fail "another batch size gives other probabilities"

# One answer a question, before the next is asked.
coproc asking { "$LOCKSTEP" predict --model out; }
asking_pid=$asking_PID # bash forgets it once the program has ended
echo "the film was great" >&"${asking[1]}"
read -r -t 20 answer <&"${asking[0]}" || fail "no answer to the first line before the second"
[[ $answer == *$'\t'* ]] || fail "answer: $answer"
eval "exec ${asking[1]}>&-"
wait "$asking_pid"

status=0
printf 'the film was great\n\nthe film\n' | "$LOCKSTEP" predict --model out >out.txt 2>err.txt || status=$?
[[ $status -eq 1 && $(wc -l <out.txt) -eq 1 ]] || fail "an empty line gives status $status"
says err.txt "standard input:2: empty line"
printf 'the film\n\n\xff\n' | "$LOCKSTEP" predict --model out --skip-bad-rows >out.txt 2>err.txt ||
    fail "--skip-bad-rows"
says err.txt "2 bad lines left out"
expect 1 "$LOCKSTEP" predict --model out --data x.parquet
says err.txt "x.parquet" ".tsv, .csv, .jsonl"

expect 0 "$LOCKSTEP" evaluate --model out --data train.tsv --predictions predictions.jsonl
says out.txt "accuracy" "macro-F1" "loss" "of 200 rows" "true \\ predicted" "negative" "positive"
python3 - <<'PYTHON' || fail "predictions.jsonl and predict differ"
import json
rows = [json.loads(line) for line in open("predictions.jsonl")]
said = [line.rstrip("\n").split("\t") for line in open("table.txt")]
assert len(rows) == len(said) == 200
for number, (row, (label, probability)) in enumerate(zip(rows, said)):
    assert row["row"] == number and row["prediction"] == label
    assert abs(max(row["probabilities"]) - float(probability)) < 1e-6
PYTHON
