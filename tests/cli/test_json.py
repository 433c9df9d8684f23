#!/usr/bin/env python3
"""The result of assay perplexity as JSON: the same to the last digit however it was computed,
and as docs/schema has it.

usage: test_json.py ASSAY SOURCE_DIR
"""
import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from documents import check, without_run
from program import ASSAY, DATA, TEXT, last_of_each

os.environ["ASSAY_PRECISION"] = "exact"  # the same bits with any --isa
COMMON = ["-f", TEXT, "-c", "48", "--chunks", "3", "-q", "--context-curve"]


def evaluate(*options, model="tiny.Q4_K_M.gguf", extra=()):
    """(document, bytes of the table of tokens, standard output)"""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            last_of_each([ASSAY, "perplexity", "-m", DATA / model, *COMMON, *options, "--json",
                          "r.json", "--per-token", "t.tsv", *extra]), cwd=folder, capture_output=True, check=True)
        folder = pathlib.Path(folder)
        return (json.loads((folder / "r.json").read_text()), (folder / "t.tsv").read_bytes(),
                result.stdout)


class Json(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document, cls.tokens, cls.printed = evaluate()

    def check_same(self, expected, *options):
        with self.subTest(options=options):
            document, tokens, printed = evaluate(*options)
            self.assertEqual(without_run(document), without_run(expected[0]))
            self.assertEqual((tokens, printed), expected[1:])

    def test_same_however_computed(self):
        expected = self.document, self.tokens, self.printed
        for options in (["-t", "1"], ["-t", "3"], ["-b", "1"], ["-b", "100"], ["-b", "100000"],
                        ["--isa", "avx2"], ["--isa", "avx512"], ["--isa", "scalar", "-t", "2"]):
            self.check_same(expected, *options)

    def test_same_in_integers(self):
        """The default where there is no AMX, or --isa leaves it out; other bits than float32's."""
        for model in "tiny.Q4_K_M.gguf", "tiny.F16.gguf":
            high = ["--precision", "high", "-m", DATA / model]
            expected = evaluate(*high, "--isa", "avx512")
            self.assertEqual(expected[0]["settings"]["products"], "int16")
            for options in (["avx512", "-t", "1", "-b", "1"], ["avx2", "-t", "3", "-b", "100"],
                            ["scalar", "-t", "2"]):
                self.check_same(expected, *high, "--isa", *options)
            self.assertEqual(expected[1] == evaluate("-m", DATA / model)[1], "F16" in model)

    def test_settings_are_told(self):
        document, _, _ = evaluate("--parse-special", "--rope-freq-base", "9999.5",
                                  "--override-kv", "llama.rope.freq_base=float:1,a.b=str:c",
                                  "--isa", "avx2", "-t", "1", "-b", "48")
        self.assertTrue(document["settings"]["parse_special"])
        self.assertEqual(document["settings"]["rope_freq_base"], 9999.5)
        self.assertEqual(document["settings"]["override_kv"],
                         ["llama.rope.freq_base=float:1", "a.b=str:c"])
        self.assertIn(document["run"]["isa"], ("avx2", "scalar"))  # what this machine has of it
        self.assertEqual(document["run"]["n_threads"], 1)
        self.assertEqual(document["run"]["n_batches"], 3)

    def test_versions(self):
        """Those of `assay version`."""
        said = subprocess.run([ASSAY, "version"], capture_output=True, text=True, check=True).stdout
        said = dict(line.split(None, 1) for line in said.splitlines())
        versions = self.document["run"]["versions"]
        for name in ("assay", "compiler", "build", "pcre2", "cjson", "openssl"):
            self.assertEqual(versions[name], said[name])
        commit = None if said["commit"].startswith("unknown") else said["commit"]
        self.assertEqual(versions["commit"], commit)

    def test_openblas(self):
        """Nearly the same figures, and the document says that their bits are not stable."""
        command = [ASSAY, "perplexity", "-m", DATA / "tiny.Q4_K_M.gguf", *COMMON, "--gemm",
                   "openblas"]
        self.assertIsNone(self.document["run"]["versions"]["openblas"])  # it is not loaded
        result = subprocess.run(command, capture_output=True)
        if result.returncode == 2:
            self.assertEqual(result.stdout, b"")
            self.assertIn(b"OpenBLAS cannot be loaded", result.stderr)
            return
        document, _, _ = evaluate("--gemm", "openblas")
        self.assertEqual(document["settings"]["gemm"], "openblas")
        self.assertIn("OpenBLAS", document["run"]["versions"]["openblas"])
        self.assertFalse(document["settings"]["bit_stable"])
        self.assertTrue(self.document["settings"]["bit_stable"])
        # The tolerance of any float32 evaluation against float64, here between two of them.
        self.assertAlmostEqual(document["result"]["nll"], self.document["result"]["nll"],
                               delta=2 * 2e-6 * self.document["result"]["nll"])

    def test_precisions(self):
        """What was asked for and what was done."""
        exact = self.document["result"]["nll"]
        for precision, products, tolerance in (("exact", "float32", 0), ("high", "bf16x3", 2e-6),
                                               ("fast", "bf16", 1e-3)):
            with self.subTest(precision=precision):
                settings = (document := evaluate("--precision", precision)[0])["settings"]
                self.assertEqual(settings["precision"], precision)
                if document["run"]["isa"] != "amx" and precision != "exact":
                    products, tolerance = ("int16", 1e-5) if precision == "high" else ("int8", 2e-3)
                self.assertEqual(settings["products"], products)
                self.assertLessEqual(abs(document["result"]["nll"] - exact), tolerance * exact)

    def test_identities(self):
        text = TEXT.read_bytes()
        self.assertEqual(self.document["text"]["sha256"], hashlib.sha256(text).hexdigest())
        self.assertEqual(self.document["text"]["n_bytes"], len(text))
        document, _, _ = evaluate("--hash-model")
        model = (DATA / "tiny.Q4_K_M.gguf").read_bytes()
        self.assertEqual(document["model"]["sha256"], hashlib.sha256(model).hexdigest())
        self.assertEqual(document["model"]["id"], self.document["model"]["id"])
        other, _, _ = evaluate(model="tiny.F16.gguf")
        self.assertNotEqual(other["model"]["id"], self.document["model"]["id"])
        self.assertEqual(other["tokens"], self.document["tokens"])

    def test_figures_follow_from_windows_and_tokens(self):
        result, sums = self.document["result"], self.document["windows"]["sums"]
        self.assertTrue(result["complete"])
        n = sum(w["n_tokens"] for w in sums)
        nll = math.fsum(w["nll"] for w in sums) / n
        squares = math.fsum(w["nll_squared"] for w in sums) / n
        error = math.sqrt((squares - nll * nll) / (n - 1))
        self.assertEqual(n, result["n_tokens"])
        self.assertAlmostEqual(result["nll"], nll, delta=1e-14 * nll)
        self.assertAlmostEqual(result["ppl"], math.exp(nll), delta=1e-12 * result["ppl"])
        self.assertAlmostEqual(result["nll_error"], error, delta=1e-10)
        self.assertAlmostEqual(result["ppl_error"], error * result["ppl"], delta=1e-8)

        rows = [line.split("\t") for line in self.tokens.decode().splitlines()[1:]]
        self.assertEqual(len(rows), n)
        self.assertAlmostEqual(-math.fsum(float(r[4]) for r in rows) / n, nll, delta=1e-10)
        final = re.search(rb"^Final estimate: PPL = (\S+) \+/- (\S+)$", self.printed, re.M)
        self.assertEqual(final.group(1).decode(), f"{result['ppl']:.4f}")
        self.assertEqual(final.group(2).decode(), f"{result['ppl_error']:.5f}")

    def test_numbers_have_all_their_digits(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.json"
            subprocess.run([ASSAY, "perplexity", "-m", DATA / "tiny.F16.gguf", *COMMON, "--json",
                            path], capture_output=True, check=True)
            for key in ("ppl", "nll", "bits_per_byte"):
                number = re.search(rf'"{key}":\s*([0-9.e+-]+)', path.read_text()).group(1)
                self.assertEqual(number, f"{float(number):.17g}")
                self.assertGreaterEqual(len(number), 16)

    def test_every_field_is_documented(self):
        check(self, self.document)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
