#!/usr/bin/env python3
"""assay plan: what it counts is what the run then does, what it says of files is their size, nothing
of the run is written, and its options are the command's. How long a run takes is not tested here:
bench/plan.py compares that.

usage: test_plan.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import tempfile
import unittest

from program import F16, Q4, SOURCE, TEXT, run

SMALL = ["-f", TEXT, "-c", "32", "--chunks", "12"]


def plan(*words):
    done = run("plan", "--seconds", "1", "--json", "-", *words)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout), done.stderr


class Plan(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_counts_are_those_of_the_run(self):
        words = ["perplexity", "-m", Q4, *SMALL, "-b", "96", "--json", self.folder / "r.json",
                 "--state", self.folder / "s"]
        document, said = plan(*words)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertRegex(said, r"(?m)^The run would take about [\d.]+ s and [\d.]+ MB of memory here, "
                               r"and [\d.]+ kB of disk; [\w ]+ limits it\.$")
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((self.folder / "r.json").read_text())
        work, times = document["work"], document["plan"]
        self.assertEqual((work["n_units"], work["n_scored"], work["batch_tokens"], work["n_passes"]),
                         (12, result["result"]["n_tokens"], 93, 4))
        self.assertIn("batch_size=93,", done.stderr)
        self.assertEqual(work["n_tokens"], result["run"]["n_inputs"])
        self.assertEqual(times["journal_bytes"], (self.folder / "s").stat().st_size)
        self.assertGreater(times["memory_bytes"], Q4.stat().st_size)
        # The journal has all of it now, and stays as it is.
        before = (self.folder / "s").read_bytes()
        document, said = plan(*words)
        self.assertEqual((document["work"]["n_resumed"], document["work"]["n_tokens"]), (12, 0))
        self.assertIn("0 windows (12 of 12 are in the journal)", said)
        self.assertEqual((self.folder / "s").read_bytes(), before)

    def test_a_race_may_end_at_its_first_look(self):
        document, said = plan("best", "--base", F16, Q4, *SMALL)
        times = document["plan"]
        self.assertLess(times["seconds_to_look"], times["seconds"])
        self.assertRegex(said, r"would take at most [\d.]+ s \([\d.]+ s if its first look decides\) and")
        document, said = plan("perplexity", "-m", Q4, *SMALL)
        self.assertIsNone(document["plan"]["seconds_to_look"])
        self.assertNotIn("look", said)

    def test_recordings_have_the_size_that_was_said(self):
        for more in ([], ["--hidden", "f16", "--head-by-path"], ["--format", "logits"]):
            words = ["record", "-m", Q4, *SMALL, "-o", self.folder / "b", *more]
            document, said = plan(*words)
            self.assertIn("the recording\n", said)
            self.assertEqual(list(self.folder.iterdir()), [])
            done = run(*words)
            size = (self.folder / "b").stat().st_size
            self.assertEqual(document["plan"]["recording_bytes"], size, more)
            self.assertIn(f"recording {size / 1e6:.1f} MB\n", done.stderr)
            (self.folder / "b").unlink()

    def test_every_command_that_evaluates(self):
        record = ["perplexity", "-m", F16, *SMALL, "--kl-divergence-base", self.folder / "l"]
        self.assertEqual(run(*record).returncode, 0)
        requests = self.folder / "q.jsonl"
        requests.write_text('{"context": "In the town", "continuation": " there was"}\n' * 3)
        tasks = SOURCE / "tests" / "data" / "tasks" / "hellaswag.txt"
        for words, unit, n in (
                (["kld", "-m", Q4, "--base", F16, *SMALL], "window", 12),
                (["kld", "-m", Q4, "--base", self.folder / "l"], "window", 12),
                (["check", "-m", Q4, "--kl-divergence-base", self.folder / "l"], "window", 12),
                (["score", "-m", Q4, requests], "request", 3),
                (["-m", Q4, "-f", tasks, "--hellaswag"], "task", None)):
            document, _ = plan(*words)
            self.assertEqual(document["work"]["unit"], unit, words)
            self.assertGreater(document["plan"]["seconds"], 0)
            self.assertGreater(document["trial"]["n_tokens"], 0)
            if n:
                self.assertEqual(document["work"]["n_units"], n)

    def test_a_sweep_has_cheaper_ones(self):
        words = ["sweep", "--base", F16, "--from", Q4, *SMALL]
        document, _ = plan(*words)
        ways = {way["options"]: way for way in document["cheaper"]}
        self.assertEqual(list(ways), ["--by layer", "--by role", "--chunks 2"])
        whole = document["work"]["operations_layers"] + document["work"]["operations_head"]
        for by in ("layer", "role"):
            self.assertLess(ways[f"--by {by}"]["seconds"], document["plan"]["seconds"])
            coarse, _ = plan(*words, "--by", by)
            work = coarse["work"]
            share = (work["operations_layers"] + work["operations_head"]) / whole
            self.assertLess(share, 0.9)
        self.assertAlmostEqual(ways["--chunks 2"]["error_factor"], 6 ** 0.5)

    def test_dry_run_is_the_same(self):
        done = run("kld", "--dry-run", "-m", Q4, "--base", F16, *SMALL, "--per-token", self.folder / "t")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^The run would take about .*\n  time .*\n  processors ")
        self.assertIn("12 windows, 372 tokens through the layers, 180 scored", done.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_what_cannot_be_planned(self):
        for words, sentence in (
                ([], "the command is missing: expected a command that evaluates"),
                (["info", F16], "'info' cannot be planned: expected a command that evaluates"),
                (["perplexity", "-m", Q4], "expected exactly one text"),
                (["kld", "-m", Q4, "--base", F16, *SMALL, "--chonks"], "--chonks"),
                (["check", "-m", Q4, "--url", "http://127.0.0.1:1"], "a server, whose time"),
                (["perplexity", "-m", Q4, *SMALL, "--split", "layers"], "--split: a plan is made by")):
            done = run("plan", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(sentence, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[__file__])
