#!/usr/bin/env python3
"""The results of assay kld as files: the same to the last digit however computed and in whatever
company, as docs/schema has it, and other vocabularies refused.

usage: test_kld_json.py ASSAY SOURCE_DIR
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import gguf_make
from documents import check, without_run
from program import ASSAY, F16, Q4, TEXT

os.environ["ASSAY_PRECISION"] = "exact"  # the same bits with any --isa
COMMON = ["-f", TEXT, "-c", "32", "--chunks", "3", "-q", "--context-curve",
          "--worst", "2", "--js"]


def run(*options, base=F16):
    return subprocess.run([ASSAY, "kld", "--base", base, *COMMON, *options], capture_output=True)


def compare(*options, models=(Q4,), base=F16):
    """(document, lines of the table of tokens, standard output)"""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        named = [word for model in models for word in ("-m", model)]
        result = run("--full", *named, *options, "--json", folder / "r.json", "--per-token", folder / "t.tsv",
                     base=base)
        assert result.returncode == 0, result.stderr
        return (json.loads((folder / "r.json").read_text()),
                (folder / "t.tsv").read_text().splitlines(), result.stdout)


class Kld(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document, cls.tokens, cls.printed = compare()

    def test_same_however_computed(self):
        for options in (["-t", "1"], ["-t", "3", "-b", "1"], ["--isa", "scalar"]):
            with self.subTest(options=options):
                document, tokens, printed = compare(*options)
                self.assertEqual(without_run(document), without_run(self.document))
                self.assertEqual(tokens, self.tokens)
                self.assertEqual(printed, self.printed)
        high = [compare("--precision", "high", "--isa", isa, *more)[1:]
                for isa, *more in (["avx512", "-t", "1"], ["scalar", "-b", "1"])]
        self.assertEqual(*high)

    def test_optional_tensors(self):
        """A tensor that only one of them has is named, whichever it is; an embedding that is stored
        as the head once more is not."""
        with tempfile.TemporaryDirectory() as folder:
            more = pathlib.Path(folder) / "more.gguf"
            more.write_bytes(gguf_make.with_float32(Q4.read_bytes(), "output.weight", "rope_freqs.weight", [2] * 16))
            said = r"more\.gguf has 'rope_freqs\.weight', .*tiny\.Q?.*\.gguf has not: the divergence is not that of "
            for base, model in ((F16, more), (more, F16)):
                document, *_ = compare(models=[model], base=base)
                self.assertRegex("\n".join(document["remarks"]), said)
            document, *_ = compare(models=[more, Q4], base=more)
            self.assertEqual(sum("has not" in line for line in document["remarks"]), 1)
        self.assertFalse([line for line in self.document["remarks"] if "has not" in line])

    def test_same_alone_and_among_others(self):
        document, tokens, printed = compare(models=(F16, Q4))
        self.assertEqual(document["candidates"][1], self.document["candidates"][0])
        self.assertEqual([line.split("\t")[1:] for line in tokens if line.startswith("1\t")],
                         [line.split("\t")[1:] for line in self.tokens[1:]])
        self.assertIn(self.printed.strip(b"\n"), printed)
        itself = document["candidates"][0]
        self.assertEqual((itself["kld"]["max"], itself["js"], itself["reverse_kld"]), (0, 0, 0))
        self.assertEqual((itself["tv"], itself["acceptance"]), (0, 1))
        self.assertEqual((itself["same_top"], itself["common_top_10"]), (1, 1))
        self.assertEqual(itself["model"]["id"], document["base"]["id"])

    def test_figures_follow_from_tokens(self):
        names, *lines = [line.split("\t") for line in self.tokens]
        rows = [dict(zip(names, line)) for line in lines]
        result = self.document["candidates"][0]
        n = self.document["result"]["n_tokens"]
        self.assertEqual(len(rows), n)
        mean = lambda f: math.fsum(map(f, rows)) / n
        dp = lambda r: math.exp(float(r["logprob"])) - math.exp(float(r["base_logprob"]))
        for found, expected in (
                (result["kld"]["mean"], mean(lambda r: float(r["kld"]))),
                (result["reverse_kld"], mean(lambda r: float(r["reverse_kld"]))),
                (result["js"], mean(lambda r: float(r["js"]))),
                (result["tv"], mean(lambda r: float(r["tv"]))),
                (result["acceptance"], mean(lambda r: 1 - float(r["tv"]))),
                (result["dp"]["rms"], math.sqrt(mean(lambda r: dp(r) ** 2))),
                (result["ppl"]["value"], math.exp(-mean(lambda r: float(r["logprob"])))),
                (result["mean_nll"], -mean(lambda r: float(r["logprob"]))),
                (result["base_mean_nll"], -mean(lambda r: float(r["base_logprob"]))),
                (result["same_top"], mean(lambda r: float(r["same_top"]))),
                (result["common_top_5"], mean(lambda r: float(r["common_5"]) / 5)),
                (result["rank"]["mean"], mean(lambda r: float(r["rank"])))):
            self.assertAlmostEqual(found, expected, delta=1e-9 * expected)
        self.assertEqual(sum(b["n_tokens"] for b in result["by_confidence"]), n)
        self.assertEqual(result["worst"][0]["kld"], result["kld"]["max"])
        self.assertEqual(len(result["worst"]), 2)

    def test_perplexity_is_that_of_assay_perplexity(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "p.json"
            subprocess.run([ASSAY, "perplexity", "-m", Q4, "-f", TEXT, "-c", "32", "--chunks", "3",
                            "-q", "--json", path], check=True, capture_output=True)
            alone = json.loads(path.read_text())["result"]
        ppl = self.document["candidates"][0]["ppl"]
        self.assertEqual((ppl["value"], ppl["value_error"]), (alone["ppl"], alone["ppl_error"]))

    def test_every_field_is_documented(self):
        check(self, self.document)

    def test_rounding(self):
        """What a precision does is within it; the line of it comes where digits are uncertain."""
        runs = {p: compare("--precision", p, models=(Q4, F16)) for p in ("exact", "high", "fast")}
        klds = {p: [c["kld"] for c in run[0]["candidates"]] for p, run in runs.items()}
        self.assertEqual({k[1]["mean"] for k in klds.values()}, {0})
        self.assertEqual({k[1]["rounding"] for k in klds.values()}, {0})
        truth = klds["exact"][0]
        self.assertTrue(0 < truth["rounding"] < 1e-4 * truth["mean"])
        for precision, least, most in ("high", 5e-7, 5e-5), ("fast", 6e-3, 2e-2):
            found = klds[precision][0]
            self.assertTrue(least < found["rounding"] < most, found)
            self.assertLess(0, abs(found["mean"] - truth["mean"]))
            self.assertLess(abs(found["mean"] - truth["mean"]), found["rounding"])
            said = (f"Rounding       :   {found['rounding']:.6f} (about how far --precision "
                    f"{precision} may have moved the mean divergence)\n")
            self.assertEqual(runs[precision][2].decode().count(said), 1, said)
        self.assertNotIn(b"Rounding", runs["exact"][2])

    def test_rounding_against_recorded_bases(self):
        """As live with a recording of the same precision; of others it is not known."""
        live = compare("--precision", "fast")[0]["candidates"][0]["kld"]["rounding"]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "base"
            for words, expected in ((["-o", file, "--precision", "fast"], live),
                                    (["-o", file, "--force"], None),
                                    (["-o", file, "--force", "--format", "logits"], None)):
                subprocess.run([ASSAY, "record", "-q", "-m", F16, "-f", TEXT, "-c", "32", "--chunks",
                                "3", *words], check=True, capture_output=True)
                document = compare("--precision", "fast", base=file)[0]
                self.assertEqual(document["candidates"][0]["kld"]["rounding"], expected)

    def refuses(self, old, new, sentence):
        data = Q4.read_bytes()
        self.assertEqual(data.count(old), 1)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "other.gguf"
            path.write_bytes(data.replace(old, new))
            result = run("-m", path)
        self.assertEqual((result.returncode, result.stdout), (2, b""))
        self.assertRegex(result.stderr.decode(), sentence)

    def test_refuses_another_vocabulary(self):
        word = "\u2581have".encode()
        length = len(word).to_bytes(8, "little")
        self.refuses(length + word, length + word[:-1] + b"x",
                     r"token 387 is '.*havx' where .*tiny.F16.gguf has '.*have.*'; only models")

    def test_refuses_another_use_of_bos(self):
        key = b"tokenizer.ggml.add_bos_token" + (7).to_bytes(4, "little")
        self.refuses(key + b"\1", key + b"\0", r"texts begin without BOS, those of .* with it")


unittest.main(argv=sys.argv[:1])
