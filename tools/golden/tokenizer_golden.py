#!/usr/bin/env python3
"""Makes tests/data/tokenizer/: three small tokenizer folders, and golden.json with the ids that
Hugging Face's `tokenizers` gives for texts that touch each rule. Usage: tokenizer_golden.py OUTPUT"""
import json
import os
import sys

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece

import unicode_lines

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = """the a quick brown fox jump ##s ##ed ##ing over lazy dog un ##believ ##able token ##ization
##ize ##r hotel cafe Cafe CAFE naive hello world Hello ##o hell strasse straße i̇ istanbul ισ σοφος
σοφός ς σ привет ежик привет, é ##é è ##̀ 中 文 漢 ##字 豈 更 東 京 ひ ##ら か ##゙ が ##が 한 ##국
각 각 fi ﬁ ##n ﬁn ½ ² № ™ 😀 👍 ##🏽 ❤ ##️ # ## ##x x### <x> marker plain""".split()
LETTERS = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM0123456789αβγδεοσςЁёйи") + [
    chr(c) for c in (0x1112, 0x1161, 0x11ab, 0x1100, 0x11a8, 0x307, 0x302e, 0x1d16d, 0x1d165)]
TEXTS = [
    "", " ", "the quick brown fox jumps over the lazy dog", "The QUICK Brown fox, jumped!? Over...",
    "unbelievable tokenization tokenizer", "hello\tworld\r hello\x0bworld", "a\x00b".replace("\0", ""),
    "don't re-enter: (x) [y] {z} <x> a_b $5 50% ~`^|\\", "café Café CAFÉ cafe\u0301 naïve",
    "İstanbul ISTANBUL İ I i ı", "ΣΟΦΌΣ σοφός Σ", "Привет ЁЖИК Й й", "STRASSE Straße STRAẞE",
    "中文漢字 豈 更 東京ひらがな が か\u3099", "한국 한국 각 각", "ﬁn ﬁ ½ ² № ™",
    "😀 👍🏽 ❤️ a\u200db a\u00adb a\ufeffb", "a\u00a0b\u2003c\u3000d\u2028e\u1680f\u180eg",
    "a\ufffdb \ue000 x\U000f0000y \u0378 \U00010ffff", "«a» “b” a—b…c ¡a! ¿b? 。、 · §",
    "\u302ea \u302e\u0334\U0001d16d b\U0001d16d\u302e\u0301\U0001d165c", "é è \u0300 \u0301a",
    "a" * 100, "a" * 101, "é" * 100, "é" * 101, "xyz zzzq ~q", "## #x x### ##s",
    "[CLS] [SEP] [MASK] [PAD] [UNK]", "[cls] [CLS [[MASK]]] a[SEP]b [MASK][MASK]",
    "  [MASK]  a <x>  b<x> <X> \u00a0<x>\u2003c", "a marker b MARKER markers Marker  c",
    "  plain \t plain plains unplain PLAIN", "\x85a\x1cb\x7f\x01c \x0c d", "\U00010400 \u1c90 \ua7dc Ⴀ Ꭰ",
]


def build(vocabulary, clean=True, ideographs=True, strip=None, lower=True):
    tokenizer = Tokenizer(WordPiece({token: i for i, token in enumerate(vocabulary)},
                                    unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(clean, ideographs, strip, lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary.index("[CLS]")), ("[SEP]", vocabulary.index("[SEP]"))])
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def case(tokenizer, text, pair=None, max_length=0):
    if max_length:
        tokenizer.enable_truncation(max_length)
    else:
        tokenizer.no_truncation()
    encoding = tokenizer.encode(text, pair)
    return {"text": text, "pair": pair, "max_length": max_length, "ids": encoding.ids,
            "types": encoding.type_ids}


def cases(tokenizer, texts, cut):
    yield from (case(tokenizer, text) for text in texts)
    yield case(tokenizer, "", "")
    yield case(tokenizer, "[MASK] café unbelievable", "中文 [SEP] x")
    if not cut:
        return
    numbers = ["a " * n for n in (0, 1, 5, 6, 7, 12, 13, 14, 30)]
    for length in (3, 4, 5, 16, 17):
        for first in numbers:
            yield case(tokenizer, first, None, length)
            for second in numbers:
                yield case(tokenizer, first, second, length)


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, ensure_ascii=True, separators=(",", ":"))
        out.write("\n")


def main():
    root = sys.argv[1]
    vocabulary = list(dict.fromkeys(SPECIAL + WORDS + LETTERS + ["##" + c for c in LETTERS]
                                    + list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»“”—…¡¿。、·§")))
    texts = TEXTS + [line for line in unicode_lines.lines(60, 7)]
    uncased, cased = build(vocabulary), build(vocabulary, strip=False, lower=False)
    added = build(vocabulary, clean=False, ideographs=False, strip=False, lower=True)
    added.add_special_tokens([AddedToken("[MASK]", lstrip=True), AddedToken("<x>", rstrip=True)])
    added.add_tokens([AddedToken("Marker", normalized=True),
                      AddedToken("plain", normalized=False, lstrip=True, rstrip=True),
                      AddedToken("Éa", normalized=True)])
    golden = {}
    for name, tokenizer in (("uncased", uncased), ("cased", cased), ("added", added)):
        folder = os.path.join(root, name)
        os.makedirs(folder, exist_ok=True)
        golden[name] = list(cases(tokenizer, texts, name == "uncased"))
        if name == "cased":
            with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8", newline="\n") as out:
                out.write("".join(token + "\n" for token in vocabulary))
            write_json(os.path.join(folder, "tokenizer_config.json"),
                       {"do_lower_case": False, "strip_accents": False})
        else:
            tokenizer.no_truncation()
            tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    write_json(os.path.join(root, "golden.json"), golden)


main()
