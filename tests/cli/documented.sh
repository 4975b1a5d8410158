# Each command in a block marked "sh" of these pages works as it stands.
source "$SOURCE/tests/cli/common.bash"
mkdir page && cd page
mkdir build && ln -s "$LOCKSTEP" build/lockstep
cp -r "$SOURCE/tests/data/tiny-bert" all-MiniLM-L6-v2
write_reviews train.tsv 80 1
write_reviews validation.tsv 30 2
write_reviews test.tsv 30 3

# blocks FILE: its commands, one a NUL.
blocks() {
    python3 - "$1" <<'PYTHON'
import re, sys
for block in re.findall(r"^```sh\n(.*?)^```$", open(sys.argv[1]).read(), re.MULTILINE | re.DOTALL):
    print(block, end="\0")
PYTHON
}

for name in memory.md comparing-strategies.md fr/premiers-pas.md; do
    count=0
    while IFS= read -r -d '' block; do
        expect 0 bash -euo pipefail -c "$block"
        count=$((count + 1))
    done < <(blocks "$SOURCE/docs/$name")
    [[ $count -ge 3 ]] || fail "$name has only $count commands"
done
[[ -s compared/report.html && -s sizes/compare.json && -s entraine/model.safetensors && -s graines/compare.csv && -s chosen/model.safetensors ]] ||
    fail "what the pages promise is not there"
