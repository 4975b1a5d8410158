#!/usr/bin/env python3
"""Token ids against Hugging Face's: on rt-polarity and on 20,000 generated lines of mixed Unicode, with
every switch of the tokenizer, and on every code point.

Usage: check_tokenizer.py [TEXT_FILE...]      further texts: the lines of .txt and .tsv, the text fields of
                                              .jsonl, every string in .json
"""

import json
import shutil
import sys

import tokenizers
import transformers

import peers

sys.path.insert(0, str(peers.PROJECT / "tools" / "golden"))
import unicode_lines  # noqa: E402

CASED = {"do_lower_case": False, "strip_accents": False}
# A folder for each: the model's own, or made of its vocabulary and a tokenizer_config.json.
VARIANTS = {
    "tokenizer.json": None,
    "vocab.txt": ("vocab.txt", None),
    "cased": ("vocab.txt", CASED),
    "lower case with accents": ("vocab.txt", {"strip_accents": False}),
    "cased without accents": ("vocab.txt", {"do_lower_case": False, "strip_accents": True}),
    "no spaces around ideographs": ("vocab.txt", {"tokenize_chinese_chars": False}),
    "cased, tokenizer.json": ("tokenizer.json", CASED),
}


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def read_texts(path):
    text = path.read_bytes().decode()
    if path.suffix == ".json":
        texts = strings(json.loads(text))
    elif path.suffix == ".jsonl":
        texts = [json.loads(line)["text"] for line in text.split("\n") if line]
    else:
        texts = [text.removesuffix("\n")]
    return [line for text in texts for line in text.split("\n")]


def ours_single(folder, texts, max_length):
    """[(ids, None)]: the program shows no token types of single texts, which are all 0."""
    arguments = ["--max-length", max_length] if max_length else []
    output = peers.lockstep("tokenize", "--model", folder, *arguments, lines=texts)
    return [([int(i) for i in line.split()], None) for line in output.splitlines()]


def ours_pairs(folder, pairs, max_length):
    flat = [text for pair in pairs for text in pair]
    output = peers.run(peers.DRIVERS / "tokenize_pairs", folder, max_length, lines=flat)
    found = []
    for line in output.splitlines():
        ids, types = line.split("\t")
        found.append(([int(i) for i in ids.split()], [int(t) for t in types]))
    return found


def compare(name, folder, tokenizer, texts, max_length=0):
    """Texts are strings or pairs of them."""
    is_pair = isinstance(texts[0], tuple)
    limits = {"truncation": True, "max_length": max_length} if max_length else {"truncation": False}
    theirs = tokenizer(*map(list, zip(*texts)) if is_pair else [texts], padding=False, **limits)
    found = (ours_pairs if is_pair else ours_single)(folder, texts, max_length)
    wrong = [
        number
        for number, (ids, types) in enumerate(found)
        if ids != theirs["input_ids"][number] or (types and types != theirs["token_type_ids"][number])
    ]
    count = sum(map(len, theirs["input_ids"]))
    good = not wrong and len(found) == len(texts)
    peers.check(good, f"{name}: {len(texts)} texts, {len(found)} answers, {count} ids, {len(wrong)} differ")
    for number in wrong[:3]:
        print("   text  ", ascii(texts[number])[:300])
        print("   theirs", tokenizer.convert_ids_to_tokens(theirs["input_ids"][number])[:60])
        print("   ours  ", tokenizer.convert_ids_to_tokens(found[number][0])[:60])


def variant_folder(root, number, variant):
    if variant is None:
        return peers.MODEL
    file, settings = variant
    folder = root / f"variant-{number}"
    folder.mkdir()
    shutil.copy(peers.MODEL / file, folder)
    (folder / "config.json").write_text('{"model_type": "bert"}')
    if settings is not None:
        document = {"tokenizer_class": "BertTokenizer", **settings}
        (folder / "tokenizer_config.json").write_text(json.dumps(document))
    return folder


def compare_texts(root, texts):
    for number, (name, variant) in enumerate(VARIANTS.items()):
        folder = variant_folder(root, number, variant)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        compare(name, folder, tokenizer, texts)
        few = texts[number :: 1 if number == 0 else 10]
        pairs = list(zip(few, few[7:] + few[:7]))
        for length in (16, 128):
            compare(f"{name}, cut to {length}", folder, tokenizer, few, length)
            compare(f"{name}, pairs cut to {length}", folder, tokenizer, pairs, length)
        compare(f"{name}, pairs", folder, tokenizer, pairs)


class Plain:
    """The bare library behind the interface that compare uses."""

    def __init__(self, path):
        self.tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def __call__(self, texts, **_):
        return {"input_ids": [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]}

    def convert_ids_to_tokens(self, ids):
        return [self.tokenizer.id_to_token(i) for i in ids]


def code_point_document():
    """A tokenizer whose vocabulary has the code points themselves, so that nothing hides behind [UNK]; and
    texts with each of them, alone in a word and next to marks with which it may change places."""
    code_points = [chr(c) for c in range(1, 0x110000) if c != 10 and not 0xD800 <= c < 0xE000]
    lower = tokenizers.normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=True
    ).normalize_str
    # Private and unassigned ones behave alike, but for those that lower case changes.
    letters = [c for c in code_points if not (0xE000 <= ord(c) < 0xF900 or ord(c) >= 0x32000) or lower(c) != c]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters)]
    document = json.loads((peers.MODEL / "tokenizer.json").read_text(encoding="utf-8"))
    document["model"]["vocab"] = {token: i for i, token in enumerate(tokens)}
    document["added_tokens"] = []
    for token, i in (("[CLS]", 2), ("[SEP]", 3)):
        document["post_processor"]["special_tokens"][token]["ids"] = [i]
    texts = [
        "".join(f"a{c}b a{c}\u0334\u302e\U0001d16d\u0301{c}e " for c in code_points[i : i + 64])
        for i in range(0, len(code_points), 64)
    ]
    return document, texts


def compare_code_points(root):
    document, texts = code_point_document()
    switches = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    for on in ((1, 1, 1, 1), (1, 1, 0, 0), (0, 0, 1, 0), (0, 1, 0, 1)):
        document["normalizer"].update({switch: bool(value) for switch, value in zip(switches, on)})
        folder = root / "code-points-{}{}{}{}".format(*on)
        folder.mkdir()
        (folder / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        title = ", ".join(switch for switch, value in zip(switches, on) if value)
        compare(f"code points, {title}", folder, Plain(folder / "tokenizer.json"), texts)


def main():
    files = [peers.REVIEWS / f"{part}.tsv" for part in ("train", "validation", "test")]
    texts = [line for path in [*files, *map(peers.pathlib.Path, sys.argv[1:])] for line in read_texts(path)]
    print(f"{len(texts)} lines from files")
    texts += unicode_lines.lines()
    with peers.temporary_folder() as temporary:
        compare_texts(peers.pathlib.Path(temporary), texts)
        compare_code_points(peers.pathlib.Path(temporary))
    peers.finish()


if __name__ == "__main__":
    main()
