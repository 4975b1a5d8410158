# Comparisons: what each run is given, the order of turns, few cores, runs that are killed in the middle, and the command that
# repeats one.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/comparison.bash"
fresh_model
write_reviews train.tsv 80 1
loud=("$LOCKSTEP" compare --model model --train train.tsv --threads 1 --learning-rate 1e-2 --timing-rounds 2 --timing-steps 2)
compare=("${loud[@]}" --quiet)

# --- epochs, learning rates by the batch size, turns ---------------------------------------------------
expect 0 "${loud[@]}" --output scaled --devices 2 --strategies ddp --epochs 1 --batch-size 16 --batch-sizes 8 \
    --learning-rate-scaling sqrt --lr-scheduler-type constant
is scaled '.settings.epochs == 1 and .settings.max_steps == null'
is scaled '(.rows[-1].training_loss | length) == 5 and (.batch_size_rows[-1].training_loss | length) == 10'
python3 - <<'PYTHON' || fail "a batch of 8 does not learn at the root of a half of the rate of 16"
import json
rates = [json.loads(open(f"scaled/runs/ddp-batch{size}-seed42/metrics.jsonl").readline())["learning_rate"] for size in (16, 8)]
assert abs(rates[0] / 1e-2 - 1) < 1e-6 and abs(rates[1] / rates[0] - 0.5**0.5) < 1e-6, rates
PYTHON
python3 - <<'PYTHON' || fail "the rows do not take turns in an order that moves on"
import re
turns = [re.findall(rf"\] (.*), timing round {number}", open("err.txt").read()) for number in (1, 2)]
assert len(turns[0]) >= 4 and turns[1] == turns[0][1:] + turns[0][:1], turns
PYTHON

# --- again ---------------------------------------------------------------------------------------------
sed -e "s|^lockstep |$LOCKSTEP |" -e 's|--output scaled|--output repeated --quiet|' scaled/runs/command.txt >repeat.sh
expect 0 bash repeat.sh
hashes='[.rows[], .batch_size_rows[] | .weights_sha256]'
cmp <(jq "$hashes" scaled/compare.json) <(jq "$hashes" repeated/compare.json) || fail "the command to repeat it trains something else"

# --- few cores ------------------------------------------------------------------------------------------------
# Two devices on one core take turns: warned, and compared.
expect 0 taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "${loud[@]}" --output few --devices 2 --strategies ddp --max-steps 2 --timing-rounds 1
says err.txt "2 devices on 1 cores: they take turns"
is few '[.rows[].name] == ["single", "ddp"] and (.rows | all(.state == "done" and .same_bits_as_single))'

# --- rows that are killed ----------------------------------------------------------------------------
# One that is killed in the middle, of its full run or of a timing run: the others go on.
cat >kill.py <<'PYTHON'
import os, signal, subprocess, sys, time
log, flag, *command = sys.argv[1:]
run = subprocess.Popen(command)
killed = False
while run.poll() is None:
    for entry in filter(str.isdigit, os.listdir("/proc")) if not killed else []:
        try:
            parent = int(open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()[1])
            words = open(f"/proc/{entry}/cmdline").read().split("\0")
            if parent == run.pid and "--strategy=ddp" in words and flag in words and '"step": 5,' in open(log).read():
                os.kill(int(entry), signal.SIGKILL)
                killed = True
        except OSError:
            continue
    time.sleep(0.001)
sys.exit(run.returncode if killed else 99)
PYTHON
middle=(--devices 2 --strategies single,ddp --max-steps 800 --timing-steps 1000)
expect 3 python3 kill.py killed/running/now/metrics.jsonl --max-steps=800 "${compare[@]}" --output killed "${middle[@]}"
is killed '.rows[-1].state == "killed" and .rows[-1].reason == "killed by signal 9 (Killed)" and .rows[0].state == "done"'
expect 3 python3 kill.py late/running/now/metrics.jsonl --max-steps=1003 "${compare[@]}" --output late "${middle[@]}" --timing-rounds 1
is late '.rows[-1].state == "killed" and .rows[-1].reason == "timing: killed by signal 9 (Killed)" and .rows[-1].same_bits_as_single'
