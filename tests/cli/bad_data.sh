# Data that cannot be used is refused by file and line, and nothing is written.
source "$SOURCE/tests/cli/common.bash"
fresh_model

# bad FILE CONTENT TEXT [ARGUMENT...]: training on a file with that content (as printf takes it) is
# refused with the text.
bad() {
    local file=$1 text=$3
    # shellcheck disable=SC2059
    printf "$2" >"$file"
    shift 3
    refused 1 "$text" --train "$file" "$@"
}

# --- files and columns -------------------------------------------------------------------------------
refused 1 "nowhere.tsv: cannot open: No such file" --train nowhere.tsv
mkdir folder.tsv
refused 1 "folder.tsv: is a folder, a file is needed" --train folder.tsv
bad data.parquet '' "data.parquet: data files end in .tsv, .csv, .jsonl"
for file in data.tsv data.csv; do
    bad $file '' "$file: is empty; a first line with the names of the columns is needed"
    bad $file '\xef\xbb\xbf\n\n' "$file: is empty"
done
bad data.tsv 'text\tlabel\n' "data.tsv: has a line of column names, but no rows"
bad data.jsonl '' "data.jsonl: is empty; one JSON object a line is needed"
columns="the columns are: 'review', 'class'"
table='review\tclass\ngood\ta\nbad\tb\n'
bad data.tsv "$table" "data.tsv: no column 'text' or 'sentence' (name the text column); $columns"
bad data.tsv "$table" "no column 'label' (name the label column); $columns" --text-column review
bad data.tsv "$table" "no column 'reviews'; $columns" --text-column reviews --label-column class
bad data.tsv "$table" "no column 'b'; $columns" --text-column review --text-pair-column b --label-column class
expect 0 "$LOCKSTEP" train --model model --train data.tsv --output out --max-steps 1 --text-column review \
    --label-column class
rm -r out

# --- rows --------------------------------------------------------------------------------------------
bad data.csv 'text,label\ngood,a\n"bad film,b\n' "data.csv:3: a quote opened in this row is never closed"
bad data.csv 'text,label\n"good film,a\nbad,b\n' "data.csv:2: a quote opened" --skip-bad-rows
bad data.tsv 'text\tlabel\ngood\ta\nbad\n' "data.tsv:3: 1 field, the header has 2"
bad data.tsv 'text\tlabel\ngood\ta\tx\nbad\tb\n' "data.tsv:2: 3 fields, the header has 2"
bad data.tsv 'text\tlabel\ngood\ta\n \tb\n' "data.tsv:3: 'text' is empty"
bad data.tsv 'text\tlabel\ngood\t\nbad\tb\n' "data.tsv:2: 'label' is empty; each row needs a label"
bad data.tsv 'text\tlabel\ngood\ta\nb\xff\xfead\tb\n' "data.tsv:3: bad UTF-8 (0xff) at byte 2 of the row"
bad data.csv 'text,label\ngood,a\n"two\nlines \xc3\x28",b\n' "data.csv:3: bad UTF-8 (0xc3)"
bad data.tsv 'text\tlabel\ngood\ta\nb\x00ad\tb\n' "data.tsv:3: a NUL byte at byte 2 of the row"
bad data.tsv '\xff\xfet\x00e\x00x\x00t\x00' "data.tsv:1: "
good='{"text": "good", "label": "a"}\n'
bad data.jsonl "$good"'{"text": "b \\ud800 x", "label": "b"}\n' "data.jsonl:2: byte 21: unpaired surrogate escape '\\uD800'"
bad data.jsonl "$good"'{"text": "b \\udc00 x", "label": "b"}\n' "unpaired surrogate escape '\\uDC00'"
bad data.jsonl "$good"'{"text": "b \\u0000 x", "label": "b"}\n' "data.jsonl:2: byte 21: \\u0000: a NUL character"
bad data.jsonl "$good"'{"text": "\xff", "label": "b"}\n' "data.jsonl:2: bad UTF-8 (0xff)"
bad data.jsonl "$good"'{"text": 5, "label": "b"}\n' "data.jsonl:2: key 'text' is an integer, text is needed"
bad data.jsonl "$good"'{"text": "bad", "label": 1.5}\n' "data.jsonl:2: key 'label' is a number with a fraction"
bad data.jsonl "$good"'{"text": "bad"}\n' "data.jsonl:2: key 'label' is missing; each row needs a label"
bad data.jsonl "$good"'{"text": "bad", "text": "good", "label": "b"}\n' "duplicate key 'text'"
bad data.jsonl "$good"'not JSON\n' "data.jsonl:2: "
bad data.jsonl '[{"text": "good", "label": "a"}]\n' "data.jsonl:1: holds an array; one object {...} a line is needed"

# --- labels ------------------------------------------------------------------------------------------
bad data.tsv 'text\tlabel\ngood\ta\nbad\ta\n' 'data.tsv: all labels are "a": at least 2 classes are needed'
printf 'text\tlabel\ngood\ta\nbad\tb\n' >words.tsv
bad validation.tsv 'text\tlabel\ngood\ta\nbad\tc\n' \
    'validation.tsv:3: label "c" is not among the known labels: a, b' --train words.tsv --validation validation.tsv
# A label that nobody knows is no bad row: without such rows every figure would look better.
refused 1 'validation.tsv:3: label "c"' --train words.tsv --validation validation.tsv --skip-bad-rows
refused 1 'validation.tsv:3: label "c"' --train words.tsv --test validation.tsv
printf 'text\tlabel\ngood\t0\nbad\t1\n' >numbers.tsv
bad validation.tsv 'text\tlabel\ngood\t7\n' \
    'validation.tsv:2: label "7" is not among the known labels: 0, 1' --train numbers.tsv --validation validation.tsv
bad validation.tsv 'text\tlabel\ngood\t-1\n' 'label "-1" is not among' --train numbers.tsv --validation validation.tsv
# So does a model that has a head: by name, or by number from 0.
expect 0 "$LOCKSTEP" train --model model --train words.tsv --output out --max-steps 1
mv out trained
for label in 2 -1 c; do
    printf 'text\tlabel\ngood\t%s\n' "$label" >other.tsv
    expect 1 "$LOCKSTEP" evaluate --model trained --data other.tsv --predictions predictions.jsonl
    says err.txt "other.tsv:2: " "\"$label\""
    expect 1 "$LOCKSTEP" train --model trained --train other.tsv --output out
    says err.txt "other.tsv:2: " "\"$label\""
    [[ ! -e out && ! -e predictions.jsonl ]] || fail "label $label left something behind"
done

# --- a row of 100 MB ---------------------------------------------------------------------------------
{
    printf 'text\tlabel\ngood\ta\n'
    head -c 100000000 /dev/zero | tr '\0' x
    printf '\tb\nbad\tb\n'
} >long.tsv
refused 1 "long.tsv:3: the row is longer than the limit of 64 MiB; are line ends missing?" --train long.tsv
tail -n +3 long.tsv >long.txt
expect 1 "$LOCKSTEP" predict --model trained --data long.txt
says err.txt "long.txt:1: a line of more than"
expect 1 "$LOCKSTEP" tokenize --model trained --data long.txt
says err.txt "long.txt:1: a line of more than"

# --- --skip-bad-rows ---------------------------------------------------------------------------------
# skips FILE CONTENT COUNT ROWS: so many rows are left out, so many are trained on.
skips() {
    # shellcheck disable=SC2059
    printf "$2" >"$1"
    expect 0 "$LOCKSTEP" train --model model --train "$1" --output out --max-steps 1 --skip-bad-rows
    says err.txt "$1: $3 bad row" "left out"
    # The first three are named.
    [[ $(grep -c "^row left out: $1:[0-9]*: " err.txt) -eq $(($3 < 3 ? $3 : 3)) ]] || { cat err.txt && fail "rows left out are not named"; }
    jq -e ".train_rows == $4 and .train_rows_left_out == $3" out/run.json >skipped.txt ||
        { cat out/run.json && fail "run.json counts other rows"; }
    rm -r out
}
skips data.tsv 'text\tlabel\ngood\ta\nx\x00\tb\n\xff\tb\n\tb\nbad\n\t\t\nworse\tb\n' 5 2
skips data.csv 'text,label\r\ngood,a\r\n"a" b,b\r\n"b",b\r\n' 1 2
skips data.jsonl "$good"'{"text": "\\ud800", "label": "b"}\nnot JSON\n{"label": "b"}\n{"text": "bad", "label": "b"}\n' 3 2
expect 0 "$LOCKSTEP" train --model model --train long.tsv --output out --max-steps 1 --skip-bad-rows
says err.txt "long.tsv: 1 bad row left out"
rm -r out
bad data.tsv 'text\tlabel\ngood\nbad\n' "data.tsv: no good row: all 2 were left out as bad" --skip-bad-rows
expect 0 "$LOCKSTEP" evaluate --model trained --data long.tsv --skip-bad-rows
says out.txt "of 2 rows"
says err.txt "long.tsv: 1 bad row left out"

# --- what is merely unusual --------------------------------------------------------------------------
# taken FILE CONTENT: trains to the same bits as the plain file.
taken() {
    # shellcheck disable=SC2059
    printf "$2" >"$1"
    rm -rf out
    expect 0 "$LOCKSTEP" train --model model --train "$1" --output out --epochs 3 --quiet --batch-size "${3:-2}"
    sha256sum <out/model.safetensors >hash.txt
    [[ -e plain.txt ]] || cp hash.txt plain.txt
    cmp -s hash.txt plain.txt || fail "$1 trains to other bits than the plain file"
}
taken data.tsv 'text\tlabel\ngood, film\ta\nbad\tb\n'
taken crlf.tsv 'text\tlabel\r\ngood, film\ta\r\nbad\tb\r\n'
taken bom.tsv '\xef\xbb\xbftext\tlabel\ngood, film\ta\nbad\tb'
taken blank.tsv 'text\tlabel\n\ngood, film\ta\n\n\nbad\tb\n\n'
taken order.csv 'id,label,text\n1,a,"good, film"\n2,"b","bad"\n'
taken both.csv '\xef\xbb\xbftext,label\r\n"good, film",a\r\n"bad",b\r\n'
taken data.jsonl '{"label": "a", "text": "good, \\u0066ilm", "id": 1}\n{"text": "bad", "label": "b"}'
taken large.tsv 'text\tlabel\ngood, film\ta\nbad\tb\n' 1000000
[[ $(wc -l <out/metrics.jsonl) -eq 3 ]] || fail "not one short batch an epoch"

# --- pairs for a model that knows one kind of text -----------------------------------------------------
rm -rf out
sed -i 's/"type_vocab_size": 2/"type_vocab_size": 1/' model/config.json
grep -q '"type_vocab_size": 1' model/config.json || fail "the model's configuration could not be changed"
bad pairs.tsv 'sentence1\tsentence2\tlabel\ngood\tfilm\ta\nbad\tfilm\tb\n' \
    "pairs.tsv: column sentence2 makes pairs of texts, but the model knows one token type only"
