"""Fine-tune with PyTorch and Transformers on the CPU, the way a user's script does; print one JSON line.

Ways to batch: `max` pads every row to --max-length, `longest` to the longest row of its batch,
`grouped` sorts windows of 50 batches by length first, as the Trainer's group_by_length does.
Tokens are real ones: padding does not count.
"""
import argparse
import json
import resource
import statistics
import time

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers import get_linear_schedule_with_warmup


def read_rows(path):
    if path.endswith(".jsonl"):
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        pairs = [(row["text"], str(row["label"])) for row in rows]
    else:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")[1:]
        pairs = [tuple(line.split("\t")) for line in lines if line]
    labels = sorted({label for _, label in pairs})
    return [text for text, _ in pairs], [labels.index(label) for _, label in pairs], len(labels)


def batches(lengths, size, way, seed):
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(lengths), generator=generator).tolist()
    if way == "grouped":
        window = size * 50
        order = [
            i
            for start in range(0, len(order), window)
            for i in sorted(order[start : start + window], key=lambda i: -lengths[i])
        ]
    groups = [order[i : i + size] for i in range(0, len(order) - size + 1, size)]
    if way == "grouped":
        groups = [groups[i] for i in torch.randperm(len(groups), generator=generator).tolist()]
    return groups


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--train", required=True)
    parser.add_argument("--way", choices=["max", "longest", "grouped"], required=True)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--evaluate", action="store_true", help="forward passes only")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(42)
    texts, labels, classes = read_rows(arguments.train)
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    encoded = tokenizer(texts, truncation=True, max_length=arguments.max_length)["input_ids"]
    model = AutoModelForSequenceClassification.from_pretrained(arguments.model, num_labels=classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, 10, arguments.steps)
    model.train(not arguments.evaluate)
    seconds, tokens = [], []
    groups = batches([len(ids) for ids in encoded], arguments.batch_size, arguments.way, 42)
    for group in groups[: arguments.steps]:
        start = time.perf_counter()
        padding = "max_length" if arguments.way == "max" else "longest"
        inputs = tokenizer.pad(
            {"input_ids": [encoded[i] for i in group]},
            padding=padding,
            max_length=arguments.max_length,
            return_tensors="pt",
        )
        target = torch.tensor([labels[i] for i in group])
        if arguments.evaluate:
            with torch.no_grad():
                model(**inputs, labels=target).loss.item()
        else:
            loss = model(**inputs, labels=target).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            loss.item()
        seconds.append(time.perf_counter() - start)
        tokens.append(sum(len(encoded[i]) for i in group))
    print(
        json.dumps(
            {
                "tokens_per_second": sum(tokens[3:]) / sum(seconds[3:]),
                "step_seconds": statistics.median(seconds[3:]),
                "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                "threads": torch.get_num_threads(),
            }
        )
    )


if __name__ == "__main__":
    main()
