#!/usr/bin/env python3
"""Models in ik_llama.cpp's types against float64, and a base-logits file with its reach; models and
float64 results are reference material beside the checkout, without which the first is skipped.

usage: test_ik.py ASSAY SOURCE_DIR
"""

import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

from program import ASSAY, F16, SOURCE, TEXT, reference_models

REFERENCE = pathlib.Path(SOURCE).parent / "shared"
N_CTX, N_CHUNKS = 64, 2


def run(*args):
    return subprocess.run([ASSAY, *map(str, args)], check=True, capture_output=True, text=True).stdout


def rows(path):
    return [line.split("\t") for line in pathlib.Path(path).read_text().splitlines()[1:]]


class Models(unittest.TestCase):
    def test_float64(self):
        models = reference_models("models-ik")
        if not models:
            self.skipTest("no reference material beside the checkout")
        figures = {r[0]: r for r in rows(REFERENCE / "reference/ik/ik-against-float64.tsv")
                   if r[1] == "kernel"}
        for model in models:
            with self.subTest(model.name), tempfile.TemporaryDirectory() as folder:
                run("perplexity", "-q", "-m", model, "-f", REFERENCE / "text/wiki2-test.txt",
                    "-c", 256, "--chunks", 16, "--precision", "exact",
                    "--per-token", f"{folder}/t", "--json", f"{folder}/j")
                document = json.loads(pathlib.Path(f"{folder}/j").read_text())
                self.assertEqual(document["model"]["types_of"], "ik_llama.cpp")
                # Of the whole: float64, and what ik_llama.cpp prints, within what its rounding of
                # activations and weights to 8 bits makes.
                name, _, exact, printed = figures[model.stem][:4]
                ppl = document["result"]["ppl"]
                self.assertLess(abs(ppl / float(exact) - 1), 2e-6, name)
                self.assertLess(abs(ppl / float(printed) - 1), 3e-3, name)
                expected = rows(REFERENCE / f"reference/ik/{model.stem}.c256.nll.tsv")
                found = rows(f"{folder}/t")[:len(expected)]
                self.assertEqual([r[:3] for r in found], [r[:3] for r in expected])
                errors = [-float(f[4]) - float(e[3]) for f, e in zip(found, expected)]
                mean = sum(float(e[3]) for e in expected) / len(expected)
                self.assertLess(max(map(abs, errors)), 2e-5)
                self.assertLess(abs(sum(errors) / len(errors)) / mean, 2e-6)


class Reach(unittest.TestCase):
    """What a program would record that lets codes reach 24 nats, made of what assay records."""

    def check(self, base):
        path = self.folder / "check.json"
        run("check", "-q", "-m", F16, "--base", base, "--json", path)
        return json.loads(path.read_text())

    def test_check(self):
        with tempfile.TemporaryDirectory() as folder:
            self.folder = pathlib.Path(folder)
            llama, ik = self.folder / "llama.kld", self.folder / "ik.kld"
            run("perplexity", "-q", "-m", F16, "-f", TEXT, "-c", N_CTX, "--chunks", N_CHUNKS,
                "--precision", "exact", "--kl-divergence-base", llama)
            data = llama.read_bytes()
            n_vocab = struct.unpack_from("<i", data, 12)[0]
            head, n_record = 20 + 4 * N_CTX * N_CHUNKS, 2 * (2 * ((n_vocab + 1) // 2) + 4)
            records = [data[i:i + n_record] for i in range(head, len(data), n_record)]
            ik.write_bytes(data[:head] + b"".join(self.wider(r, n_vocab) for r in records))
            of_llama, of_ik = self.check(llama), self.check(ik)
            self.assertAlmostEqual(of_llama["base"]["reach"], 16, delta=1e-3)
            self.assertAlmostEqual(of_ik["base"]["reach"], 24, delta=1e-3)
            # Codes are 1.5 times as far apart: their share is 2.25 times what it is without a floor.
            share = of_ik["result"]["kld"]["file"]
            self.assertGreater(share, 1e-9)
            self.assertLess(share, 2e-8)
            self.assertGreater(of_llama["result"]["kld"]["file"], 10 * share)

    @staticmethod
    def wider(record, n_vocab):
        """The same row with codes that reach 24 nats; what was raised to the floor stays there."""
        scale, floor = struct.unpack_from("<2f", record)
        codes = struct.unpack_from(f"<{n_vocab}H", record, 8)
        wide = 24 / 65535
        low = floor + scale * 65535 - 24
        found = [round((floor + scale * c - low) / wide) for c in codes]
        padding = record[8 + 2 * n_vocab:]
        return struct.pack("<2f", wide, low) + struct.pack(f"<{n_vocab}H", *found) + padding


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
