# Disks that are full, read-only or gone: said before the run where that can be known; else the run goes on
# and its last checkpoint stays whole.
source "$SOURCE/tests/faults/common.bash"
if [[ $(id -u) -ne 0 ]] || ! unshare --mount true 2>/dev/null; then
    echo "mounting a small disk needs root"
    exit 77
fi
mkdir disk

# on_disk OPTIONS COMMAND...: with a tmpfs of these options at disk/; what is on it goes to left/.
on_disk() {
    local options=$1
    shift
    rm -rf left
    status=0
    unshare --mount bash -c 'mount -t tmpfs -o "$0" none disk && status=0 && { "$@" || status=$?; } &&
        cp -r disk left && exit $status' "$options" "$@" >out.txt 2>err.txt </dev/null || status=$?
}

# A checkpoint is about 360 KB and the model 120 KB: room for the records only, for one checkpoint, ...
for size in 100k 300k 500k 700k 900k; do
    on_disk size=$size "${train[@]}" --output disk/out --save-every 4
    [[ $status -le 1 ]] || { cat err.txt && fail "$size: status $status"; }
    if [[ $status -eq 1 ]]; then says err.txt "No space left on device (errno 28)"; fi
    [[ -z $(find left -name '*.tmp-*') ]] || fail "$size: $(find left -name '*.tmp-*') stays"
    for checkpoint in left/out/checkpoint-*; do
        if [[ -d $checkpoint ]]; then expect 0 "$LOCKSTEP" verify "$checkpoint"; fi
    done
    expect 0 "${train[@]}" --output left/out --resume auto
    same left/out "$size"
done
on_disk size=700k "${train[@]}" --output disk/out --save-every 4
says err.txt "was not saved, training goes on: disk/out/checkpoint-"
on_disk size=4m "${train[@]}" --output disk/out --save-every 4
[[ $status -eq 0 ]] || { cat err.txt && fail "4 MB are enough"; }

on_disk ro "${train[@]}" --output disk/out --save-every 4
[[ $status -eq 1 ]] || fail "a read-only disk: status $status"
says err.txt "Read-only file system"
if grep -qF "step " err.txt; then fail "it began although nothing can be written"; fi
