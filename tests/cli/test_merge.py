#!/usr/bin/env python3
"""assay merge: journals of ranges of windows become the journal of one run, to the byte, and the
results that are written from it are that run's; what is missing, twice or different is named.

usage: test_merge.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from interrupted import KLD, PERPLEXITY, RECORD, SLOWLY, Run, hellaswag
from program import ASSAY, F16, Q4, SOURCE, last_of_each

ALL = [word if word != "60" else "-1" for word in PERPLEXITY]  # 458 windows


class Merge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-merge-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def run_in(self, *words):
        words = [str(word) for word in last_of_each(list(words))]
        return subprocess.run(words, cwd=self.path, capture_output=True)

    def make(self, words, ranges):
        """A journal for each (from, how many); their names."""
        names = []
        for first, n in ranges:
            names.append(f"{first}.state")
            result = self.run_in(*words, "--chunk-from", first, "--chunks", n, "--state",
                                 names[-1], "--json", f"{first}.json")
            self.assertEqual(result.returncode, 0, result.stderr)
        return names

    def merge(self, *words):
        return self.run_in(ASSAY, "merge", *words, "-o", "all.state")

    def merges(self, words, ranges, *more):
        """Parts in another order than their windows'; with `more` as one run would have it."""
        names = self.make(words, ranges)
        merged = self.merge(*reversed(names), *more)
        self.assertEqual((merged.returncode, merged.stdout), (0, b""), merged.stderr)
        outputs = ["r.json", "t.tsv"]
        whole = [*words, *more, "--json", "r.json", "--per-token", "t.tsv"]
        run = Run(last_of_each(whole), outputs)
        expected = self.run_in(*whole, "--state", "one.state")
        one = run.results(self.path)
        self.assertEqual((self.path / "all.state").read_bytes(),
                         (self.path / "one.state").read_bytes())
        again = self.run_in(*whole, "--state", "all.state")
        self.assertEqual(again.stdout, expected.stdout)
        self.assertEqual(run.results(self.path), one)
        self.assertEqual(json.loads((self.path / "r.json").read_text())["run"]["n_inputs"], 0)

    def test_all_of_a_text(self):
        self.merges(ALL, [(0, 100), (100, 250), (350, -1)])

    def test_a_last_part_with_fewer_windows_than_asked_for(self):
        self.merges(ALL, [(0, 300), (300, 300)])

    def test_the_first_windows(self):
        self.merges(PERPLEXITY, [(0, 7), (7, 3)], "--chunks", "10")

    def test_overlapping_windows(self):
        words = last_of_each([*ALL, "-c", "512", "-b", "512", "--ppl-stride", "300"])
        self.merges(words, [(0, 20), (20, -1)])

    def test_other_protocols(self):
        words = last_of_each([*ALL, "-c", "512", "-b", "512", "--protocol", "fixed"])
        self.merges(words, [(0, 11), (11, -1)])

    def test_a_comparison(self):
        words = last_of_each([*KLD, "-c", "128", "-b", "128", "--chunks", "-1"])
        self.merges(words, [(0, 50), (50, 60), (110, -1)])

    def test_a_recorded_base_and_a_check(self):
        base = self.path / "base.kld"
        self.assertEqual(self.run_in(*RECORD[:-1], base).returncode, 0)
        self.merges([ASSAY, "kld", "-m", F16, "--base", base, *SLOWLY], [(0, 30), (30, 30)])
        for name in self.path.glob("*.state"):
            name.unlink()
        self.merges([ASSAY, "check", "-m", F16, "--kl-divergence-base", base, *SLOWLY],
                    [(0, 30), (30, -1)])

    def test_documents_name_their_journals(self):
        self.make(PERPLEXITY, [(0, 5), (5, 5)])
        (self.path / "parts").mkdir()
        for name in ("0.state", "0.json", "5.state", "5.json"):
            (self.path / name).rename(self.path / "parts" / name)
        merged = self.merge("parts/0.json", "parts/5.state", "--chunks", "10")
        self.assertEqual(merged.returncode, 0, merged.stderr)
        (self.path / "all.state").unlink()
        self.run_in(*PERPLEXITY, "--chunks", "1", "--json", "plain.json")
        self.refuses(["plain.json"], "plain.json: the result of a run without --state")

    def refuses(self, words, sentence, code=2):
        result = self.merge(*words)
        message = result.stderr.decode()
        self.assertEqual((result.returncode, result.stdout), (code, b""), message)
        self.assertIn(sentence, message)
        self.assertFalse((self.path / "all.state").exists())

    def test_what_is_missing_or_twice(self):
        a, b, c = self.make(PERPLEXITY, [(0, 10), (8, 10), (20, 5)])
        last = self.make(ALL, [(440, -1)])[0]
        self.refuses([b], "windows 0 to 7 (from 0) are in no part")
        self.refuses([a, c, "--chunks", "25"], "windows 10 to 19 (from 0) are in no part")
        self.refuses([a], "windows 10 to 457 (from 0) are in no part")
        self.refuses([a, last], "windows 10 to 439 (from 0) are in no part")
        self.refuses([b, a], "windows 8 to 9 (from 0) are there twice: in 0.state and 8.state")
        self.refuses([a, a], "windows 0 to 9 (from 0) are there twice: in 0.state and 0.state")
        self.refuses([a, "--chunks", "7"], "0.state has windows beyond the first 7")

    def test_a_run_that_did_not_end(self):
        a, b = self.make(PERPLEXITY, [(0, 5), (5, 5)])
        path = self.path / a
        path.write_bytes(path.read_bytes()[:-700])
        self.refuses([a, b, "--chunks", "10"],
                     "windows 3 to 4 (from 0) are in no part: the journal of their run ends "
                     "before; repeat the command of 0.state")

    def test_what_differs(self):
        a = self.make(PERPLEXITY, [(0, 5)])[0]
        for more, difference in ((["-m", F16], "model.id "), (["-c", "64"], "settings.n_ctx "),
                                 (["-f", SOURCE / "LICENSE"], "text.sha256 "),
                                 (["--llama-compat"], "settings.llama_compat ")):
            words = last_of_each([*PERPLEXITY, *more])
            b = self.make(words, [(5, 5)])[0]
            with self.subTest(more=more):
                self.refuses([a, b, "--chunks", "10"], f"0.state was made with {difference}")
            (self.path / b).unlink()
        b = self.make(PERPLEXITY, [(5, 5)])[0]
        other = (self.path / b).read_bytes().replace(b'"assay":\t"', b'"assay":\t"9', 1)
        (self.path / b).write_bytes(other)  # no whole head any more
        self.refuses([a, b], "5.state: the journal's head is damaged or cut off")

    def test_what_has_no_ranges(self):
        self.run_in(*hellaswag(self.path), "--state", "s.state")
        self.refuses(["s.state"], "s.state: is of hellaswag, which has no ranges of windows")
        self.run_in(*RECORD, "--chunks", "3", "--state", "r.state")
        self.refuses(["r.state"], "r.state: is of a recording, whose rows are not in it")
        self.refuses([Q4], "is not a journal of assay")
        self.refuses(["missing"], "missing: cannot be opened: No such file")

    def test_the_output(self):
        a = self.make(PERPLEXITY, [(0, 5)])[0]
        (self.path / "all.state").write_text("precious")
        result = self.merge(a, "--chunks", "5")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"all.state exists; remove it, or give another name", result.stderr)
        self.assertEqual((self.path / "all.state").read_text(), "precious")


unittest.main(argv=sys.argv[:1])
