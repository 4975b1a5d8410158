# Progress: one line redrawn on a terminal and fitted to it, plain lines elsewhere, none with --quiet.
source "$SOURCE/tests/cli/common.bash"

write_reviews train.tsv 400 1
train=("$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --epochs 2 --batch-size 8)

for columns in 40 80 160; do
    expect 0 python3 "$SOURCE/tests/cli/terminal.py" $columns "${train[@]}" --output "out$columns"
    says out.txt "100/100" "loss " "left" "weights        sha256"
    grep -qE "widest redrawn line: [1-9]" out.txt || fail "nothing was redrawn on a terminal"
done
grep -q "norm .* tok/s" out.txt || fail "a wide terminal shows no gradient norm and speed"

# What is not training has a line with its percentage, too.
write_reviews test.tsv 400 2
expect 0 python3 "$SOURCE/tests/cli/terminal.py" 40 "${train[@]}" --test test.tsv --output out
says out.txt "reading test.tsv 100 %" "evaluating the test file 100 %" "saving the model 100 %"
expect 0 python3 "$SOURCE/tests/cli/terminal.py" 40 "$LOCKSTEP" evaluate --model out --data test.tsv
says out.txt "evaluating test.tsv 100 %"
grep -qE "evaluating test.tsv [1-9]?[0-9] %" out.txt || fail "no percentage on the way"
expect 0 python3 "$SOURCE/tests/cli/terminal.py" 40 "$LOCKSTEP" evaluate --model out --data test.tsv --quiet
if grep -q "evaluating test.tsv" out.txt; then fail "evaluate --quiet shows progress"; fi

expect 0 "${train[@]}" --output out
lines=$(grep -c '^step ' err.txt)
[[ $lines -ge 15 && $lines -le 25 ]] || fail "$lines plain lines of progress instead of about 20"
says err.txt "step 100/100 (100 %)" "learning rate" "gradient norm" "tokens/s"
if grep -q $'\r\|\x1b' err.txt; then fail "control characters where there is no terminal"; fi
says out.txt "device memory  planned" "measured" "weights        sha256" "output         out"
if grep -q '^step ' out.txt; then fail "progress among the results"; fi

expect 0 "${train[@]}" --output quiet --quiet
if grep -v '^new weights, drawn' err.txt; then fail "--quiet shows progress"; fi
says out.txt "weights        sha256"
