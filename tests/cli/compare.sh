# Comparisons: rows, documents, verdicts; rows that fail, a folder of something else, interrupts, full disks.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/comparison.bash"
fresh_model
write_reviews train.tsv 80 1
write_reviews validation.tsv 30 2
write_reviews test.tsv 30 3
loud=("$LOCKSTEP" compare --model model --train train.tsv --validation validation.tsv --test test.tsv
    --threads 1 --learning-rate 1e-2 --timing-rounds 2 --timing-steps 2)
compare=("${loud[@]}" --quiet)

# --- what a comparison writes ------------------------------------------------------------------------
# Each row measures the machine, which takes seconds under a sanitizer: there the next one is enough.
if ! is_sanitized; then
    expect 0 "${compare[@]}" --output zero --devices 2 --strategies single,ddp,zero1,zero2,zero3,zero3+offload,single+recompute \
        --max-steps 4 --timing-rounds 1
    says out.txt "Same bits: all"
    is zero '[.rows[].name] - ["single, all cores"] == ["single", "ddp", "zero1", "zero2", "zero3", "zero3+offload", "single+recompute"]'
    is zero '[.rows[] | [.final_loss, .accuracy, .macro_f1]] | unique | length == 1 and (.[0] | all(. > 0))'
    is zero '.rows | all(.state == "done" and .same_bits_as_single and .planned_device_bytes == .peak_device_bytes)'
    is zero '.rows | all((.share_forward + .share_backward + .share_exchange + .share_optimizer + .share_data - 1 | fabs) < 1e-9)'
    is zero '[.rows[] | select(.devices == 2) | .memory.optimizer_state] | .[0] > .[1] and (.[4] // 0) == 0'
    is zero '[.rows[] | select(.name == "single+recompute")][0] | .devices == 1'
fi
expect 0 "${compare[@]}" --output out --devices 2 --strategies ddp,single --seeds 1,2 --max-steps 6 --batch-sizes 8,16 \
    --batch-size 16 --target-accuracy 0.01
says out.txt "Speed" "samples/s" "single, all cores" "Batch sizes" "Fastest: " "Smallest: " "Same bits: all 5 rows" \
    "report  out/report.html"
awk 'length > 80 { exit 1 }' out.txt || fail "a table is wider than 80 columns"
is out '[.rows[].name] == ["single", "single, all cores", "ddp"] or ([.rows[].name] == ["single", "ddp"] and .machine.cores == 1)'
is out '[.batch_size_rows[] | [.name, .batch_size]] == [["single", 8], ["ddp", 8]]'
is out '[.rows[], .batch_size_rows[]] | all(.state == "done" and .same_bits_as_single and .samples_per_second > 0)'
is out '[.rows[].weights_sha256] | unique | length == 1'
is out '[.rows[].final_loss] | unique | length == 1'
is out '.rows[0].final_loss != .batch_size_rows[0].final_loss'
is out '.rows | .[0].flops_per_step as $one | all((.flops_per_step / $one - 1 | fabs) < 0.05)'
is out '.rows[0].weights_sha256 != .batch_size_rows[0].weights_sha256'
is out '.rows[0] | .speed_up == 1 and .efficiency == 1 and .devices == 1 and .threads == 1'
is out '.machine.cores == 1 or (.machine.cores as $cores | .rows[1] | .devices == 1 and .threads == $cores)'
is out '.rows[-1] | .devices == 2 and (.efficiency - .speed_up / 2 | fabs) < 1e-12'
is out '.rows[0] | [.seeds[].seed] == [1, 2] and (.accuracy - (.seeds[0].accuracy + .seeds[1].accuracy) / 2 | fabs) < 1e-12'
is out '.rows[0] | .evaluated_on == "test" and (.training_loss | length) == 6 and (.rounds_samples_per_second | length) == 2'
is out '.batch_size_rows[0].training_loss | length == 12' # as many samples as the others
is out '.rows | all(.planned_device_bytes == .peak_device_bytes and .seconds_to_target_accuracy > 0)'
# The weights are those of the same training without a comparison.
expect 0 "$LOCKSTEP" train --model model --train train.tsv --learning-rate 1e-2 --max-steps 6 --batch-size 16 --seed 2 \
    --output alone --quiet
is out ".rows[-1].seeds[1].weights_sha256 == \"$(sha256sum <alone/model.safetensors | cut -d' ' -f1)\""
python3 - <<'PYTHON' || fail "compare.csv and compare.json differ"
import csv, json
found = json.load(open("out/compare.json"))
for line, row in zip(csv.DictReader(open("out/compare.csv")), found["rows"] + found["batch_size_rows"], strict=True):
    assert line["name"] == row["name"] and line["weights_sha256"] == row["weights_sha256"]
    assert line["same_bits_as_single"] == "yes"
    for key, value in line.items():
        if isinstance(row[key], (int, float)) and not isinstance(row[key], bool):
            assert float(value) == row[key], key
        elif row[key] is None:
            assert value == "", key
PYTHON
[[ -s out/runs/ddp-batch16-seed2/run.json && -s out/runs/ddp-batch16-seed2/metrics.jsonl ]] || fail "no records of the runs"
is out '.rows | all((.share_forward + .share_backward + .share_exchange + .share_optimizer + .share_data - 1 | fabs) < 1e-9)'
is out '.rows | all(([.memory[]] | add) == .planned_device_bytes and .share_of_peak > 0 and (.bottleneck | length) > 10)'
is out '.rows[0].bytes_sent_per_step == 0 and .rows[-1].bytes_sent_per_step > 0'
[[ -s out/runs/ddp-batch16-seed1/profile/trace.json && ! -e out/runs/ddp-batch16-seed2/profile ]] || fail "not one profile a row"
[[ -z $(find out -name '*.safetensors') ]] || fail "weights stay"
[[ ! -e out/running ]] || fail "running/ stays"
grep -q '^lockstep compare --model model ' out/runs/command.txt || fail "no command to repeat it"

# --- a narrow terminal -----------------------------------------------------------------------------------
if ! is_sanitized; then
expect 0 python3 "$SOURCE/tests/cli/terminal.py" 40 "${loud[@]}" --devices 2 --strategies ddp --max-steps 2 --output narrow
says out.txt "  samples/s " "  same bits " "[3/"
grep -qE "widest redrawn line: [1-9]" out.txt || fail "nothing was redrawn on a terminal"
python3 - <<'PYTHON' || fail "wider than 40 columns"
# But for the report's path, and what terminal.py adds.
lines = open("out.txt").read().split("\nreport  ")[0].split("\n")
assert len(lines) > 40 and max(map(len, lines)) <= 40, max(lines, key=len)
PYTHON
fi

# --- rows that fail ------------------------------------------------------------------------------------------
expect 3 "${compare[@]}" --output failing --devices 9 --strategies single,ddp --max-steps 2
says err.txt "ddp refused: --devices 9 is more than the 8 leaves"
says out.txt "refused: --devices 9 is more"
is failing '.rows[0].state == "done" and .rows[-1].state == "refused" and .rows[-1].samples_per_second == null'
is failing '.rows[-1].reason | startswith("--devices 9 is more than the 8 leaves")'
is failing '[.verdicts[] | select(.kind == "failed")] | length == 1'
grep -q '^ddp,refused,"--devices 9' failing/compare.csv || fail "no reason in compare.csv"
# If none is left there is nothing to compare.
expect 1 "${compare[@]}" --output none --train nowhere.tsv --devices 2
says err.txt "no strategy could run; single failed: " "nowhere.tsv"
[[ ! -e none ]] || fail "a comparison of nothing leaves a folder"

# --- wrong command lines ---------------------------------------------------------------------------------------
# refuses TEXT FLAG...: usage error, and no folder.
refuses() {
    local text=$1
    shift
    expect 2 "${compare[@]}" --output none --devices 2 --max-steps 2 "$@"
    says err.txt "$text"
    [[ ! -e none ]] || fail "'$text' leaves a folder"
}
refuses "'fsdp' is not built yet: known strategies are single, ddp, zero1, zero2, zero3" --strategies single,fsdp
refuses "'+turbo' is not known: known endings are +offload, +recompute" --strategies zero3+turbo
refuses "an empty name in the list" --strategies single,,ddp
refuses "'ddp' stands there twice" --strategies ddp,ddp
refuses "--seeds: 'x'" --seeds 1,x
refuses "--seeds: '-1'" --seeds -1
refuses "--batch-sizes: 8 stands there twice" --batch-sizes 8,8
refuses "--batch-sizes: '0'" --batch-sizes 0
refuses "--timing-rounds" --timing-rounds 0
refuses "--target-accuracy" --target-accuracy 2
refuses "compare has no --strategy" --strategy ddp
refuses "compare has no --csv" --csv folder
refuses "compare has no --profile" --profile
refuses "--max-steps" --max-steps 0
expect 2 "$LOCKSTEP" train --model model --train train.tsv --output none --seeds 1,2
says err.txt "train has no --seeds, only these have: compare"

echo '{"optimizer": {"type": "Adam", "params": {"lr": 0.5}}}' >rate.json
refuses "--persistence-threshold counts where parameters are divided" --strategies single,ddp --persistence-threshold 10
refuses "the file and the settings given do not agree: --learning-rate" --deepspeed rate.json

# --- a DeepSpeed file --------------------------------------------------------------------------------------------
# Its settings are every run's; what counts in stage 3 only is zero3's; its stage and monitors are none.
cat >ds_config.json <<'JSON'
{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "gradient_clipping": 0.5,
 "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": 0.25}},
 "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "stage3_param_persistence_threshold": 50},
 "csv_monitor": {"enabled": true, "output_path": "monitor"}}
JSON
file=("${loud[@]}" --devices 2 --max-steps 2 --timing-rounds 1 --deepspeed ds_config.json)
expect 0 "${file[@]}" --strategies ddp,zero3 --output file
says err.txt "--deepspeed: --csv is left out in a comparison" "gradients are clipped to norm 0.5"
[[ ! -e monitor ]] || fail "a monitor of the file wrote something"
is file '.rows | all(.state == "done" and .same_bits_as_single and .batch_size == 16)'
# setting ROW NAME VALUE: what the row's run used.
setting() {
    jq -e --arg name "${2//-/_}" --arg value "$3" '(.settings[$name].value | tostring) == $value' "file/runs/$1-batch16-seed42/run.json" >parsed.txt ||
        fail "$1: --$2 is $(jq -c --arg name "${2//-/_}" '.settings[$name]' "file/runs/$1-batch16-seed42/run.json") instead of $3"
}
setting single weight-decay 0.25
setting ddp samples-per-pass 4
setting zero3 persistence-threshold 50
setting zero3 offload-parameters host
setting ddp persistence-threshold 0
# The command to repeat it needs no file.
grep -q -- ' --weight-decay 0.25' file/runs/command.txt || fail "the command lacks the file's settings: $(cat file/runs/command.txt)"
if grep -qE -- '--(strategy|csv) ' file/runs/command.txt; then fail "the command has what compare does not take"; fi
expect 0 "${file[@]}" --strategies ddp --output file
says err.txt "the file means zero3, which is not among --strategies"

# --- folders -------------------------------------------------------------------------------------------------------
contents() {
    (cd "$1" && find . -type f | sort | xargs -r sha256sum)
}
short=("${compare[@]}" --devices 2 --strategies ddp --max-steps 2 --timing-rounds 1)
mkdir other && echo mine >other/notes.txt
expect 1 "${short[@]}" --output other
says err.txt "other: the output folder holds something else (notes.txt)"
expect 1 "${short[@]}" --output alone
says err.txt "alone: the output folder holds something else"
[[ -s alone/model.safetensors ]] || fail "a trained model is gone"
# A former comparison stays until the new one is whole.
expect 0 "${short[@]}" --output again
contents again >before.txt
expect 1 "${short[@]}" --output again --train nowhere.tsv
contents again | cmp - before.txt || fail "a failed comparison changed a former one"
mkdir again/running && touch again/running/command.txt again/report.html.tmp-12
expect 0 "${short[@]}" --output again
if contents again | cmp -s - before.txt; then fail "a former comparison was not replaced"; fi
[[ ! -e again/running ]] || fail "a killed comparison's runs stay"

# --- an interrupt ------------------------------------------------------------------------------------------------------
cat >interrupt.py <<'PYTHON'
import os, signal, subprocess, sys, time
run = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, text=True)
while "[1/" not in run.stderr.readline():
    assert run.poll() is None, "ended before it was to be stopped"
time.sleep(0.1)
run.send_signal(signal.SIGINT)
sys.stderr.write(run.communicate(timeout=60)[1])
for entry in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{entry}/cmdline").read()
    except OSError:
        continue
    assert os.getcwd() not in words and "--max-steps=12345678" not in words, "a run goes on"
sys.exit(run.returncode)
PYTHON
contents again >before.txt
for folder in new again; do
    expect 1 python3 interrupt.py "${loud[@]}" --output $folder --devices 2 --strategies single,ddp --max-steps 12345678
    says err.txt "stopped by request"
done
[[ ! -e new ]] || fail "an interrupted comparison leaves something behind"
contents again | cmp - before.txt || fail "an interrupted comparison changed a former one"

# --- no room for the report --------------------------------------------------------------------------------------------
# The table is printed all the same; a former comparison stays, and where there was none, nothing does.
for folder in full again; do
    expect 1 bash -c 'ulimit -f 180 && exec "$@"' - "${short[@]}" --output $folder
    says err.txt "$folder/running/report.html" "File too large"
    says out.txt "Speed" "Fastest: "
done
[[ ! -e full ]] || fail "half of the documents: $(ls full)"
contents again | cmp - before.txt || fail "a comparison without room for its report changed a former one"
expect 0 "${short[@]}" --output full
