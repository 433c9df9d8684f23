#!/usr/bin/env python3
"""Random models of every architecture, swept: what a choice gives is, to the last digit, what
assay kld gives of a file in which these tensors were replaced.

usage: test_sweeps.py ASSAY SOURCE_DIR [SEED [ARCHITECTURE...]]
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
from evaluate import Evaluation  # noqa: E402
import architectures  # noqa: E402
import rewrite  # noqa: E402

N_CHECKED = 4  # choices of a sweep that are compared with a file


def run(assay, evaluation, folder, rng, command, *words):
    out, text = folder / "out.json", folder / "text"
    text.write_text(evaluation.text)
    done = subprocess.run([assay, command, "-q", *map(str, words), "-f", text, "-c", str(evaluation.n),
                           "--precision", "exact", "-t", str(rng.randint(1, 2)), "--json", out, "--force",
                           "-b", str(rng.randint(1, 40)), "--isa", rng.choice(["avx2", "auto"]),
                           "--device", rng.choice(["cpu", "cpu,cpu"])],
                          capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"{' '.join(map(str, done.args))}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(out.read_text())


def figures_of_kld(document):
    c = document["candidates"][0]
    return {"kld": {"mean": c["kld"]["mean"], "se": c["kld"]["mean_error"],
                    "lot_se": c["kld"]["mean_lot_error"]},
            "delta_nll": {"mean": c["ppl"]["ln_ratio"], "se": c["ppl"]["ln_ratio_error"],
                          "lot_se": c["ppl"]["ln_ratio_lot_error"]},
            "same_top": c["same_top"], "rms_dp": c["dp"]["rms"]}


def check(assay, arch, seed, folder):
    rng = random.Random(f"{arch} {seed} sweep")
    generated = architectures.generate(rng, arch)
    evaluation = Evaluation(generated, rng, n_windows=5)
    evaluation.n -= evaluation.n % 2
    pairs, own = generated.pairs, {t.name: t for t in generated.tensors}
    others = [{t.name: t for t in rewrite.remade(generated.tensors, rng)} for _ in range(2)]
    around = rng.choice([own, others[0]])
    base = rewrite.write(folder, pairs, own.values(), name="base.gguf")
    words = ["--base", base, "--by", rng.choice(["tensor", "tensor", "layer", "role"])]
    for i, other in enumerate(others):
        words += ["--from", rewrite.write(folder, pairs, other.values(), name=f"from{i}.gguf")]
    if around is not own:
        words += ["--around", folder / "from0.gguf"]
    document = run(assay, evaluation, folder, rng, "sweep", *words)
    choices = [(g, c) for g in document["groups"] for c in g["choices"]]
    for group, choice in rng.sample(choices, min(N_CHECKED, len(choices))):
        mixed = dict(around)
        mixed |= {name: others[choice["candidate"]][name] for name in group["tensors"]}
        file = rewrite.write(folder, pairs, mixed.values(), name="mixed.gguf")
        wanted = figures_of_kld(run(assay, evaluation, folder, rng, "kld", "--base", base, "-m", file))
        found = {key: choice[key] for key in wanted}
        if found != wanted:
            raise ValueError(f"{group['name']} of from{choice['candidate']}: {found}, a file with it: {wanted}")
    whole = figures_of_kld(run(assay, evaluation, folder, rng, "kld", "--base", base, "-m",
                               base if around is own else folder / "from0.gguf"))
    if {key: document["reference"][key] for key in whole} != whole:
        raise ValueError(f"the reference: {document['reference']}, alone: {whole}")
    return len(choices)


def main():
    seed, failed, total = int((sys.argv[3:4] or ["1"])[0]), 0, 0
    for arch in sys.argv[4:] or architectures.of_own_parts():
        with tempfile.TemporaryDirectory() as folder:
            try:
                total += check(sys.argv[1], arch, seed, pathlib.Path(folder))
            except ValueError as why:
                print(f"{arch}, seed {seed}: {why}", flush=True)
                failed += 1
    print(f"{total} choices, {failed} architectures failed")
    return failed > 0 or total == 0


sys.exit(main())
