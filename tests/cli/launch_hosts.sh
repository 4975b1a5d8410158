# Two hosts, the second a network namespace of this machine: ranks are started on both, and when the
# second falls silent the run goes on with the ranks of the first.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/far_host.bash"
far_host_start || { echo "$far_host_reason" && exit 77; }
trap far_host_stop EXIT
export LOCKSTEP_LAUNCH_PROGRAM=$SOURCE/tests/cli/stand_in.py
write_reviews train.tsv 40 1
train=(train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --output out)
launch=("$LOCKSTEP" launch --processes 3 --hosts hosts)

expect 0 "${launch[@]}" -- "${train[@]}"
says err.txt "3 processes on 2 hosts" "     1  $far_host  part 1 of 2 of its cores" "step 20"
[[ $(cat attempts.txt) == "3 train "* && -s pids.2 ]] || { cat attempts.txt && fail "not three ranks"; }

# A rank over there dies: it is named with its host.
rm -rf out pids.* attempts.txt
STAND_IN_DIE=2:3:9 expect 4 "${launch[@]}" -- "${train[@]}"
says err.txt "rank 2 on $far_host was ended by SIGKILL (Killed); its last line: rank 2 had step 3"

# The cable is pulled at step 30 or so.
rm -rf out pids.* attempts.txt
(
    until [[ -d out/checkpoint-30 ]]; do sleep 0.1; done
    ip link set "$far_host_near" down
) &
STAND_IN_STEPS=300 STAND_IN_SAVE=10 expect 0 "${launch[@]}" --max-restarts 2 --min-processes 1 -- "${train[@]}"
says err.txt "host $far_host no longer answers" "host $far_host does not answer" "1 process on 1 host" \
    "step 300"
tail -n 1 attempts.txt | grep -q '^1 train .* --resume auto$' || { cat attempts.txt && fail "not one rank, resumed"; }

# It stays down. Without leave to shrink the run is given up; nothing starts at all where it must be there.
rm -rf out pids.* attempts.txt
expect 1 "${launch[@]}" --max-restarts 2 -- "${train[@]}"
says err.txt "no route to $far_host"
[[ ! -e attempts.txt ]] || fail "a rank was started"
