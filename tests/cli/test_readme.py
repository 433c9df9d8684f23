"""The commands of the README do what is said of them, on small models under its names.

usage: test_readme.py ASSAY SOURCE_DIR
"""
import os
import pathlib
import re
import shlex
import sys
import tempfile

from program import ASSAY, SOURCE, TEXT, run

README = (SOURCE / "README.md").read_text()
MODELS = SOURCE.resolve().parent / "shared" / "models"
TYPES = "F16", "Q6_K", "Q4_K_M", "IQ3_S"
SHORT = ["-c", "128", "--chunks", "4"]
# What a command of each kind prints, and which of them evaluate.
EXPECTED = {"kld": r"Q4_K_M +5\.\d", "report": "", "best": "^Take", "sweep": r"KLD per bit",
            "recipe": r"Recipe: ", "mix": r"mixed\.gguf: ", "check": r"agree|[Bb]eyond", "imatrix": ""}
EVALUATE = "kld", "best", "sweep", "imatrix"


def commands():
    """The words of each command that needs no server."""
    for block in re.findall(r"^```sh\n(assay .*?)^```$", README, re.M | re.S):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if "--url" not in words:
                yield words[1:]


def main():
    if any(not (MODELS / f"tiny.{kind}.gguf").exists() for kind in TYPES):
        print("the reference models are not there")
        sys.exit(77)
    done = set()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in TYPES:
            (folder / f"{kind}.gguf").symlink_to(MODELS / f"tiny.{kind}.gguf")
        (folder / "text.txt").write_text(TEXT.read_text())
        quantizer = folder / "llama-quantize"  # --pure BASE FILE TYPE
        quantizer.write_text('#!/bin/sh\ncp "$4.gguf" "$3"\n')
        quantizer.chmod(0o755)
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        record = ["perplexity", "-m", "Q4_K_M.gguf", "-f", "text.txt", *SHORT, "--precision", "exact",
                  "--kl-divergence-base", "recorded.kld"]
        assert run(*record, cwd=folder).returncode == 0
        for words in commands():
            given = [file for word in words for file in
                     ([f"{kind}.gguf" for kind in TYPES] if word == "*.gguf" else [word])]
            if words[0] in EVALUATE:
                given += SHORT
            ended = run(*given, cwd=folder)
            assert ended.returncode == 0, f"{words}: {ended.stderr}"
            found = ended.stdout + ended.stderr
            assert re.search(EXPECTED[words[0]], found), f"{words} printed {found}"
            for option in ("-o", "--json"):
                if option in words:
                    made = folder / words[words.index(option) + 1]
                    assert made.stat().st_size > 0, f"{words} wrote nothing to {made.name}"
            done.add(words[0])
    assert done == set(EXPECTED), f"README.md has no example of {set(EXPECTED) - done}"


main()
