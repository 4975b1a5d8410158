# An interrupt ends the run after its step, writes the model and says 75; a second one ends it at once.
source "$SOURCE/tests/cli/common.bash"

write_reviews train.tsv 400 1
train=("$LOCKSTEP" train --model "$SOURCE/tests/data/tiny-bert" --train train.tsv --epochs 100000)

for signal in INT TERM; do
    # A shell's background jobs ignore interrupts, which exec keeps; python's child does not.
    status=0
    python3 - $signal "${train[@]}" --output "out$signal" >out.txt 2>err.txt <<'PYTHON' || status=$?
import signal, subprocess, sys, time
run = subprocess.Popen(sys.argv[2:], stderr=subprocess.PIPE, text=True)
while "step " not in run.stderr.readline():
    assert run.poll() is None, "ended before its first step"
run.send_signal(getattr(signal, "SIG" + sys.argv[1]))
sys.stderr.write(run.communicate(timeout=60)[1])
sys.exit(run.returncode)
PYTHON
    [[ $status -eq 75 ]] || { cat out.txt err.txt && fail "SIG$signal gives status $status instead of 75"; }
    says err.txt "stopping after this step"
    says out.txt "stopped after" "weights        sha256"
    [[ -s out$signal/model.safetensors && -s out$signal/run.json ]] || fail "SIG$signal: no model written"
    expect 0 "$LOCKSTEP" evaluate --model "out$signal" --data train.tsv
done
