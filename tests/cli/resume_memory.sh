# A run that goes on takes no more memory than one that starts: the checkpoint is read in pieces.
source "$SOURCE/tests/cli/common.bash"
if is_sanitized; then
    echo "sanitizers' own memory is not bounded"
    exit 77
fi
fresh_model
write_reviews train.tsv 200 1
# Word embeddings of 50,000 rows: 7 MB of weights, 14 MB of moments.
rows=50000
python3 "$SOURCE/tests/cli/damage.py" model config "config['vocab_size'] = $rows"
python3 "$SOURCE/tests/cli/damage.py" model weights "
hidden, end = word['shape'][1], word['data_offsets'][1]
more = 4 * hidden * ($rows - word['shape'][0])
body[end:end] = bytes(more)
for name, entry in header.items():
    if name != '__metadata__' and entry['data_offsets'][0] >= end:
        entry['data_offsets'] = [offset + more for offset in entry['data_offsets']]
word['shape'][0] = $rows
word['data_offsets'][1] += more"

# peak FOLDER: most resident KiB of the run; what the plan names was all that it took.
peak() {
    jq -e '.measured_bytes <= .planned_bytes and .measured_host_bytes <= .planned_host_bytes' "$1/run.json" >shown.txt ||
        fail "more than planned in $1"
    jq .results.host_peak_bytes "$1/run.json" | awk '{ printf "%d\n", $1 / 1024 }'
}

for flags in "" "--strategy zero3 --devices 2"; do
    read -ra layout <<<"$flags"
    train=("$LOCKSTEP" train --model model --train train.tsv --threads 1 --batch-size 8 "${layout[@]}" --quiet)
    rm -rf out
    expect 0 "${train[@]}" --output out --max-steps 8 --save-every 4 --save-async=false
    fresh=$(peak out)
    [[ $(stat -c %s out/checkpoint-4/optimizer.safetensors) -gt 14000000 ]] || fail "the checkpoint is too small to tell"
    expect 0 "${train[@]}" --output on --max-steps 8 --resume out/checkpoint-4 --save-every 4 --save-async=false
    resumed=$(peak on)
    rm -rf on
    # The checkpoint's two files are 21 MB: a copy of either, or of the moments' larger half, would show.
    [[ $resumed -le $((fresh + 3000)) ]] || fail "$flags: $resumed KiB, a fresh run $fresh"
    [[ $fresh -gt 21000 ]] || fail "$fresh KiB are too few to be true"
done
