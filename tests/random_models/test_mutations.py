#!/usr/bin/env python3
"""Random models of every architecture of which one thing is changed. The program must say what is
wrong with the file, or give the scores that double precision has of the changed model: so each key
and tensor matters, or is refused by its name, and no value makes it crash, hang or print a NaN.

usage: test_mutations.py ASSAY SOURCE_DIR [SHARE [FIRST_SEED [ARCHITECTURE...]]]
       (default: one mutation in 70 of the model of seed 1; 1: all of them)
"""
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
from evaluate import TOLERANCE, Evaluation, compare  # noqa: E402
import mutate  # noqa: E402
import rewrite  # noqa: E402

# What a mutated model may do to the evaluation in double precision, which checks nothing.
CANNOT = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def refusal(done, file):
    """What is wrong with how the program ends, if anything is; it names the file and the place."""
    if done.returncode not in (1, 2):
        return f"exit code {done.returncode}: {done.stderr[-600:]}"
    lines = [line for line in done.stderr.splitlines() if line.startswith("assay: ")]
    if not any(re.search("key '|tensor '|not finite|architecture|width", line) for line in lines):
        return f"nothing named: {done.stderr}"
    if not any(str(file) in line or "not finite" in line for line in lines):
        return f"no file named: {done.stderr}"
    return None


def expect(evaluation, model, table, tolerance):
    """What is wrong with the table of a mutated model."""
    if re.search(r"nan|inf", table):
        return f"not finite: {table}"
    try:
        compare(model, evaluation, table, tolerance)
    except CANNOT as why:
        return repr(why)
    return None


def run(assay, evaluation, file, rng):
    try:
        return evaluation.start(assay, file, rng, timeout=300)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([], -1, "", "hangs")


def check(assay, arch, seed, share, folder):
    """(mutations, refused, what was wrong)"""
    rng = random.Random(f"mutated {arch} {seed}")
    generated = architectures.generate(rng, arch)
    evaluation = Evaluation(generated, rng, 1)
    n, refused, wrong = 0, 0, []
    for what, pairs, tensors in mutate.all_of(generated.pairs, generated.tensors, arch):
        if rng.random() >= share:
            continue
        n += 1
        file = rewrite.write(folder, pairs, tensors)
        done = run(assay, evaluation, file, rng)
        if done.returncode:
            refused += 1
            problem = refusal(done, file)
        else:
            try:
                model = architectures.model({p[0]: p[2] for p in pairs}, {t.name: t for t in tensors})
                # Numbers at the end of float32's range: it may lose all there, but not be infinite.
                tolerance = math.inf if re.search(r"1e[+-]38|1e-45", what) else TOLERANCE
                problem = expect(evaluation, model, (folder / "table").read_text(), tolerance)
            except CANNOT as why:
                problem = f"evaluated, but {why!r}"
        if problem:
            wrong.append(f"{arch}, seed {seed}, {what}: {problem}")
    return n, refused, wrong


def main():
    share, first = float((sys.argv[3:] + ["0.014"])[0]), int((sys.argv[4:] + ["1"])[0])
    total = failed = 0
    for arch in sys.argv[5:] or architectures.FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            n, refused, wrong = check(sys.argv[1], arch, first, share, pathlib.Path(folder))
        print(*wrong, f"{arch}: {n} mutations, {refused} refused", sep="\n", flush=True)
        total, failed = total + n, failed + len(wrong)
    print(f"{total - failed} of {total} mutations are right")
    return failed > 0 or total == 0


sys.exit(main())
