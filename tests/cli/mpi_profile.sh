# One profile of all ranks, whatever process and host they are in.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/mpi.bash"
mpi_or_skip

write_reviews train.tsv 102 1
train=("$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --output out
    --strategy ddp --threads 1 --max-steps 6 --profile --profile-steps 3:6 --quiet)

# Calls of each op, by rank.
ops_by_rank() {
    jq -c '[.traceEvents[] | select(.ph == "X" and .args.flops != null) | [.pid, .name]] | group_by(.) | map(.[0] + [length])' \
        out/profile/trace.json
}
expect 0 "${train[@]}" --devices 4
ops_by_rank >one.txt
weights=$(sha256sum <out/model.safetensors)
expect 0 mpi_one 2 "${train[@]}" --devices 2
ops_by_rank | cmp - one.txt || fail "two processes of two devices show other ops than four devices of one process"
[[ $(sha256sum <out/model.safetensors) == "$weights" ]] || fail "other weights"
says out/profile/summary.txt "Steps 3 to 6 on 4 devices of 1 thread"
jq -e '[.traceEvents[] | select(.name == "process_name") | .args.name] ==
    ["rank 0 (cpu, 1 thread)", "rank 1 (cpu, 1 thread)", "rank 2 (cpu, 1 thread)", "rank 3 (cpu, 1 thread)"]' \
    out/profile/trace.json >shown.txt || fail "not a process for each rank"
# Each process has its memory, its reader, and its own steps.
jq -e '([.traceEvents[] | select(.name == "host memory") | .pid] | unique) == [0, 2] and
    ([.traceEvents[] | select(.name == "read batch") | .pid] | unique) == [0, 2] and
    ([.traceEvents[] | select(.cat == "step") | .pid] | group_by(.) | map(length)) == [4, 4, 4, 4]' \
    out/profile/trace.json >shown.txt || fail "not all of each process"
# The trace's totals are the summary's.
jq -r '[.traceEvents[] | select(.ph == "X" and .args.flops != null)] | group_by(.name)[] |
    [.[0].name, length, (map(.dur) | add * 1000 | round)] | @csv' out/profile/trace.json | sort >of-trace.csv
jq -r '.ops[] | [.op, .calls, (.seconds * 1e9 | round)] | @csv' out/profile/summary.json | sort >of-summary.csv
cmp of-trace.csv of-summary.csv || fail "the summary has other totals than the trace"

# A slow rank is named in whichever process it is: here the plain C kernels, which come to the same bits. (With a
# sanitizer they take minutes to measure the machine's peak.)
if ! is_sanitized; then
    expect 0 mpi_one 2 sh -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then export LOCKSTEP_ISA=ref; fi; exec "$@"' sh "${train[@]}"
    jq -e ".straggler == 1 and (.ranks | length) == 2" out/profile/summary.json >shown.txt ||
        { cat out/profile/summary.txt && fail "rank 1 is not named as the one that the others wait for"; }
    grep -q "^1 .*the others wait for it" out/profile/summary.txt || fail "no mark at rank 1"
fi

if two_hosts_start; then
    trap two_hosts_stop EXIT
    expect 0 two_hosts_mpirun 1 1 "${train[@]}"
    jq -e '[.ranks[].host] == ["host-a", "host-b"]' out/profile/summary.json >shown.txt || fail "hosts are not named"
    jq -e '([.traceEvents[] | select(.name == "process_name") | .args.name] | .[1]) == "rank 1 on host-b (cpu, 1 thread)" and
        (.otherData.clocks_within_microseconds | tonumber) > 0' out/profile/trace.json >shown.txt ||
        fail "the trace does not tell hosts apart"
    says out/profile/summary.txt "Times of different hosts compare within"
    # Between namespaces of one machine too, times are moved by what the exchange of clocks says.
    python3 "$SOURCE/tests/cli/same_time.py" out/profile/trace.json || fail "ranks of two hosts are not on one clock"
else
    echo "only one host: $two_hosts_reason"
fi
