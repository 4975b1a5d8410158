"""Sections about several devices: data parallel, and ZeRO with offload and recompute."""
from disks import disk_seconds
from harness import OUT, ROOT, Peer, lockstep, python, rounds_of, table

TWO = ["--devices", 2, "--threads", 1]


def ratio(one, other, key="tokens_per_second"):
    return f"**{one[key] / other[key]:.2f}x**"


def section_ddp(context):
    """Two devices of one thread beside one device of one and two threads, and PyTorch."""
    steps = max(4, context.steps // 4)
    two, one = ["--processes", 2, "--threads", 1], ["--processes", 1, "--threads", 2]
    script = "pytorch_ddp.py"
    with Peer(python(), script, context, *two) as ddp, Peer(python(), script, context, *one) as single:
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
        (name, f"{one['tokens_per_second']:.0f}", ratio(ours, one), ratio(threads, one))
        for name, one in medians.items()
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
        # What the same disk takes for the bytes of one update, read and written once: right before and after it.
        takes = [disk_seconds(OUT, int(on_disk["planned_file_bytes"]), 2)] if on_disk else []
        on_disk.update(lockstep(context, *LAYOUTS[ON_DISK], *TWO, steps=steps))
        takes.append(disk_seconds(OUT, int(on_disk["planned_file_bytes"]), 2))
        return dict(on_disk, disk_seconds=min(takes))

    contenders[ON_DISK] = offloaded
    peer = deepspeed(context)
    for stage in (1, 2, 3) if peer else ():
        contenders[f"DeepSpeed {stage}"] = lambda s=stage: peer.train(str(s), steps)
    medians = rounds_of(contenders, context.rounds)
    if peer:
        peer.close()
    strategies = ("ddp", "zero1", "zero2", "zero3")
    medians["held by one of four"] = {strategy: held(context, strategy) for strategy in strategies}
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
    needs = disk["disk_seconds"]
    cost = again["step_seconds"] / ddp["step_seconds"] - 1
    saved = 1 - again["activations_bytes"] / ddp["activations_bytes"]
    rows = [
        ("update with moments and parameters on disk", f"{1e3 * disk['optimizer_seconds']:.0f} ms"),
        ("the disk at its best with the same bytes in the same blocks, direct", f"{1e3 * needs:.0f} ms"),
        ("update / disk", f"**{disk['optimizer_seconds'] / needs:.2f}x**"),
        ("recompute: time of a step", f"**{100 * cost:+.0f} %**"),
        ("recompute: bytes of activations", f"**{-100 * saved:+.0f} %**"),
    ]
    table("What offload and recompute cost", ("what", "figure"), rows)
