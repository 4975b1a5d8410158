"""Sections about exchanges: collectives alone, and beside the backward pass over a slow network."""
import json
import os
import shutil
import subprocess

from harness import BUILD, OUT, ROOT, WARM_UP, Left, figures_of, python, rounds_of, run, table, train_command

MPIRUN = ["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none"]
MPI_SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}


def lockstep_comm(command, environment=None):
    """Seconds by "collective, bytes"; MPI's all-reduce as "MPI_Allreduce, bytes"; "x ceiling" as "ceiling, ..."."""
    output = run(command, env={**os.environ, **(environment or {})})
    times = {}
    for line in output.splitlines():
        cells = line.split()
        if len(cells) < 6 or not cells[1].isdigit():
            continue
        times[f"{cells[0]}, {cells[1]}"] = float(cells[2]) * 1e-6
        times[f"ceiling, {cells[0]}, {cells[1]}"] = float(cells[5])
        if len(cells) > 6:
            times[f"MPI_Allreduce, {cells[1]}"] = float(cells[6]) * 1e-6
    return times


def gloo_comm():
    output = run([python(), ROOT / "bench/peers/gloo_collectives.py"])
    record = json.loads(output.splitlines()[-1])
    return {f"{name}, {size}": seconds for name, sizes in record.items() for size, seconds in sizes.items()}


def section_comm(context):
    """Exchanges between two ranks: threads, processes under MPI, MPI's own, Gloo's."""
    command = [BUILD / "lockstep", "bench", "comm"]
    contenders = {"threads": lambda: lockstep_comm(command + ["--devices", 2]), "Gloo": gloo_comm}
    if shutil.which("mpirun"):
        contenders["processes"] = lambda: lockstep_comm(MPIRUN + command, MPI_SETTINGS)
    medians = rounds_of(contenders, context.rounds)
    rows = []
    for case, seconds in medians["threads"].items():
        if case.startswith("ceiling"):
            continue
        name, size = case.split(", ")
        theirs = {"Gloo": medians["Gloo"].get(case)}
        processes = medians.get("processes", {})
        if name == "all-reduce":
            theirs["MPI_Allreduce"] = processes.get(f"MPI_Allreduce, {size}")
        row = [name, size, f"{1e6 * seconds:.0f}", f"{1e6 * processes[case]:.0f}" if processes else "-"]
        row.append(f"{medians['threads']['ceiling, ' + case]:.2f}")
        row += [
            f"**{theirs[peer] / seconds:.2f}x**" if theirs.get(peer) else "-" for peer in ("Gloo", "MPI_Allreduce")
        ]
        rows.append(row)
    header = ("two ranks", "bytes", "threads, us", "processes, us", "threads, x ceiling", "Gloo", "MPI_Allreduce")
    table("Exchanges; the last two: how many times as long they take as our threads", header, rows)
    return medians


SCRIPT = """
source "$1/tests/support/two_hosts.bash"
cd "$2"
two_hosts_start || { echo "$two_hosts_reason" >reason; exit 77; }
trap two_hosts_stop EXIT
two_hosts_slow 1gbit
read -ra batches <<<"$4"
read -ra cases <<<"$5"
for round in $(seq "$3"); do
    for batch in "${batches[@]}"; do
        for case in "${cases[@]}"; do
            two_hosts_mpirun 1 1 "${@:6}" --batch-size "$batch" --bucket-size "${case#*-}" \
                "--overlap-communication=$([[ $case == on-* ]] && echo true || echo false)" \
                --output "$2/$batch-$case-$round" >log 2>&1 </dev/null || exit 1
        done
    done
done
runs=("${batches[@]/%/-${cases[0]}-1}")
ip netns exec "$two_hosts_a" python3 "$1/bench/wire.py" listen "$two_hosts_network.1" 5201 "${runs[@]}" >wire 2>log &
ip netns exec "$two_hosts_b" python3 "$1/bench/wire.py" call "$two_hosts_network.1" 5201 "${runs[@]}" >log 2>&1 || exit 1
wait $!
"""
BATCHES = (32, 64, 128)
CASES = {
    "off-4MiB": "4 MiB, after the backward pass",
    "on-4MiB": "4 MiB (the default between hosts), beside it",
    "on-25MiB": "25 MiB (the default on one host), beside it",
}


def overlap_rows(batch, medians, wire):
    """The least that can be exposed is what the network needs beyond the run's own backward pass."""
    without = medians[f"{batch}, off-4MiB"]
    for case, name in CASES.items():
        one = medians[f"{batch}, {case}"]
        exposed = one["exchange_seconds"]
        least = max(0, wire - one["backward_seconds"]) if case.startswith("on-") else wire
        row = [batch, name]
        row += [f"{1e3 * one[part + '_seconds']:.0f}" for part in ("step", "backward")]
        row += [f"{1e3 * exposed:.0f}", f"**{exposed / without['exchange_seconds']:.2f}x**"]
        yield row + [f"{1e3 * least:.0f}", f"{one['bytes_sent_per_step'] / 2**20:.1f}"]


def section_overlap(context):
    """Two network namespaces joined at 1 Gbit/s: exchanges beside the backward pass, and after it."""
    if not (ROOT / "tests/support/two_hosts.bash").exists():
        raise Left("this tree cannot set up two hosts (tests/support/two_hosts.bash)")
    folder = OUT / "hosts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    steps = WARM_UP + max(4, context.steps // 3)
    command = ["bash", "-c", SCRIPT, "overlap", ROOT, folder, context.rounds, " ".join(map(str, BATCHES)), " ".join(CASES)]
    command += train_command(context, "--strategy", "ddp", "--threads", 1, "--max-steps", steps)
    process = subprocess.Popen([str(part) for part in command])
    try:
        status = process.wait()
    finally:  # an interrupted script takes its network down
        process.terminate()
        process.wait()
    if status == 77:
        raise Left((folder / "reason").read_text(encoding="utf-8").strip())
    if status != 0:
        raise SystemExit((folder / "log").read_text(encoding="utf-8"))
    rounds = {(batch, case): iter(range(1, context.rounds + 1)) for batch in BATCHES for case in CASES}
    contenders = {
        f"{batch}, {case}": lambda batch=batch, case=case: figures_of(folder / f"{batch}-{case}-{next(rounds[batch, case])}")
        for batch, case in rounds
    }
    medians = rounds_of(contenders, context.rounds)
    wire = dict(zip(BATCHES, json.loads((folder / "wire").read_text(encoding="utf-8"))))
    rows = [row for batch in BATCHES for row in overlap_rows(batch, medians, wire[batch])]
    header = ("batch", "buckets, exchanged", "ms a step", "backward, ms", "exposed communication, ms")
    header += ("of that without overlap", "least the network allows, ms", "MiB a step")
    table("Overlap: two hosts at 1 Gbit/s, 1 process x 1 thread each", header, rows)
    shutil.rmtree(folder)
    return medians | {f"{batch}, wire": {"seconds": seconds} for batch, seconds in wire.items()}
