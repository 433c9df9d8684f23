#!/usr/bin/env python3
"""Write model/tokenizer/declared/nfc_table.c: what Unicode's form NFC is made of.

usage: make-nfc.py > model/tokenizer/declared/nfc_table.c

The data are those of Python's module unicodedata; its version is written into the file.
"""
import unicodedata


def lines(items, width=100):
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > width:
            yield line
            line = "   "
        line += f" {item},"
    yield line


def table(kind, name, width, rows):
    assert all(len(row) == width for row in rows)
    print(f"const size_t model_nfc_n_{name} = {len(rows)};\nconst {kind} model_nfc_{name}[] = {{")
    print("\n".join(lines(",".join(map(str, row)) for row in rows)))
    print("};")


def main():
    every = [chr(c) for c in range(0x110000)]
    parts = {c: [int(x, 16) for x in unicodedata.decomposition(c).split()] for c in every
             if unicodedata.decomposition(c)[:1] not in ("", "<")}
    composed = [(*parts[c], ord(c)) for c in parts
                if len(parts[c]) == 2 and unicodedata.normalize("NFC", c) == c]
    runs = []
    for c in every:
        k = unicodedata.combining(c)
        if k and runs and runs[-1][1:] == [ord(c) - 1, k]:
            runs[-1][1] = ord(c)
        elif k:
            runs.append([ord(c), ord(c), k])
    print(f"/* Written by scripts/make-nfc.py: Unicode {unicodedata.unidata_version}. */")
    print('#include "model/tokenizer/declared/nfc.h"\n\n/* clang-format off */')
    pairs = [(ord(c), *p) for c, p in parts.items() if len(p) == 2]
    place = {c: i for i, (c, *_) in enumerate(pairs)}
    table("uint32_t", "singles", 2, [(ord(c), *p) for c, p in parts.items() if len(p) == 1])
    table("uint32_t", "pairs", 3, pairs)
    table("uint16_t", "composed", 1, [(place[c],) for *_, c in sorted(composed)])
    table("uint32_t", "classes", 3, runs)
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
