#!/usr/bin/env python3
"""assay tokenize on whole texts, against ids that llama.cpp made. Needs the reference material.

usage: test_reference_tokens.py ASSAY SOURCE_DIR
"""
import hashlib
import json
import pathlib
import struct
import subprocess
import sys

SKIPPED = 77


def main():
    assay, reference = sys.argv[1], pathlib.Path(sys.argv[2]).parent / "shared"
    table = reference / "reference" / "tokenizers" / "whole-texts.tsv"
    if not table.exists():
        print(f"{table} is not there: skipped")
        return SKIPPED
    failed = 0
    for line in table.read_text().splitlines()[1:]:
        vocabulary, text, count, digest, first = line.split("\t")
        model = table.parent / f"ggml-vocab-{vocabulary}.gguf"
        result = subprocess.run([assay, "tokenize", "-m", model, "-f", reference / "text" / text,
                                 "--ids"], capture_output=True, check=True)
        ids = json.loads(result.stdout)
        found = hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()
        same = len(ids) == int(count) and found == digest and ids[:8] == json.loads(first)
        print(f"{vocabulary}: {len(ids)} ids, expected {count}, "
              f"SHA-256 {'as' if found == digest else 'not as'} expected")
        failed += not same
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
