# A run that stops and goes on ends with the bits of one that never stopped, on any layout; what would
# change them is refused.
source "$SOURCE/tests/cli/common.bash"
fresh_model
write_reviews train.tsv 200 1
write_reviews validation.tsv 60 2
settings=(--model model --train train.tsv --validation validation.tsv --epochs 2 --quiet)
train=("$LOCKSTEP" train "${settings[@]}")
sha() { grep -o 'sha256 .*' out.txt; }
# metrics FILE: the lines without what a clock said.
metrics() { sed -E 's/, "step_seconds".*//; s/, "seconds": [^,]*//' "$1"; }

expect 0 "${train[@]}" --output whole --save-every 3 --save-total-limit 9
wanted=$(sha)
# same FOLDER: the run's model and history are the undisturbed run's.
same() {
    [[ $(sha) == "$wanted" ]] || { cat out.txt && fail "$1: another model"; }
    diff <(metrics whole/metrics.jsonl) <(metrics "$1/metrics.jsonl") || fail "$1: another history"
    expect 0 "$LOCKSTEP" audit "$1"
    says out.txt "14 steps, 2 whole epochs: each of 200 samples was used exactly once in each"
}

# --- from any step, on any layout --------------------------------------------------------------------
for step in 3 6 9 12; do
    for layout in "ddp 1" "ddp 2" "ddp 3" "ddp 8" "zero1 4" "zero2 3" "zero3 2" "zero3+offload 4"; do
        rm -rf run
        expect 0 "${train[@]}" --output run --resume whole/checkpoint-$step --strategy ${layout% *} \
            --devices ${layout#* } --samples-per-pass $((4 * (step / 3))) --threads 1
        says err.txt "going on from whole/checkpoint-$step, after step $step of 14"
        [[ $(jq .resumed_step run/run.json) -eq $step ]] || fail "run.json does not say where it went on"
        [[ $(jq .planned_bytes run/run.json) == "$(jq .measured_bytes run/run.json)" ]] || fail "memory is not as planned"
        same run
    done
done
# In the same folder, and from checkpoints that another layout wrote.
expect 0 "${train[@]}" --output run --resume run/../whole/checkpoint-3 --save-every 4
expect 0 "${train[@]}" --output run --resume auto --strategy ddp --devices 3
says err.txt "going on from run/checkpoint-12"
same run
for layout in "zero1 3" "zero2 4" "zero3 8"; do
    rm -rf run saved
    expect 0 "${train[@]}" --output saved --save-every 5 --strategy ${layout% *} --devices ${layout#* }
    same saved
    expect 0 "${train[@]}" --output run --resume saved/checkpoint-5 --strategy zero2 --devices 2
    same run
done

# --- a stop ------------------------------------------------------------------------------------------
# stop_at LINES COMMAND...: interrupt it once it has written that many lines of metrics.
stop_at() {
    python3 - "$@" <<'PYTHON'
import pathlib, signal, subprocess, sys, time
run = subprocess.Popen(sys.argv[2:], stdout=open("out.txt", "w"), stderr=open("err.txt", "w"))
metrics = pathlib.Path("stopped/metrics.jsonl")
while run.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") >= int(sys.argv[1])):
    time.sleep(0.001)
if run.poll() is None:
    run.send_signal(signal.SIGINT)
sys.exit(run.wait(timeout=60))
PYTHON
}
long=("$LOCKSTEP" train --model model --train train.tsv --validation validation.tsv --epochs 60 --quiet --batch-size 8)
expect 0 "${long[@]}" --output long
long_sha=$(sha)
for lines in 10 300 700; do
    rm -rf stopped
    status=0
    stop_at $lines "${long[@]}" --output stopped || status=$?
    [[ $status -eq 75 ]] || { cat err.txt && fail "a stop gives status $status"; }
    says out.txt "stopped after"
    expect 0 "${long[@]}" --output stopped --resume auto
    says err.txt "going on from stopped/checkpoint-"
    [[ $(sha) == "$long_sha" ]] || fail "after a stop at $lines lines: another model"
    diff <(metrics long/metrics.jsonl) <(metrics stopped/metrics.jsonl) || fail "after a stop: another history"
done
rm -rf stopped
status=0
stop_at 20 "${long[@]}" --output stopped --save-on-signal=false || status=$?
[[ $status -eq 75 && -z $(find stopped -name 'checkpoint-*') ]] || fail "a checkpoint that nobody wants, or status $status"

# --- nothing to go on from -----------------------------------------------------------------------------
expect 0 "${train[@]}" --output new --resume auto
says err.txt "no checkpoint in new: the run starts at the beginning"
same new
rm -rf broken && mkdir -p broken/checkpoint-3
expect 0 "${train[@]}" --output broken --resume auto
says err.txt "skipped checkpoint-3, which is not whole: broken/checkpoint-3/manifest.json: the file is missing" \
    "no whole checkpoint in broken: the run starts at the beginning"
same broken
expect 1 "${train[@]}" --output other --resume broken/checkpoint-3
says err.txt "broken/checkpoint-3/manifest.json: the file is missing"
[[ ! -e other ]] || fail "a refused run leaves a folder"

# --- what would be lost, what would change numbers --------------------------------------------------------
expect 2 "${train[@]}" --output whole
says err.txt "whole: holds checkpoints of a former run, checkpoint-12 the newest: --resume auto goes on from it"
head -n 150 train.tsv >shorter.tsv
sed 's/good/great/' train.tsv >changed.tsv
cp -r model wider && python3 "$SOURCE/tests/cli/damage.py" wider config 'config["hidden_dropout_prob"] = 0.2'
# differs TEXT FLAG...: the flags that change numbers are refused by name.
differs() {
    local text=$1
    shift
    expect 2 "${train[@]}" --output whole --resume auto "$@"
    says err.txt "whole/checkpoint-12/trainer.json: the run cannot go on with other numbers: " "$text"
}
differs "seed is 42 there and 7 here" --seed 7
differs "batch_size is 32 there and 16 here" --batch-size 16
differs "leaf_size is 4 there and 8 here" --leaf-size 8
differs "max_length is 64 there and 10 here" --max-length 10
differs "learning_rate is 5e-05 there and 0.001 here" --learning-rate 1e-3
differs "weight_decay is 0 there and 0.1 here" --weight-decay 0.1
differs "weight_decay_all is false there and true here" --weight-decay-all
differs "adam_beta1 is 0.9 there and 0.8 here" --adam-beta1 0.8
differs "adam_beta2 is" --adam-beta2 0.9
differs "adam_epsilon is" --adam-epsilon 1e-6
differs "max_grad_norm is" --max-grad-norm 2
differs "lr_scheduler_type is linear there and cosine here" --lr-scheduler-type cosine
differs "warmup_steps is 0 there and 2 here" --warmup-steps 2
differs "total_steps is 14 there and 21 here" --epochs 3
differs "train_rows is 200 there and 149 here" --train shorter.tsv
differs "train_digest is" --train changed.tsv
differs "validation_digest is" --validation train.tsv
differs "hidden_dropout is 0.1 there and 0.2 here" --model wider
expect 0 "${train[@]}" --output weights --resume whole/checkpoint-12 --resume-weights-only --learning-rate 1e-3
says err.txt "a new run from the model of whole/checkpoint-12"
[[ $(jq .resumed_step weights/run.json) -eq 0 && $(wc -l <weights/metrics.jsonl) -eq 16 ]] || fail "not a new run"
expect 0 "${train[@]}" --output model-of --model whole/checkpoint-12 --learning-rate 1e-3
sha=$(sha)
expect 0 "$LOCKSTEP" verify weights model-of
expect 2 "${train[@]}" --output whole --resume auto --resume-weights-only
says err.txt "holds checkpoints of a former run"
expect 2 "${train[@]}" --output x --resume-weights-only

# --- audit ---------------------------------------------------------------------------------------------------
cp -r whole tampered
sed -i '5d' tampered/metrics.jsonl
expect 6 "$LOCKSTEP" audit tampered
says err.txt "tampered/metrics.jsonl:5: step 6 stands where step 5 belongs"
cp whole/metrics.jsonl tampered/
sed -i -E '3s/"samples_digest": "./"samples_digest": "_/' tampered/metrics.jsonl
expect 6 "$LOCKSTEP" audit tampered
says err.txt "tampered/metrics.jsonl:3: step 3 ran 32 samples with digest _"
