#!/usr/bin/env python3
"""assay draft of random models that have a block for the token after the next, against the same in
double precision: every architecture of which the program knows the block's form.

usage: test_drafts.py ASSAY SOURCE_DIR [COUNT [FIRST_SEED [ARCHITECTURE...]]]
"""
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
import drafts  # noqa: E402
from evaluate import TOLERANCE, Evaluation  # noqa: E402
import rewrite  # noqa: E402

UNKNOWN = "exaone4", "glm4"


def shares(row):
    top = max(row)
    e = [math.exp(v - top) for v in row]
    return [v / sum(e) for v in e]


def nearly_tied(row):
    first, second = sorted(row, reverse=True)[:2]
    return first - second < 1e-3


def expected(model, evaluation):
    """Sums over the scored positions; None where float32 may choose other experts or guesses."""
    sums = dict.fromkeys(("hits", "agrees", "guess_probability", "accepted", "p", "q"), 0.0)
    n = 0
    for window in evaluation.windows:
        main, block, sure = drafts.predictions(model, window[:-1])
        if sure < len(window) - 1:
            return None
        for at in range(evaluation.first, len(window) - 1):
            if nearly_tied(main[at]) or nearly_tied(block[at - 1]):
                return None
            p, q = shares(main[at]), shares(block[at - 1])
            guess, target = q.index(max(q)), window[at + 1]
            found = (guess == target, guess == p.index(max(p)), p[guess], sum(map(min, p, q)),
                     -math.log(p[target]), -math.log(q[target]))
            sums = {key: value + by for (key, value), by in zip(sums.items(), found)}
            n += 1
    return {key: value / n for key, value in sums.items()}, n


def draft(assay, file, text, n, more=()):
    out = file.parent / "draft.json"
    words = [assay, "draft", "-q", "-m", file, "-f", text, "-c", str(n), "--json", out,
             "--precision", "exact", *more]
    done = subprocess.run(words, capture_output=True, text=True)
    return done, json.loads(out.read_text())["result"] if done.returncode == 0 else None


def check(assay, arch, seed, folder):
    """The largest difference, or None where nothing can be said of this seed."""
    rng = random.Random(f"draft {arch} {seed}")
    generated = drafts.generate(rng, arch, 1 + seed % 2)
    if not generated.n_next:
        return None
    drafts.with_options(generated, rng)
    evaluation = Evaluation(generated, rng)
    while evaluation.fixed:
        evaluation = Evaluation(generated, rng)
    file, text = rewrite.write(folder, generated.pairs, generated.tensors), folder / "text"
    text.write_text(evaluation.text)
    compat = seed % 3 == 2
    more = ["--llama-compat"] if compat else []
    done, result = draft(assay, file, text, evaluation.n, more)
    if arch in UNKNOWN:
        if done.returncode != 2 or "further tokens" not in done.stderr:
            raise ValueError(f"exit code {done.returncode}: {done.stderr}")
        return 0.0
    printed = re.search(r"^Accepted by speculative sampling: +([\d.e+-]+)", done.stdout, re.MULTILINE)
    if result and not abs(float(printed[1]) - 100 * result["accepted"]) <= 0.1 + result["accepted_error"] * 5:
        raise ValueError(f"{result}: printed {done.stdout}")
    if not result:
        raise ValueError(f"exit code {done.returncode}: {done.stderr}")
    model = architectures.model({key: value for key, _, value, _ in generated.pairs},
                                {t.name: t for t in generated.tensors}, compat)
    drafts.read_block(model)
    right = expected(model, evaluation)
    if not right:
        return None
    means, n = right
    means["p"], means["q"] = math.log(result["ppl"]) - means["p"], math.log(result["draft_ppl"]) - means["q"]
    worst = max([abs(means.pop("p")), abs(means.pop("q"))]
                + [abs(result[key] - value) for key, value in means.items()]
                + [abs(result["tokens_per_pass_greedy"] - 1 - means["agrees"]),
                   abs(result["tokens_per_pass_sampled"] - 1 - means["accepted"])])
    if draft(assay, file, text, evaluation.n, [*more, "-t", "3", "--isa", "scalar"])[1] != result:
        raise ValueError("another result with other threads and another instruction set")
    rest = [t for t in generated.tensors if not t.name.endswith("eh_proj.weight")]
    done = draft(assay, rewrite.write(folder, generated.pairs, rest), text, evaluation.n)[0]
    if done.returncode != 2 or "was left out of this file" not in done.stderr:
        raise ValueError(f"without the block: exit code {done.returncode}: {done.stderr}")
    if n != result["n_positions"] or not worst <= TOLERANCE:
        raise ValueError(f"off by {worst:.3g}, {n} positions: {result}, expected {means}")
    return worst


def main():
    assay = sys.argv[1]
    count, first = (int(w) for w in (sys.argv[3:5] + ["1", "1"][len(sys.argv[3:5]):]))
    failed = 0
    for arch in sys.argv[5:] or drafts.KNOWN + UNKNOWN:
        worst, done, seed = 0.0, 0, first - 1
        while done < count and seed < first + 20 * count:
            seed += 1
            with tempfile.TemporaryDirectory() as folder:
                try:
                    difference = check(assay, arch, seed, pathlib.Path(folder))
                except ValueError as why:
                    print(f"{arch}, seed {seed}: {why}", flush=True)
                    failed, done = failed + 1, done + 1
                    continue
            if difference is not None:
                worst, done = max(worst, difference), done + 1
        failed += done < count
        print(f"{arch}: {done} models within {worst:.2g} of double precision", flush=True)
    return failed > 0


sys.exit(main())
