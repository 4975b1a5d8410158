# What several processes make of settings that depend on how many they are: --strategy auto and a DeepSpeed file.
source "$SOURCE/tests/cli/common.bash"
source "$SOURCE/tests/support/mpi.bash"
mpi_or_skip
fresh_model
write_reviews train.tsv 70 1
train=("$LOCKSTEP" train --model model --train train.tsv --max-steps 3 --threads 1)
plan=("$LOCKSTEP" plan --model model --train train.tsv --threads 1)
expect 0 "${train[@]}" --output single --quiet

# once TEXT: err.txt has it in one line, so that one process says it.
once() {
    [[ $(grep -cF -- "$1" err.txt) -eq 1 ]] || { cat err.txt && fail "'$1' is not said once"; }
}

# --- auto: one choice for all processes, by one process's words

# chosen PROCESSES DEVICES FLAGS...
chosen() {
    local processes=$1 devices=$2
    shift 2
    expect 0 mpi_one "$processes" "${train[@]}" --output out --devices "$devices" --strategy auto "$@"
    cmp single/model.safetensors out/model.safetensors || fail "auto changes the bits ($processes x $devices $*)"
    once "auto: takes "
    once "auto: zero3+offload+recompute"
    [[ $(jq '.planned_bytes == .measured_bytes' out/run.json) == true ]] || fail "other memory than planned"
    [[ $(jq -r .auto_strategy.chosen out/run.json | cut -d+ -f1) == $(jq -r .settings.strategy.value out/run.json) ]] ||
        fail "run.json names two strategies"
    # On several ranks nothing else is looked at.
    [[ $(jq '.auto_strategy.candidates | has("single")' out/run.json) == false ]] || fail "single on several ranks"
}
chosen 2 1
says err.txt ": the fastest that fits (this machine: "
chosen 2 2
# With a budget that ddp has not: by the figures of four ranks, which are those of four devices of one process.
passes=(--samples-per-pass 8)
bytes=$("${plan[@]}" --devices 4 --strategy zero3 "${passes[@]}" --json | jq '.rows[0].planned_bytes')
chosen 2 2 --device-memory "$bytes" "${passes[@]}"
grep -qE '^auto: ddp +does not fit' err.txt || { cat err.txt && fail "ddp fits"; }
says err.txt "auto: takes zero3"
one=$(jq -c '[.auto_strategy.candidates[] | .planned_bytes]' out/run.json)
expect 0 "${train[@]}" --output out --devices 4 --strategy auto --device-memory "$bytes" "${passes[@]}"
[[ $(jq -c '[.auto_strategy.candidates[] | .planned_bytes]' out/run.json) == "$one" ]] || fail "other plans than in one process"

# Too little for all: the smallest is refused, once. A plan chooses alike.
expect 1 mpi_one 2 "${train[@]}" --output none --strategy auto --device-memory 20000
once "--device-memory allows 20000"
expect 1 mpi_one 2 "${train[@]}" --output none --strategy auto --offload-path missing
says err.txt "--offload-path missing"
expect 0 mpi_one 2 "${plan[@]}" --strategy auto
[[ $(grep -c 'auto: takes ' out.txt) -eq 1 ]] || fail "the plan is not printed once"
grep -qE '^ +2  ddp ' out.txt || { cat out.txt && fail "not the rows of two ranks"; }
! grep -qE '^ +1  ' out.txt || { cat out.txt && fail "rows of one rank"; }
# What one process does not find, none waits for.
expect 1 mpirun --oversubscribe -np 1 "${train[@]}" --output none --strategy auto : \
    -np 1 "${train[@]}" --train none.tsv --output none --strategy auto
says err.txt "none.tsv"

# --- a DeepSpeed file: the world is all processes' devices

triangle() {
    printf '{"train_batch_size": %d, "train_micro_batch_size_per_gpu": %d, "gradient_accumulation_steps": %d,
        "zero_optimization": {"stage": 1}, "gradient_clipping": 1.0}' "$@" >ds.json
}
triangle 32 8 2
expect 0 mpi_one 2 "${train[@]}" --output out --deepspeed ds.json
once "batch of 32 = 8 samples a pass x 2 passes x 2 devices"
once "gradients are clipped to norm 1"
[[ $(jq .settings.samples_per_pass.value out/run.json) == 8 ]] || fail "other samples a pass"
cmp single/model.safetensors out/model.safetensors || fail "the file changes the bits"
triangle 32 4 2
expect 0 mpi_one 2 "${train[@]}" --output out --devices 2 --deepspeed ds.json
once "x 4 devices"
# What is right for one process is not for two.
triangle 32 16 2
expect 2 mpi_one 2 "${train[@]}" --output none --deepspeed ds.json
says err.txt "train_batch_size 32 is not train_micro_batch_size_per_gpu 16 x gradient_accumulation_steps 2 x 2 devices" \
    "(2 processes of --devices 1)" "nearest that fit: 64 = 16 x 2 x 2"
expect 2 mpi_one 2 "${train[@]}" --output none --deepspeed ds.json --devices 2
says err.txt "x 4 devices (2 processes of --devices 2)"
expect 0 "${train[@]}" --output out --deepspeed ds.json
# Without a stage several processes are data parallel.
printf '{"train_micro_batch_size_per_gpu": 16}' >ds.json
expect 0 mpi_one 2 "${train[@]}" --output out --deepspeed ds.json
[[ $(jq -r .settings.strategy.value out/run.json) == ddp ]] || fail "not data parallel"
[[ $(jq .settings.batch_size.value out/run.json) == 32 ]] || fail "other batch"
[[ ! -e none ]] || fail "a refused run leaves its folder"
