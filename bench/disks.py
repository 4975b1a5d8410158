"""What a disk takes for some bytes, and the section about checkpoints."""
import json
import mmap
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

from harness import OUT, WARM_UP, Left, knows, rounds_of, run, table, train_command

BLOCK = 1 << 20


MOST_IN_FLIGHT = 8  # blocks of a file: four that are read, four that are written


def blocks_of_memory(count):
    """In large pages, as Lockstep's own: with small ones each block is 256 pieces, which takes twice the time."""
    memory = mmap.mmap(-1, (count + 2) * BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory.write(os.urandom(BLOCK) * (count + 2))
    return [memoryview(memory)[i * BLOCK : (i + 1) * BLOCK] for i in range(count)]


class DirectFile:
    """A file without a name, full of bytes, read and written in blocks past the page cache."""

    def __init__(self, folder, size):
        self.blocks = -(-size // BLOCK)
        handle, path = tempfile.mkstemp(dir=folder)
        os.close(handle)
        self.file = os.open(path, os.O_RDWR | os.O_DIRECT)
        os.unlink(path)
        self.memory = blocks_of_memory(MOST_IN_FLIGHT)
        self.each(os.pwritev, 0, 0, 1)

    def each(self, call, block_of_memory, first, step):
        for block in range(first, self.blocks, step):
            call(self.file, [self.memory[block_of_memory]], block * BLOCK)

    def in_turn(self):
        for block in range(self.blocks):
            os.preadv(self.file, [self.memory[0]], block * BLOCK)
            os.pwritev(self.file, [self.memory[0]], block * BLOCK)

    def at_once(self, depth):
        """Threads that read and threads that write, `depth` of each."""
        return [
            threading.Thread(target=self.each, args=(call, place * depth + first, first, depth))
            for place, call in enumerate((os.preadv, os.pwritev))
            for first in range(depth)
        ]

    def close(self):
        os.close(self.file)


def together(threads):
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def disk_seconds(folder, size, files):
    """The least that the disk takes to read and to write `size` bytes of each of some files at once: one block in
    flight for each file, or one, two or four that are read and as many that are written."""
    opened = [DirectFile(folder, size) for _ in range(files)]
    seconds = [together([threading.Thread(target=one.in_turn) for one in opened])]
    for depth in (1, 2, MOST_IN_FLIGHT // 2):
        seconds.append(together([thread for one in opened for thread in one.at_once(depth)]))
    for one in opened:
        one.close()
    return min(seconds)


def bytes_of(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def wall(command):
    start = time.perf_counter()
    run(command)
    return time.perf_counter() - start


def folder_of(name):
    folder = OUT / "checkpoints" / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def save_seconds(context):
    """Of one save that training waits for, by the program's own clock: a run of eight steps that saves after each."""
    steps, output = 8, folder_of("always")
    run(train_command(context, "--max-steps", steps, "--save-async=false", "--save-every", 1, "--output", output))
    results = json.loads((output / "run.json").read_text(encoding="utf-8"))["results"]
    seconds = results["checkpoint_seconds"] / results["checkpoints_saved"]
    return {"seconds": seconds, "bytes": bytes_of(output / f"checkpoint-{steps}")}


def dd_write(size):
    """Of random bytes that lie in memory, which no disk can pack, from a file that needs no disk."""
    source = pathlib.Path("/dev/shm") / f"bench-{os.getpid()}"
    file = OUT / "checkpoints/dd"
    source.write_bytes(os.urandom(size >> 20 << 20))
    seconds = wall(["dd", f"if={source}", f"of={file}", "bs=1M", "conv=fsync", "status=none"])
    source.unlink()
    file.unlink()
    return {"seconds": seconds, "bytes": size >> 20 << 20}


def audit_cost(context):
    """What an audit at every hundredth step adds to the mean step: audited steps of short runs against the others."""
    every, steps, output = 4, 24, folder_of("audited")
    run(train_command(context, "--max-steps", steps, "--audit-every", every, "--output", output))
    with open(output / "metrics.jsonl", encoding="utf-8") as file:
        taken = [one for one in map(json.loads, file) if "step_seconds" in one][WARM_UP:]
    # A step's length goes with its tokens.
    audited = [one["step_seconds"] / one["tokens"] for one in taken if one["step"] % every == 0]
    others = [one["step_seconds"] / one["tokens"] for one in taken if one["step"] % every]
    times = statistics.median(audited) / statistics.median(others)
    return {"times": times, "share": (times - 1) / 100}


def forget(folder):
    """Out of the page cache."""
    for file in folder.rglob("*"):
        if file.is_file():
            handle = os.open(file, os.O_RDONLY)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def dd_read(folder):
    forget(folder)
    files = [file for file in folder.rglob("*") if file.is_file()]
    start = time.perf_counter()
    for file in files:
        run(["dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none"])
    return {"seconds": time.perf_counter() - start, "bytes": bytes_of(folder)}


class Lines:
    """When the lines of a run's metrics.jsonl appear, and a checkpoint."""

    def __init__(self, command, output):
        self.metrics, self.times = output / "metrics.jsonl", []
        self.start = time.perf_counter()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([str(part) for part in command], **quiet)
        self.seen = 0

    def look(self):
        """Note the time of lines that are new. False when the process has ended."""
        going = self.process.poll() is None
        if self.metrics.exists() and self.metrics.stat().st_size > self.seen:
            text = self.metrics.read_bytes()
            self.seen = len(text)
            self.times += [time.perf_counter()] * (text.count(b"\n") - len(self.times))
        time.sleep(0.002)
        return going

    def end(self):
        self.process.kill()
        self.process.wait()


def first_step(context, *flags, done=0):
    """Seconds from the command to the end of its first step; `done` steps stand in metrics.jsonl before."""
    output = folder_of("first")
    lines = Lines(train_command(context, *flags, "--output", output), output)
    while len(lines.times) <= done and lines.look():
        pass
    seconds = lines.times[-1] - lines.start if len(lines.times) > done else None
    lines.end()
    if seconds is None:
        raise SystemExit("the run that goes on has ended before its first step")
    return {"seconds": seconds}


def during_save(context, every, steps):
    """Medians of the time from line to line while a checkpoint is written in the background, and else."""
    output = folder_of("beside")
    command = train_command(context, "--max-steps", steps, "--save-every", every, "--output", output)
    lines, written = Lines(command, output), {}
    while lines.look():
        for step in range(every, len(lines.times) + 1, every):
            if step not in written and (output / f"checkpoint-{step}").exists():
                written[step] = time.perf_counter()
    lines.end()
    gaps = {"saving": [], "else": []}
    for i in range(WARM_UP, len(lines.times)):
        # Line i is that of step i + 1; the save of step s begins after line s - 1.
        last = i // every * every
        saving = last and lines.times[i - 1] < written.get(last, float("inf"))
        gaps["saving" if saving else "else"].append(lines.times[i] - lines.times[i - 1])
    return {name: statistics.median(one) for name, one in gaps.items() if one}


def section_checkpoint(context):
    """Saving and loading beside dd on the same disk, the step beside a save, and going on."""
    if not knows("--save-every", "--resume"):
        raise Left("this lockstep writes no checkpoints (--save-every, --resume)")
    steps, every = 40, 10
    shutil.rmtree(OUT / "checkpoints", ignore_errors=True)
    source = folder_of("source")
    run(train_command(context, "--max-steps", steps, "--save-every", every, "--output", source))
    saved = source / f"checkpoint-{steps // 2 + every}"
    done = steps // 2 + every
    kept = OUT / "checkpoints/kept"
    shutil.copytree(saved, kept / saved.name)
    size = bytes_of(saved)
    goes_on = ["--max-steps", steps, "--resume", kept / saved.name]

    def load():
        forget(kept)
        cold = first_step(context, *goes_on, done=done)["seconds"]
        return {"seconds": cold - first_step(context, "--max-steps", steps)["seconds"], "bytes": size}

    contenders = {
        "save": lambda: save_seconds(context),
        "dd writes": lambda: dd_write(size),
        "load": load,
        "dd reads": lambda: dd_read(kept),
        "go on": lambda: first_step(context, *goes_on, done=done),
        "beside": lambda: during_save(context, every, steps),
    }
    if knows("--audit-every"):
        contenders["audit"] = lambda: audit_cost(context)
    medians = rounds_of(contenders, context.rounds)
    shutil.rmtree(OUT / "checkpoints")
    print_checkpoint(medians)
    return medians


def print_checkpoint(medians):
    rates = {name: one["bytes"] / one["seconds"] / 1e6 for name, one in medians.items() if "bytes" in one}
    beside = medians["beside"]
    saving = f"**{rates['save'] / rates['dd writes']:.2f}x** of dd with fsync"
    rows = [
        ("save, training waits", f"{rates['save']:.0f} MB/s", saving),
        (
            "load, files not cached: what going on takes more than starting",
            f"{rates['load']:.0f} MB/s",
            f"**{rates['load'] / rates['dd reads']:.2f}x** of dd",
        ),
        (
            "a step while a checkpoint is written beside it",
            f"{1e3 * beside['saving']:.0f} ms",
            f"**{beside['saving'] / beside['else']:.2f}x** of the others' median",
        ),
        ("from the command to the end of the first resumed step", f"**{medians['go on']['seconds']:.2f} s**", "files cached"),
    ]
    if "audit" in medians:
        audit = medians["audit"]
        figure = f"{audit['times']:.2f}x of a step"
        rows.append(("a step with an audit (`--audit-every`)", figure, f"at every 100th step **{100 * audit['share']:.2f} %**"))
    title = f"Checkpoints of {medians['save']['bytes'] / 2**20:.0f} MiB"
    table(title, ("what", "figure", "beside"), rows)
