#!/usr/bin/env python3
"""Whether the ± of assay kld is what figures scatter by: docs/divergence.md says what came out.

usage: error_bars.py RESULT.json TABLE.tsv [--resamples 2000] [--parts 20]

RESULT and TABLE: --json and --per-token of one `assay kld` of one model on one text. Prints for each
figure its value and the stated ± over lots (windows or documents), and as multiples of that, with
the standard error of the multiple:
- windows, or documents: the standard deviation over resamples of the lots;
- runs of 4: the same of groups of four neighbours;
- dealt: that of disjoint parts of every 20th lot, over the root of their number;
- parts: that of disjoint parts of neighbouring lots, over that root.
"""
import argparse
import csv
import json
import math
import random
from statistics import stdev

QUANTILES = {"median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
SEED = 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result")
    parser.add_argument("table")
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--parts", type=int, default=20)
    return parser.parse_args()


class Lot:
    """The sums of a window, or of a document, and its divergences in rising order."""

    def __init__(self, rows):
        nll = [-float(r["logprob"]) for r in rows]
        base = [-float(r["base_logprob"]) for r in rows]
        self.kld = sorted(float(r["kld"]) for r in rows)
        dp = [math.exp(-a) - math.exp(-b) for a, b in zip(nll, base)]
        self.sums = [len(rows), sum(nll), sum(base), sum(self.kld), sum(dp), sum(d * d for d in dp),
                     sum(int(r["same_top"]) for r in rows)]


def quantiles(kld):
    kld.sort()
    found = {}
    for name, level in QUANTILES.items():
        at = level * (len(kld) - 1)
        i = int(at)
        found["KLD " + name] = kld[i] + (at - i) * (kld[min(i + 1, len(kld) - 1)] - kld[i])
    return found


def figures(lots):
    n, nll, base, kld, dp, squares, top = (sum(s) for s in zip(*(lot.sums for lot in lots)))
    ppl, ppl_base = math.exp(nll / n), math.exp(base / n)
    return {"PPL": ppl, "PPL difference": ppl - ppl_base, "ln PPL ratio": (nll - base) / n,
            "mean KLD": kld / n, "mean Δp": dp / n, "RMS Δp": math.sqrt(squares / n),
            "same top": top / n, **quantiles([x for lot in lots for x in lot.kld])}


def stated(candidate):
    c = candidate
    of = {"PPL": (c["ppl"], "value"), "PPL difference": (c["ppl"], "difference"),
          "ln PPL ratio": (c["ppl"], "ln_ratio"), "mean KLD": (c["kld"], "mean"),
          "mean Δp": (c["dp"], "mean"), "RMS Δp": (c["dp"], "rms"), "same top": (c, "same_top"),
          **{"KLD " + q: (c["kld"], q) for q in QUANTILES}}
    return {name: o[key + "_lot_error"] for name, (o, key) in of.items()}


def spreads(samples, scale=1.0):
    """The standard deviation of each figure over samples, times the scale."""
    return {name: scale * stdev(s[name] for s in samples) for name in samples[0]}


def resampled(groups, rng, n):
    draws = ([lot for g in rng.choices(groups, k=len(groups)) for lot in g] for _ in range(n))
    return spreads([figures(d) for d in draws])


def share_known(n):
    """The relative standard error of a standard deviation of n values."""
    return 1 / math.sqrt(2 * (n - 1))


def read(path, lot_of):
    lots = {}
    with open(path, newline="") as f:
        for r in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
            lots.setdefault(lot_of[int(r["window"])], []).append(r)
    return [Lot(lots[w]) for w in sorted(lots)]


def main():
    o = arguments()
    with open(o.result) as f:
        result = json.load(f)
    candidate, kind = result["candidates"][0], result["result"]["lots"]
    errors = stated(candidate)
    lots = read(o.table, {w["window"]: w["document" if kind == "documents" else "window"]
                          for w in candidate["windows"]})
    n, k, rng = len(lots), o.parts, random.Random(SEED)
    fours = [lots[i:i + 4] for i in range(0, n - n % 4, 4)]
    parts = [lots[i * n // k:(i + 1) * n // k] for i in range(k)]
    columns = {
        kind: (resampled([[lot] for lot in lots], rng, o.resamples), share_known(n)),
        "runs of 4": (resampled(fours, rng, o.resamples), share_known(len(fours))),
        "dealt": (spreads([figures(lots[i::k]) for i in range(k)], k ** -0.5), share_known(k)),
        "parts": (spreads([figures(p) for p in parts], k ** -0.5), share_known(k))}
    print(f"{n} {kind}, {o.resamples} resamples, {k} parts\n\n| figure | value | ± | "
          + " | ".join(f"{name} ± {100 * share:.0f} %" for name, (_, share) in columns.items())
          + " |\n| --- | ---: | ---: |" + " ---: |" * len(columns))
    for name, value in figures(lots).items():
        cells = [f"{spread[name] / errors[name]:.2f}" for spread, _ in columns.values()]
        print(f"| {name} | {value:.5g} | {errors[name]:.2g} | {' | '.join(cells)} |")


main()
