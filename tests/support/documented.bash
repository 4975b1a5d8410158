# Sourced by tests that run the commands of pages: those in blocks marked "sh", in the order of the page, in one folder where
# tiny models and files bear the names that the pages give. Blocks marked "hosts" need several hosts, or Slurm.

documented_start() {
    mkdir page && cd page || return 1
    mkdir build && ln -s "$LOCKSTEP" build/lockstep
    export PATH=$PWD/build:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    cp -r "$SOURCE/tests/data/tiny-bert" all-MiniLM-L6-v2
    write_reviews train.tsv 80 1
    write_reviews validation.tsv 30 2
    write_reviews test.tsv 30 3
}

# Blocks of a file: documented_blocks FILE [MARK], each ended by a NUL.
documented_blocks() {
    python3 - "$1" "${2:-sh}" <<'PYTHON'
import re, sys
for block in re.findall(rf"^```{sys.argv[2]}\n(.*?)^```$", open(sys.argv[1]).read(), re.MULTILINE | re.DOTALL):
    print(block, end="\0")
PYTHON
}

# documented_run PAGE [WHY]: run its blocks; with a reason, none.
documented_run() {
    local block count=0
    if [[ -n ${2:-} ]]; then
        echo "not run: $1: $2"
        return
    fi
    while IFS= read -r -d '' block; do
        expect 0 bash -euo pipefail -c "$block"
        count=$((count + 1))
    done < <(documented_blocks "$SOURCE/$1")
    [[ $count -ge 1 ]] || fail "$1 has no commands"
}

# Pages of the tree that have commands.
documented_pages() {
    (cd "$SOURCE" && grep -l '^```sh$' README.md docs/*.md docs/fr/*.md)
}

# Lines of files that are commands of ours, in blocks that are marked neither "sh" nor, for several hosts, "hosts".
documented_unmarked() {
    python3 - "$@" <<'PYTHON'
import re, sys
for file in sys.argv[1:]:
    mark = None  # of the block that the line is in
    for line in open(file).read().splitlines():
        if line.startswith("```"):
            mark = line[3:] if mark is None else None
        elif mark == "" and re.match(r"(\$ |.*\| )?(build/)?(lockstep|mpirun|srun) (?!launch:)[a-z-]", line):
            print(f"{file}: {line}")
PYTHON
}
