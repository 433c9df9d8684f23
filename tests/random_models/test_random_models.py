#!/usr/bin/env python3
"""Random valid models of every architecture, evaluated by the program and in double precision, by
the formulas of the models' authors and by llama.cpp's; then the same models written in other ways,
which must give the same table of scores to the last digit.

usage: test_random_models.py ASSAY SOURCE_DIR [COUNT [FIRST_SEED [ARCHITECTURE...]]]
       (default: of each architecture 1 model, from seed 1)
"""
import math
import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import authors  # noqa: E402
import families  # noqa: E402
import rewrite  # noqa: E402

# In nats. Float32 rounds to 6e-8; products of up to 256 terms, three layers and logits up to 30
# make some 1e-5 of it. A wrong formula is off by 1e-2 and more.
TOLERANCE = 2e-4


class Evaluation:
    """How a text is evaluated, and which positions of which windows are scored."""

    def __init__(self, generated, rng):
        self.n = rng.randint(6, 16)
        self.fixed = rng.random() < 0.5
        self.text, ids = generated.text(2 * self.n + rng.randint(1, 3))
        bos = [generated.bos] * generated.has_bos
        if not self.fixed:
            ids = bos + ids
        windows = [ids[i:i + self.n] for i in range(0, len(ids) - self.n + 1, self.n)]
        if self.fixed:
            self.windows = [bos + w for w in windows]
        else:
            self.windows = [(bos + w[1:]) if bos else w for w in windows]
        self.first = 0 if self.fixed else self.n // 2

    def run(self, assay, model, rng, compat=False):
        """The bytes of the table. Threads, batch and instruction set are as they come."""
        out = model.parent / "table"
        (model.parent / "text").write_text(self.text)
        words = [assay, "perplexity", "-q", "-m", model, "-f", model.parent / "text", "-c",
                 str(self.n), "--per-token", out, "--precision", "exact", "-t",
                 str(rng.randint(1, 2)), "-b", str(rng.randint(1, 64)), "--isa",
                 rng.choice(["scalar", "avx2", "auto"])]
        words += ["--protocol", "fixed"] if self.fixed else []
        words += ["--llama-compat"] if compat else []
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"exit code {done.returncode}: {done.stderr}{' '.join(map(str, words))}")
        return out.read_text()


def scores(logits, target):
    top = max(logits)
    e = [math.exp(x - top) for x in logits]
    total = sum(e)
    entropy = math.log(total) - sum(a * (x - top) for a, x in zip(e, logits)) / total
    return logits[target] - top - math.log(total), entropy


def compare(model, evaluation, table):
    """(largest difference, positions compared); raises ValueError where something is wrong."""
    lines = iter(table.splitlines()[1:])
    worst, compared = 0.0, 0
    for w, window in enumerate(evaluation.windows):
        expected = list(model.logits(window[:-1], evaluation.n))
        for p in range(evaluation.first, len(window) - 1):
            found = next(lines, "no line").split("\t")
            if found[:3] != [str(w), str(p), str(window[p + 1])]:
                raise ValueError(f"window {w}, position {p}, token {window[p + 1]}: found {found}")
            if p >= len(expected):
                continue
            logits, own = expected[p], expected[p][window[p + 1]]
            ranks = [1 + sum(x > own + by for x in logits) for by in (TOLERANCE, -TOLERANCE)]
            if not ranks[0] <= int(found[5]) <= ranks[1]:
                raise ValueError(f"window {w}, position {p}: rank {found[5]}, expected {ranks}")
            for name, a, b in zip(("logprob", "entropy"), (found[4], found[6]),
                                  scores(logits, window[p + 1])):
                worst = max(worst, abs(float(a) - b))
                if not abs(float(a) - b) <= TOLERANCE:
                    raise ValueError(f"window {w}, position {p}: {name} {a}, expected {b:.9g}")
            compared += 1
    if next(lines, None):
        raise ValueError("the table is too long")
    return worst, compared


def check(assay, arch, seed, folder):
    """(largest difference, positions compared) in both forms."""
    rng = random.Random(f"{arch} {seed}")
    generated = families.generate(rng, arch)
    evaluation = Evaluation(generated, rng)
    file = rewrite.write(folder, generated.pairs, generated.tensors)
    keys = {key: value for key, _, value, _ in generated.pairs}
    tensors = {t.name: t for t in generated.tensors}
    table, results = evaluation.run(assay, file, rng), []
    for compat in (False, True):
        model = authors.model(keys, tensors, compat)
        found = evaluation.run(assay, file, rng, True) if compat else table
        if compat and not model.differs:
            if found != table:
                raise ValueError("--llama-compat: another table")
            continue
        try:
            results.append(compare(model, evaluation, found))
        except ValueError as why:
            raise ValueError(f"{why}{' (--llama-compat)' * compat}") from None
    for way in rewrite.WAYS if arch == "llama" else rewrite.WAYS[:-1]:
        other = way(folder, generated.pairs, generated.tensors, rng)
        if evaluation.run(assay, other, rng) != table:
            raise ValueError(f"{way.__name__}: another table")
    return max(worst for worst, _ in results), sum(n for _, n in results)


def main():
    assay = sys.argv[1]
    count, first = (int(w) for w in (sys.argv[3:5] + ["1", "1"][len(sys.argv[3:5]):]))
    failed = models = 0
    for arch in sys.argv[5:] or families.FAMILIES:
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
