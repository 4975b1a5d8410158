#!/usr/bin/env python3
"""Compute in float64 what Lockstep must reproduce on the tiny models, and write tests/golden.

Usage: make_golden.py [REPOSITORY]

README.md beside this file names every tensor written. The program also runs each training in
float32 and prints how far that is from float64: the bounds of the tests must leave room for it.
"""

import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

STEPS = 20
WARMUP_STEPS = 4
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.1
MAX_GRADIENT_NORM = 1.0
BETAS = (0.9, 0.999)
EPSILON = 1e-8

MODELS = {
    "tiny-bert": {
        "class": transformers.BertForSequenceClassification,
        "prefix": "bert.",
        "labels": 3,
        "dropouts": ["attention_probs_dropout_prob", "hidden_dropout_prob"],
        "seed": 1,
    },
    "tiny-distilbert": {
        "class": transformers.DistilBertForSequenceClassification,
        "prefix": "distilbert.",
        "labels": 4,
        "dropouts": ["attention_dropout", "dropout", "seq_classif_dropout"],
        "seed": 2,
    },
}


def random_batches(vocabulary_size, has_types, labels, seed):
    """Sequences as a tokenizer would make them: [CLS] a [SEP], or [CLS] a [SEP] b [SEP]."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low, high, count=1):
        return torch.randint(low, high, (count,), generator=generator).tolist()

    batches = []
    for step in range(STEPS):
        sequences = []
        for row in range(draw(8, 13)[0]):
            length = draw(3, 25)[0]
            if step == 0 and row < 3:
                length = (2, 64, 17)[row]
            ids = [2] + draw(5, vocabulary_size, length - 2) + [3]
            types = [0] * length
            if has_types and length >= 5 and draw(0, 2)[0]:
                middle = draw(2, length - 2)[0]
                ids[middle] = 3
                types = [0] * (middle + 1) + [1] * (length - middle - 1)
            sequences.append((ids, types, draw(0, labels)[0]))
        batches.append(sequences)
    return batches


def padded(sequences, has_types):
    longest = max(len(ids) for ids, _, _ in sequences)

    def pad(rows):
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows])

    inputs = {
        "input_ids": pad([ids for ids, _, _ in sequences]),
        "attention_mask": pad([[1] * len(ids) for ids, _, _ in sequences]),
        "labels": torch.tensor([label for _, _, label in sequences]),
    }
    if has_types:
        inputs["token_type_ids"] = pad([types for _, types, _ in sequences])
    return inputs


def load_model(folder, recipe, head, dtype):
    config = transformers.AutoConfig.from_pretrained(folder, num_labels=recipe["labels"])
    for name in recipe["dropouts"]:
        setattr(config, name, 0.0)
    config._attn_implementation = "eager"
    model = recipe["class"](config)
    weights = load_file(folder / "model.safetensors")
    weights.pop("embeddings.position_ids", None)
    if not any(name.startswith(recipe["prefix"]) for name in weights):
        weights = {recipe["prefix"] + name: value for name, value in weights.items()}
    weights.update(head)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    return model.to(dtype).train()


def random_head(config, labels, seed):
    """The classifier that a fresh run would draw; given here, so that no generator must agree."""
    generator = torch.Generator().manual_seed(seed)
    return {
        "classifier.weight": 0.3 * torch.randn(labels, config.hidden_size, generator=generator),
        "classifier.bias": 0.1 * torch.randn(labels, generator=generator),
    }


def decayed(name):
    """The Trainer's rule: biases and layer norms are not decayed."""
    return not name.endswith("bias") and "norm" not in name.lower()


def first_gradients(model, batch):
    output = model(**batch)
    output.loss.backward()
    gradients = {name: value.grad.clone() for name, value in model.named_parameters()}
    return output.logits.detach(), output.loss.detach(), gradients


def train(model, batches, decay_all):
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    named = list(model.named_parameters())
    groups = [
        {
            "params": [value for name, value in named if decay_all or decayed(name)],
            "weight_decay": WEIGHT_DECAY,
        },
        {
            "params": [value for name, value in named if not (decay_all or decayed(name))],
            "weight_decay": 0.0,
        },
    ]
    optimizer = torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=LEARNING_RATE,
        betas=BETAS,
        eps=EPSILON,
    )
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, WARMUP_STEPS, STEPS)
    record = {"loss": [], "gradient_norm": [], "learning_rate": []}
    for batch in batches:
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRADIENT_NORM)
        record["loss"].append(loss.item())
        record["gradient_norm"].append(norm.item())
        record["learning_rate"].append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    record = {key: torch.tensor(value, dtype=torch.float64) for key, value in record.items()}
    movement = {name: value.detach() - start[name] for name, value in model.named_parameters()}
    return record, movement


def relative(value, exact):
    return ((value.double() - exact).norm() / exact.norm()).item()


def key_bias(name):
    """Softmax is blind to a shift of all scores of a query: the exact gradient is zero."""
    return name.endswith("key.bias") or name.endswith("k_lin.bias")


def report(title, values, exact):
    ratios = {name: relative(values[name], exact[name]) for name in exact if not key_bias(name)}
    worst = max(ratios, key=ratios.get)
    bias = max(values[name].abs().max().item() for name in exact if key_bias(name))
    print(f"  {title}: worst relative L2 {ratios[worst]:.1e} ({worst}), key bias up to {bias:.1e}")


def make(repository, name, recipe):
    folder = repository / "tests" / "data" / name
    config = transformers.AutoConfig.from_pretrained(folder)
    has_types = recipe["prefix"] == "bert."
    head = random_head(config, recipe["labels"], recipe["seed"]) if has_types else {}
    sequences = random_batches(config.vocab_size, has_types, recipe["labels"], recipe["seed"])
    model = load_model(folder, recipe, head, torch.float64)
    batches = [padded(batch, has_types) for batch in sequences]
    print(name)

    tensors = {}
    for number, batch in enumerate(sequences):
        columns = {
            "input_ids": [token for ids, _, _ in batch for token in ids],
            "types": [kind for _, types, _ in batch for kind in types],
            "lengths": [len(ids) for ids, _, _ in batch],
            "labels": [label for _, _, label in batch],
        }
        for column, values in columns.items():
            tensors[f"batch.{number}.{column}"] = torch.tensor(values, dtype=torch.int32)

    names = [parameter for parameter, _ in model.named_parameters()]
    for parameter in names:
        if not parameter.startswith(recipe["prefix"]):
            tensors[f"initial.{parameter}"] = model.state_dict()[parameter].float()
    logits, loss, gradients = first_gradients(model, batches[0])
    tensors["logits"] = logits
    tensors["loss"] = loss.reshape(1)
    for parameter, gradient in gradients.items():
        tensors[f"gradient.{parameter}"] = gradient.float()

    # Padding changes nothing: the first batch again, one sequence at a time.
    alone = [model(**padded([sequence], has_types)).logits for sequence in sequences[0]]
    assert (torch.cat(alone) - logits).abs().max() < 1e-12
    single = load_model(folder, recipe, head, torch.float32)
    single_logits, _, single_gradients = first_gradients(single, batches[0])
    print(f"  float32 logits off by {(single_logits - logits).abs().max().item():.1e}")
    report("float32 gradients", single_gradients, gradients)

    for variant in ("decay_all", "decay_excluded"):
        runs = [
            train(load_model(folder, recipe, head, dtype), batches, variant == "decay_all")
            for dtype in (torch.float64, torch.float32)
        ]
        record, movement = runs[0]
        for key in ("loss", "gradient_norm"):
            tensors[f"{key}.{variant}"] = record[key]
        tensors["learning_rate"] = record["learning_rate"]
        for parameter, value in movement.items():
            tensors[f"movement.{variant}.{parameter}"] = value.float()
        norms = record["gradient_norm"]
        print(f"  {variant}: loss {record['loss'][0]:.4f} to {record['loss'][-1]:.4f}, gradient norm")
        print(f"    {norms.min():.2f} to {norms.max():.2f}, float32 losses off by", end=" ")
        print(f"{(runs[1][0]['loss'] - record['loss']).abs().max().item():.1e}")
        report("float32 movements", runs[1][1], movement)

    golden = repository / "tests" / "golden"
    golden.mkdir(parents=True, exist_ok=True)
    path = golden / f"{name}.safetensors"
    save_file({key: value.contiguous() for key, value in tensors.items()}, path)
    path.chmod(0o644)
    settings = {
        "model": f"tests/data/{name}",
        "labels": recipe["labels"],
        "dropout": 0.0,
        "steps": STEPS,
        "warmup_steps": WARMUP_STEPS,
        "learning_rate": LEARNING_RATE,
        "weight_decay": WEIGHT_DECAY,
        "max_gradient_norm": MAX_GRADIENT_NORM,
        "beta1": BETAS[0],
        "beta2": BETAS[1],
        "epsilon": EPSILON,
        "parameters": names,
        "key_biases": [parameter for parameter in names if key_bias(parameter)],
        "not_decayed": [parameter for parameter in names if not decayed(parameter)],
    }
    text = json.dumps(settings, indent=2) + "\n"
    (golden / f"{name}.json").write_text(text, encoding="utf-8")
    print(f"  {path}: {path.stat().st_size} bytes")


def main():
    here = pathlib.Path(__file__).resolve().parent
    repository = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here.parents[1]
    torch.set_num_threads(1)
    for name, recipe in MODELS.items():
        make(repository, name, recipe)


if __name__ == "__main__":
    main()
