# A run that dies again and again under lockstep launch goes on from its last checkpoint each time, to the
# undisturbed run's bits.
source "$SOURCE/tests/faults/common.bash"
# Each attempt dies in its fifth update: after steps 4, 8 and 12 were saved.
failing update:5:kill "$LOCKSTEP" launch --processes 1 --max-restarts 3 -- "${train[@]:1}" --output run --save-every 4 \
    --save-async=false
[[ $status -eq 0 ]] || { cat err.txt && fail "status $status"; }
for step in 4 8 12; do
    says err.txt "from checkpoint-$step" "going on from run/checkpoint-$step, after step $step of 14"
done
same run "three restarts"
expect 0 "$LOCKSTEP" audit run
says out.txt "14 steps, 2 whole epochs: each of 200 samples was used exactly once in each"
