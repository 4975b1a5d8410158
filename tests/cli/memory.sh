# A file twice the process's memory limit trains, evaluates and predicts to the same bits as without
# a limit. The limit is on addresses, so nothing may be mapped whole either.
source "$SOURCE/tests/cli/common.bash"
if is_sanitized; then
    echo "the address sanitizer takes more addresses than the limit"
    exit 77
fi
fresh_model
limit_kib=50000

# rows COUNT WORDS FILE: COUNT rows of WORDS words.
rows() {
    python3 - "$@" <<'PYTHON'
import sys
rows, words = int(sys.argv[1]), int(sys.argv[2])
known = "film story plot actor scene music time people world good".split()
stream = [known[place * place % 7 + place % 4] for place in range(words + 10)]
texts = [" ".join(stream[first : first + words]) for first in range(10)]
with open(sys.argv[3], "w") as file:
    file.write("text\tlabel\n")
    for row in range(rows):
        file.write(f"{texts[row % 10]}\t{'negative' if row % 3 else 'positive'}\n")
PYTHON
    [[ $(stat -c %s "$3") -ge $((2 * 1024 * limit_kib)) ]] || fail "$3 is less than twice the limit"
}

# alike NAME ARGUMENT...: the command, with and without the limit, writes the same standard output.
alike() {
    local name=$1
    shift
    expect 0 "$LOCKSTEP" "$@"
    cp out.txt "$name.free"
    expect 0 bash -c "ulimit -v $limit_kib && exec \"\$@\"" - "$LOCKSTEP" "$@"
    cp out.txt "$name.limited"
}

# Many short rows: their ids alone are as large as the limit.
rows 420000 45 short.tsv
alike train train --model model --train short.tsv --output out --max-steps 5 --threads 2 --quiet
grep -F sha256 train.free >hash.txt
grep -qFf hash.txt train.limited || { cat train.free train.limited && fail "a limit changes the bits"; }
rm short.tsv

# Few long rows, so that evaluation has little to compute.
rows 2000 10700 long.tsv
alike evaluate evaluate --model out --data long.tsv --threads 2 --quiet --predictions predictions.jsonl
grep -qF "of 2,000 rows" evaluate.limited || { cat evaluate.limited && fail "not all rows were evaluated"; }
alike predict predict --model out --data long.tsv --threads 2 --quiet
cmp predict.free predict.limited || fail "a limit changes predictions"
[[ $(wc -l <predict.limited) -eq 2000 ]] || fail "not a line a row"

# Too little memory is said, whatever it is that no longer fits, before a former run's model goes.
write_reviews train.tsv 40 1
for kib in 9000 10000 11000 12000 13000 14000 16000 20000 25000 30000 40000; do
    status=0
    (ulimit -v $kib && exec "$LOCKSTEP" train --model model --train train.tsv --output out --max-steps 1 \
        --threads 2 --quiet) >out.txt 2>err.txt || status=$?
    [[ -s out/model.safetensors && -z $(find out -name '*.tmp-*') ]] || fail "$kib KiB: no model is left"
    # Below some limit the program cannot even be loaded: 127, in the loader's words.
    [[ $status -le 1 || $status -eq 127 ]] || { cat err.txt && fail "$kib KiB gives status $status"; }
    if [[ $status -eq 1 ]]; then says err.txt "lockstep: "; fi
done
[[ $status -eq 0 ]] || { cat err.txt && fail "40 MB are too little for the tiny model"; }
