#!/usr/bin/env python3
"""Writes src/text/unicode_table.inc: what each character is, as the `tokenizers` package sees it.

    tools/unicode_tables.py > src/text/unicode_table.inc

That package asks several libraries, each with its own version of Unicode, and a tokenizer that is to
agree with it on every character must make the same mistakes. Categories are those of Unicode 16 (its
regular expressions); each flag is found out by asking the package about every character there is.

Needs Python 3.11 (whose own unicodedata is Unicode 14), tokenizers 0.23 and unicodedata2 16.0.0.
"""
import unicodedata as unicode14

import unicodedata2 as unicode16
from tokenizers import normalizers, pre_tokenizers

assert unicode14.unidata_version == "14.0.0" and unicode16.unidata_version == "16.0.0"

CATEGORIES = ["Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
              "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"]
RECENT, INERT, PUNCTUATION, NUMERIC, COMBINING, WORD = (1 << bit for bit in range(6))

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def recent():
    """Not in Unicode 14, the oldest that the regular expression library may know."""
    return {c for c in CHARACTERS if unicode14.category(c) == "Cn"}


def inert():
    """Has a part in normalisation today, but had none in Unicode 9, which the package applies."""
    nfd = normalizers.NFD().normalize_str
    nfkd = normalizers.NFKD().normalize_str
    found = set()
    for c in CHARACTERS:
        if unicode16.combining(c) and c != "\u0345" and nfd("a\u0345" + c) == "a\u0345" + c:
            found.add(c)
        if unicode16.normalize("NFKD", c) != c and nfkd(c) == c:
            found.add(c)
            # Letters that today join into this one did not; accents that take part did other work.
            found.update(part for part in unicode16.normalize("NFD", c) if not unicode16.combining(part))
    return found


def punctuation():
    left = pre_tokenizers.Punctuation("removed")
    return {c for c in CHARACTERS if not left.pre_tokenize_str(c)}


def numeric():
    digits = pre_tokenizers.Digits(individual_digits=True)
    return {c for c in CHARACTERS if len(digits.pre_tokenize_str("a" + c + "a")) == 3}


def combining():
    strip = normalizers.StripAccents().normalize_str
    return {c for c in CHARACTERS if strip(c) == ""}


def word():
    words = pre_tokenizers.Whitespace().pre_tokenize_str
    return {c for c in CHARACTERS if len(words("a" + c)) == 1 and words(c)}


def main():
    flags = dict.fromkeys(CHARACTERS, 0)
    for bit, members in [(RECENT, recent()), (INERT, inert()), (PUNCTUATION, punctuation()),
                         (NUMERIC, numeric()), (COMBINING, combining()), (WORD, word())]:
        for c in members:
            flags[c] |= bit
    ranges = []
    for code in range(0x110000):
        c = chr(code)
        category = CATEGORIES.index("Cs" if 0xD800 <= code < 0xE000 else unicode16.category(c))
        value = category | flags.get(c, 0) << 5
        if not ranges or ranges[-1][1] != value:
            ranges.append((code, value))
    print("// Written by tools/unicode_tables.py: first code point << 11 | flags << 5 | category.")
    words = [f"0x{code << 11 | value:08x}," for code, value in ranges]
    for at in range(0, len(words), 8):
        print(" ".join(words[at:at + 8]))


main()
