"""Section profile: what recording every op of a step costs."""
import json
import pathlib
import shutil
import statistics
import tempfile

from harness import OUT, WARM_UP, rounds_of, run, table, train_command


def step_seconds(context, last, *flags):
    """{step: seconds} after the warm-up, of a run of `last` steps."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=OUT))
    try:
        run(train_command(context, *flags, "--max-steps", last, "--output", folder / "run"))
        lines = (folder / "run/metrics.jsonl").read_text(encoding="utf-8").splitlines()
        steps = [one for one in map(json.loads, lines) if "step_seconds" in one]
        return {str(one["step"]): one["step_seconds"] for one in steps if one["step"] > WARM_UP}
    finally:
        shutil.rmtree(folder)


def section_profile(context):
    """The same run with each step after the warm-up recorded and with none, in turns; each step is held against itself:
    steps differ in length, and other work on the machine lengthens single ones."""
    last = WARM_UP + context.steps
    layouts = {"one device": [], "ddp, 2 devices": ["--strategy", "ddp", "--devices", 2]}
    results, rows = {}, []
    for name, flags in layouts.items():
        recorded = ["--profile", "--profile-steps", f"{WARM_UP + 1}:{last}"]
        medians = rounds_of(
            {
                "off": lambda f=flags: step_seconds(context, last, *f),
                "on": lambda f=flags: step_seconds(context, last, *f, *recorded),
            },
            context.rounds + 2,
        )
        results[name] = medians
        ratio = statistics.median(medians["on"][step] / medians["off"][step] for step in medians["off"])
        mean = [1e3 * statistics.mean(medians[one].values()) for one in ("off", "on")]
        rows.append((name, f"{mean[0]:.1f}", f"{mean[1]:.1f}", f"**{100 * (ratio - 1):+.1f} %**"))
    header = ("MiniLM, rt-polarity, batch 32", "off, ms/step", "on, ms/step", "cost, median over the steps")
    table("Recording a profile", header, rows)
    return results
