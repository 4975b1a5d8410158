#!/usr/bin/env python3
"""Writes 20,000 generated lines of mixed Unicode text, always the same ones, to compare tokenizers.
Usage: unicode_lines.py OUTPUT [COUNT]"""
import random
import sys

WORDS = {
    "french": "été où ça naïve cœur l’hôtel garçon déjà-vu NOËL Œuvre ÇA À bientôt façade élève".split(),
    "greek": "Ελλάδα ΟΔΥΣΣΕΥΣ σοφός ΆΝΟΙΞΗ ῾Ηρόδοτος ᾳ ᾼ Ὀδυσσεύς μῆνιν ἄειδε θεὰ ϊΰ".split(),
    "arabic": "مرحبا السَّلامُ عليكم ﻻ ﷺ بِسْمِ ٱللَّٰهِ ١٢٣ كتاب، لماذا؟ الله".split(),
    "hebrew": "שָׁלוֹם עולם ירושלים אָלֶף־בֵּית".split(),
    "cjk": "中文 漢字テスト 日本語 ひらがな カタカナ ｶﾞｷﾞ 東京、大阪。 「引用」 豈更 㐀㒨 𠀀𪚥 𫝀 〇 々".split(),
    "hangul": "한국어 안녕하세요 각 각ᆨ ㄱㄴㄷ 뷁 ﾡﾢ 서울특별시".split(),
    "indic": "नमस्ते क्षत्रिय हिन्दी বাংলা ஸ்ரீ தமிழ் ಕನ್ನಡ മലയാളം தௌ कि़ ก็ภาษาไทย ພາສາ".split(),
    "cyrillic": "Привет ЁЖИК й Ў ІЇЄ Ѳита ёлка СТОЛ".split(),
    "turkish": "İstanbul ISPARTA ığdır İİ Iİıi diyarbakır ŞİŞLİ".split(),
    "german": "Straße GRÜẞE STRASSE Äpfel ßẞ über".split(),
    "vietnamese": "Tiếng Việt Nguyễn Đặng ở đường ậ".split(),
    "ligatures": "ﬁn ﬀ ﬃ ﬆ ǆ ǅ Ǆ ŉ ĳ № ™ ℡ ½ ² ⅷ Ⅷ ⓐ Ａｂｃ １２３ Å Å Ω".split(),
    "emoji": "😀 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🇫🇷🇩🇪 ❤️ 1️⃣ 🧑🏿‍🚀 ☺ ♥︎ 🏴󠁧󠁢󠁥󠁮󠁧󠁿".split(),
    "english": "the quick brown Fox can't JUMP over 1,234.56 lazy-dogs e.g. U.S.A. don't re-enter running"
               " unbelievable tokenization's http://example.org/a_b?c=d&e=%20 name@example.org".split(),
    "special": "[CLS] [SEP] [MASK] [PAD] [UNK] [cls] [SEP [[MASK]] ##ing #hash [unused1] <s>".split(),
    "scripts": "ᏣᎳᎩ ꭰꮃ ა Ა Ⴀ ⴀ 𐐀𐐨 𞤀𞤢 Ɑ ɑ Ꭓ Ꞔ ⰰⰀ ꙀꙂ ⲀⲂ ᲀ Ȿ Ⱥ ẞ K ϴ".split(),
}
SPACES = [" ", " ", " ", " ", "  ", "\t", "\r", "\u00a0", "\u2003", "\u3000", "\u2028", "\u1680",
          "\x0b", "\x0c", "\x1c", "\x85", "\u180e", "\u200b", "\ufeff", "\u205f", "\u202f"]
CONTROLS = [chr(c) for c in range(1, 32) if c != 10] + [
    "\x7f", "\x80", "\x9f", "\xad", "\u200c", "\u200d", "\u200e", "\u202a", "\u2060", "\u2066",
    "\ufffd", "\ufffe", "\uffff", "\ue000", "\U000f0000", "\U000e0001", "\U0010ffff", "\u0378"]
MARKS = [chr(c) for c in (0x300, 0x301, 0x307, 0x308, 0x315, 0x323, 0x327, 0x328, 0x334, 0x338,
                          0x345, 0x5b0, 0x64b, 0x670, 0x93c, 0x94d, 0xe38, 0xf71, 0xf72, 0x1b44,
                          0x20d2, 0x20dd, 0x302a, 0x302e, 0x3099, 0x309a, 0xfe0f, 0xfe20, 0x11046,
                          0x1d165, 0x1d16d, 0x1d16e, 0x8d4, 0x8e1, 0x1e000, 0x1e944, 0x483, 0x488)]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + list(
    "¡¿«»“”„‘’…–—·§¶†‡•‰′″⁂、。〈〉《》「」・！？；：｡｢｣،؛؟۔।॥።᠀‿⁀﹏﴾﴿×÷€£¥¢©®°¬¦¨´¸ˆ˜−∞≠∑√∂→⇒")


def code_point(generator):
    """Any code point but surrogates, NUL and line feed; most from the lower planes."""
    limits = [0x250, 0x800, 0x3000, 0x10000, 0x20000, 0x32000, 0x110000]
    while True:
        c = generator.randrange(1, generator.choice(limits))
        if c != 10 and not 0xD800 <= c < 0xE000:
            return chr(c)


def piece(generator, names):
    kind = generator.random()
    if kind < 0.62:
        word = generator.choice(WORDS[generator.choice(names)])
        change = generator.random()
        if change < 0.1:
            word = word.upper()
        elif change < 0.2:
            at = generator.randrange(len(word) + 1)
            marks = "".join(generator.choices(MARKS, k=generator.randint(1, 4)))
            word = word[:at] + marks + word[at:]
        elif change < 0.25:
            at = generator.randrange(len(word) + 1)
            word = word[:at] + generator.choice(CONTROLS) + word[at:]
        elif change < 0.26:
            word = word * generator.randint(2, 60)
        return word
    if kind < 0.76:
        return "".join(generator.choices(PUNCTUATION, k=generator.randint(1, 3)))
    if kind < 0.82:
        return generator.choice(CONTROLS)
    if kind < 0.88:
        return code_point(generator) + "".join(generator.choices(MARKS, k=generator.randint(1, 3)))
    if kind < 0.98:
        return "".join(code_point(generator) for _ in range(generator.randint(1, 6)))
    return "a" * generator.randint(95, 105)


def lines(count=20000, seed=20240607):
    generator = random.Random(seed)
    for _ in range(count):
        names = generator.sample(sorted(WORDS), generator.randint(1, 4))
        text = ""
        for _ in range(generator.randint(0, 24)):
            text += piece(generator, names)
            if generator.random() < 0.7:
                text += generator.choice(SPACES)
        assert "\n" not in text and "\0" not in text
        yield text


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8", newline="\n") as out:
        for line in lines(int(sys.argv[2]) if len(sys.argv) > 2 else 20000):
            out.write(line + "\n")
