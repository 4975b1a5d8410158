"""Sections about several devices: data parallel, ZeRO with offload and recompute, exchanges over a slow network."""
import os
import shutil
import subprocess

from disks import disk_seconds
from harness import OUT, ROOT, Left, Peer, figures_of, lockstep, python, rounds_of, run, table, train_command
from harness import BUILD, WARM_UP

TWO = ["--devices", 2, "--threads", 1]


def ratio(one, other, key="tokens_per_second"):
    return f"**{one[key] / other[key]:.2f}x**"


def section_ddp(context):
    """Two devices of one thread beside one device of one and two threads, and PyTorch."""
    steps = max(4, context.steps // 4)
    two, one = ["--processes", 2, "--threads", 1], ["--processes", 1, "--threads", 2]
    with Peer(python(), "pytorch_ddp.py", context, *two) as ddp, Peer(python(), "pytorch_ddp.py", context, *one) as single:
        contenders = {
            "Lockstep, ddp, 2 devices x 1 thread": lambda: lockstep(context, "--strategy", "ddp", *TWO, steps=steps),
            "Lockstep, 1 device x 2 threads": lambda: lockstep(context, "--threads", 2, steps=steps),
            "Lockstep, 1 device x 1 thread": lambda: lockstep(context, "--threads", 1, steps=steps),
            "PyTorch DDP, 2 processes x 1 thread": lambda: ddp.train("ddp", steps),
            "PyTorch, 1 process x 2 threads": lambda: single.train("ddp", steps),
        }
        medians = rounds_of(contenders, context.rounds)
    ours, threads = list(medians.values())[:2]
    rows = [
        (name, f"{one['tokens_per_second']:.0f}", ratio(ours, one), ratio(threads, one)) for name, one in medians.items()
    ]
    header = ("MiniLM, rt-polarity, batch 32", "tokens/s", "2 devices x 1 thread is", "1 device x 2 threads is")
    table("Data parallel", header, rows)
    return medians


LAYOUTS = {
    "ddp": ["--strategy", "ddp"],
    "zero1": ["--strategy", "zero1"],
    "zero2": ["--strategy", "zero2"],
    "zero3": ["--strategy", "zero3"],
    "zero3, moments and parameters in the host's memory": ["--strategy", "zero3+offload"],
    "zero3, moments and parameters on disk": ["--strategy", "zero3"]
    + ["--offload-optimizer", "disk", "--offload-parameters", "disk", "--offload-path", OUT],
    "ddp, recompute": ["--strategy", "ddp+recompute"],
}
ON_DISK = "zero3, moments and parameters on disk"


def deepspeed(context):
    """DeepSpeed's processes, None without the environment that has it."""
    chosen = ROOT / ".cache/bench-venv/bin/python"
    if not chosen.exists():
        print("DeepSpeed is left out: tools/make-bench-venv.sh installs it", flush=True)
        return None
    return Peer(chosen, "deepspeed_train.py", context, "--processes", 2, "--threads", 1)


def held(context, strategy):
    """Parameters, gradients and optimizer state that one of four devices holds."""
    figures = lockstep(context, "--strategy", strategy, "--devices", 4, "--threads", 1, steps=1)
    return sum(figures[f"{part}_bytes"] for part in ("parameters", "gradients", "optimizer_state"))


def section_zero(context):
    """ZeRO, offload and recompute beside data parallel and DeepSpeed, and what each saves."""
    steps = max(4, context.steps // 7)
    contenders = {
        name: lambda flags=flags: lockstep(context, *flags, *TWO, steps=steps) for name, flags in LAYOUTS.items()
    }
    on_disk = {}

    def offloaded():
        on_disk.update(lockstep(context, *LAYOUTS[ON_DISK], *TWO, steps=steps))
        return dict(on_disk)

    contenders[ON_DISK] = offloaded
    # Right after it: what the same disk takes for the bytes of one update, read and written once.
    contenders["disk"] = lambda: {"seconds": disk_seconds(OUT, int(on_disk["planned_file_bytes"]), 2)}
    peer = deepspeed(context)
    for stage in (1, 2, 3) if peer else ():
        contenders[f"DeepSpeed {stage}"] = lambda s=stage: peer.train(str(s), steps)
    medians = rounds_of(contenders, context.rounds)
    if peer:
        peer.close()
    medians["held by one of four"] = {strategy: held(context, strategy) for strategy in ("ddp", "zero1", "zero2", "zero3")}
    print_zero(medians)
    return medians


def print_zero(medians):
    ddp = medians["ddp"]
    rows = []
    for name in LAYOUTS:
        one, theirs = medians[name], medians.get(f"DeepSpeed {name[4:]}")
        row = [name, f"{one['tokens_per_second']:.0f}", ratio(one, ddp)]
        row += [f"{theirs['tokens_per_second']:.0f}", ratio(one, theirs)] if theirs else ["-", "-"]
        rows.append(row)
    header = ("2 devices x 1 thread", "tokens/s", "of ddp", "DeepSpeed at this stage, tokens/s", "Lockstep is")
    table("ZeRO, offload and recompute", header, rows)
    four = medians["held by one of four"]
    rows = [(name, f"{held / 2**20:.1f}", f"**{held / four['ddp']:.2f}x**") for name, held in four.items()]
    header = ("4 devices", "parameters, gradients, state of one, MiB", "of ddp")
    table("Memory", header, rows)
    disk, again = medians[ON_DISK], medians["ddp, recompute"]
    needs = medians["disk"]["seconds"]
    cost = again["step_seconds"] / ddp["step_seconds"] - 1
    saved = 1 - again["activations_bytes"] / ddp["activations_bytes"]
    rows = [
        ("update with moments and parameters on disk", f"{1e3 * disk['optimizer_seconds']:.0f} ms"),
        ("the disk alone, for the same bytes in the same blocks, direct", f"{1e3 * needs:.0f} ms"),
        ("update / disk", f"**{disk['optimizer_seconds'] / needs:.2f}x**"),
        ("recompute: time of a step", f"**{100 * cost:+.0f} %**"),
        ("recompute: bytes of activations", f"**{-100 * saved:+.0f} %**"),
    ]
    table("What offload and recompute cost", ("what", "figure"), rows)


SCRIPT = """
source "$1/tests/support/two_hosts.bash"
cd "$2"
two_hosts_start || { echo "$two_hosts_reason" >reason; exit 77; }
trap two_hosts_stop EXIT
two_hosts_slow 1gbit
for round in $(seq "$3"); do
    for bucket in 25MiB 1GiB; do
        two_hosts_mpirun 1 1 "${@:4}" --bucket-size $bucket --output "$2/$bucket-$round" >log 2>&1 || exit 1
    done
done
"""


def section_overlap(context):
    """Two network namespaces joined at 1 Gbit/s: a bucket at a time beside the backward pass, or nearly all after it."""
    if not (ROOT / "tests/support/two_hosts.bash").exists():
        raise Left("this tree cannot set up two hosts (tests/support/two_hosts.bash)")
    folder = OUT / "hosts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = train_command(context, "--strategy", "ddp", "--threads", 1, "--max-steps", WARM_UP + max(4, context.steps // 3))
    done = subprocess.run(["bash", "-c", SCRIPT, "overlap", ROOT, folder, str(context.rounds)] + [str(c) for c in command])
    if done.returncode == 77:
        raise Left((folder / "reason").read_text(encoding="utf-8").strip())
    if done.returncode != 0:
        raise SystemExit((folder / "log").read_text(encoding="utf-8"))
    runs = iter(range(2 * context.rounds))
    turn = lambda bucket: lambda: figures_of(folder / f"{bucket}-{1 + next(runs) // 2}")
    medians = rounds_of({bucket: turn(bucket) for bucket in ("25MiB", "1GiB")}, context.rounds)
    names = {"25MiB": "buckets of 25 MiB, beside the backward pass", "1GiB": "one bucket but for the first MiB, after it"}
    without = medians["1GiB"]["exchange_seconds"]
    rows = []
    for bucket, one in medians.items():
        exposed = one["exchange_seconds"]
        row = (names[bucket], f"{1e3 * one['step_seconds']:.0f}", f"{1e3 * exposed:.0f}", f"**{exposed / without:.2f}x**")
        rows.append(row + (f"{one['bytes_sent_per_step'] / 2**20:.1f}",))
    header = ("two hosts at 1 Gbit/s, 1 process x 1 thread each", "ms a step", "exposed communication, ms")
    table("Overlap", header + ("of that without overlap", "MiB a step"), rows)
    shutil.rmtree(folder)
    return medians
