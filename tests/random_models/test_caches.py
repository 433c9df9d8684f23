#!/usr/bin/env python3
"""Types of a cache that not every model can have: vLLM's fp8_ds_mla, of compressed rows whose
length is a multiple of 128, against double precision.

usage: test_caches.py ASSAY SOURCE_DIR [COUNT [FIRST_SEED]]
"""
import pathlib
import random
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
from evaluate import TOLERANCE, Evaluation, compare, compare_rounded  # noqa: E402
from forward import ds_mla  # noqa: E402
import rewrite  # noqa: E402

LATENT = "deepseek2", "mistral4", "glm-dsa", "kimi-linear"


def check_ds_mla(assay, arch, seed, folder):
    """The largest difference and how many positions were compared."""
    rng = random.Random(f"ds_mla {arch} {seed}")
    wide = {"arch": arch, "old_share": 0.0, "ranks": (128, 256)}
    generated = type(arch, (architectures.FAMILIES[arch],), wide)(rng)
    evaluation = Evaluation(generated, rng, 1)
    file = rewrite.write(folder, generated.pairs, generated.tensors)
    keys = {key: value for key, _, value, _ in generated.pairs}
    model = architectures.model(keys, {t.name: t for t in generated.tensors})
    plain = evaluation.run(assay, file, rng)
    table = evaluation.run(assay, file, rng, more=["-ctk", "fp8_ds_mla"])
    if table == plain:
        raise ValueError("fp8_ds_mla rounds nothing")
    compare(model, evaluation, plain, TOLERANCE)
    model.rounded = lambda part: ds_mla(part, generated.rank)
    return compare_rounded(model, evaluation, table)


def main():
    count, first = (int(w) for w in (sys.argv[3:5] + ["2", "3"][len(sys.argv[3:5]):]))
    failed = 0
    for arch in LATENT:
        worst, compared = 0.0, 0
        for seed in range(first, first + count):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    difference, n = check_ds_mla(sys.argv[1], arch, seed, pathlib.Path(folder))
                except ValueError as why:
                    print(f"{arch}, seed {seed}: {why}")
                    failed += 1
                    continue
            worst, compared = max(worst, difference), compared + n
        print(f"{arch}, fp8_ds_mla: {compared} positions within {worst:.2g} of double precision")
        failed += compared == 0
    return failed > 0


sys.exit(main())
