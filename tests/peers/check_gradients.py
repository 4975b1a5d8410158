#!/usr/bin/env python3
"""Every gradient tensor against PyTorch in float64, without dropout, in one pass and in several."""

from safetensors.torch import load_file

import peers

MAX_LENGTH = 128


def exact_gradients(folder, rows):
    model, tokenizer, _ = peers.load(folder)
    model.train()
    texts, words = zip(*rows)
    inputs = tokenizer(
        list(texts), padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"
    )  # fmt: skip
    inputs["labels"] = peers.torch.tensor([model.config.label2id[word] for word in words])
    model(**inputs).loss.backward()
    return {name: value.grad for name, value in model.named_parameters()}


def compare(title, found, exact):
    peers.check(set(found) == set(exact), f"{title}: gradients of {len(found)} tensors of {len(exact)}")
    worst, where, key_bias = 0.0, "", 0.0
    for name in set(found) & set(exact):
        if name.endswith(("key.bias", "k_lin.bias")):
            # The exact gradient is zero: what is left is rounding.
            key_bias = max(key_bias, found[name].abs().max().item())
            continue
        error = ((found[name].double() - exact[name]).norm() / exact[name].norm()).item()
        # Not a number is as bad as it can be.
        if not error <= worst:
            worst, where = error, name
    peers.check(worst < 1e-5, f"{title}: gradients differ by {worst:.1e} of their size ({where})")
    peers.check(key_bias < 1e-6, f"{title}: gradients of key biases are at most {key_bias:.1e}")


def check_one(name, kind, source, rows, folder):
    data, start = folder / "rows.tsv", folder / "start"
    peers.write_tsv(data, rows)
    peers.classifier_without_dropout(source, kind, sorted({word for _, word in rows}), start)
    exact = exact_gradients(start, rows)
    for samples in (len(rows), 3):
        output = folder / "gradients.safetensors"
        peers.run(peers.DRIVERS / "dump_gradients", start, data, MAX_LENGTH, samples, output)
        compare(f"{name}, {samples} samples a pass", load_file(output), exact)


def main():
    reviews = peers.read_tsv(peers.REVIEWS / "train.tsv")
    # Two rows of the greatest length among short ones.
    long = [(" ".join(text for text, _ in reviews[first : first + 12]), "positive") for first in (40, 60)]
    words = ["business", "science", "sport", "world"]
    cases = [
        ("tiny-bert", "bert", peers.TINY["tiny-bert"], peers.tiny_reviews(13)),
        ("tiny-distilbert", "distilbert", peers.TINY["tiny-distilbert"], peers.tiny_reviews(13, words)),
        ("all-MiniLM-L6-v2", "bert", peers.MODEL, reviews[:7] + long + reviews[7:13]),
    ]
    for case in cases:
        with peers.temporary_folder() as temporary:
            check_one(*case, peers.pathlib.Path(temporary))
    peers.finish()


if __name__ == "__main__":
    main()
