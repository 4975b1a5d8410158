# Sourced by every tests/cli/*.sh. $LOCKSTEP is the program, $SOURCE the project's folder; a test
# starts in an empty folder that is removed after it.
set -euo pipefail

fail() {
    echo "FAILED: $*"
    exit 1
}

# expect STATUS COMMAND...: run it, keep its output in out.txt and err.txt, compare the exit status.
expect() {
    local wanted=$1 status=0
    shift
    "$@" >out.txt 2>err.txt </dev/null || status=$?
    if grep -qE 'Sanitizer|runtime error:' err.txt; then cat err.txt && fail "unclean: $*"; fi
    if [[ $status -ne $wanted ]]; then
        echo "--- standard output" && tail -n 20 out.txt
        echo "--- standard error" && tail -n 20 err.txt
        fail "exit status $status instead of $wanted: $*"
    fi
}

# says FILE TEXT...: each text stands somewhere in the file, as it is.
says() {
    local file=$1 text
    shift
    for text in "$@"; do
        grep -qF -- "$text" "$file" || { cat "$file" && fail "$file does not say '$text'"; }
    done
}

# write_reviews FILE ROWS SEED: a TSV file (text, label) of made-up sentences that a model can learn.
write_reviews() {
    awk -v rows="$2" -v seed="$3" '
        function draw(n) { state = (state * 16807) % 2147483647; return state % n }
        BEGIN {
            good = split("good great funny bright", goods, " ")
            bad = split("bad poor dull boring", bads, " ")
            filler = split("the film story plot actor scene music time people world", words, " ")
            state = seed * 7919 + 17
            print "text\tlabel"
            for (row = 0; row < rows; row++) {
                positive = draw(2)
                text = "the"
                count = 2 + draw(9)
                for (word = 0; word < count; word++) text = text " " words[1 + draw(filler)]
                text = text " was " (positive ? goods[1 + draw(good)] : bads[1 + draw(bad)])
                print text "\t" (positive ? "positive" : "negative")
            }
        }' >"$1"
}

# fresh_model [NAME]: a copy of tests/data/NAME (tiny-bert) in the folder `model`.
fresh_model() {
    rm -rf model
    cp -r "$SOURCE/tests/data/${1:-tiny-bert}" model
    chmod -R u+w model
}

# refused STATUS TEXT TRAIN_ARGUMENT...: training `model` ends with that status and says the text, and
# nothing of it stays.
refused() {
    local status=$1 text=$2
    shift 2
    expect "$status" "$LOCKSTEP" train --model model --output out --max-steps 2 --quiet "$@"
    says err.txt "$text"
    [[ $(grep -c '^lockstep: ' err.txt) -eq 1 ]] || { cat err.txt && fail "not one line of error"; }
    [[ ! -e out ]] || fail "'$text' left an output folder: $(ls out)"
}

# Root may read and write everything. as_other COMMAND...: as an account that may not, if
# can_be_other says so (it can neither without root nor where that account cannot reach the program).
can_be_other() {
    chmod 777 .
    as_other "$LOCKSTEP" --version >version.txt 2>&1
}
as_other() {
    setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# The address sanitizer reserves terabytes: a limit on addresses ends it at once.
is_sanitized() {
    grep -qF __asan_init "$LOCKSTEP"
}

# Whether the program can be one of several processes.
has_mpi() {
    ldd "$LOCKSTEP" >libraries.txt
    grep -qF libmpi libraries.txt
}
