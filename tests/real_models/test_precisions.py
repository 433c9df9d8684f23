#!/usr/bin/env python3
"""The errors of the three precisions on two published models are no larger than docs/precision.md says.

usage: test_precisions.py ASSAY SOURCE_DIR

float64/MODEL.tsv, which bench/real_precisions.py made, has two windows of 512 tokens and the
log-probabilities that transformers' code gives the second half of each in float64. They are compared
with the program's. Divergences are those from its own exact hidden states (that of `exact` is then
0). Their product with the head is rounded as the candidate's is, which at most doubles what `high`
and `fast` are off by.

The models are those of scripts/get-models.sh, in the folder that ASSAY_MODELS names or in `models`
beside the checkout; without them this ends with 77.
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from statistics import fmean as mean

ASSAY, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
FOLDER = pathlib.Path(os.environ.get("ASSAY_MODELS") or SOURCE.parent / "models")
PAGE = SOURCE / "docs" / "precision.md"


def limits():
    """{(model, precision): the most for each figure of its row for windows of 512}"""
    found = {}
    for line in PAGE.read_text().splitlines():
        cells = [c.strip(" `") for c in line.strip("|").split("|")]
        if len(cells) == 8 and cells[2] == "512":
            found[cells[0], cells[1]] = [float(c) * (1 if i < 3 else 2) for i, c in enumerate(cells[3:])]
    return found


def windows(path):
    """{text: [(id, log-probability or None)]}"""
    found = {}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            text, token, value = line.split("\t")
            found.setdefault(text, []).append((int(token), float(value) if value else None))
    return found


def run(*words):
    done = subprocess.run([str(w) for w in (ASSAY, *words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{words}: exit code {done.returncode}\n{done.stderr}")


def table(path):
    """{text: the rows of its scored tokens}"""
    found = {}
    with path.open(newline="") as f:
        for row in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
            found.setdefault(int(row["window"]), []).append(row)
    return [found[w] for w in sorted(found)]


def errors(rows, truth):
    """The figures of a text, as the page has them."""
    assert len(rows) == len(truth)
    differences = [float(r["logprob"]) - t for r, t in zip(rows, truth)]
    sizes, divergences = [abs(d) for d in differences], [float(r["kld"]) for r in rows]
    return [max(sizes), mean(sizes), abs(mean(differences)), max(divergences), mean(divergences)]


def measure(model, texts, folder):
    """{precision: the largest figures of any text}"""
    lines, base, out = folder / "ids.jsonl", folder / "base.assay", folder / "t.tsv"
    lines.write_text("".join(json.dumps({"ids": [i for i, _ in window],
                                         "mask": [int(v is not None) for _, v in window]}) + "\n"
                             for window in texts.values()))
    truth = [[v for _, v in window if v is not None] for window in texts.values()]
    run("record", "-q", "-m", model, "-f", lines, "-c", "512", "--precision", "exact",
        "--head-by-path", "-o", base)
    found = {}
    for precision in ("exact", "high", "fast"):
        run("kld", "-q", "-m", model, "--base", base, "--precision", precision, "--per-token", out)
        found[precision] = [max(f) for f in zip(*map(errors, table(out), truth))]
    return found


def main():
    vectors = sorted((SOURCE / "tests" / "real_models" / "float64").glob("*.tsv"))
    absent = [v.stem for v in vectors if not (FOLDER / f"{v.stem}.gguf").exists()]
    if absent:
        print(f"{FOLDER} has no {absent[0]}.gguf: scripts/get-models.sh fetches it")
        return 77
    known, failed = limits(), False
    print("model\tprecision\tln p, largest\tmean\tof the mean\tnats, largest\tmean")
    for path in vectors:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(FOLDER / f"{path.stem}.gguf", windows(path), pathlib.Path(folder))
        for precision, figures in found.items():
            most = known[path.stem, precision]
            beyond = any(f > m for f, m in zip(figures, most))
            failed |= beyond
            print("\t".join([path.stem, precision, *(f"{f:.3g}" for f in figures)])
                  + (f"\tabove {PAGE.name}: {most}" if beyond else ""), flush=True)
    return failed


sys.exit(main())
