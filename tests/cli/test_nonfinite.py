#!/usr/bin/env python3
"""A model that computes NaN for some tokens: the first is named, the finite mean is apart.

usage: test_nonfinite.py ASSAY SOURCE_DIR
"""
import itertools
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = SOURCE / "data" / "tiny.F16.gguf"
TEXT = (SOURCE / "data" / "text.txt").read_text()[:2000]
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


def scaled_model(path, factor):
    """The bundled model with logits so many times as large."""
    listed = json.loads(tool("info", "--json", "--tensors", MODEL).stdout)
    norm = next(t for t in listed["tensors"] if t["name"] == "output_norm.weight")
    data = bytearray(MODEL.read_bytes())
    layout = f"<{N_EMBD}f"
    weights = struct.unpack_from(layout, data, norm["offset"])
    struct.pack_into(layout, data, norm["offset"], *(factor * w for w in weights))
    path.write_bytes(data)


class Large(unittest.TestCase):
    """A mean negative log-probability is finite where its perplexity is not."""

    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.large = self.folder / "large.gguf"
        scaled_model(self.large, 1000)
        self.options = ["-f", "-", "-c", str(N_CTX), "--chunks", "2"]

    def document(self):
        return json.loads((self.folder / "r.json").read_text())

    def test_perplexity(self):
        result = tool("perplexity", "-m", self.large, *self.options, "--json",
                      self.folder / "r.json")
        out, err = result.stdout.decode(), result.stderr.decode()
        self.assertEqual(result.returncode, 1, err)
        nll = self.document()["result"]["nll"]
        self.assertGreater(nll, 710)
        self.assertIsNone(self.document()["result"]["ppl"])
        self.assertEqual(self.document()["result"]["nonfinite"], {"n": 0})
        for stream in (out, err):
            self.assertRegex(stream, rf"(?m)^Final estimate: mean NLL = {nll:.4f} "
                                     r"\+/- \d+\.\d{5}$")
            self.assertNotIn("PPL = ", stream)
        self.assertIn(f"assay: the perplexity, exp({nll:.4f}), is larger than the largest "
                      "number\n", err)
        self.assertRegex(out, rf"(?m)^\[1\]exp\(\d+\.\d{{4}}\),\[2\]exp\({nll:.4f}\),$")
        result = tool("perplexity", "-m", self.large, *self.options, "--ppl-output-type", "1",
                      "--context-curve", "--context-bins", "1")
        self.assertRegex(result.stdout.decode(), rf"(?m)^ +32  exp\({nll:.4f}\)  {nll:f}  ")
        self.assertRegex(result.stdout.decode(), rf"(?m)^16-30\texp\({nll:.4f}\)\t-\t{nll:.6f}\t")
        self.assertNotRegex(result.stdout.decode(), "inf|nan")

    def test_record(self):
        result = tool("record", "-m", self.large, *self.options, "-o", self.folder / "base")
        self.assertEqual(result.returncode, 1, result.stderr)

    def test_record_of_logits(self):
        """Above 2.7e8 a record's 16 bits all say the same: refused when it is written, not only when
        it is read. The compact format keeps the model."""
        base = self.folder / "base"
        formats = (["record", "--format", "logits", "-o", base], True), \
            (["perplexity", "--kl-divergence-base", base], True), (["record", "-o", base], False)
        for factor, (words, is_logits) in itertools.product((1e7, 1e8), formats):
            with self.subTest(factor=factor, words=words):
                scaled_model(self.large, factor)
                result = tool(*words, "-m", self.large, *self.options)
                refused = is_logits and factor > 1e7
                self.assertEqual(result.returncode, 1, result.stderr)  # the perplexity, too, is none
                self.assertEqual(base.exists(), not refused)
                said = rb"base\.part: chunk 0, position \d+ \(from 0\): the logits are too large"
                self.assertEqual(bool(re.search(said, result.stderr)), refused)
                if not refused:
                    read = tool("kld", "-m", self.large, "--base", base)
                    self.assertIn(b"is larger than the largest number", read.stderr)
                    base.unlink()

    def test_kld(self):
        for candidate, base, whose in ((self.large, MODEL, "Q"), (MODEL, self.large, "base")):
            with self.subTest(infinite=whose):
                result = tool("kld", "-m", candidate, "--base", base, *self.options)
                out, err = result.stdout.decode(), result.stderr.decode()
                self.assertEqual(result.returncode, 1, err)
                found = re.search(rf"(?m)^Mean NLL\({whose}\) +: (\d+\.\d{{6}}) ± +\d+\.\d{{6}}$",
                                  out)
                self.assertGreater(float(found[1]), 710)
                self.assertIn(f"assay: {self.large}: the perplexity, exp({float(found[1]):.4f}), is "
                              "larger than the largest number\n", err)
                self.assertNotRegex(out, r"inf\b|nan")
                if whose == "Q":
                    self.assertRegex(out, r"(?m)^   2    exp\(\d+\.\d{4} ± \d+\.\d{4}\)  ")

    def test_compare(self):
        """The logarithm is compared; of the perplexity there is no difference."""
        for name, model in (("a.json", self.large), ("b.json", MODEL)):
            tool("perplexity", "-m", model, *self.options, "--json", self.folder / name)
        files = [self.folder / "a.json", self.folder / "b.json"]
        result = tool("compare", *files, "--json", self.folder / "r.json")
        out, err = result.stdout.decode(), result.stderr.decode()
        self.assertEqual(result.returncode, 1, err)
        self.assertRegex(out, r"(?m)^PPL +exp\(\d+\.\d{3}\) +\d+\.\d{4} +-   \[-, -\]$")
        self.assertRegex(out, r"(?m)^ln\(PPL\) +\d{3,}\.\d{6} +\d\.\d{6} +-\d+\.\d{6}   \[-")
        self.assertRegex(err, r"(?m)^assay: .*a\.json: the perplexity, exp\(\d+\.\d{4}\), is larger "
                              "than the largest number$")
        ppl, nll = self.document()["figures"]
        self.assertIsNone(ppl["a"])
        self.assertLess(nll["high"], -700)

    def test_check(self):
        base = self.folder / "base.kld"
        tool("perplexity", "-m", self.large, *self.options, "--kl-divergence-base", base)
        result = tool("check", "-m", self.large, "--kl-divergence-base", base)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(b"is larger than the largest number\n", result.stderr)

    def test_below_the_limit(self):
        """The perplexity is a number, and its square is none."""
        between = self.folder / "between.gguf"
        scaled_model(between, 170)
        result = tool("kld", "-m", between, "--base", MODEL, *self.options)
        out = result.stdout.decode()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(float(re.search(r"PPL\(Q\) +: (\d+)", out)[1]), 1e160)
        self.assertNotRegex(out, "inf|nan")


class Tasks(unittest.TestCase):
    """Where a score of a task is no number, nothing is chosen, and so nothing is right."""

    def test_all(self):
        for kind, name in (("hellaswag", "hellaswag.txt"), ("winogrande", "winogrande.csv"),
                           ("multiple-choice", "multiple-choice.bin")):
            with self.subTest(kind=kind), tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                scaled_model(folder / "nan.gguf", math.nan)
                words = ["perplexity", f"--{kind}", "-bf", SOURCE / "tests/data/tasks" / name]
                result = tool(*words, "-m", folder / "nan.gguf", "--json", folder / "r.json",
                              "--per-task", folder / "t.tsv")
                self.assertEqual(result.returncode, 1, result.stderr)
                document = json.loads((folder / "r.json").read_text())
                n = document["result"]["n_tasks"]
                first = document["tasks"][0]["task"]
                self.assertGreater(sum(task["answer"] == 0 for task in document["tasks"]), 0)
                self.assertIn(f"assay: {n} of {n} tasks have a score that is not finite; the first "
                              f"is task {first} of the file\n", result.stderr.decode())
                for score in ("score", "acc", "acc_norm"):
                    self.assertEqual(document["result"][score]["n_right"], 0)
                for task in document["tasks"]:
                    self.assertEqual([task[key] for key in ("choice", "choice_acc",
                                                            "choice_acc_norm")], [None] * 3)
                self.assertRegex((folder / "t.tsv").read_text(), r"(?m)^\d+\t\d\t\tnan,nan")
                result = tool("compare", folder / "r.json", folder / "r.json")
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(b"r.json: tasks[0].choice is null, a score is not finite: there is "
                              b"nothing to compare\n", result.stderr)


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
