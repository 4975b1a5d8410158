#!/usr/bin/env python3
"""What --tensorboard writes is what TensorBoard's own reader finds: every number of metrics.jsonl, and NaN as NaN."""

import math
import pathlib

import peers
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader


def read(board):
    accumulator = EventAccumulator(str(board), size_guidance={"scalars": 0})
    accumulator.Reload()
    return {tag: accumulator.Scalars(tag) for tag in accumulator.Tags()["scalars"]}


def near(got, wanted):
    """Event files hold float32, metrics.jsonl whole microseconds."""
    wanted = float(wanted)
    if math.isnan(wanted):
        return math.isnan(got)
    return got == wanted or abs(got - wanted) <= 1e-6 * max(1, abs(wanted))


def check_tag(scalars, tag, lines, key):
    events = scalars.get(tag, [])
    good = len(events) == len(lines) > 0 and all(
        event.step == line["step"] and near(event.value, line[key]) for event, line in zip(events, lines)
    )
    peers.check(good, f"{tag}: {len(events)} of {len(lines)} values as in metrics.jsonl")


with peers.temporary_folder() as name:
    folder = pathlib.Path(name)
    train, validation, board = folder / "train.tsv", folder / "validation.tsv", folder / "board"
    peers.write_tsv(train, peers.tiny_reviews(90))
    peers.write_tsv(validation, peers.tiny_reviews(20))
    run = ["train", "--model", peers.TINY["tiny-bert"], "--train", train, "--quiet", "--output", folder / "out"]
    peers.lockstep(*run, "--validation", validation, "--test", validation, "--epochs", 2, "--tensorboard", board)
    scalars = read(board)
    steps = peers.steps(folder / "out")
    for key in ("loss", "learning_rate", "gradient_norm", "tokens_per_second", "step_seconds", "skipped_steps"):
        check_tag(scalars, f"train/{key}", steps, key)
    lines = peers.read_jsonl(folder / "out" / "metrics.jsonl")
    for evaluation in ("validation", "test"):
        found = [line for line in lines if line.get("evaluation") == evaluation]
        for key in ("loss", "accuracy", "macro_f1"):
            check_tag(scalars, f"{evaluation}/{key}", found, key)

    files = list(board.iterdir())
    records = sum(1 for file in files for _ in RawEventFileLoader(str(file)).Load())
    peers.check(records == 1 + len(lines), f"{records} records with good checksums: one and one a line")

    # A flipped bit must be noticed, or the check above means nothing.
    damaged = folder / "damaged"
    damaged.mkdir()
    data = bytearray(files[0].read_bytes())
    data[len(data) // 2] ^= 1
    (damaged / files[0].name).write_bytes(data)
    events = sum(len(values) for values in read(damaged).values())
    whole = sum(len(values) for values in scalars.values())
    peers.check(events < whole, f"a damaged file has fewer values: {events} of {whole}")

    diverge = ["--learning-rate", "1e6", "--weight-decay", "1e6", "--weight-decay-all", "--max-grad-norm", 0]
    try:
        peers.lockstep(*run, "--max-steps", 40, "--tensorboard", folder / "diverged", *diverge)
        peers.check(False, "the run diverges")
    except SystemExit:
        last = [read(folder / "diverged")[f"train/{key}"][-1].value for key in ("loss", "gradient_norm")]
        peers.check(not all(map(math.isfinite, last)), f"what is not finite is shown: {last}")

peers.finish()
