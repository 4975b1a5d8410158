#!/usr/bin/env python3
"""A model that Lockstep trained loads in Transformers: no key missing, none unexpected, same logits."""

import peers


def check_one(name, model, rows, max_length, folder):
    peers.write_tsv(folder / "rows.tsv", rows)
    output = folder / name
    peers.lockstep(
        "train", "--model", model, "--train", folder / "rows.tsv", "--output", output,
        "--max-steps", 3, "--save-every", 3, "--batch-size", 8, "--learning-rate", 1e-3, "--max-length", max_length,
    )
    peers.lockstep(
        "evaluate", "--model", output, "--data", folder / "rows.tsv",
        "--predictions", folder / "predictions.jsonl",
    )
    loaded, tokenizer, report = peers.load(output)
    for key in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        peers.check(not report[key], f"{name}: {key} {sorted(report[key])}")

    # The checkpoint of the last step is a model folder too, of the same weights.
    saved, _, report = peers.load(output / "checkpoint-3")
    peers.check(not any(report.values()), f"{name}: checkpoint-3 loads whole")
    pairs = zip(loaded.state_dict().values(), saved.state_dict().values())
    peers.check(all(one.equal(other) for one, other in pairs), f"{name}: checkpoint-3 has the output's weights")

    labels = loaded.config.id2label
    peers.check(
        set(labels.values()) >= {label for _, label in rows}, f"{name}: labels {list(labels.values())}"
    )
    predictions = peers.read_jsonl(folder / "predictions.jsonl")
    peers.check(len(predictions) == len(rows), f"{name}: {len(predictions)} predictions")
    theirs = peers.logits(loaded, tokenizer, [text for text, _ in rows], max_length)
    ours = peers.probabilities(folder / "predictions.jsonl", labels).log()
    error = (peers.centred(ours) - peers.centred(theirs)).abs().max().item()
    peers.check(error < 1e-4, f"{name}: logits differ by {error:.1e}")
    # Where two labels are as good as equal, either may win.
    top = theirs.topk(2, dim=1).values
    clear = (top[:, 0] - top[:, 1]) > 1e-3
    same = [
        line["prediction"] == labels[best]
        for line, best, sure in zip(predictions, theirs.argmax(1).tolist(), clear.tolist())
        if sure
    ]
    peers.check(all(same), f"{name}: predicted labels equal on {sum(same)} rows")


def main():
    with peers.temporary_folder() as temporary:
        folder = peers.pathlib.Path(temporary)
        check_one("tiny-bert", peers.TINY["tiny-bert"], peers.tiny_reviews(24), 64, folder)
        words = ["business", "science", "sport", "world"]
        rows = peers.tiny_reviews(24, words)
        check_one("tiny-distilbert", peers.TINY["tiny-distilbert"], rows, 64, folder)
        rows = peers.read_tsv(peers.REVIEWS / "validation.tsv")[:40]
        check_one("all-MiniLM-L6-v2", peers.MODEL, rows, 128, folder)
    peers.finish()


if __name__ == "__main__":
    main()
