# Each command in a block marked "sh" of these pages works as it stands; the pages with comparisons have a test of their own.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/documented.bash"
documented_start

cat >ds_config.json <<'JSON'
{"train_batch_size": 32, "zero_optimization": {"stage": 2}}
JSON
for name in README.md docs/first-fine-tuning.md docs/same-bits.md docs/memory.md docs/checkpoints.md docs/coming-from-deepspeed.md \
    docs/reading-a-profile.md; do
    documented_run "$name"
done
documented_run docs/several-hosts.md "$(mpirun --version >/dev/null 2>&1 || echo 'no mpirun')"
[[ -s chosen/model.safetensors && -s OUT/profile/trace.json && -s predictions.jsonl ]] ||
    fail "what the pages promise is not there"

# Every page is run here or in the other test, and no command stands in a block that nothing runs.
documented_pages | sort >pages.txt
cat "$SOURCE"/tests/cli/documented*.sh | grep -oE '(docs/[a-z/-]+|README)\.md' | sort -u >run.txt
comm -23 pages.txt run.txt >missed.txt
[[ ! -s missed.txt ]] || { cat missed.txt && fail "pages whose commands nothing runs"; }
documented_unmarked "$SOURCE"/README.md "$SOURCE"/docs/*.md "$SOURCE"/docs/fr/*.md >unmarked.txt
[[ ! -s unmarked.txt ]] || { cat unmarked.txt && fail "commands outside of blocks marked sh"; }
printf '```\nlockstep train --model m\n```\n' >page.md
[[ $(documented_unmarked page.md) == *"lockstep train"* ]] || fail "would not find a command that nothing runs"
