#!/usr/bin/env python3
"""Token ids against Hugging Face's: on given texts, on generated lines, and on every code point.

  check_tokenizer.py --driver build/peers/tokenize_lines --model FOLDER [TEXT_FILE ...]

Needs `transformers`. A text file is read as lines (.txt, .tsv), as the text fields of its objects
(.jsonl) or as every string in it (.json). Ends with 1 where a single id differs."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, normalizers
from transformers import AutoTokenizer

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools", "golden"))
import unicode_lines  # noqa: E402

failures = 0


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def read_texts(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        if path.endswith(".json"):
            texts = list(strings(json.load(file)))
        elif path.endswith(".jsonl"):
            texts = [json.loads(line)["text"] for line in file]
        else:
            texts = [line.rstrip("\n") for line in file]
    return [part for text in texts for part in text.split("\n")]


def ours(driver, folder, texts, max_length, pair):
    command = [driver, folder, str(max_length), "1"] + (["pair"] if pair else [])
    flat = [text for both in texts for text in both] if pair else texts
    result = subprocess.run(command, input="".join(text + "\n" for text in flat).encode(),
                            stdout=subprocess.PIPE, check=True, stderr=subprocess.DEVNULL)
    for line in result.stdout.decode().splitlines():
        ids, _, types = line.partition("\t")
        yield [int(i) for i in ids.split()], [int(t) for t in types]


def compare(name, driver, folder, tokenizer, texts, max_length=0, pair=False):
    global failures
    limits = dict(truncation=True, max_length=max_length) if max_length else dict(truncation=False)
    arguments = [list(side) for side in zip(*texts)] if pair else [texts]
    theirs = tokenizer(*arguments, padding=False, **limits)
    found = list(ours(driver, folder, texts, max_length, pair))
    assert len(found) == len(texts), f"{name}: {len(found)} lines for {len(texts)} texts"
    wrong = [i for i, (ids, types) in enumerate(found)
             if ids != theirs["input_ids"][i] or (pair and types != theirs["token_type_ids"][i])]
    count = sum(len(ids) for ids in theirs["input_ids"])
    print(f"{'ok   ' if not wrong else 'WRONG'} {name}: {len(texts)} texts, {count} ids"
          + (f", {len(wrong)} texts differ" if wrong else ""))
    for i in wrong[:3]:
        print("   text  ", ascii(texts[i])[:300])
        print("   theirs", tokenizer.convert_ids_to_tokens(theirs["input_ids"][i])[:60])
        print("   ours  ", tokenizer.convert_ids_to_tokens(found[i][0])[:60])
    failures += len(wrong)


def folder_with(root, name, model, config=None, keep=("vocab.txt",)):
    folder = os.path.join(root, name)
    os.mkdir(folder)
    for file in keep:
        shutil.copy(os.path.join(model, file), folder)
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump({"model_type": "bert"}, out)
    if config is not None:
        with open(os.path.join(folder, "tokenizer_config.json"), "w") as out:
            json.dump({"tokenizer_class": "BertTokenizer", **config}, out)
    return folder


def compare_texts(driver, root, model, texts):
    cased = dict(do_lower_case=False, strip_accents=False)
    folders = {
        "tokenizer.json": model,
        "vocab.txt": folder_with(root, "vocab", model),
        "cased": folder_with(root, "cased", model, cased),
        "lower case with accents": folder_with(root, "accents", model, dict(strip_accents=False)),
        "cased without accents": folder_with(root, "bare", model,
                                             dict(do_lower_case=False, strip_accents=True)),
        "no spaces around ideographs": folder_with(root, "run", model,
                                                   dict(tokenize_chinese_chars=False)),
        "cased, tokenizer.json": folder_with(root, "both", model, cased, ["tokenizer.json"]),
    }
    for number, (name, folder) in enumerate(folders.items()):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        compare(name, driver, folder, tokenizer, texts)
        few = texts[number::1 if number == 0 else 10]
        pairs = list(zip(few, few[7:] + few[:7]))
        for length in (16, 128):
            compare(f"{name}, cut to {length}", driver, folder, tokenizer, few, length)
            compare(f"{name}, pairs cut to {length}", driver, folder, tokenizer, pairs, length, True)
        compare(f"{name}, pairs", driver, folder, tokenizer, pairs, 0, True)


class Plain:
    """The bare library behind the interface that compare uses."""

    def __init__(self, path):
        self.tokenizer = Tokenizer.from_file(path)
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def __call__(self, texts, **_):
        return {"input_ids": [e.ids for e in self.tokenizer.encode_batch(texts)]}

    def convert_ids_to_tokens(self, ids):
        return [self.tokenizer.id_to_token(i) for i in ids]


def compare_code_points(driver, root, model):
    """Every code point in a vocabulary that has them all, so that nothing hides behind [UNK]: alone
    in a word, and next to marks with which it may change places."""
    code_points = [chr(c) for c in range(1, 0x110000) if c != 10 and not 0xD800 <= c < 0xE000]
    lower = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False,
                                       strip_accents=False, lowercase=True).normalize_str
    letters = [c for c in code_points if not (0xE000 <= ord(c) < 0xF900 or ord(c) >= 0x32000)
               or lower(c) != c]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + letters + ["##" + c for c in letters]
    with open(os.path.join(model, "tokenizer.json"), encoding="utf-8") as file:
        document = json.load(file)
    document["model"]["vocab"] = {token: i for i, token in enumerate(tokens)}
    document["added_tokens"] = document["added_tokens"][:0]
    for token, i in (("[CLS]", 2), ("[SEP]", 3)):
        document["post_processor"]["special_tokens"][token]["ids"] = [i]
    texts = ["".join(("a" + c + "b ", "a" + c + "\u0334\u302e\U0001d16d\u0301" + c + "e ")[k]
                     for c in code_points[i:i + 64] for k in (0, 1))
             for i in range(0, len(code_points), 64)]
    switches = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    for on in ((1, 1, 1, 1), (1, 1, 0, 0), (0, 0, 1, 0), (0, 1, 0, 1)):
        flags = {switch: bool(value) for switch, value in zip(switches, on)}
        document["normalizer"].update(flags)
        name = "code points " + "".join(map(str, on))
        folder = os.path.join(root, name.replace(" ", "-"))
        os.mkdir(folder)
        path = os.path.join(folder, "tokenizer.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(document, out, ensure_ascii=False)
        compare(name, driver, folder, Plain(path), texts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--skip-code-points", action="store_true")
    parser.add_argument("texts", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        texts = [text for path in options.texts for text in read_texts(path)]
        print(f"{len(texts)} lines from files")
        texts += list(unicode_lines.lines())
        compare_texts(options.driver, root, options.model, texts)
        if not options.skip_code_points:
            compare_code_points(options.driver, root, options.model)
    sys.exit(1 if failures else 0)


main()
