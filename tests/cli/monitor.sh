# What a run tells: sinks beside metrics.jsonl, a profile, results in run.json; and what it does when it cannot.
source "$SOURCE/tests/cli/common.bash"
fresh_model
write_reviews train.tsv 100 1
write_reviews validation.tsv 30 2
train=("$LOCKSTEP" train --model model --train train.tsv --batch-size 16 --threads 1 --quiet)
sinks=(--tensorboard board --csv csv --job-name first --prometheus run.prom)

# --- sinks -------------------------------------------------------------------------------------------
expect 0 "${train[@]}" --output plain --validation validation.tsv --epochs 2
expect 0 "${train[@]}" --output out --validation validation.tsv --test validation.tsv --epochs 2 "${sinks[@]}"
cmp plain/model.safetensors out/model.safetensors || fail "monitoring changes the weights"
[[ $(ls board) == events.out.tfevents.* ]] || fail "no event file, but $(ls board)"
[[ $(head -n 1 csv/first/Train_Samples_lr.csv) == step,lr ]] || fail "not DeepSpeed's header"
[[ $(wc -l <csv/first/Train_Samples_train_loss.csv) -eq 15 ]] || fail "not a line a step"
# The first column counts samples; the loss is that of metrics.jsonl, to the digit.
jq -r 'select(.gradient_norm) | [.step, .loss] | @csv' out/metrics.jsonl >wanted.csv
[[ $(sed -n 2p csv/first/Train_Samples_train_loss.csv) == "16,$(head -n 1 wanted.csv | cut -d, -f2)" ]] ||
    fail "$(sed -n 2p csv/first/Train_Samples_train_loss.csv), but metrics.jsonl has $(head -n 1 wanted.csv)"
[[ $(wc -l <csv/first/Validation_Samples_accuracy.csv) -eq 3 ]] || fail "not a line an evaluation"
says run.prom 'lockstep_steps_total{run="out"} 14' '# TYPE lockstep_train_loss gauge' \
    'lockstep_evaluation_accuracy{run="out",file="test"}'
[[ $(grep -c '^# TYPE' run.prom) -eq $(grep '^# TYPE' run.prom | sort -u | wc -l) ]] || fail "a type is given twice"
if ls run.prom.tmp-* 2>list.txt; then fail "a temporary file stays"; fi

# --- run.json ----------------------------------------------------------------------------------------
jq -e '.results | .samples_per_second > 0 and .real_tokens_per_second > 0 and .step_ms_median > 0 and
    .step_ms_p95 >= .step_ms_median and .planned_bytes == .measured_bytes and
    ([.memory[]] | add) == .planned_bytes and .host_peak_bytes > 1000000 and
    .elements_sent_per_step == 0 and .exposed_communication_ms == 0 and .flops_per_second > 0 and
    .share_of_peak == null and ([.share[]] | add) > 0.98 and ([.share[]] | add) < 1.02 and
    .evaluations.test.accuracy >= 0 and .skipped_steps == 0' out/run.json >shown.txt || { jq .results out/run.json && fail "run.json"; }
[[ $(jq -r .results.weights_sha256 out/run.json) == $(sha256sum <out/model.safetensors | cut -d' ' -f1) ]] ||
    fail "another hash in run.json"
expect 0 "${train[@]}" --output out --max-steps 5 --measure-peak --strategy ddp --devices 2
jq -e '.results | .share_of_peak > 0 and .elements_sent_per_step > 0 and
    .bytes_sent_per_step == 4 * .elements_sent_per_step and .exposed_communication_ms > 0' out/run.json >shown.txt ||
    { jq .results out/run.json && fail "run.json of two devices"; }

# --- profile -----------------------------------------------------------------------------------------
expect 0 "${train[@]}" --output out --max-steps 8 --profile --profile-steps 3:6 --strategy ddp --devices 2
says err.txt "profile: out/profile/summary.txt"
says out/profile/summary.txt "Steps 3 to 6 on 2 devices" "bottleneck: " "try: " "weight_gradient" "longest waits"
jq -e '[.traceEvents[] | select(.ph == "X" and .pid == 1 and .name == "linear")] | length > 20' out/profile/trace.json >shown.txt ||
    fail "no products of rank 1 in the trace"
# Each kind of op takes as long in the summary as in the trace.
jq -r '[.traceEvents[] | select(.args.flops != null)] | group_by(.name)[] |
    [.[0].name, length, (map(.dur) | add * 1000 | round)] | @csv' out/profile/trace.json | sort >of-trace.csv
jq -r '.ops[] | [.op, .calls, (.seconds * 1e9 | round)] | @csv' out/profile/summary.json | sort >of-summary.csv
cmp of-trace.csv of-summary.csv || { diff of-trace.csv of-summary.csv; fail "trace and summary differ"; }
[[ -s of-trace.csv ]] || fail "nothing was compared"
# A former run's profile goes with it; what a person put there does not.
expect 0 "${train[@]}" --output out --max-steps 2
[[ ! -e out/profile ]] || fail "the former run's profile stays"
expect 0 "${train[@]}" --output out --max-steps 3 --profile
says err.txt "the run has 3 steps: --profile-steps 1:3 are recorded instead of 10:15"
touch out/profile/mine
expect 1 "${train[@]}" --output out --max-steps 2
says err.txt "holds something else (profile/mine)"
rm out/profile/mine

# --- progress ----------------------------------------------------------------------------------------
loud=("${train[@]:0:${#train[@]}-1}")
expect 0 "${loud[@]}" --output out --max-steps 10 --log-every 4
[[ $(grep -c '^step ' err.txt) -eq 3 ]] || { cat err.txt && fail "not steps 4, 8 and 10"; }
says err.txt "step 4/10" "step 8/10" "step 10/10" "loading the weights" "saving the model"
expect 0 python3 "$SOURCE/tests/cli/terminal.py" 120 "${loud[@]}" --output out --max-steps 30
says out.txt " a device" "norm "

# --- a step that is not finite -----------------------------------------------------------------------
diverge=(--learning-rate 1e6 --weight-decay 1e6 --weight-decay-all --max-grad-norm 0 --max-steps 40)
expect 5 "${train[@]}" --output out "${diverge[@]}" --csv csv --job-name diverged
last=$(tail -n 1 out/metrics.jsonl)
[[ $last == *'"loss": "NaN"'* || $last == *Infinity* ]] || fail "the last line hides what happened: $last"
jq -e '.skipped_steps == 1' <<<"$last" >shown.txt || fail "a step without update is not counted: $last"
tail -n 1 csv/diverged/Train_Samples_train_loss.csv csv/diverged/Train_Samples_gradient_norm.csv >shown.txt
grep -qE ',(nan|inf)' shown.txt || { cat shown.txt && fail "the CSV files hide it"; }

# --- bad input ---------------------------------------------------------------------------------------
touch file
rm -r out
refused 1 "file: exists and is not a folder" --train train.tsv --tensorboard file/board
refused 1 "file: exists and is not a folder" --train train.tsv --csv file/csv
refused 1 "nowhere/run.prom.tmp-" --train train.tsv --prometheus nowhere/run.prom
refused 2 "--profile-steps: '15:10' is not FIRST:LAST" --train train.tsv --profile --profile-steps 15:10
refused 2 "--job-name: 'a/b' is a path" --train train.tsv --job-name a/b
refused 2 "--profile: 'yes' is neither true nor false" --train train.tsv --profile=yes
refused 2 "--log-every" --train train.tsv --log-every -1
expect 2 "$LOCKSTEP" evaluate --model model --data train.tsv --profile
says err.txt "evaluate has no --profile"

# A sink that cannot go on ends the run, as metrics.jsonl does, and names its file.
if [[ $(id -u) -eq 0 ]] && unshare --mount true 2>list.txt; then
    mkdir small
    for sink in "--tensorboard small/board" "--csv small/csv" "--prometheus small/run.prom"; do
        rm -rf out
        # shellcheck disable=SC2086
        expect 1 unshare --mount bash -c 'mount -t tmpfs -o size=4k,nr_inodes=40 none small && exec "$@"' - \
            "${train[@]}" --output out --epochs 40 $sink
        grep -qE "small/.*No space left on device" err.txt || { cat err.txt && fail "$sink: the file is not named"; }
    done
fi
