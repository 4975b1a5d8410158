#!/usr/bin/env python3
"""Twenty AdamW steps through the command line against PyTorch in float64, without dropout.

Each step sees every row, so that the order of a batch cannot matter: losses and gradient norms come
from metrics.jsonl, the movement of each weight from the model written at the end.
"""

import torch
import transformers
from safetensors.torch import load_file

import peers

STEPS, WARMUP_STEPS = 20, 4

def train_exactly(folder, rows, decay_all):
    model, tokenizer, _ = peers.load(folder)
    model.train()
    texts, words = zip(*rows)
    inputs = tokenizer(list(texts), padding=True, truncation=True, max_length=64, return_tensors="pt")
    inputs["labels"] = torch.tensor([model.config.label2id[word] for word in words])

    def decayed(name):
        return decay_all or not (name.endswith("bias") or "norm" in name.lower())

    named = list(model.named_parameters())
    groups = [
        {"params": [value for name, value in named if decayed(name)], "weight_decay": 0.1},
        {"params": [value for name, value in named if not decayed(name)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], lr=1e-3)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, WARMUP_STEPS, STEPS)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(**inputs).loss
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        losses.append(loss.item())
        optimizer.step()
        schedule.step()
    return losses, norms, {name: value.detach() for name, value in model.named_parameters()}


def check_run(name, folder, rows, decay_all, work):
    title = f"{name}, decay {'on all' if decay_all else 'with exclusions'}"
    output = work / "output"
    arguments = [
        "train", "--model", folder, "--train", work / "rows.tsv", "--output", output, "--epochs", STEPS,
        "--batch-size", len(rows), "--learning-rate", 1e-3, "--weight-decay", 0.1,
        "--warmup-steps", WARMUP_STEPS, "--max-length", 64,
    ]  # fmt: skip
    peers.lockstep(*arguments, *(["--weight-decay-all"] if decay_all else []))
    losses, norms, weights = train_exactly(folder, rows, decay_all)
    steps = peers.steps(output)
    peers.check(len(steps) == STEPS, f"{title}: {len(steps)} steps")
    error = max(abs(step["loss"] - loss) for step, loss in zip(steps, losses))
    peers.check(error < 1e-5, f"{title}: losses differ by {error:.1e}")
    # Late norms are near zero: there float32 has but its absolute precision.
    error = max(abs(step["gradient_norm"] - norm) / (norm + 0.01) for step, norm in zip(steps, norms))
    peers.check(error < 1e-4, f"{title}: gradient norms differ by {error:.1e} of their size")

    before = load_file(folder / "model.safetensors")
    after = load_file(output / "model.safetensors")
    worst, where, key_bias = 0.0, "", 0.0
    for parameter, exact in weights.items():
        movement = after[parameter].double() - before[parameter].double()
        exact_movement = exact - before[parameter].double()
        if parameter.endswith(("key.bias", "k_lin.bias")):
            # The exact gradient is zero; Adam makes a step of any rounding error.
            key_bias = max(key_bias, movement.abs().max().item())
            continue
        error = ((movement - exact_movement).norm() / exact_movement.norm()).item()
        if error > worst:
            worst, where = error, parameter
    peers.check(worst < 1e-3, f"{title}: movements differ by {worst:.1e} of their size ({where})")
    peers.check(key_bias < 0.01, f"{title}: key biases move by up to {key_bias:.1e}")
    peers.shutil.rmtree(output)


def main():
    words = ["business", "science", "sport", "world"]
    reviews = peers.read_tsv(peers.REVIEWS / "train.tsv")[:8]
    cases = [
        ("tiny-bert", "bert", peers.TINY["tiny-bert"], peers.tiny_reviews(12)),
        ("tiny-distilbert", "distilbert", peers.TINY["tiny-distilbert"], peers.tiny_reviews(12, words)),
        ("all-MiniLM-L6-v2", "bert", peers.MODEL, reviews),
    ]
    for name, kind, source, rows in cases:
        with peers.temporary_folder() as temporary:
            work = peers.pathlib.Path(temporary)
            peers.write_tsv(work / "rows.tsv", rows)
            peers.classifier_without_dropout(source, kind, sorted({word for _, word in rows}), work / "start")
            for decay_all in (True, False):
                check_run(name, work / "start", rows, decay_all, work)
    peers.finish()


if __name__ == "__main__":
    main()
