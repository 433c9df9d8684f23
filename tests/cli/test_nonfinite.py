#!/usr/bin/env python3
"""A model that computes NaN for some tokens: the first is named, the finite mean is apart.

usage: test_nonfinite.py ASSAY SOURCE_DIR
"""
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = SOURCE / "data" / "tiny.F16.gguf"
TEXT = (SOURCE / "docs" / "handbook.md").read_text()[:2000]
N_CTX, N_EMBD = 32, 256
HALF_NAN = b"\x00\x7e"


def tool(*words):
    return subprocess.run([ASSAY, *words], capture_output=True, input=TEXT.encode())


def broken_model(path, token):
    """The bundled model with NaN as the embedding of one token."""
    listed = json.loads(tool("info", "--json", "--tensors", MODEL).stdout)
    table = next(t for t in listed["tensors"] if t["name"] == "token_embd.weight")
    data = bytearray(MODEL.read_bytes())
    at = table["offset"] + token * N_EMBD * len(HALF_NAN)
    data[at:at + N_EMBD * len(HALF_NAN)] = HALF_NAN * N_EMBD
    path.write_bytes(data)


class Nonfinite(unittest.TestCase):
    def test_one_broken_token(self):
        ids = json.loads(tool("tokenize", "-m", MODEL, "-f", "-", "--ids", "--no-parse-special")
                         .stdout)
        # The first token whose only place is in the scored half of the second window.
        window, position = 1, next(p for p in range(N_CTX // 2 + 3, N_CTX - 4)
                                   if ids[:2 * N_CTX].count(ids[N_CTX + p]) == 1)
        token = ids[N_CTX + position]
        target = ids[N_CTX + position + 1]
        n_scored, n_bad = 2 * (N_CTX - 1 - N_CTX // 2), N_CTX - 1 - position
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "broken.gguf"
            broken_model(path, token)
            options = ["-f", "-", "-c", str(N_CTX), "--chunks", "2"]
            result = tool("perplexity", "-m", path, *options, "--json", f"{folder}/r.json",
                          "--per-token", f"{folder}/t.tsv")
            document = json.loads((pathlib.Path(folder) / "r.json").read_text())
            rows = (pathlib.Path(folder) / "t.tsv").read_text().splitlines()[1:]
        whole = tool("perplexity", "-m", MODEL, *options, "--per-token", "-").stdout.decode()

        out, err = result.stdout.decode(), result.stderr.decode()
        self.assertEqual(result.returncode, 1, err)
        self.assertRegex(err, rf"(?m)^assay: {n_bad} of {n_scored} scores are not finite; the first "
                              rf"is that of token {target} '.*' at window {window}, position "
                              rf"{position}$")
        self.assertRegex(err, r"(?m)^assay: the perplexity is not finite$")
        self.assertRegex(out, r"(?m)^\[1\]\d+\.\d{4},\[2\]nan,$")
        self.assertRegex(out, r"(?m)^Final estimate: PPL = nan \+/- nan$")

        # The finite mean is that of the scores that the whole model has for the same tokens.
        logprobs = [float(line.split("\t")[4]) for line in whole.splitlines()
                    if re.match(r"\d+\t\d+\t", line)]
        self.assertEqual(len(logprobs), n_scored)
        finite = -math.fsum(logprobs[:n_scored - n_bad]) / (n_scored - n_bad)
        found = document["result"]
        self.assertIsNone(found["ppl"])
        self.assertEqual(found["nonfinite"]["n"], n_bad)
        self.assertEqual((found["nonfinite"]["first_window"], found["nonfinite"]["first_position"],
                          found["nonfinite"]["first_token_id"]), (window, position, target))
        self.assertAlmostEqual(found["nonfinite"]["finite_nll"], finite, delta=1e-9)
        self.assertRegex(out, rf"(?m)^Finite scores alone: exp\(mean NLL\) {math.exp(finite):.4f} "
                              rf"over {n_scored - n_bad} of {n_scored} tokens")
        self.assertEqual(sum("nan" in row.split("\t")[4] for row in rows), n_bad)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
