# One run at a time in an output folder: the second one is refused by name, a lock ends with its process
# however that ends, and what a run writes for other programs may lie in the folder.
source "$SOURCE/tests/cli/common.bash"
fresh_model
write_reviews train.tsv 400 1
train=("$LOCKSTEP" train --model model --train train.tsv --threads 1 --quiet)

# started FILE: wait until the run in the background has it.
started() {
    for ((i = 0; i < 600; i++)); do
        if [[ -s $1 ]]; then return; fi
        sleep 0.05
    done
    fail "no $1"
}

# --- a second run in the folder ----------------------------------------------------------------------
"${train[@]}" --output out --epochs 100000 --strategy ddp --devices 2 --save-every 5 >first.txt 2>&1 &
first=$!
started out/metrics.jsonl
for _ in 1 2; do # a refused run leaves the lock as it is
    expect 1 "${train[@]}" --output out --max-steps 2 --resume auto
    says err.txt "out: another run is at work in this folder (process $first on $(hostname))"
done
ln -s out alias
expect 1 "${train[@]}" --output alias/ --max-steps 2 --resume auto
says err.txt "alias/: another run is at work in this folder"
expect 0 "${train[@]}" --output other --max-steps 2

# --- the holder dies ---------------------------------------------------------------------------------
for ((i = 0; i < 600; i++)); do
    if [[ -n $(find out -maxdepth 1 -regex '.*/checkpoint-[0-9]+') ]]; then break; fi
    sleep 0.05
done
kill -KILL $first
wait $first 2>/dev/null || true
# In the foreground, or timeout sends the signal to its group as well, and the run takes the second one for haste.
expect 75 timeout --foreground --signal INT --preserve-status 2 "${train[@]}" --output out --epochs 100000 --strategy ddp --devices 2 --resume auto
grep -qF "going on from out/checkpoint-" err.txt || { cat err.txt && fail "it did not go on at once"; }
[[ -z $(find out -name '.lockstep-lock') ]] || fail "a run that has ended leaves its lock"

# --- files for other programs, in the folder ---------------------------------------------------------
sinks=(--csv run/csv --tensorboard run/events --prometheus run/metrics.prom)
for _ in 1 2; do
    expect 0 "${train[@]}" --output run --max-steps 2 "${sinks[@]}"
    [[ -s run/metrics.prom && -d run/csv && -d run/events ]] || fail "$(ls run)"
done
# As they are named elsewhere: from the folder itself, absolute, through a link.
ln -s run link
expect 0 "${train[@]}" --output "$PWD/run" --max-steps 2 --csv link/csv --tensorboard ./run//events/ --prometheus run/metrics.prom
expect 0 "${train[@]}" --output flat --max-steps 2 --csv flat --tensorboard flat
expect 0 "${train[@]}" --output flat --max-steps 2 --csv flat --tensorboard flat
# A killed run's half of one is no stranger either; without the flags they are strangers.
echo half >run/metrics.prom.tmp-123
expect 0 "${train[@]}" --output run --max-steps 2 "${sinks[@]}"
expect 1 "${train[@]}" --output run --max-steps 2 --csv run/csv --tensorboard run/events
says err.txt "run: the output folder holds something else (metrics.prom"
