#!/usr/bin/env python3
"""What --precision high and fast do to a KL divergence: docs/precision.md says what came out.

usage: precision_kld.py ASSAY BASE -f TEXT [-f TEXT ...] [-c 256] [--chunks 32] MODEL [MODEL ...]

Compares every model with the base on the first windows of each text, with --precision exact, high
and fast, and prints Markdown, the smallest divergence first. Over all windows of all texts, in nats:
- exact: the mean divergence;
- high, fast: what is added to it with that precision, and that as a part of it;
- in a text: the largest such part in a single text;
- share: the largest share of `kld.rounding` (docs/json.md) that was added in a text;
- windows: the standard deviation of what `high` adds to the mean of a window;
- z: what `high` adds to all, in its standard errors by windows.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

PRECISIONS = ("high", "fast")
COMMON, ERRORS = ["part of it", "in a text", "share"], ["windows", "z"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assay", type=pathlib.Path)
    parser.add_argument("base", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("-f", dest="texts", action="append", required=True)
    parser.add_argument("-c", dest="n_ctx", default="256")
    parser.add_argument("--chunks", default="32")
    return parser.parse_args()


def compare(o, text, precision):
    """The candidates of the result, in the order of the models."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "r.json"
        subprocess.run([o.assay, "kld", "-q", *(w for m in o.models for w in ("-m", m)), "--base",
                        o.base, "-f", text, "-c", o.n_ctx, "--chunks", o.chunks, "--precision",
                        precision, "--json", result], check=True, stdout=subprocess.DEVNULL)
        return json.loads(result.read_text())["candidates"]


def mean(candidates):
    """Over the windows of all texts."""
    windows = [w for c in candidates for w in c["windows"]]
    return math.fsum(w["kld"] for w in windows) / sum(w["n_tokens"] for w in windows)


def part(added, of):
    return added / of if added else 0.0


def cells(exact, rounded):
    """Of one model, a candidate for each text: the columns of a precision."""
    truth = mean(exact)
    added = mean(rounded) - truth
    by_text = [(r["kld"]["mean"] - e["kld"]["mean"], e["kld"]["mean"], r["kld"]["rounding"])
               for e, r in zip(exact, rounded)]
    by_window = [(r["kld"] - e["kld"]) / e["n_tokens"] for x, y in zip(exact, rounded)
                 for e, r in zip(x["windows"], y["windows"])]
    spread = statistics.stdev(by_window)
    error = spread / math.sqrt(len(by_window))
    return [f"{added:+.1e}", f"{part(added, truth):+.1e}",
            f"{max(part(abs(d), e) for d, e, _ in by_text):.1e}",
            f"{max(part(abs(d), r) for d, _, r in by_text):.2f}", f"{spread:.1e}",
            f"{part(added, error):+.1f}"]


def main():
    o = arguments()
    runs = {p: [compare(o, text, p) for text in o.texts] for p in ("exact", *PRECISIONS)}
    of_model = lambda precision, i: [candidates[i] for candidates in runs[precision]]
    n = [sum(w["n_tokens"] for w in c[0]["windows"]) for c in runs["exact"]]
    print(f"{len(n)} texts, {sum(len(c[0]['windows']) for c in runs['exact'])} windows, "
          f"{sum(n)} tokens\n")
    n_cells = {"high": 1 + len(COMMON + ERRORS), "fast": 1 + len(COMMON)}
    heads = ["", "exact", "high", *COMMON, *ERRORS, "fast", *COMMON]
    print("| " + " | ".join(heads) + " |\n| --- |" + " ---: |" * (len(heads) - 1))
    for i in sorted(range(len(o.models)), key=lambda i: mean(of_model("exact", i))):
        exact = of_model("exact", i)
        row = [exact[0]["model"]["quantisation"], f"{mean(exact):.4g}"]
        for p in PRECISIONS:
            row += cells(exact, of_model(p, i))[:n_cells[p]]
        print("| " + " | ".join(row) + " |")


main()
