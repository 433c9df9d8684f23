#!/usr/bin/env python3
"""Types of a cache that depend on the model or the text, against double precision: vLLM's
fp8_ds_mla, of compressed rows whose length is a multiple of 128, and fp8_e4m3@calibrated, whose
scales are those of the first window.

usage: test_caches.py ASSAY SOURCE_DIR [COUNT [FIRST_SEED [ARCHITECTURE...]]]
"""
import json
import math
import pathlib
import random
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
from evaluate import TOLERANCE, Evaluation, compare, compare_rounded  # noqa: E402
import forward  # noqa: E402
import rewrite  # noqa: E402

LATENT = "deepseek2", "mistral4", "glm-dsa", "kimi-linear", "hy_v4"
# Norms of heads or of all of them, windows, keys of other layers, layers with a state, values with
# a scale, sinks, compressed rows.
VARIOUS = ("llama", "gemma3", "gemma3n", "olmo2", "qwen3next", "falcon-h1", "mimo2", "gpt-oss", "phi3", "llama4",
           "deepseek2", "glm-dsa")
RANGES = {"k": 200, "v": 100}
MORE = 4  # models at most that are made where all numbers of those that were asked for are near ties
CALIBRATED = ["-ctk", "fp8_e4m3@calibrated", "-ctv", "fp8_e4m3@calibrated"]


def made(arch, rng, **more):
    """A random model, and its formulas."""
    generated = type(arch, (architectures.FAMILIES[arch],), {"arch": arch, **more})(rng)
    keys = {key: value for key, _, value, _ in generated.pairs}
    return generated, architectures.model(keys, {t.name: t for t in generated.tensors})


def check_ds_mla(assay, arch, seed, folder):
    """How many positions were compared."""
    rng = random.Random(f"ds_mla {arch} {seed}")
    generated, model = made(arch, rng, old_share=0.0, ranks=(128, 256))
    evaluation = Evaluation(generated, rng, 1)
    file = rewrite.write(folder, generated.pairs, generated.tensors)
    plain = evaluation.run(assay, file, rng)
    table = evaluation.run(assay, file, rng, more=["-ctk", "fp8_ds_mla"])
    if table == plain:
        raise ValueError("fp8_ds_mla rounds nothing")
    compare(model, evaluation, plain, TOLERANCE)
    model.rounded = lambda part: forward.ds_mla(part, generated.rank)
    return compare_rounded(model, evaluation, table)[1]


class Calibrated:
    """In place of Model.held: the scales of the program, each of which must be what the first window
    gives. The largest number lies half-way between two codes (200 between 192 and 208, 100 between
    96 and 104), so that float32 may round it to the other one; the layers after that are off."""
    FIRST, LATER = 1e-5, 0.25

    def __init__(self, scales):
        self.scales, self.seen, self.plain = scales, set(), forward.Model.held

    def held(self, model, i, what, x):
        if what == "indexer":
            return x
        scale = self.scales[what][i]
        if (i, what) not in self.seen:
            first = not any(j < i for j, _ in self.seen)
            self.seen.add((i, what))
            compressed = len({len(head) for head in x[0]}) > 1  # what is turned does not count
            largest = max(abs(z) for row in x for head in (row[:1] if compressed else row) for z in head)
            if not math.isclose(scale, largest / RANGES[what], rel_tol=self.FIRST if first else self.LATER):
                raise ValueError(f"layer {i}, {what}: scale {scale}, expected {largest / RANGES[what]}")
        model.rounds = {(i, what): lambda head: [forward.e4m3(z, scale) for z in head]}
        return self.plain(model, i, what, x)


def written_out(option, scales):
    """The same scales as numbers."""
    return [option, ",".join(["f32"] + [f"layer {i}:fp8_e4m3@{x:.9g}" for i, x in enumerate(scales) if x])]


def check_calibrated(assay, arch, seed, folder):
    """How many scales were compared."""
    rng = random.Random(f"calibrated {arch} {seed}")
    generated, model = made(arch, rng)
    evaluation = Evaluation(generated, rng)
    file, result = rewrite.write(folder, generated.pairs, generated.tensors), folder / "result"
    table = evaluation.run(assay, file, rng, more=[*CALIBRATED, "--json", result])
    types = json.loads(result.read_text())["model"]["kv_types"]
    calibrated = Calibrated({"k": types["k_scales"], "v": types["v_scales"]})
    forward.Model.held = lambda *arguments: calibrated.held(*arguments)
    try:
        list(model.logits(evaluation.windows[0][:-1]))
    finally:
        forward.Model.held = calibrated.plain
    for what, scales in calibrated.scales.items():
        of = {i for i, kind in calibrated.seen if kind == what}
        if what == "k" and of != {i for i, x in enumerate(scales) if x}:
            raise ValueError("scales of layers without keys")
    numbers = written_out("-ctk", types["k_scales"])
    if not getattr(model, "compressed", lambda _: False)(0):  # else of both
        numbers += written_out("-ctv", types["v_scales"])
    for more in CALIBRATED, numbers:
        if evaluation.run(assay, file, rng, more=more) != table:
            raise ValueError(f"{more}: another table")
    return len(calibrated.seen)


def main():
    assay = sys.argv[1]
    count, first = (int(w) for w in (sys.argv[3:5] + ["2", "3"][len(sys.argv[3:5]):]))
    cases = [("fp8_ds_mla, positions", arch, check_ds_mla) for arch in LATENT]
    cases += [("calibrated, scales", arch, check_calibrated) for arch in VARIOUS]
    cases = [("calibrated, scales", arch, check_calibrated) for arch in sys.argv[5:]] or cases
    failed = 0
    for what, arch, check in cases:
        compared = 0
        for seed in range(first, first + count + MORE):
            if seed >= first + count and compared:
                break
            with tempfile.TemporaryDirectory() as folder:
                try:
                    compared += check(assay, arch, seed, pathlib.Path(folder))
                except ValueError as why:
                    print(f"{arch}, {what}, seed {seed}: {why}", flush=True)
                    failed += 1
        print(f"{arch}, {what}: {compared}", flush=True)
        failed += compared == 0
    return failed > 0


sys.exit(main())
