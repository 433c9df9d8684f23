#!/usr/bin/env python3
"""assay table: the numbers of the documents, whatever stands in their texts; documents that lie
are refused, naming file and field; and every reference model gets the name that its file has.

usage: test_table_csv.py ASSAY SOURCE_DIR
"""
import copy
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from program import ASSAY, F16, Q4, TEXT, reference_models


def evaluate(folder, *words):
    path = pathlib.Path(folder) / "r.json"
    subprocess.run([ASSAY, *words, "-q", "--json", path, "--force"], check=True, capture_output=True)
    return json.loads(path.read_text())


class Table(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.kld = evaluate(cls.folder, "kld", "-m", Q4, "-m", F16, "--base", F16, "-f", TEXT,
                           "-c", "32", "--chunks", "4")

    def table(self, document, *options):
        (self.folder / "d.json").write_text(json.dumps(document))
        return subprocess.run([ASSAY, "table", "d.json", *options], cwd=self.folder,
                              capture_output=True, text=True)

    def rows(self, document, *options):
        done = self.table(document, "--csv", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(csv.reader(io.StringIO(done.stdout)))

    def test_numbers_are_those_of_the_document(self):
        head, base, itself, q4 = self.rows(self.kld)
        row = dict(zip(head, q4))
        c = self.kld["candidates"][0]
        for key, value in (("ppl", c["ppl"]["value"]), ("ppl_error", c["ppl"]["value_error"]),
                           ("delta_ppl", c["ppl"]["difference"]), ("kld", c["kld"]["mean"]),
                           ("kld_error", c["kld"]["mean_error"]),
                           ("mean_dp_percent", 100 * c["dp"]["mean"]),
                           ("rms_dp_percent", 100 * c["dp"]["rms"]),
                           ("rms_dp_percent_error", 100 * c["dp"]["rms_error"]),
                           ("same_top_percent", 100 * c["same_top"]),
                           ("size_gib", c["model"]["n_bytes"] / 2 ** 30),
                           ("bits_per_weight", c["model"]["bits_per_weight"])):
            self.assertEqual(float(row[key]), value, key)
        self.assertEqual((row["model"], row["quantisation"], row["imatrix"]),
                         ("tiny-4m", "Q4_K_M", "imtext.txt"))
        of_base = dict(zip(head, base))
        self.assertEqual(float(of_base["ppl"]), c["ppl"]["base"])
        self.assertEqual((of_base["kld"], of_base["quantisation"]), ("", "F16"))
        self.assertEqual(float(dict(zip(head, itself))["kld"]), 0)

    def test_a_base_that_is_no_model(self):
        document = copy.deepcopy(self.kld)
        document["base"] = {"kind": "logits", "id": "0"}
        document["text"] = None
        self.assertEqual([row[2] for row in self.rows(document)[1:]], ["F16", "Q4_K_M"])

    def test_turned_it_is_the_same(self):
        flat, turned = self.rows(self.kld), self.rows(self.kld, "--by-metric")
        by_name = {row[0]: row[1:] for row in turned}
        for i, key in enumerate(flat[0]):
            self.assertEqual(by_name[key], [row[i] for row in flat[1:]])
        kld = self.kld["candidates"][0]["kld"]
        self.assertEqual(float(by_name["kld_p99_9"][2]), kld["p99_9"])
        self.assertEqual(float(by_name["kld_min"][2]), kld["min"])

    def test_order_is_that_of_the_divergence(self):
        document = copy.deepcopy(self.kld)
        document["candidates"] *= 3
        for i, mean in enumerate((3, 1, None, 2, 1e300, 0)):
            document["candidates"][i] = copy.deepcopy(document["candidates"][i])
            document["candidates"][i]["kld"]["mean"] = mean
        head, _, *rows = self.rows(document)
        self.assertEqual([row[head.index("kld")] for row in rows],
                         ["0", "1", "2", "3", "1.0000000000000001e+300", "nan"])

    def test_texts_of_any_kind(self):
        document = copy.deepcopy(self.kld)
        document["base"]["name"] = 'a,"b"|c\n\x1b[31m'
        document["candidates"][0]["model"]["imatrix_dataset"] = "ä" * 200
        self.assertEqual(self.rows(document)[1][1], r'a,"b"|c\x0a\x1b[31m')
        self.assertLessEqual(set(self.rows(document)[3][3]), {"ä"})
        markdown = self.table(document).stdout
        self.assertIn(r'| a,"b"\|c\\x0a\\x1b\[31m ', markdown)
        self.assertEqual(len({line.count("|") - line.count("\\|")
                              for line in markdown.splitlines()}), 1)

    def test_no_cell_is_a_formula(self):
        """What a spreadsheet would run has an apostrophe in front; numbers below 0 are as they are."""
        document = copy.deepcopy(self.kld)
        names = ["=1+1", "+1", "-1", "@x", "-", "a=1", "a;=1", "=" * 300]
        head = self.rows(document)[0]
        for name in names:
            document["base"]["name"] = name
            cell = self.rows(document)[1][1]
            shown = ("'" if name[0] in "=+-@" and name != "-" else "") + name
            self.assertTrue(cell == shown or (len(cell) > 100 and shown.startswith(cell)), cell)
            self.assertIn("| " + name[:50].replace("@", r"\@"), self.table(document).stdout)
        document["candidates"][0]["dp"]["mean"] = -0.25
        self.assertEqual(self.rows(document)[3][head.index("mean_dp_percent")], "-25")
        document["base"]["name"] = "a;=1"
        self.assertIn(',"a;=1",', self.table(document, "--csv").stdout)

    def test_refusals(self):
        def put(value, *where):
            document = copy.deepcopy(self.kld)
            inner = document
            for step in where[:-1]:
                inner = inner[step]
            if value is put:
                del inner[where[-1]]
            else:
                inner[where[-1]] = value
            return document
        for document, sentence in (
                (put(put, "candidates"), r"d\.json: candidates is missing; expected a whole"),
                (put({}, "candidates"), r"d\.json: candidates is an object, expected a list"),
                (put(7, "candidates", 1), r"d\.json: candidates\[1\]\.model is missing"),
                (put("1", "candidates", 1, "kld", "mean"),
                 r"d\.json: candidates\[1\]\.kld\.mean is '1', expected a finite number"),
                (put(True, "candidates", 0, "dp", "p75"), r"candidates\[0\]\.dp\.p75 is true, expected"),
                (put(4, "base", "quantisation"), r"base\.quantisation is 4, expected"),
                (put([], "base", "imatrix_file"), r"base\.imatrix_file is a list, expected a text"),
                (put(put, "text"), r"d\.json: text is missing"),
                (put(2, "schema_version"), r"schema_version is 2, this program reads 1; evaluate")):
            with self.subTest(sentence=sentence):
                done = self.table(document)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, sentence)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_names_of_the_reference_models(self):
        models = reference_models("models")
        if not models:
            self.skipTest("no reference material beside the checkout")
        for path in models:
            document = evaluate(self.folder, "perplexity", "-m", path, "-c", "4", "-p",
                                "a few words to have a perplexity of")
            self.assertEqual(document["model"]["quantisation"], path.name.split(".")[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
