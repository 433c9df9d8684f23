#!/usr/bin/env python3
"""Random valid models of every architecture, evaluated by the program and in double precision, by
the formulas of the models' authors and by llama.cpp's; then the same models written in other ways,
which must give the same table of scores to the last digit.

usage: test_random_models.py ASSAY SOURCE_DIR [COUNT [FIRST_SEED [ARCHITECTURE...]]]
       (default: of each architecture 1 model, from seed 1)
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
from evaluate import TOLERANCE, Evaluation, compare, compare_rounded  # noqa: E402
from formats import f32  # noqa: E402
from forward import bf16, e4m3, e5m2, mxfp8  # noqa: E402
import rewrite  # noqa: E402

def shared_prefixes(assay, generated, folder, rng):
    """Endings of one context, evaluated once, score as each with a context of its own."""
    file, requests = rewrite.write(folder, generated.pairs, generated.tensors), folder / "requests"
    context = generated.text(rng.randint(4, 12))[0]
    lines = [json.dumps({"context": context, "continuation": generated.text(rng.randint(1, 6))[0]})
             for _ in range(3)]

    def score(chosen):
        requests.write_text("".join(line + "\n" for line in chosen))
        words = [assay, "score", "-q", "-m", file, requests, "--precision", "exact", "-b",
                 str(rng.randint(1, 64)), "-t", str(rng.randint(1, 2)), "--isa",
                 rng.choice(["scalar", "avx2", "auto"])]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout
    together = score(lines)
    if together != "".join(score([line]) for line in lines):
        raise ValueError("score: endings of a shared context score otherwise than alone")


def each(rounded):
    """The same for heads: each number by itself."""
    return lambda head: [rounded(x) for x in head]


def mixture(model, window, rng):
    """Options of a cache with several types, and what these round (layer, kind) to."""
    model.asked = {}
    list(model.logits(window))
    asked, model.asked = model.asked, None
    scale = f32(rng.choice([0.02, 0.25, 3]))
    floats = {"BF16": bf16, "fp8_e5m2": e5m2, f"fp8_e4m3@{scale:.9g}": lambda x: e4m3(x, scale)}
    rounds, options = {}, []
    for option, what in (("-ctk", "k"), ("-ctv", "v")):
        types = {"f32": None, **{name: each(one) for name, one in floats.items()}}
        kinds = ("k", "indexer") if what == "k" else ("v",)
        if all(whole for (_, kind), whole in asked.items() if kind in kinds):
            types["mxfp8"] = mxfp8
        layers = sorted(i for i, kind in asked if kind == what)
        if not layers:
            continue
        first = rng.choice([*types])
        held, words = dict.fromkeys(layers, first), [first]
        few = {"windows": [i for i in layers if model.first_seen(i, 1 << 20) > 0]}
        few["full"] = [i for i in layers if i not in few["windows"]]
        for _ in range(rng.randint(1, 3)):
            at = sorted(rng.choices(layers, k=2))
            where, there = rng.choice([
                ("layer %d" % at[0], at[:1]), ("layers %d-" % at[0], [i for i in layers if i >= at[0]]),
                ("LAYERS %d-%d" % tuple(at), [i for i in layers if at[0] <= i <= at[1]]),
                *((name, those) for name, those in few.items() if those)])
            to = rng.choice([*types])
            held.update(dict.fromkeys(there, to))
            words.append(f"{where}:{to}")
        indexed = [i for i, kind in asked if kind == "indexer"] if what == "k" else []
        if indexed and rng.choice([True, False]):  # else not, or those of runs as their layer's keys
            words.append("indexer:fp8_e5m2")
            rounds.update({(i, "indexer"): each(e5m2) for i in indexed})
        rounds.update({(i, what): types[held[i]] for i in layers})
        options += [option, ",".join(words)]
    return options, rounds


def caches(assay, file, evaluation, rng, model):
    """With all keys and values rounded, and with those of some layers."""
    model.rounded = each(bf16)
    several = mixture(model, evaluation.windows[0], rng)
    for options, model.rounds in ((["-ctk", "bf16", "-ctv", "bf16"], None), several):
        if not options:  # all layers have states
            continue
        found = evaluation.run(assay, file, rng, more=options)
        try:
            compare_rounded(model, evaluation, found)
        except ValueError as why:
            raise ValueError(f"{why} {options}") from None


def check(assay, arch, seed, folder):
    """(largest difference, positions compared) in both forms."""
    rng = random.Random(f"{arch} {seed}")
    generated = architectures.generate(rng, arch)
    evaluation = Evaluation(generated, rng)
    file = rewrite.write(folder, generated.pairs, generated.tensors)
    keys = {key: value for key, _, value, _ in generated.pairs}
    tensors = {t.name: t for t in generated.tensors}
    table, results = evaluation.run(assay, file, rng), []
    for compat in (False, True):
        model = architectures.model(keys, tensors, compat)
        found = evaluation.run(assay, file, rng, True) if compat else table
        if compat and not model.differs:
            if found != table:
                raise ValueError("--llama-compat: another table")
            continue
        try:
            results.append(compare(model, evaluation, found))
        except ValueError as why:
            raise ValueError(f"{why}{' (--llama-compat)' * compat}") from None
    caches(assay, file, evaluation, rng, architectures.model(keys, tensors))
    for way in rewrite.WAYS if arch == "llama" else rewrite.WAYS[:-1]:
        other = way(folder, generated.pairs, generated.tensors, rng)
        if evaluation.run(assay, other, rng) != table:
            raise ValueError(f"{way.__name__}: another table")
    shared_prefixes(assay, generated, folder, rng)
    return max(worst for worst, _ in results), sum(n for _, n in results)


def main():
    assay = sys.argv[1]
    count, first = (int(w) for w in (sys.argv[3:5] + ["1", "1"][len(sys.argv[3:5]):]))
    failed = models = 0
    for arch in sys.argv[5:] or architectures.FAMILIES:
        compared, worst = 0, (0.0, 0)
        for seed in range(first, first + count):
            models += 1
            with tempfile.TemporaryDirectory() as folder:
                try:
                    difference, n = check(assay, arch, seed, pathlib.Path(folder))
                except ValueError as why:
                    print(f"{arch}, seed {seed}: {why}", flush=True)
                    failed += 1
                    continue
            worst, compared = max(worst, (difference, seed)), compared + n
        print(f"{arch}: {compared} positions within {worst[0]:.2g} of double precision (seed {worst[1]})",
              flush=True)
    print(f"{models - failed} of {models} models; tolerance {TOLERANCE}")
    return failed > 0


sys.exit(main())
