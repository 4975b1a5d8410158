# lockstep plan: layouts side by side, quickly and without allocating any of it; what cannot be says why;
# and runs that are refused or choose their strategy by the same figures.
source "$SOURCE/tests/cli/common.bash"
fresh_model
write_reviews train.tsv 70 1
plan=("$LOCKSTEP" plan --model model --threads 1)

expect 0 "${plan[@]}" --devices 1,2,4
says out.txt "devices  strategy" "      1  single   " "      1  zero3+offload+recompute" "      4  zero3+offload "
[[ $(grep -cE '^ +1  ' out.txt) -eq 6 && $(grep -cE '^ +[24]  ' out.txt) -eq 32 ]] || { cat out.txt && fail "other rows"; }
! grep -qE '^ +[24]  single' out.txt || fail "single on several devices"

# A setting that is given holds for all rows; a strategy for the list.
expect 0 "${plan[@]}" --devices 2 --recompute attention --offload-optimizer disk
grep -q '+offload=disk+recompute=attention' out.txt || { cat out.txt && fail "settings are not kept"; }
[[ $(grep -c 'recompute=attention' out.txt) -eq $(grep -cE '^ +2  ' out.txt) ]] || { cat out.txt && fail "other rows"; }
expect 0 "${plan[@]}" --devices 1,2,4,...,16 --strategy zero2 --batch-size 64
[[ $(grep -cE '^ +[0-9]+  zero2 ' out.txt) -eq 5 ]] || { cat out.txt && fail "not five rows of zero2"; }
expect 0 "${plan[@]}" --devices 1,3,...,9 --batch-size 64 --strategy ddp
[[ $(grep -cE '^ +[13579]  ddp ' out.txt) -eq 5 ]] || { cat out.txt && fail "not 1, 3, 5, 7, 9"; }

# One row in all detail is the same as in the table.
total=$("${plan[@]}" --strategy zero1 --devices 2 | sed -nE 's/^total on the device +([0-9]+) .*/\1/p')
expect 0 "${plan[@]}" --strategy zero1 --devices 2 --json
says out.txt "\"planned_bytes\": $total,"
python3 -m json.tool out.txt >/dev/null || fail "no JSON"
expect 0 "${plan[@]}" --devices 1,2,4,...,4096 --json
python3 - <<'PYTHON' || fail "other figures in JSON"
import json
rows = json.load(open("out.txt"))["rows"]
assert [row["devices"] for row in rows if row["refused"]] == [2**n for n in range(4, 13)], rows
for row in rows:
    if not row["refused"]:
        parts = row["memory"]
        device = sum(parts.values()) - parts["in_host_memory"] - parts["in_a_file"]
        assert device == row["planned_bytes"], row
        assert (row["elements_sent_per_step"] == 0) == (row["devices"] == 1), row
PYTHON

# More devices than leaves: the row says the leaf size that would do.
expect 0 "${plan[@]}" --devices 9,64
says out.txt "any                      refused: --devices 9 is more than the 8 leaves" "use --leaf-size 3" \
    "use a --batch-size of at least 64"
# What fits and what does not.
expect 0 "${plan[@]}" --devices 1,4 --device-memory 3400KiB --offload-block-size 8KiB
grep -qE '^ +1  single .* no$' out.txt || { cat out.txt && fail "single fits"; }
grep -qE '^ +4  zero1 .* yes$' out.txt || { cat out.txt && fail "zero1 does not fit"; }

# Thousands of devices in a second, hundreds of gigabytes without taking them.
if ! is_sanitized; then
    TIMEFORMAT=%U
    for arguments in "--batch-size 32" "--batch-size 256 --device-memory 4MiB" "--batch-size 65536 --max-length 16"; do
        # shellcheck disable=SC2086
        seconds=$({ time "${plan[@]}" --devices 1,2,4,...,4096 $arguments >out.txt; } 2>&1)
        python3 -c "import sys; sys.exit($seconds > 1)" || fail "$arguments: $seconds seconds"
    done
    (ulimit -v 400000 && exec "${plan[@]}" --batch-size 524288 --max-length 40) >out.txt
    python3 - <<'PYTHON' || { cat out.txt && fail "the table is not larger than the limit"; }
import re
totals = [float(line.split()[8]) for line in open("out.txt") if re.match(r" +1  single ", line)]
assert totals and totals[0] > 1000
PYTHON
fi

for list in 1,2,x 2,1 1,,2 1,2,..., ...,4 1,...,8 0,2 1,2,5000 "1,2,...,...,8"; do
    expect 2 "${plan[@]}" --devices "$list"
    says err.txt "--devices: "
done
refused 2 "--devices: '1,2' is a list: a run has one number, plan takes a list" --train train.tsv --devices 1,2
refused 2 "--devices: 65 is out of range" --train train.tsv --devices 65 --strategy ddp
expect 2 "${plan[@]}" --strategy auto --devices 1,2
says err.txt "--strategy auto chooses for one number of --devices"

# Settings of zero3 alone.
refused 2 "--prefetch-bucket-size 5 needs --strategy zero3: with --strategy zero2" --train train.tsv \
    --strategy zero2 --devices 2 --prefetch-bucket-size 5
refused 2 "--persistence-threshold 7 needs --strategy zero3: with --strategy single" --train train.tsv \
    --persistence-threshold 7
refused 2 "--strategy auto+offload: auto chooses" --train train.tsv --strategy auto+offload
refused 1 "--offload-path missing" --train train.tsv --strategy auto --offload-path missing

# A budget below the largest unit: no strategy helps, and the two that contradict are named.
refused 1 "--device-memory allows 20000: zero3+offload on 8 devices has " --train train.tsv --strategy zero3+offload \
    --devices 8 --device-memory 20000
says err.txt "no change of up to" "raise --device-memory"

# auto trains to the same bits and says why.
train=("$LOCKSTEP" train --model model --train train.tsv --max-steps 3 --threads 1)
expect 0 "${train[@]}" --output single --quiet
expect 0 "${train[@]}" --output out --devices 2 --strategy auto
cmp single/model.safetensors out/model.safetensors || fail "auto changes the bits"
says err.txt "auto: zero3+offload+recompute" "fits, " "auto: takes " "the fastest that fits"
says out/run.json '"auto_strategy": {' '"chosen": "' '"given": "auto"'
says single/run.json '"auto_strategy": null'
expect 0 "${plan[@]}" --devices 2 --strategy auto --train train.tsv
says out.txt "auto: takes " "devices  strategy"
