# The page of a comparison in a real browser: no error on its console, the numbers of compare.json, nothing from outside.
source "$SOURCE/tests/cli/common.bash"
browser=$(command -v chromium || command -v chromium-browser || true)
if [[ -z $browser ]]; then
    echo "no chromium: tools/install-packages.sh test"
    exit 77
fi
fresh_model
write_reviews train.tsv 80 1
write_reviews test.tsv 30 3
# What would end a script or open an element, in a name that the page shows.
mkdir -p '</script><b>&"'
cp -r model '</script><b>&"/'
compare=("$LOCKSTEP" compare --train train.tsv --validation test.tsv --test test.tsv --threads 1 --learning-rate 1e-2
    --timing-rounds 2 --timing-steps 3 --quiet)

expect 0 "${compare[@]}" --model '</script><b>&"/model' --output whole --devices 2 --strategies ddp,zero3 --seeds 1,2 --max-steps 20 --batch-sizes 8,16
expect 0 python3 "$SOURCE/tests/cli/report.py" "$browser" whole
[[ $(grep -c '</script>' whole/report.html) -eq 3 ]] || fail "a name ends a script"
expect 3 "${compare[@]}" --model model --output failing --devices 9 --strategies ddp --max-steps 4
expect 0 python3 "$SOURCE/tests/cli/report.py" "$browser" failing

# The check itself sees an error of the script, another number, a file from outside.
# damaged EXPRESSION TEXT: the report with one change is refused.
damaged() {
    cp -r whole changed
    sed -i "$1" changed/report.html
    if cmp -s whole/report.html changed/report.html; then fail "$1 changes nothing"; fi
    expect 1 python3 "$SOURCE/tests/cli/report.py" "$browser" changed
    says out.txt "$2"
    rm -r changed
}
damaged 's/drawOrigin();/drawOrigin(); nothing();/' "console: "
damaged '0,/"step_ms_median": /s//&1/' "step_ms_median: holds"
damaged 's|<header>|&<img src="https://example.org/x.png">|' "the page names other files"
damaged 's/data: row.training_loss.map(/data: [].map(/' "curves of loss"
damaged 's/addEventListener("beforeprint", fitPaper);//' "print: charts of"
damaged 's/(prefers-color-scheme: dark) {/(prefers-color-scheme: none) {/' "dark: page is"
damaged 's/--muted: #56616e;/--muted: #a0a0a0;/' "light: note"
damaged 's/#subject {/& min-width: 30rem;/' "phone: "
damaged 's/@media print {/@media speech {/' "print: "
