# An interrupt ends the run after its step, writes the model and says 75; a second one ends it at once.
source "$SOURCE/tests/cli/common.bash"

write_reviews train.tsv 400 1
train=("$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --epochs 100000)

# run_until PATTERN SIGNAL COMMAND...: send the signal once standard error shows the pattern.
run_until() {
    # A shell's background jobs ignore interrupts, which exec keeps; python's child does not.
    python3 - "$@" <<'PYTHON'
import signal, subprocess, sys
run = subprocess.Popen(sys.argv[3:], stderr=subprocess.PIPE, text=True)
while sys.argv[1] not in run.stderr.readline():
    assert run.poll() is None, "ended before it was to be stopped"
run.send_signal(getattr(signal, "SIG" + sys.argv[2]))
sys.stderr.write(run.communicate(timeout=60)[1])
sys.exit(run.returncode)
PYTHON
}

for signal in INT TERM; do
    status=0
    run_until "step " $signal "${train[@]}" --output "out$signal" >out.txt 2>err.txt || status=$?
    [[ $status -eq 75 ]] || { cat out.txt err.txt && fail "SIG$signal gives status $status instead of 75"; }
    says err.txt "stopping after this step"
    says out.txt "stopped after" "weights        sha256"
    [[ -s out$signal/model.safetensors && -s out$signal/run.json ]] || fail "SIG$signal: no model written"
    expect 0 "$LOCKSTEP" evaluate --model "out$signal" --data train.tsv
done

# A second one ends it at once, whatever the first one waits for: here a step of minutes.
write_reviews wide.tsv 3000 1
status=0
python3 - "$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train wide.tsv --output twice --batch-size 3000 \
    --epochs 100000 --threads 1 >out.txt 2>err.txt <<'PYTHON' || status=$?
import signal, subprocess, sys, time
run = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, text=True)
seen = ""
for line in run.stderr:
    seen += line
    if "step " in line and "stopping" not in seen:
        run.send_signal(signal.SIGINT)
    if "stopping after this step" in line:
        run.send_signal(signal.SIGINT)
        break
begin = time.monotonic()
seen += run.stderr.read()
run.wait(timeout=60)
sys.stderr.write(seen)
print(time.monotonic() - begin)
sys.exit(128 - run.returncode if run.returncode < 0 else run.returncode)
PYTHON
[[ $status -eq 130 ]] || { cat out.txt err.txt && fail "a second SIGINT gives status $status"; }
[[ ! -e twice/model.safetensors ]] || fail "a second SIGINT waits for the model"

# While data is read there is no model yet: it ends soon, says so, and leaves nothing.
# The file is so large that the signal comes long before its end.
write_reviews large.tsv 100 1
(set +o pipefail && yes $'the film was good\tpositive' | head -n 5000000) >>large.tsv
status=0
run_until "reading " TERM "$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train large.tsv \
    --output none --threads 1 >out.txt 2>err.txt || status=$?
[[ $status -eq 1 ]] || { cat out.txt err.txt && fail "a stop while reading gives status $status"; }
says err.txt "large.tsv: reading was stopped"
[[ ! -s out.txt && ! -e none ]] || fail "a stop while reading leaves something behind"
