#!/usr/bin/env python3
"""The results of assay check as files: as docs/schema has them, and the figures
those of the table of tokens.

usage: test_check_json.py ASSAY SOURCE_DIR
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

from documents import check as check_schema
from program import ASSAY, F16, Q4, TEXT


def check():
    """(document, lines of the table as dictionaries)"""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([ASSAY, "perplexity", "-q", "-m", Q4, "-f", TEXT,
                        "-c", "32", "--chunks", "3", "--kl-divergence-base", folder / "t.kld"],
                       capture_output=True, check=True)
        subprocess.run([ASSAY, "check", "-q", "-m", F16, "--kl-divergence-base", folder / "t.kld",
                        "--worst", "2", "--context-curve", "--json", folder / "r.json",
                        "--per-token", folder / "t.tsv"], capture_output=True, check=True)
        names, *lines = (folder / "t.tsv").read_text().splitlines()
        table = [dict(zip(names.split("\t"), line.split("\t"))) for line in lines]
        return json.loads((folder / "r.json").read_text()), table


class Check(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document, cls.table = check()

    def column(self, name):
        return [float(line[name]) for line in self.table]

    def assert_mean(self, found, values):
        self.assertTrue(math.isclose(found, math.fsum(values) / len(values), rel_tol=1e-9),
                        (found, values))

    def test_every_field_is_described(self):
        check_schema(self, self.document)

    def test_figures_are_those_of_the_tokens(self):
        result = self.document["result"]
        self.assertEqual(result["n_tokens"], len(self.table))
        self.assertTrue(result["within_limits"])
        kld, file_kld = self.column("kld"), self.column("file_kld")
        self.assert_mean(result["kld"]["mean"], kld)
        self.assert_mean(result["kld"]["file"], file_kld)
        self.assert_mean(result["kld"]["beyond"], [a - b for a, b in zip(kld, file_kld)])
        self.assertTrue(math.isclose(result["kld"]["max"], max(kld), rel_tol=1e-9))
        off = [a - b for a, b in zip(self.column("logprob"), self.column("recorded_logprob"))]
        self.assert_mean(result["nll_difference"]["mean"], off)
        beyond = [a - b for a, b in zip(off, self.column("file_nll"))]
        self.assert_mean(result["nll_difference"]["beyond"], beyond)
        self.assert_mean(result["nll_difference"]["rms"] ** 2, [x * x for x in off])
        self.assertTrue(math.isclose(result["nll_difference"]["max"], max(map(abs, off)),
                                     rel_tol=1e-9))
        self.assert_mean(-result["mean_nll"], self.column("logprob"))
        self.assert_mean(-result["recorded_mean_nll"], self.column("recorded_logprob"))
        self.assert_mean(result["same_top"], self.column("same_top"))

    def test_the_worst_and_the_curve(self):
        kld = self.column("kld")
        worst = [entry["kld"] for entry in self.document["worst"]]
        for found, expected in zip(worst, sorted(kld, reverse=True)[:2]):
            self.assertTrue(math.isclose(found, expected, rel_tol=1e-9))
        for entry in self.document["context_curve"]:
            self.assert_mean(entry["kld"], [k for k, line in zip(kld, self.table)
                                            if int(line["position"]) == entry["position"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
