"""Section peers: the table of `lockstep compare` with PyTorch and DeepSpeed as further rows.

The same model (with one head for all), rows, batch, optimizer, schedule, clipping, number of steps and cores; all rows
take turns. build/bench/peers.json has the keys of compare.json, null where a peer does not tell; peers.md is its table.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import statistics
import tempfile
import types

from harness import BUILD, OUT, ROOT, WARM_UP, Left, Peer, python, run, table, tables, markdown
from peers.settings import LEARNING_RATE, MAX_GRAD_NORM, SEED, WARM_UP_STEPS, WEIGHT_DECAY

BATCH, LENGTH = 32, 128
STRATEGIES = ["single", "ddp", "zero1", "zero2", "zero3"]
# (row, script, processes, case, flags, Lockstep's row that it is held against)
PEERS = [
    ("PyTorch", "pytorch_ddp.py", 1, "ddp", [], "single"),
    ("PyTorch, all cores", "pytorch_ddp.py", 1, "ddp", [], "single, all cores"),
    ("PyTorch DDP", "pytorch_ddp.py", 2, "ddp", [], "ddp"),
    ("DeepSpeed, ZeRO 1", "deepspeed_train.py", 2, "1", ["--stages", 1], "zero1"),
    ("DeepSpeed, ZeRO 2", "deepspeed_train.py", 2, "2", ["--stages", 2], "zero2"),
    ("DeepSpeed, ZeRO 3", "deepspeed_train.py", 2, "3", ["--stages", 3], "zero3"),
]


def measures():
    """(key of compare.json, key of run.json or "", source) of each number, from the list that the program has."""
    text = (ROOT / "src/compare/measures.h").read_text(encoding="utf-8")
    return re.findall(r'X\([A-Z0-9_]+,\s*"(\w+)",\s*"([\w.]*)",\s*([A-Z]+)\)', re.sub(r"\\\n", " ", text))


def classifier(context):
    """The model with a new head, drawn once, so that all rows begin with the same weights."""
    folder = OUT / "classifier"
    shutil.rmtree(folder, ignore_errors=True)
    code = (
        "import sys, torch; from transformers import AutoModelForSequenceClassification as Model, AutoTokenizer;"
        "sys.path.insert(0, sys.argv[1]); from pytorch_train import read_rows; torch.manual_seed(1);"
        "names = sorted({line.split('\\t')[1] for line in open(sys.argv[3]).read().split('\\n')[1:] if line});"
        "made = Model.from_pretrained(sys.argv[2], num_labels=len(names), id2label=dict(enumerate(names)),"
        " label2id={name: at for at, name in enumerate(names)});"
        "made.save_pretrained(sys.argv[4]); AutoTokenizer.from_pretrained(sys.argv[2]).save_pretrained(sys.argv[4])"
    )
    run([python(), "-c", code, ROOT / "bench/peers", context.model, context.reviews, folder])
    return folder


def settings():
    """What every run of Lockstep is given: what the scripts of peers/ have."""
    flags = ["--batch-size", BATCH, "--max-length", LENGTH, "--learning-rate", LEARNING_RATE, "--seed", SEED]
    flags += ["--weight-decay", WEIGHT_DECAY, "--weight-decay-all", "--max-grad-norm", MAX_GRAD_NORM]
    return [*flags, "--lr-scheduler-type", "linear", "--warmup-steps", WARM_UP_STEPS]


def compare(context, steps, threads):
    """compare.json of Lockstep's own rows; their speeds are measured again beside the peers'."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=OUT))
    command = [BUILD / "lockstep", "compare", "--model", context.model, "--train", context.reviews, "--quiet"]
    command += ["--test", context.test, "--devices", 2, "--threads", threads, "--strategies", ",".join(STRATEGIES)]
    command += [*settings(), "--max-steps", steps, "--timing-rounds", 1, "--timing-steps", 1]
    try:
        run([*command, "--output", folder / "compared"])
        return json.loads((folder / "compared/compare.json").read_text(encoding="utf-8"))
    finally:
        shutil.rmtree(folder)


def lockstep_round(context, row, steps):
    """A timing run: seconds and tokens of the steps that count, and what belongs to them by keys of compare.json."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=OUT))
    command = [BUILD / "lockstep", "train", "--model", context.model, "--train", context.reviews, "--quiet"]
    command += ["--strategy", row["strategy"], "--devices", row["devices"], "--threads", row["threads"], *settings()]
    try:
        run([*command, "--max-steps", WARM_UP + steps, "--output", folder / "run"])
        lines = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        results = json.loads((folder / "run/run.json").read_text(encoding="utf-8"))["results"]
    finally:
        shutil.rmtree(folder)
    lines = [one for one in lines if "step_seconds" in one][WARM_UP:]
    beside = {}
    for key, name, source in measures():
        if source == "TIMING" and name:
            outer, _, inner = name.partition(".")
            beside[key] = results[outer][inner] if inner else results[outer]
    return [one["step_seconds"] for one in lines], [one["tokens"] for one in lines], beside


class Row:
    """A row of the table and how it is timed."""

    def __init__(self, values, program, time, base):
        self.values, self.time, self.base, self.rounds = values | {"program": program}, time, base, []

    def turn(self):
        seconds, tokens, beside = self.time()
        speeds = {"samples_per_second": BATCH * len(seconds) / sum(seconds)}
        speeds["real_tokens_per_second"] = sum(tokens) / sum(seconds)
        self.rounds.append((speeds | beside, [1e3 * one for one in seconds]))

    def finish(self):
        """As compare does: the round of median speed, times of steps from all rounds."""
        in_order = sorted((one for one, _ in self.rounds), key=lambda one: one["samples_per_second"])
        times = sorted(one for _, many in self.rounds for one in many)
        self.keep_share_of_peak([one.get("flops_per_second") for one in in_order])
        self.values |= in_order[(len(in_order) - 1) // 2]
        self.values["step_ms_median"] = statistics.median(times)
        self.values["step_ms_p95"] = times[-(-95 * len(times) // 100) - 1]
        self.values["rounds_samples_per_second"] = [one["samples_per_second"] for one, _ in self.rounds]


    def keep_share_of_peak(self, rates):
        """Of the peak that compare knew, or of what these rounds have shown."""
        share, rate = self.values.get("share_of_peak"), self.values.get("flops_per_second")
        if share and rate:
            self.values["share_of_peak"] = rates[(len(rates) - 1) // 2] / max(rate / share, *rates)


def lockstep_rows(context, compared, steps):
    rows = []
    for values in compared["rows"]:
        values["strategy"] = values["name"] if values["name"] in STRATEGIES else "single"
        rows.append(Row(values, "Lockstep", lambda v=values: lockstep_round(context, v, steps), "single"))
    return rows


def peer_row(context, open_peers, case, steps, timed, threads):
    name, script, processes, key, flags, against = case
    interpreter = python() if script == "pytorch_ddp.py" else ROOT / ".cache/bench-venv/bin/python"
    if not interpreter.exists():
        raise Left("tools/make-bench-venv.sh installs it")
    own = threads * 2 if name.endswith("all cores") else threads
    flags = ["--processes", processes, "--threads", own, "--steps", steps, "--test", context.test, *flags]
    peer = open_peers.enter_context(Peer(interpreter, script, context, *flags, "--batch-size", BATCH, "--max-length", LENGTH))
    result = peer.fine_tune(key, steps)
    values = dict.fromkeys([one for one, _, _ in measures()])
    values |= {"name": name, "state": "done", "reason": None, "devices": processes, "threads": own, "batch_size": BATCH}
    values |= {"evaluated_on": "test", "host_peak_bytes": result["peak_kib_of_all"] * 1024}
    values |= {one: result[one] for one in ("final_loss", "accuracy", "macro_f1")}
    values |= {"weights_sha256": None, "same_bits_as_single": None, "memory": None, "compared_with": against}

    def turn():
        seconds, tokens, _ = peer.steps(key, timed)
        return seconds, tokens, {}

    return Row(values, name.split()[0].rstrip(","), turn, "PyTorch")


def row_without_result(case, reason):
    """As in compare.json: a row that keeps its reason."""
    values = dict.fromkeys([one for one, _, _ in measures()])
    return values | {"name": case[0], "program": case[0].split()[0].rstrip(","), "state": "failed", "reason": reason}


def fill_ratios(rows):
    """Speed-up over the program's own single device (PyTorch's for DeepSpeed), and Lockstep over each peer."""
    by_name = {row.values["name"]: row.values for row in rows}
    for row in rows:
        values, base = row.values, by_name.get(row.base)
        ours = by_name.get(values.get("compared_with"))
        values["lockstep_is"] = ours["samples_per_second"] / values["samples_per_second"] if ours else None
        if base:
            values["speed_up"] = values["samples_per_second"] / base["samples_per_second"]
            size = values["devices"] * values["threads"] / (base["devices"] * base["threads"])
            values["efficiency"] = values["speed_up"] / size


def number(decimals, scale=1, mark=""):
    return lambda value: f"{value / scale:.{decimals}f}{mark}"


def percent(value):
    return f"{100 * value:.1f} %"


# Heading, key, how it is written: the columns of compare's tables, and Lockstep over the peer.
COLUMNS = [
    ("samples/s", "samples_per_second", number(1)),
    ("tokens/s", "real_tokens_per_second", number(0)),
    ("ms/step", "step_ms_median", number(0)),
    ("p95", "step_ms_p95", number(0)),
    ("speed-up", "speed_up", number(2)),
    ("efficiency", "efficiency", percent),
    ("Lockstep is", "lockstep_is", lambda value: f"**{value:.2f}x**"),
    ("planned MiB", "planned_device_bytes", number(1, 2**20)),
    ("measured MiB", "peak_device_bytes", number(1, 2**20)),
    ("process MiB", "host_peak_bytes", number(0, 2**20)),
    ("sent MiB", "bytes_sent_per_step", number(1, 2**20)),
    ("waited ms", "exposed_communication_ms", number(1)),
    *((part, f"share_{part}", percent) for part in ("forward", "backward", "exchange", "optimizer", "data")),
    ("GFLOP", "flops_per_step", number(1, 1e9)),
    ("GFLOP/s", "flops_per_second", number(1, 1e9)),
    ("peak", "share_of_peak", percent),
    ("loss", "final_loss", number(4)),
    ("accuracy", "accuracy", number(4)),
    ("macro-F1", "macro_f1", number(4)),
    ("same bits", "same_bits_as_single", lambda value: "yes" if value else "no"),
]


def cell(values, key, write):
    return "-" if values.get(key) is None else write(values[key])


def print_rows(rows, steps):
    """rows: their values."""
    lines = [
        [("Lockstep, " if row["program"] == "Lockstep" else "") + row["name"] + (f": {row['reason']}" if row["reason"] else "")]
        + [cell(row, key, write) for _, key, write in COLUMNS]
        for row in rows
    ]
    title = f"Strategies and peers: {steps} steps of {BATCH} samples, then on the test file"
    table(title, ["row"] + [heading for heading, _, _ in COLUMNS], lines)
    (OUT / "peers.md").write_text(markdown(tables[-1]), encoding="utf-8")


def section_peers(context):
    """One device beside PyTorch, ddp beside PyTorch DDP, ZeRO beside DeepSpeed, in one table."""
    steps, timed = 2 * context.steps, max(4, context.steps // 4)
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    there = types.SimpleNamespace(model=classifier(context), reviews=context.reviews)
    there.test = context.reviews.parent / "test.tsv"
    compared = compare(there, steps, threads)
    rows = lockstep_rows(there, compared, timed)
    without = []
    with contextlib.ExitStack() as open_peers:
        for case in PEERS:
            try:
                rows.append(peer_row(there, open_peers, case, steps, timed, threads))
            except (Left, SystemExit) as reason:
                without.append(row_without_result(case, str(reason).strip().splitlines()[-1]))
        for first in range(context.rounds):
            # An order that moves on, so that no row always follows the same one.
            for row in rows[first:] + rows[:first]:
                row.turn()
    for row in rows:
        row.finish()
    fill_ratios(rows)
    document = {key: compared[key] for key in ("version", "date", "machine")}
    document["settings"] = {"steps": steps, "timing_steps": timed, "rounds": context.rounds, "flags": settings()}
    document["rows"] = [row.values for row in rows] + without
    (OUT / "peers.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print_rows(document["rows"], steps)
    return document
