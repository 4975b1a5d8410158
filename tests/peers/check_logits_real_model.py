#!/usr/bin/env python3
"""Logits of the real model against float64, from every form of weight file that it may come in."""

import torch
import transformers

import peers

LABELS = ["negative", "neutral", "positive"]


def classifier():
    """The real encoder and pooler with a head that has something to say."""
    settings = {"num_labels": 3, "id2label": dict(enumerate(LABELS))}
    settings["label2id"] = {label: number for number, label in enumerate(LABELS)}
    model = transformers.BertForSequenceClassification.from_pretrained(peers.MODEL, **settings)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        model.classifier.weight.copy_(0.3 * torch.randn(3, 384, generator=generator))
        model.classifier.bias.copy_(0.1 * torch.randn(3, generator=generator))
    return model


def check_form(name, model, rows, folder, **saving):
    saved = folder / name
    model.save_pretrained(saved, **saving)
    transformers.AutoTokenizer.from_pretrained(peers.MODEL).save_pretrained(saved)
    data, predictions = folder / "rows.tsv", folder / "predictions.jsonl"
    peers.write_tsv(data, rows)
    peers.lockstep("evaluate", "--model", saved, "--data", data, "--predictions", predictions)
    exact, tokenizer, _ = peers.load(saved)
    # Both sides cut rows to the length that the tokenizer's configuration gives.
    theirs = peers.logits(exact, tokenizer, [text for text, _ in rows], tokenizer.model_max_length)
    ours = peers.probabilities(predictions, exact.config.id2label).log()
    error = (peers.centred(ours) - peers.centred(theirs)).abs().max().item()
    size = peers.centred(theirs).abs().max().item()
    peers.check(error < 1e-5, f"{name}: logits of {len(rows)} rows, up to {size:.1f}, differ by {error:.1e}")


def main():
    texts = [text for text, _ in peers.read_tsv(peers.REVIEWS / "test.tsv")[:24]]
    texts += ["Un été à Paris", "電影很好看", "a", "long " * 600]
    rows = [(text, LABELS[number % 3]) for number, text in enumerate(texts)]
    model = classifier()
    with peers.temporary_folder() as temporary:
        folder = peers.pathlib.Path(temporary)
        check_form("float32", model, rows, folder)
        check_form("sharded", model, rows, folder, max_shard_size="20MB")
        check_form("bfloat16", model.to(torch.bfloat16), rows, folder)
        check_form("float16", model.to(torch.float16), rows, folder)
    peers.finish()


if __name__ == "__main__":
    main()
