#!/usr/bin/env python3
"""assay compare as JSON: the figures of both are those of their own results, the same again and
again, every field described; and documents that lie about a field are refused, naming it.

usage: test_compare_json.py ASSAY SOURCE_DIR
"""
import copy
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

from documents import check
from program import ASSAY, F16, Q4, SOURCE, TEXT

TASKS = SOURCE / "tests" / "data" / "tasks" / "hellaswag.txt"


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        text = ("-f", TEXT, "-c", "32", "--chunks", "12")
        cls.ppl = [cls.evaluate("perplexity", "-m", m, *text) for m in (Q4, F16)]
        cls.kld = cls.evaluate("kld", "-m", Q4, "-m", F16, "--base", F16, *text)
        cls.tasks = [cls.evaluate("perplexity", "-m", m, "-f", TASKS, "--hellaswag")
                     for m in (Q4, F16)]

    @classmethod
    def evaluate(cls, *words):
        path = pathlib.Path(cls.folder.name) / "r.json"
        subprocess.run([ASSAY, *words, "-q", "--json", path, "--force"], check=True, capture_output=True)
        return json.loads(path.read_text())

    def call(self, a, b, *options):
        folder = pathlib.Path(self.folder.name)
        for name, document in (("a.json", a), ("b.json", b)):
            text = document if isinstance(document, str) else json.dumps(document)
            (folder / name).write_text(text)
        return subprocess.run([ASSAY, "compare", "a.json", "b.json", "--json", "c.json", *options],
                              cwd=folder, capture_output=True, text=True)

    def compare(self, a, b, *options):
        done = self.call(a, b, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((pathlib.Path(self.folder.name) / "c.json").read_text())

    def check_figure(self, figure, a, b):
        # Sums by window, added up again: rounding only.
        self.assertAlmostEqual(figure["a"], a, delta=1e-12 * abs(a))
        self.assertAlmostEqual(figure["b"], b, delta=1e-12 * abs(b))
        self.assertEqual(figure["difference"], figure["b"] - figure["a"])
        self.assertLessEqual(figure["low"], figure["high"])

    def test_perplexity(self):
        result = self.compare(*self.ppl)
        for figure, key in zip(result["figures"], ("ppl", "nll")):
            self.assertEqual(figure["name"], key)
            self.check_figure(figure, *(d["result"][key] for d in self.ppl))
        self.assertEqual(result["n_tokens"], self.ppl[0]["result"]["n_tokens"])

    def test_divergence(self):
        result = self.compare(self.kld, self.kld, "--candidate-a", "1", "--candidate-b", "2")
        figures = {figure["name"]: figure for figure in result["figures"]}
        a, b = self.kld["candidates"]
        self.check_figure(figures["kld"], a["kld"]["mean"], b["kld"]["mean"])
        self.check_figure(figures["dp"], a["dp"]["mean"], b["dp"]["mean"])
        self.check_figure(figures["rms_dp"], a["dp"]["rms"], b["dp"]["rms"])
        self.check_figure(figures["same_top"], a["same_top"], b["same_top"])
        self.check_figure(figures["ppl"], a["ppl"]["value"], b["ppl"]["value"])
        self.assertLess(figures["kld"]["high"], 0)  # F16 is nearer to itself, beyond doubt
        self.assertEqual((result["a"]["candidate"], result["b"]["candidate"]), (1, 2))

    def test_rounding(self):
        """A difference that rounding may have made is said to be one; an older result says nothing."""
        def with_rounding(x):
            document = copy.deepcopy(self.kld)
            for candidate in document["candidates"]:
                candidate["kld"]["rounding"] = x
            return document
        words = ("--candidate-a", "1", "--candidate-b", "2")
        mean = self.kld["candidates"][0]["kld"]["mean"]
        for x, said in (0.6 * mean, True), (0.4 * mean, False), (None, False):
            document = with_rounding(x)
            self.assertEqual(self.compare(document, document, *words)["kld_rounding"],
                             x if x is None else 2 * x)
            printed = self.call(document, document, *words).stdout
            self.assertEqual("no larger than what rounding may have made" in printed, said, printed)
            self.assertNotIn("rounding", self.call(document, document, "--candidate-a", "1",
                                                   "--candidate-b", "1").stdout)
        document = with_rounding(0)
        del document["candidates"][0]["kld"]["rounding"]
        self.assertIsNone(self.compare(document, document, *words)["kld_rounding"])

    def test_tasks(self):
        result = self.compare(*self.tasks)
        for score in result["scores"]:
            for side, document in zip("ab", self.tasks):
                self.assertEqual(score[side], document["result"][score["name"]]["share"])
            n = sum(score[key] for key in ("n_both", "n_only_a", "n_only_b", "n_neither"))
            self.assertEqual(n, result["n_tasks"])
            b, c = score["n_only_a"], score["n_only_b"]
            p = sum(math.comb(b + c, k) for k in range(min(b, c) + 1)) / 2 ** (b + c - 1)
            self.assertAlmostEqual(score["exact_p"], min(1, p), delta=1e-9)

    def test_a_base_without_a_text(self):
        without = copy.deepcopy(self.kld)
        without["text"] = None
        words = ("--candidate-a", "1", "--candidate-b", "2")
        self.assertEqual(self.compare(without, without, *words)["figures"],
                         self.compare(self.kld, without, *words)["figures"])

    def test_the_same_again_and_another_seed(self):
        first = self.compare(*self.ppl)
        self.assertEqual(self.compare(*self.ppl), first)
        other = self.compare(*self.ppl, "--seed", "2")
        self.assertNotEqual(other["figures"][0]["low"], first["figures"][0]["low"])
        self.assertEqual(other["figures"][0]["difference"], first["figures"][0]["difference"])

    def test_the_other_way_round(self):
        there, back = self.compare(*self.ppl), self.compare(*reversed(self.ppl))
        for f, g in zip(there["figures"], back["figures"]):
            self.assertAlmostEqual(f["low"], -g["high"], delta=1e-12)  # quantiles interpolate
            self.assertAlmostEqual(f["high"], -g["low"], delta=1e-12)

    def test_every_field_is_documented(self):
        for pair in (self.ppl, self.tasks):
            check(self, self.compare(*pair))
        check(self, self.compare(self.kld, self.kld, "--candidate-a", "1", "--candidate-b", "1"))

    def refuses(self, document, change, sentence, exit_code=2):
        changed = copy.deepcopy(document)
        change(changed)
        done = self.call(changed, document)
        self.assertEqual((done.returncode, done.stdout), (exit_code, ""))
        self.assertRegex(done.stderr, sentence)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_refusals(self):
        ppl, tasks = self.ppl[0], self.tasks[0]
        def put(*where):
            *path, key, value = where
            def change(document):
                for step in path:
                    document = document[step]
                document[key] = value
            return change
        for document, change, sentence, code in (
                (ppl, put("windows", "sums", 3, "nll", "x"),
                 r"a\.json: windows\.sums\[3\]\.nll is 'x', expected a finite number, or null",
                 2),
                (ppl, put("windows", "sums", 3, "nll", None),
                 r"a\.json: windows\.sums\[3\]\.nll is not finite", 1),
                (ppl, put("windows", "sums", {}), r"windows\.sums is an object, expected a list", 2),
                (ppl, put("windows", "sums", 0, "n_tokens", 7),
                 r"windows\.sums\[0\]\.n_tokens is 7 and 15;", 2),
                (ppl, put("windows", "sums", 2, "window", -1), r"expected a whole number", 2),
                (ppl, put("windows", "sums", 2, "window", 1.5), r"expected a whole number", 2),
                (ppl, put("windows", "sums", 3, 4), r"windows\.sums\[3\]\.window is missing", 2),
                (ppl, lambda d: d["model"].pop("name"), r"a\.json: model\.name is missing", 2),
                (ppl, put("tokens", "sha256", "0"), r'tokens\.sha256 is "0" and "', 2),
                (ppl, put("text", 3), r"a\.json: text\.sha256 is missing", 2),
                (ppl, lambda d: d.pop("text"), r"a\.json: text is missing", 2),
                (tasks, put("tasks", 1, "task", 99), r"tasks\[1\]\.task is 99 and \d+;", 2),
                (tasks, put("tasks", 1, "choice", []),
                 r"tasks\[1\]\.choice is a list, expected a whole", 2),
                (tasks, put("tasks", []), r"a\.json has no tasks", 2),
                (tasks, put("kind", "winogrande"), r'kind is "winogrande" and "hellaswag"', 2)):
            with self.subTest(sentence=sentence):
                self.refuses(document, change, sentence, code)

    def test_wrong_documents(self):
        """Each is known to be wrong, and none may be accepted: cut anywhere, or with windows that
        are not those that its figures were computed from."""
        text = json.dumps(self.ppl[0])
        for at in range(0, len(text), 97):
            done = self.call(text[:at], self.ppl[0])
            self.assertEqual((done.returncode, done.stdout), (2, ""))
        for document, windows, mean in (
                (self.ppl[0], lambda d: d["windows"]["sums"], lambda d: (d["result"], "nll")),
                (self.kld, lambda d: d["candidates"][0]["windows"],
                 lambda d: (d["candidates"][0]["kld"], "mean"))):
            name = "nll" if document is self.ppl[0] else "kld"

            def raise_sum(d, i):
                windows(d)[i][name] *= 1.001

            def raise_mean(d, _i):
                object_, key = mean(d)
                object_[key] *= 1.001
            wrong = {
                "windows ascend": [lambda d, i: windows(d).insert(i, windows(d)[i]),
                                   lambda d, i: windows(d).reverse()],
                "but its windows give": [lambda d, i: windows(d).pop(i), raise_sum, raise_mean],
            }
            for sentence, changes in wrong.items():
                for change in changes:
                    for i in range(0, len(windows(document)), 4):
                        changed = copy.deepcopy(document)
                        change(changed, i)
                        for pair in ((changed, document), (document, changed)):
                            done = self.call(*pair, *(["--candidate-a", "1", "--candidate-b", "1"]
                                                      if name == "kld" else []))
                            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                            self.assertIn(sentence, done.stderr)

    def test_a_base_or_setting_of_its_own(self):
        one = self.evaluate("kld", "-m", Q4, "--base", F16, "-f", TEXT, "-c", "32", "--chunks", "2")
        def other_base(document):
            document["base"]["id"] = "0"
        def other_rope(document):
            document["settings"]["rope_scale"] = 2
        self.refuses(one, other_base, r'base\.id is "0" and "')
        self.refuses(one, other_rope, r"settings\.rope_scale is 2 and null")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
