#!/usr/bin/env python3
"""Random models with keys or bytes changed: each is refused with a sentence, or has the scores of
another file.

usage: test_values.py ASSAY SOURCE_DIR
"""
import copy
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import unittest

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
from formats import Tensor  # noqa: E402
from gguf_make import U32  # noqa: E402
import rewrite  # noqa: E402

TABLE = "per_layer_token_embd.weight"
RATIOS, TOP_K = "attention.compress_ratios", "attention.indexer.top_k"
CLAMPS, MAGNITUDE = "swiglu_clamp_exp", "hyper_connection.magnitude"


SITU = "activation.situ_beta", "activation.situ_linear_beta"


def generate(arch, fits):
    """The first random model that a test can use."""
    models = (architectures.generate(random.Random(f"values {arch} {seed}"), arch) for seed in range(200))
    model = next(model for model in models if fits(model))
    model.sample, _ = model.text(60)
    return model


def keys(model):
    return {name.removeprefix(model.arch + "."): value for name, _, value, _ in model.pairs}


def has(*names):
    return lambda model: set(names) <= set(keys(model))


def with_keys(model, values):
    """The pairs; values: what keys become, numbers that it does not have being added."""
    values = {f"{model.arch}.{name}": value for name, value in values.items()}
    pairs = [(name, kind, values.pop(name, value), element) for name, kind, value, element in model.pairs]
    return pairs + [(name, U32, value, None) for name, value in values.items()]


def nvfp4(name, n_rows, bad=()):
    """A table of rows of one block of 64; bad: those of which a scale is not a number."""
    rng, rows = random.Random(n_rows), []
    for i in range(n_rows):
        scales = bytes(rng.randint(0x30, 0x40) for _ in range(4))
        rows.append((b"\xff" if i in bad else scales[:1]) + scales[1:] + rng.randbytes(32))
    return types.SimpleNamespace(name=name, type_id=40, ne=[64, n_rows], data=b"".join(rows))


class Values(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)

    def run_with(self, model, values, tensors=None, command="perplexity", n=20, more=()):
        file = rewrite.write(self.at, with_keys(model, values), tensors or model.tensors)
        (self.at / "text").write_text(model.sample)
        out = ["--per-token", "-"] if command == "perplexity" else ["-o", self.at / "sums", "--force"]
        return subprocess.run([ASSAY, command, "-q", "-m", file, "-f", self.at / "text", "-c", str(n), "-t", "1",
                               "--precision", "exact", *out, *more], capture_output=True, text=True)

    def table(self, *words, **named):
        done = self.run_with(*words, **named)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("logprob", done.stdout)
        return done.stdout

    def refused(self, sentence, *words, **named):
        done = self.run_with(*words, **named)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, sentence)

    def test_values_as_wide_as_keys(self):
        for arch in ("qwen35", "qwen3next", "qwen4exp"):
            model = generate(arch, lambda model: not all(model.recurrent))
            size = 2 * model.dk
            self.refused(f"'{arch}.attention.value_length' is {size}, expected the {model.dk} of keys", model,
                         {"attention.value_length": size})

    def test_no_such_biases(self):
        model = generate("qwen4exp", lambda model: model.ngram_layer is not None)
        for name in ("blk.0.hc_attn_down", "blk.0.hc_ffn_inject", "output_hc_up", f"blk.{model.ngram_layer}.ple_key"):
            matrix = next(t for t in model.tensors if t.name == name + ".weight")
            bias = Tensor.of(name + ".bias", [0.0] * matrix.ne[1], [matrix.ne[1]])
            self.refused(f"tensor '{name}.bias' is not understood", model, {}, tensors=[*model.tensors, bias])

    def test_end_beyond_the_vocabulary(self):
        model = generate("qwen4exp", lambda model: model.ngram_layer is not None)
        self.refused(f"'qwen4exp.ple.eos_token_id' is {model.n_vocab}, expected one of the {model.n_vocab} tokens",
                     model, {"ple.eos_token_id": model.n_vocab})

    def test_small_limits(self):
        model = generate("hy_v4", has(CLAMPS, "expert_count"))
        n = len(keys(model)[CLAMPS])
        none = self.table(model, {CLAMPS: [0.0] * n})
        self.assertEqual(self.table(model, {CLAMPS: [1e-7] * n}), none)
        self.assertNotEqual(self.table(model, {CLAMPS: [1e-5] * n}), none)

    def test_no_magnitude(self):
        model = generate("hy_v4", has(MAGNITUDE))
        least = self.table(model, {MAGNITUDE: 1e-30})
        self.assertEqual(self.table(model, {MAGNITUDE: 0.0}), least)
        self.assertNotEqual(self.table(model, {MAGNITUDE: 2.0}), least)

    def test_limits_of_situ(self):
        model = generate("kimi-k3", has(*SITU))
        self.refused(f"'kimi-k3.{SITU[0]}' is 0, expected a number above 0, up to 1e30", model, {SITU[0]: 0.0})
        for key in SITU:
            self.table(model, {key: 1e30})
            self.refused(f"'kimi-k3.{key}' is 1e.38, expected .*1e30", model, {key: 1e38})

    def test_narrow_rows(self):
        model = generate("kimi-k3", lambda model: model.narrow)
        self.refused(f"expert_latent_length' is {model.width + 1}, expected at most the {model.width} of the model's width",
                     model, {"expert_latent_length": model.width + 1})

    def test_gates_of_elements(self):
        """Kimi K3 has a gate for each element of a head's result, and none for a head."""
        model = generate("kimi-k3", lambda model: any("attn_gate.weight" in t.name for t in model.tensors))
        tensors = [self.first_rows(model, t) if "attn_gate.weight" in t.name else t for t in model.tensors]
        self.refused("attn_gate.weight' has shape", model, {}, tensors=tensors)

    @staticmethod
    def first_rows(model, tensor):
        """A row for each head."""
        n = model.n_heads[int(tensor.name.split(".")[1])]
        cut = copy.copy(tensor)
        cut.data = tensor.data[:len(tensor.data) // tensor.ne[1] * n]
        cut.ne = [tensor.ne[0], n]
        return cut

    def test_rows_of_tokens(self):
        model = generate("qwen4exp", lambda model: getattr(model, "row", 0) == 64)
        rest = [t for t in model.tensors if t.name != TABLE]
        tables = [nvfp4(TABLE, model.table + 3, bad) for bad in ((), {model.table + 2}, range(model.table))]
        usual = self.table(model, {}, tensors=[*rest, tables[0]])
        self.assertEqual(self.table(model, {}, tensors=[*rest, tables[1]]), usual)
        self.refused(rf"block \d+ of tensor '{TABLE}' holds a bit pattern that type NVFP4 does not have", model, {},
                     tensors=[*rest, tables[2]])

    def test_sums_of_undecided_layers(self):
        """Of two layers one chooses among keys of single tokens, the other never would among those of more."""
        model = generate("qwen4exp", lambda model: model.recurrent.count(False) > 1)
        ratios, sizes = keys(model)[RATIOS], [1, 6]
        ratios = [sizes.pop() if ratio and sizes else ratio and 1 for ratio in ratios]
        done = self.run_with(model, {TOP_K: 6, RATIOS: ratios}, command="imatrix", n=8)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
