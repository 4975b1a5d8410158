"""What all sections share: running programs, taking turns, tables, Lockstep's own runs, peers that stay."""
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
OUT = BUILD / "bench"
WARM_UP = 3
tables = []  # of the section that runs


def run(command, allow_failure=False, **options):
    """Standard output; a failure ends the benchmark, or is the output."""
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    output, errors = process.communicate()
    if process.returncode != 0 and allow_failure:
        return errors
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{errors}")
    return output


def measured(command):
    """Run through a small parent, so that its children's peak memory is this one child's."""
    code = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=sys.stderr);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
    )
    return int(run([sys.executable, "-c", code, *command]).splitlines()[-1])


def python():
    """That of tools/make-venv.sh."""
    chosen = ROOT / ".cache/venv/bin/python"
    if not chosen.exists():
        sys.exit("no .cache/venv: run tools/make-venv.sh first")
    return chosen


def rounds_of(contenders, rounds):
    """Let the contenders take turns; the median over the rounds of every figure of each."""
    results = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, function in contenders.items():
            results[name].append(function())
    return {
        name: {key: statistics.median(one[key] for one in many) for key in many[0]}
        for name, many in results.items()
    }


def table(title, header, rows):
    """Print a table in Markdown; it also goes to the section's results."""
    tables.append({"title": title, "header": list(header), "rows": [[str(cell) for cell in row] for row in rows]})
    print("\n" + markdown(tables[-1]), flush=True)


def markdown(one):
    lines = [f"**{one['title']}**", "", "| " + " | ".join(one["header"]) + " |", "|" + "---|" * len(one["header"])]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in one["rows"]]) + "\n"


class Left(Exception):
    """Why a section cannot be measured here."""


def knows(*flags):
    """Whether `lockstep train` has these flags."""
    text = run([BUILD / "lockstep", "train", "--help"])
    return all(f"  {flag} " in text for flag in flags)


def train_command(context, *flags):
    return [BUILD / "lockstep", "train", "--model", context.model, "--train", context.reviews, "--quiet", *flags]


def figures_of(folder, warm_up=WARM_UP):
    """Of a run's output folder: tokens over seconds after the warm-up, medians of parts of a step, bytes by part."""
    with open(folder / "metrics.jsonl", encoding="utf-8") as file:
        steps = [one for one in map(json.loads, file) if "step_seconds" in one][warm_up:]
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    figures = {
        "tokens_per_second": sum(one["tokens"] for one in steps) / sum(one["step_seconds"] for one in steps),
        "planned_bytes": record["planned_bytes"],
        "planned_file_bytes": record["planned_file_bytes"],
        "bytes_sent_per_step": record["results"]["bytes_sent_per_step"],
        "host_peak_bytes": record["results"]["host_peak_bytes"],
    }
    for part in ("step", "backward", "exchange", "optimizer"):
        figures[f"{part}_seconds"] = statistics.median(one[f"{part}_seconds"] for one in steps)
    return figures | {f"{part}_bytes": size for part, size in record["results"]["memory"].items()}


def lockstep(context, *flags, steps):
    folder = pathlib.Path(tempfile.mkdtemp(dir=OUT))
    try:
        run(train_command(context, *flags, "--max-steps", WARM_UP + steps, "--output", folder / "run"))
        return figures_of(folder / "run")
    finally:
        shutil.rmtree(folder)


class Peer:
    """A script of peers/ that stays between measurements (--serve): turns cost no new start."""

    def __init__(self, interpreter, script, context, *flags):
        command = [interpreter, ROOT / "bench/peers" / script, "--serve", "--model", context.model]
        command += ["--train", context.reviews, *flags]
        self.name, self.warm = script, {}
        self.errors = tempfile.TemporaryFile("w+", dir=OUT)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
        self.process = subprocess.Popen([str(part) for part in command], text=True, **pipes)
        self.line()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            sys.exit(f"{self.name} has ended:\n{self.errors.read()[-4000:]}")
        return line

    def fine_tune(self, case, steps):
        """`steps` steps of a case that has not trained before, then an evaluation: all that the script says."""
        print(case, steps, "test", file=self.process.stdin, flush=True)
        self.warm[case] = 1
        return json.loads(self.line())

    def steps(self, case, steps, warm_up=WARM_UP):
        """Seconds and tokens of each of the first `steps` batches after a warm-up, which is short where the peer has
        trained before, and its peak memory."""
        warm_up = self.warm.setdefault(case, warm_up)
        print(case, warm_up + steps, file=self.process.stdin, flush=True)
        result = json.loads(self.line())
        self.warm[case] = 1
        return result["seconds"][warm_up:], result["tokens"][warm_up:], result["peak_kib"]

    def train(self, case, steps):
        seconds, tokens, peak_kib = self.steps(case, steps)
        return {
            "tokens_per_second": sum(tokens) / sum(seconds),
            "step_seconds": statistics.median(seconds),
            "peak_kib": peak_kib,
        }

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()
