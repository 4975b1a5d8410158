"""What the peer checks share: the program, the real model and data, Transformers in float64.

`./test.sh peers` sets LOCKSTEP (the program), MODEL (all-MiniLM-L6-v2) and REVIEWS (a folder with
rt-polarity's train, validation and test.tsv); without them the project's own build and .cache serve.
"""

import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parents[2]
LOCKSTEP = os.environ.get("LOCKSTEP", str(PROJECT / "build" / "lockstep"))
MODEL = pathlib.Path(os.environ.get("MODEL", PROJECT / ".cache" / "all-MiniLM-L6-v2"))
REVIEWS = pathlib.Path(os.environ.get("REVIEWS", PROJECT / ".cache" / "rt-polarity"))
DRIVERS = pathlib.Path(LOCKSTEP).resolve().parent / "peers"  # what `make peers` built
TINY = {name: PROJECT / "tests" / "data" / name for name in ("tiny-bert", "tiny-distilbert")}

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch  # noqa: E402
import transformers  # noqa: E402

logging.getLogger("transformers").setLevel(logging.ERROR)
transformers.utils.logging.disable_progress_bar()

failures = 0


def check(good, text):
    """Print one line a check; `finish` turns a failure into the exit status."""
    global failures
    failures += not good
    print(("ok      " if good else "FAILED  ") + text, flush=True)


def finish():
    sys.exit(1 if failures else 0)


def run(program, *arguments, lines=None):
    """Standard output of a program. A failure ends the check with the program's words."""
    command = [str(program), *map(str, arguments)]
    # As bytes: text mode would take a carriage return for a line end.
    given = None if lines is None else "".join(line + "\n" for line in lines).encode()
    result = subprocess.run(command, capture_output=True, input=given)
    if result.returncode != 0:
        print(result.stdout[-2000:].decode(), result.stderr[-2000:].decode(), sep="\n")
        sys.exit(f"exit status {result.returncode}: {' '.join(command)}")
    return result.stdout.decode()


def lockstep(*arguments, lines=None):
    return run(LOCKSTEP, *arguments, lines=lines)


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="lockstep-peers-")


def read_tsv(path):
    """[(text, label)] of a file with those two columns."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").split("\n")
    return [tuple(line.split("\t")) for line in lines[1:] if line]


def write_tsv(path, rows):
    text = "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows])
    pathlib.Path(path).write_text(text, encoding="utf-8")


def read_jsonl(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]


def steps(folder):
    """The lines of metrics.jsonl that describe a training step."""
    return [line for line in read_jsonl(folder / "metrics.jsonl") if "gradient_norm" in line]


def tiny_reviews(count, words=("positive", "negative")):
    """Sentences of words that the tiny models know, with the labels in turn."""
    fillers = "the film story plot actor scene music time people world was good bad".split()
    rows = []
    for row in range(count):
        length = 2 + (row * 7) % 11
        text = " ".join(fillers[(row * 5 + position * 3) % len(fillers)] for position in range(length))
        rows.append((text, words[row % len(words)]))
    return rows


def copy_model(source, target, **changes):
    """The folder with some keys of its config.json changed."""
    shutil.copytree(source, target)
    path = pathlib.Path(target) / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings.update(changes)
    path.write_text(json.dumps(settings), encoding="utf-8")
    return pathlib.Path(target)


NO_DROPOUT = {
    "bert": {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0},
    "distilbert": {"attention_dropout": 0.0, "dropout": 0.0, "seq_classif_dropout": 0.0},
}


def classifier_without_dropout(source, kind, labels, folder):
    """Write the model with a new head, the same one every time, so that both sides begin alike."""
    settings = {"id2label": dict(enumerate(labels)), "num_labels": len(labels), **NO_DROPOUT[kind]}
    settings["label2id"] = {label: number for number, label in enumerate(labels)}
    torch.manual_seed(3)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(source, **settings)
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(source).save_pretrained(folder)


def load(folder):
    """(model in float64, tokenizer, loading report) as any user of Transformers would load them."""
    model, report = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, output_loading_info=True, dtype=torch.float64, attn_implementation="eager"
    )
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder), report


def logits(model, tokenizer, texts, max_length):
    """[len(texts), labels] in float64, one text at a time, so without padding."""
    rows = []
    with torch.no_grad():
        for text in texts:
            inputs = tokenizer(text, truncation=True, max_length=max_length, return_tensors="pt")
            rows.append(model(**inputs).logits[0])
    return torch.stack(rows)


def probabilities(path, id2label):
    """[rows, labels] from what `evaluate --predictions` wrote, in the order of the label ids."""
    rows = []
    for number, line in enumerate(read_jsonl(path)):
        values = line["probabilities"]
        if isinstance(values, dict):
            values = [values[id2label[label]] for label in sorted(id2label)]
        rows.append(values)
    return torch.tensor(rows, dtype=torch.float64)


def centred(values):
    """Logits up to a constant a row: all that probabilities can tell."""
    return values - values.mean(1, keepdim=True)
