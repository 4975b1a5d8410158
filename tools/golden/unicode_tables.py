#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_tables.c: the Unicode data that Hugging Face's tokenizers uses.

Its parts follow different Unicode versions (categories an old one, normal forms a newer one, case
the newest), so no Unicode library gives the same answers. This script therefore asks the library
itself about every code point. Usage: unicode_tables.py OUTPUT (needs the `tokenizers` package)."""
import sys
import unicodedata

import tokenizers
from tokenizers import normalizers, pre_tokenizers

OTHER, SPACE, IDEOGRAPH, MARK, PUNCTUATION, NON_STARTER = 1, 2, 4, 8, 16, 32
CODE_POINTS = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)


def bert(**on):
    flags = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**flags, **on}).normalize_str


clean, space_ideographs = bert(clean_text=True), bert(handle_chinese_chars=True)
strip, lower = bert(strip_accents=True), bert(lowercase=True)
decompose = normalizers.NFD().normalize_str
split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str


def combining_class(c, representatives):
    """Canonical combining class as the library sees it: marks are put in order by NFD."""
    def goes_after(k):  # a mark of class k written after c moves in front of it
        return decompose(chr(c) + representatives[k]) != chr(c) + representatives[k]

    def goes_before(k):  # c written after a mark of class k moves in front of it
        return decompose(representatives[k] + chr(c)) != representatives[k] + chr(c)

    if not goes_after(1) and not goes_before(240):
        return 0
    for k in representatives:
        if not goes_after(k) and not goes_before(k):
            return k
    raise SystemExit(f"U+{c:04X}: no combining class found")


def class_of(c, representatives):
    text, flags = chr(c), 0
    cleaned = clean(text)
    assert cleaned in ("", " ", text), hex(c)
    pieces = [piece for piece, _ in split("a" + text + "b")]
    assert pieces in (["a" + text + "b"], ["a", text, "b"], ["a", "b"]), hex(c)
    flags |= OTHER if cleaned == "" else 0
    flags |= SPACE if len(pieces) == 2 else 0
    flags |= PUNCTUATION if len(pieces) == 3 else 0
    assert cleaned != " " or flags & SPACE, hex(c)
    assert not flags & SPACE or cleaned in ("", " "), hex(c)
    flags |= IDEOGRAPH if space_ideographs(text) == f" {text} " else 0
    whole = decompose(text) == text
    flags |= MARK if whole and strip(text) == "" else 0
    combining = combining_class(c, representatives) if whole else 0
    return flags | (NON_STARTER if combining else 0), combining


def runs(values):
    """[(first, last, value)] of equal values over consecutive code points; zero is left out."""
    found = []
    for c, value in values:
        if not value:
            continue
        if found and found[-1][1] == c - 1 and found[-1][2] == value:
            found[-1][1] = c
        else:
            found.append([c, c, value])
    return found


def lower_runs():
    """[(first, last, step, delta)] of simple lower-case mappings; U+0130 alone has two letters."""
    found = []
    for c in CODE_POINTS:
        mapped = lower(chr(c))
        if mapped == chr(c):
            continue
        if len(mapped) > 1:
            assert c == 0x130 and mapped == "i\u0307", hex(c)
            continue
        delta = ord(mapped) - c
        last = found[-1] if found else None
        step = c - last[1] if last else 0
        if last and last[3] == delta and step <= 2 and last[2] in (0, step):
            last[1], last[2] = c, step
        else:
            found.append([c, c, 0, delta])
    return [[first, last, step or 1, delta] for first, last, step, delta in found]


def decompositions():
    """[(code point, first, second or 0)]: one step of the canonical decomposition, no Hangul."""
    pairs = {}
    for c in CODE_POINTS:
        if c in HANGUL or decompose(chr(c)) == chr(c):
            continue
        parts = [int(part, 16) for part in unicodedata.decomposition(chr(c)).split()]
        assert 1 <= len(parts) <= 2, hex(c)
        pairs[c] = parts + [0] * (2 - len(parts))

    def whole(c):
        return "".join(whole(part) for part in pairs[c] if part) if c in pairs else chr(c)

    for c in pairs:
        assert whole(c) == decompose(chr(c)) and len(whole(c)) <= 4, hex(c)
    return [[c, *parts] for c, parts in sorted(pairs.items())]


def table(kind, name, rows, form):
    cells = ["{" + ", ".join(form(i, value) for i, value in enumerate(row)) + "}," for row in rows]
    lines, line = [], "   "
    for cell in cells:
        if len(line) + 1 + len(cell) > 100:
            lines.append(line)
            line = "   "
        line += " " + cell
    lines.append(line)
    body = "\n".join(lines)
    return (f"const {kind} ls_{name}[] = {{\n{body}\n}};\n"
            f"const int ls_{name}_count = {len(rows)};\n")


def main():
    representatives = {}
    for c in CODE_POINTS:
        k = unicodedata.combining(chr(c))
        if k and k not in representatives and unicodedata.decomposition(chr(c)) == "":
            if decompose("\u0345" + chr(c)) != "\u0345" + chr(c) or k == 240:
                representatives[k] = chr(c)
    representatives[240] = "\u0345"
    representatives = dict(sorted(representatives.items()))
    classes = [(c, *class_of(c, representatives)) for c in CODE_POINTS]
    hexadecimal = lambda i, value: f"0x{value:X}"
    mixed = lambda i, value: f"0x{value:X}" if i < 2 else str(value)
    parts = [
        table("ls_class_run", "class_runs", runs((c, flags) for c, flags, _ in classes), mixed),
        table("ls_class_run", "combining_runs",
              runs((c, k if not flags & MARK else 0) for c, flags, k in classes), mixed),
        table("ls_lower_run", "lower_runs", lower_runs(), mixed),
        table("ls_decomposition", "decompositions", decompositions(), hexadecimal),
    ]
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write(f"/* Made by tools/golden/unicode_tables.py from tokenizers {tokenizers.__version__}"
                  "; not to be edited. */\n// clang-format off\n"
                  '#include "tokenizer/unicode_tables.h"\n\n' + "\n".join(parts))


main()
