#!/usr/bin/env python3
"""Lockstep against its peers on the same cores: every figure a ratio measured in one run.

    bench/bench.py [--rounds N] [--steps N] [SECTION...]
    bench/bench.py --tables [SECTION...]

Sections: train, inference, gemm, share, price, growth, start, memory, tokenizer; of several devices
ddp, zero, peers, checkpoint, comm, overlap, profile (all when none is named, or "all").
Contenders take turns, round after round; both sides' figure is real tokens over seconds of the same
number of steps after a warm-up, and the median over the rounds. Writes build/bench/results.json, by
section, and prints the tables of docs/performance.md; --tables prints them again from that file.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import tempfile
import time

import disks
import exchanges
import layouts
import peers_table
import profiles
from harness import BUILD, OUT, ROOT, WARM_UP, Left, markdown, measured, python, rounds_of, run, table, tables


def lockstep_train(model, data, steps, threads=0, batch=32, leaf=4, length=128):
    """Real tokens a second, seconds a step, peak KiB."""
    folder = tempfile.mkdtemp(dir=OUT)
    command = [BUILD / "lockstep", "train", "--model", model, "--train", data, "--output", f"{folder}/run"]
    command += ["--max-steps", steps, "--batch-size", batch, "--leaf-size", leaf, "--max-length", length]
    command += ["--threads", threads, "--quiet"]
    peak = measured([str(part) for part in command])
    with open(f"{folder}/run/metrics.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file][WARM_UP:]
    shutil.rmtree(folder)
    seconds = sum(line["step_seconds"] for line in lines)
    return {
        "tokens_per_second": sum(line["tokens"] for line in lines) / seconds,
        "step_seconds": seconds / len(lines),
        "tokens": sum(line["tokens"] for line in lines) / len(lines),
        "peak_kib": peak,
    }


def pytorch(model, data, way, steps, threads=0, batch=32, length=128, evaluate=False):
    command = [python(), ROOT / "bench/peers/pytorch_train.py", "--model", model, "--train", data]
    command += ["--way", way, "--steps", steps, "--batch-size", batch, "--max-length", length]
    command += ["--threads", threads] + (["--evaluate"] if evaluate else [])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    return json.loads(run(command, env=environment).splitlines()[-1])


def random_model(name, base, **sizes):
    """A BERT folder of random weights with the tokenizer of `base`."""
    folder = ROOT / ".cache/bench" / name
    if not (folder / "model.safetensors").exists():
        folder.mkdir(parents=True, exist_ok=True)
        code = (
            "import json, sys, torch; from transformers import BertConfig, BertModel; torch.manual_seed(1);"
            "BertModel(BertConfig(**json.loads(sys.argv[2]))).save_pretrained(sys.argv[1])"
        )
        run([python(), "-c", code, folder, json.dumps({"vocab_size": 30522, **sizes})])
        for file in ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            shutil.copy(base / file, folder / file)
    return folder


def section_train(context):
    rows, results = [], {}
    base = random_model("bert-base", context.model)
    cases = [
        ("MiniLM, rt-polarity", context.model, context.reviews, ["longest", "grouped", "max"], context.steps),
        ("MiniLM, Debian sections", context.model, context.sections, ["longest"], context.steps),
        ("BERT-base size, rt-polarity", base, context.reviews, ["longest"], max(8, context.steps // 3)),
    ]
    for title, model, data, ways, steps in cases:
        contenders = {"lockstep": lambda m=model, d=data, s=steps: lockstep_train(m, d, s)}
        for way in ways:
            few = steps if way != "max" else max(8, steps // 3)
            contenders[way] = lambda m=model, d=data, w=way, s=few: pytorch(m, d, w, s)
        medians = rounds_of(contenders, context.rounds)
        results[title] = medians
        ours = medians["lockstep"]
        for way in ways:
            theirs = medians[way]
            rows.append(
                (
                    title,
                    f"{ours['tokens_per_second']:.0f}",
                    way,
                    f"{theirs['tokens_per_second']:.0f}",
                    f"**{ours['tokens_per_second'] / theirs['tokens_per_second']:.2f}x**",
                    f"{ours['peak_kib'] / theirs['peak_kib']:.2f}x",
                )
            )
    header = ("training", "Lockstep, tokens/s", "PyTorch pads", "PyTorch, tokens/s", "speed", "peak memory")
    table("Training, batch 32, all cores", header, rows)
    return results


def lockstep_evaluate(model, data):
    """Forward passes only: seconds that evaluate reports, without start-up."""
    output = run([BUILD / "lockstep", "evaluate", "--model", model, "--data", data])
    seconds = float(re.search(r"seconds\s+([0-9.]+)", output).group(1))
    tokens = run([BUILD / "lockstep", "tokenize", "--model", model, "--max-length", 128], stdin=open_texts(data))
    return {"tokens_per_second": len(tokens.split()) / seconds}


def open_texts(data):
    file = tempfile.TemporaryFile("w+", dir=OUT)
    with open(data, encoding="utf-8") as rows:
        next(rows)
        file.writelines(row.split("\t")[0] + "\n" for row in rows)
    file.seek(0)
    return file


def section_inference(context):
    folder = OUT / "evaluated"
    shutil.rmtree(folder, ignore_errors=True)
    command = [BUILD / "lockstep", "train", "--model", context.model, "--train", context.reviews]
    run(command + ["--max-steps", 1, "--quiet", "--output", folder])
    contenders = {
        "lockstep": lambda: lockstep_evaluate(folder, context.reviews),
        "grouped": lambda: pytorch(folder, context.reviews, "grouped", 60, evaluate=True),
    }
    medians = rounds_of(contenders, context.rounds)
    ours, theirs = (medians[name]["tokens_per_second"] for name in ("lockstep", "grouped"))
    row = (f"{ours:.0f}", f"{theirs:.0f}", f"**{ours / theirs:.2f}x**")
    table("Inference, rt-polarity, all cores", ("Lockstep, tokens/s", "PyTorch grouped, tokens/s", "speed"), [row])
    return medians


def section_gemm(context):
    """The products alone, one core and all of them, on every instruction set: bench/gemm_bench.c."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    results = {}
    for isa in ("avx512", "avx2"):
        for threads in (1, len(os.sched_getaffinity(0))):
            command = [BUILD / "bench/gemm_bench", "--isa", isa, "--threads", threads, "--rounds", context.rounds]
            if threads == 1:
                output = run(command, env=environment, allow_failure=True)
            else:
                output = products_in_turns(command, environment, context.rounds)
            print("\n```\n" + output + "```", flush=True)
            results[f"{isa}, threads {threads}"] = output.splitlines()
    return results


def products_in_turns(command, environment, rounds):
    """The table of gemm_bench, of one process a contender and round: see there why."""
    rates = {}  # (product, column): GFLOP/s of each round
    for _ in range(rounds):
        for column, name in enumerate(("ours", "oneDNN", "OpenBLAS")):
            lines = run(command + ["--only", name], env=environment, allow_failure=True).splitlines()
            for line in lines[2:]:
                product, numbers = line[:34], line[34:].split()
                rates.setdefault(product, [[], [], []])[column].append(float(numbers[column]))
    table_lines = lines[:2]
    for product, columns in rates.items():
        ours, *theirs = (statistics.median(column) for column in columns)
        ratios = [ours / rate if rate else 0 for rate in theirs]
        values = "".join(f" {rate:8.1f}" for rate in (ours, *theirs)) + "".join(f" {ratio:8.2f}" for ratio in ratios)
        table_lines.append(product + values)
    return "\n".join(table_lines) + "\n"


def section_share(context):
    command = [BUILD / "lockstep", "bench", "step", "--model", context.model, "--train", context.reviews]
    output = run(command)
    print("\n```\n" + output + "```", flush=True)
    return {"step": output.splitlines()}


def section_price(context):
    contenders = {
        "tree": lambda: lockstep_train(context.model, context.reviews, context.steps),
        "one chain": lambda: lockstep_train(context.model, context.reviews, context.steps, leaf=32),
    }
    medians = rounds_of(contenders, context.rounds + 2)
    price = medians["one chain"]["tokens_per_second"] / medians["tree"]["tokens_per_second"] - 1
    row = [f"{medians[name]['tokens_per_second']:.0f}" for name in contenders] + [f"{100 * price:.1f} %"]
    table("Price of same bits", ("leaves of 4 and their tree, tokens/s", "one chain a batch, tokens/s", "price"), [row])
    return medians


def section_growth(context):
    results = {}
    sizes = [16, 32, 64, 128, 256]
    contenders = {
        f"batch {b}": lambda b=b: lockstep_train(context.model, context.reviews, 4 + 640 // b, batch=b) for b in sizes
    }
    contenders["1 thread"] = lambda: lockstep_train(context.model, context.reviews, 12, threads=1)
    contenders["2 threads"] = lambda: lockstep_train(context.model, context.reviews, 12, threads=2)
    results["batch and threads"] = medians = rounds_of(contenders, context.rounds)
    rows = [(name, f"{1e6 / one['tokens_per_second']:.1f}") for name, one in medians.items()]
    table("Microseconds a token, MiniLM, rt-polarity", ("run", "us/token"), rows)

    shapes = [(6, 384, 32), (3, 384, 32), (12, 384, 32), (6, 192, 32), (6, 768, 32), (6, 384, 128), (6, 384, 512)]
    rows = []
    for layers, width, length in shapes:
        model = random_model(
            f"l{layers}-h{width}",
            context.model,
            num_hidden_layers=layers,
            hidden_size=width,
            num_attention_heads=width // 32,
            intermediate_size=4 * width,
        )
        data = OUT / f"length-{length}.tsv"
        words = "a film of words that are in the vocabulary each time again and again".split()
        text = " ".join((words * 64)[: length - 2])
        data.write_text("text\tlabel\n" + f"{text}\tyes\n{text}\tno\n" * 200, encoding="utf-8")
        batch = max(1, 1024 // length)
        one = rounds_of(
            {"run": lambda: lockstep_train(model, data, 8, batch=batch, length=length)}, context.rounds
        )["run"]
        per_layer = 12 * width * width
        flops = one["tokens"] * layers * (6 * per_layer + 12 * length * width)
        results[f"{layers} x {width}, {length}"] = one
        rate = flops / one["step_seconds"] / 1e9
        rows.append((layers, width, length, batch, f"{1e3 * one['step_seconds']:.1f}", f"{flops / 1e9:.1f}", f"{rate:.0f}"))
    header = ("layers", "width", "tokens a row", "batch", "ms a step", "GFLOP (all rows)", "GFLOP/s")
    table("Step time against size; the last layer's unused rows are counted too", header, rows)
    return results


def section_start(context):
    """From the command to the first line of metrics.jsonl, files in the page cache."""
    times = []
    for _ in range(context.rounds + 2):
        folder = tempfile.mkdtemp(dir=OUT)
        metrics = pathlib.Path(folder) / "run/metrics.jsonl"
        start = time.perf_counter()
        command = [BUILD / "lockstep", "train", "--model", context.model, "--train", context.reviews]
        command += ["--max-steps", 1, "--quiet", "--output", f"{folder}/run"]
        process = subprocess.Popen([str(part) for part in command])
        while not (metrics.exists() and metrics.stat().st_size) and process.poll() is None:
            time.sleep(0.002)
        times.append(time.perf_counter() - start)
        process.wait()
        shutil.rmtree(folder)
    table("Start", ("seconds to the end of the first step, median",), [(f"{statistics.median(times):.2f}",)])
    return times


def resident(pid):
    """Resident KiB by kind of mapping, of a process that runs."""
    sums, kind = {}, None
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
        for line in file:
            head = re.match(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)$", line)
            if head:
                name = head.group(1)
                kind = "program and libraries" if name.startswith("/") else "heap, stacks and arenas"
            elif line.startswith("Rss:"):
                sums[kind] = sums.get(kind, 0) + int(line.split()[1])
    return sums


def section_memory(context):
    """What a run holds beside its plan, used whole: rows of equal length, and Adam with decay, which has moments for rows
    of the vocabulary that no text has, too."""
    data = OUT / "equal.tsv"
    text = " ".join(["film"] * 76)
    data.write_text("text\tlabel\n" + f"{text}\tyes\n{text}\tno\n" * 400, encoding="utf-8")
    folder = tempfile.mkdtemp(dir=OUT)
    command = [BUILD / "lockstep", "train", "--model", context.model, "--train", data, "--output", f"{folder}/run"]
    command += ["--optimizer", "adam", "--weight-decay", 0.01, "--max-steps", 1000, "--quiet"]
    process = subprocess.Popen([str(part) for part in command])
    metrics = pathlib.Path(folder) / "run/metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count("\n") >= 4):
        time.sleep(0.05)
    sums = resident(process.pid)
    planned = json.loads((pathlib.Path(folder) / "run/run.json").read_text())["planned_bytes"] / 1024
    process.kill()
    process.wait()
    shutil.rmtree(folder)
    beside = sums["heap, stacks and arenas"] - planned
    rows = [("planned for the device", f"{planned / 1024:.1f}")]
    rows += [("tokenizer, rows, batches, stacks", f"{beside / 1024:.1f}")]
    rows += [("program and libraries", f"{sums['program and libraries'] / 1024:.1f}")]
    table("Resident memory of a run whose rows all have the longest length", ("part", "MiB"), rows)
    return {"planned_kib": planned, **sums}


def section_tokenizer(context):
    texts = open_texts(context.reviews).read()
    rates = []
    for _ in range(context.rounds):
        taken = []
        for copies in (1, 21):
            with tempfile.TemporaryFile("w+", dir=OUT) as file:
                file.write(texts * copies)
                file.seek(0)
                start = time.perf_counter()
                output = run(["taskset", "-c", "0", BUILD / "lockstep", "tokenize", "--model", context.model], stdin=file)
                taken.append((time.perf_counter() - start, output.count(" ") + output.count("\n")))
        rates.append((taken[1][1] - taken[0][1]) / (taken[1][0] - taken[0][0]))
    table("Tokenizer, one core, ids printed", ("tokens/s",), [(f"{statistics.median(rates) / 1e6:.1f} million",)])
    return rates


SECTIONS = {
    name.removeprefix("section_"): function
    for place in (globals(), vars(layouts), vars(disks), vars(exchanges), vars(peers_table), vars(profiles))
    for name, function in place.items()
    if name.startswith("section_")
}


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    record = {"processor": model, "cores": len(os.sched_getaffinity(0)), "system": platform.platform()}
    record["commit"] = commit.stdout.strip()
    folder = tempfile.mkdtemp(dir=OUT)
    command = [BUILD / "lockstep", "train", "--model", ROOT / "tests/data/tiny-bert", "--max-steps", 1, "--quiet"]
    run(command + ["--train", ROOT / "examples/data/debian-sections/train.jsonl", "--output", f"{folder}/run"])
    record["instruction_set"] = json.loads(pathlib.Path(folder, "run/run.json").read_text())["instruction_set"]
    shutil.rmtree(folder)
    return record


def print_again(names):
    results = json.loads((OUT / "results.json").read_text(encoding="utf-8"))
    for name in names:
        found = results.get(name, {})
        print(f"## {name}\n" + "".join("\n" + markdown(one) for one in found.get("tables", [])))
        if "machine" in found:
            print(", ".join(str(value) for value in found["machine"].values()) + f"; {found['rounds']} rounds\n")
        print(f"not measured: {found['left_out']}\n" if "left_out" in found else "", end="")


def measure(name, context):
    """The section's results, with what they were measured on."""
    tables.clear()
    results = {"machine": machine(), "rounds": context.rounds}
    start = time.perf_counter()
    try:
        results["figures"] = SECTIONS[name](context)
    except Left as reason:
        print(f"\n{name}: left out: {reason}", flush=True)
        results["left_out"] = str(reason)
    results["tables"] = list(tables)
    results["seconds"] = time.perf_counter() - start
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--tables", action="store_true", help="measure nothing, print what was measured last")
    parser.add_argument("sections", nargs="*", metavar="SECTION")
    context = parser.parse_args()
    names = list(SECTIONS) if not context.sections or context.sections == ["all"] else context.sections
    unknown = set(names) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}: there are {', '.join(SECTIONS)}")
    if context.tables:
        return print_again(names)
    OUT.mkdir(parents=True, exist_ok=True)
    context.model = pathlib.Path(run([ROOT / "tools/fetch.py", "model"]).strip())
    context.reviews = pathlib.Path(run([ROOT / "tools/fetch.py", "rt-polarity"]).strip()) / "train.tsv"
    context.sections = ROOT / "examples/data/debian-sections/train.jsonl"
    file = OUT / "results.json"
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in names:
        results[name] = measure(name, context)
        file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
