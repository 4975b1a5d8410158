#!/usr/bin/env python3
"""What --profile writes opens in Perfetto: its importer drops nothing, and finds every span, thread and counter."""

import json
import pathlib
import sys

import peers
import perfetto

QUERIES = (
    "select name || ' ' || value from stats where severity in ('error', 'data_loss') and value > 0",
    "select printf('%d %d', count(*), sum(dur)) from slice",
    "select p.name || ': ' || t.name from thread_track join thread t using(utid) join process p using(upid)"
    " where thread_track.id in (select track_id from slice) order by 1",
    "select printf('%d', count(*)) from counter",
    "select s.name || ' ' || count(*) from slice s join args using(arg_set_id) where key = 'args.layer'"
    " group by s.name order by s.name",
)


def wanted(trace):
    """The same answers from the file itself."""
    events = trace["traceEvents"]
    spans = [one for one in events if one["ph"] == "X"]
    names = {(one["name"], one["pid"], one.get("tid")): one["args"].get("name") for one in events if one["ph"] == "M"}
    threads = {(one["pid"], one["tid"]) for one in spans}
    ops = {}
    for one in spans:
        if "layer" in one["args"]:
            ops[one["name"]] = ops.get(one["name"], 0) + 1
    return [
        "",
        f"{len(spans)} {sum(round(1000 * one['dur']) for one in spans)}",
        ",".join(sorted(f"{names['process_name', p, None]}: {names['thread_name', p, t]}" for p, t in threads)),
        str(sum(len(one["args"]) for one in events if one["ph"] == "C")),
        ",".join(f"{name} {ops[name]}" for name in sorted(ops)),
    ]


def compare(name, path):
    text = path.read_bytes()
    found = perfetto.ask(text, *QUERIES)
    trace = json.loads(text)
    for title, got, right in zip(("errors", "spans, ns", "threads", "counters", "ops"), found, wanted(trace)):
        peers.check(got == right, f"{name}: {title}: {got[:120] or 'none'}" + ("" if got == right else f", not {right}"))
    return trace


reason = perfetto.missing()
if reason:
    print(reason)
    sys.exit(77)
with peers.temporary_folder() as name:
    folder = pathlib.Path(name)
    train = folder / "train.tsv"
    peers.write_tsv(train, peers.tiny_reviews(200))
    run = ["train", "--model", peers.TINY["tiny-bert"], "--train", train, "--quiet", "--max-steps", 8, "--threads", 1]
    for title, flags in {
        "one device": [],
        "ddp": ["--strategy", "ddp", "--devices", 2],
        "zero3+offload": ["--strategy", "zero3+offload", "--devices", 3],
    }.items():
        peers.lockstep(*run, *flags, "--output", folder / "out", "--profile", "--profile-steps", "3:6")
        trace = compare(title, folder / "out/profile/trace.json")

    # On the real model, with the default steps: a size that people will see.
    run = ["train", "--model", peers.MODEL, "--train", peers.REVIEWS / "train.tsv", "--quiet", "--max-steps", 16]
    peers.lockstep(*run, "--strategy", "zero2", "--devices", 2, "--threads", 1, "--output", folder / "out", "--profile")
    file = folder / "out/profile/trace.json"
    peers.check(file.stat().st_size < 20e6, f"the real model's six steps are {file.stat().st_size / 1e6:.1f} MB")
    compare("real model", file)

    # Perfetto tells of a span that overlaps another one: the checks above can fail.
    spans = [one for one in trace["traceEvents"] if one["ph"] == "X" and one["cat"] == "backward"]
    spans[0]["dur"] += 2e6
    errors = perfetto.ask(json.dumps(trace).encode(), QUERIES[0])[0]
    peers.check("overlapping" in errors, f"a span that overlaps is told: {errors}")
    try:
        perfetto.ask(b'{"traceEvents":[{"ph":"X","name":"a","ts":"x"', QUERIES[1])
        peers.check(False, "half a trace is read")
    except ValueError as error:
        peers.check(True, f"half a trace is refused: {error}")

peers.finish()
