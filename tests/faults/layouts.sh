# A run that was stopped on one layout goes on on another, to the undisturbed run's bits and history: each
# of 17 layouts from a checkpoint of each, or a sample of the pairs.
source "$SOURCE/tests/faults/common.bash"
layouts=("ddp 1")
for strategy in ddp zero1 zero2 zero3; do
    for devices in 2 3 4 8; do layouts+=("$strategy $devices"); done
done

saved=0
for layout in "${layouts[@]}"; do
    name=saved-${layout/ /-}
    expect 0 "${train[@]}" --output "$name" --save-every 3 --save-total-limit 9 --strategy ${layout% *} --devices ${layout#* }
    same "$name" "$layout"
    saved=$((saved + 1))
done

pairs=0
for from in "${layouts[@]}"; do
    for to in "${layouts[@]}"; do
        # Pairwise: in the sample every layout is gone on from and gone on with, not each with each.
        if [[ -z $long && $((RANDOM % 8)) -ne 0 ]]; then continue; fi
        rm -rf run
        step=$((3 * (1 + RANDOM % 4)))
        expect 0 "${train[@]}" --output run --resume "saved-${from/ /-}/checkpoint-$step" --strategy ${to% *} --devices ${to#* }
        says err.txt "after step $step of 14"
        same run "step $step of $from, on $to"
        expect 0 "$LOCKSTEP" audit run
        pairs=$((pairs + 1))
    done
done
[[ $pairs -gt 20 ]] || fail "only $pairs pairs"
echo "$saved layouts, $pairs pairs"
