#!/usr/bin/env python3
"""llama4 beyond 8192 positions, where its chunks and its temperature begin, against double
precision. The first three layers have zeros for attn_output, and double precision leaves out what
does not matter at the last positions, so that plain Python needs seconds: of four layers the last
one sees all, of five a chunk.

usage: test_long.py ASSAY SOURCE_DIR [SEED]
"""
import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import authors  # noqa: E402
from evaluate import TOLERANCE, scores  # noqa: E402
import families  # noqa: E402
from formats import Tensor  # noqa: E402
import rewrite  # noqa: E402

CHUNK, BEYOND = 8192, 12


class Long(families.Llama4):
    mixed, separate_sizes, widths, inner, scalings = False, False, (8,), (8,), [""]


class Evaluated(authors.Llama4):
    def attention(self, i, h):
        return super().attention(i, h) if i >= 3 else [[0.0] * self.width for _ in h]


def check(assay, n_layers, seed, folder):
    """The largest difference."""
    rng = random.Random(f"long {n_layers} {seed}")
    generated = type("L", (Long,), {"arch": "llama4", "n_layers_of": (n_layers, n_layers)})(rng)
    tensors = []
    for t in generated.tensors:
        closed = t.name.startswith(("blk.0.attn_output", "blk.1.attn_output", "blk.2.attn_output"))
        tensors.append(Tensor.of(t.name, [0.0] * len(t.values()), t.ne) if closed else t)
    n = CHUNK + BEYOND
    text, ids = generated.text(n)
    window = ([generated.bos] * generated.has_bos + ids)[:n]
    file, words = rewrite.write(folder, generated.pairs, tensors), folder / "text"
    words.write_text(text)
    subprocess.run([assay, "perplexity", "-q", "-m", file, "-f", words, "-c", str(n), "--chunks", "1",
                    "--per-token", folder / "table", "--precision", "exact"], check=True,
                   stdout=subprocess.DEVNULL)
    lines = [line.split("\t") for line in (folder / "table").read_text().splitlines()[1:]]
    model = Evaluated({p[0]: p[2] for p in generated.pairs}, {t.name: t for t in tensors})
    model.attend_from = first = CHUNK if n_layers == 5 else CHUNK - 4
    worst = 0.0
    for p, logits in enumerate(model.logits(window[:-1], first), first):
        found, expected = float(lines[p - n // 2][4]), scores(logits, window[p + 1])[0]
        assert lines[p - n // 2][1:3] == [str(p), str(window[p + 1])]
        worst = max(worst, abs(found - expected))
        if not abs(found - expected) <= TOLERANCE:
            raise ValueError(f"{n_layers} layers, position {p}: logprob {found}, expected {expected}")
    return worst


def main():
    for n_layers in (4, 5):
        with tempfile.TemporaryDirectory() as folder:
            worst = check(sys.argv[1], n_layers, (sys.argv[3:] + ["1"])[0], pathlib.Path(folder))
        print(f"{n_layers} layers: within {worst:.2g} of double precision")


main()
