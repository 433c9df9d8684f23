#!/usr/bin/env python3
"""Random models of every architecture, each of whose keys is taken away in turn. The program must
refuse the file, or give the same scores, or the key is listed in docs/missing.md; where that
promises a note, there is one.

usage: test_missing_keys.py ASSAY SOURCE_DIR [SEED [ARCHITECTURE...]]
       (of each architecture the model with the most keys among those of 12 seeds from SEED, 1)
"""
import pathlib
import random
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
from evaluate import Evaluation  # noqa: E402
import rewrite  # noqa: E402

N_SEEDS = 12


def listed():
    """{(key, architecture): whether a note is promised} of the section "Keys"."""
    text = (SOURCE / "docs" / "missing.md").read_text().split("\n## Keys\n")[1].split("\n## ")[0]
    rows = {}
    for row in re.findall(r"^\| (`.*)\|$", text, re.MULTILINE):
        keys, of, note, _ = (cell.strip() for cell in row.split("|"))
        named = set(re.findall(r"`([^`]+)`", of))
        if not named <= set(architectures.FAMILIES):
            raise ValueError(f"no such architecture: {row}")
        if of.startswith("all"):
            named = set(architectures.FAMILIES) - named
        rows |= {(key, arch): note == "yes" for key in re.findall(r"`([^`]+)`", keys) for arch in named}
    return rows


def richest(arch, seed):
    models = (architectures.generate(random.Random(f"lacking {arch} {seed + i}"), arch) for i in range(N_SEEDS))
    return max(models, key=lambda model: len(model.pairs))


def run(assay, evaluation, file):
    out, text = file.parent / "table", file.parent / "text"
    text.write_text(evaluation.text)
    done = subprocess.run([assay, "perplexity", "-m", file, "-f", text, "-c", str(evaluation.n), "--protocol",
                           "fixed", "--per-token", out, "--precision", "exact", "-t", "1"],
                          capture_output=True, text=True, timeout=300)
    return done, out.read_text() if done.returncode == 0 else ""


def wrong(done, same, name, row):
    """What is wrong with how a file without a key is taken; row: whether the document, which lists
    it if not None, promises a note."""
    if done.returncode:
        if not re.search("key '|tensor '", done.stderr) or done.returncode not in (1, 2):
            return f"exit code {done.returncode}: {done.stderr}"
        return None
    if same:
        return None
    if row is None:
        return "other scores, and docs/missing.md does not list it"
    return None if not row or f"key {name} is missing: " in done.stderr else "other scores without a note"


def check(assay, arch, seed, rows, folder):
    """(keys, refused, with the same scores, what was wrong)"""
    model = richest(arch, seed)
    evaluation = Evaluation(model, random.Random(seed), 1)
    done, table = run(assay, evaluation, rewrite.write(folder, model.pairs, model.tensors))
    if done.returncode:
        return 1, 0, 0, [f"{arch}: {done.stderr}"]
    n, refused, alike, found = 0, 0, 0, []
    for i, (name, *_) in enumerate(model.pairs):
        if not name.startswith((arch + ".", "xielu.")):
            continue
        file = rewrite.write(folder, model.pairs[:i] + model.pairs[i + 1:], model.tensors)
        done, other = run(assay, evaluation, file)
        n, refused, alike = n + 1, refused + (done.returncode != 0), alike + (other == table)
        problem = wrong(done, other == table, name, rows.get((name.removeprefix(arch + "."), arch)))
        found += [f"without {name}: {problem}"] if problem else []
    return n, refused, alike, found


def main():
    seed, rows, sums, bad = int((sys.argv[3:] + ["1"])[0]), listed(), [0, 0, 0], []
    for arch in sys.argv[4:] or architectures.FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            *counts, found = check(sys.argv[1], arch, seed, rows, pathlib.Path(folder))
        sums = [a + b for a, b in zip(sums, counts)]
        bad += found
    print(*bad, "{} keys taken away: {} files refused, {} with the same scores".format(*sums), sep="\n")
    return bool(bad) or sums[0] == 0


sys.exit(main())
