#!/usr/bin/env python3
"""SIGKILL at random moments: evaluations, comparisons, tasks and recordings go on where they stopped
and end with the bytes of a run that was not killed.

usage: test_killed.py ASSAY SOURCE_DIR
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from interrupted import (IMATRIX, KLD, PERPLEXITY, RECORD, RECORD_HIDDEN, SEED, SLOWLY, SWEEP, Run, hellaswag,
                         requests)
from program import ASSAY, F16, Q4

N_KILLS = 20 if os.environ.get("ASSAY_TEST_SLOW") else 8


class Killed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="assay-state-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.hellaswag = hellaswag(cls.path)
        print("seed:", SEED)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_killed_perplexity(self):
        Run([*PERPLEXITY, "--json", "r.json", "--per-token", "t.tsv"],
            ["r.json", "t.tsv"]).killed(N_KILLS, self, "--state", "s.journal")

    def test_killed_comparison(self):
        Run([*KLD, "--json", "r.json", "--per-token", "t.tsv", "--worst", "3"],
            ["r.json", "t.tsv"]).killed(N_KILLS, self, "--state", "s.journal")

    def test_killed_sweep(self):
        outputs = ["r.json", "t.tsv", "h.svg"]
        for words in (SWEEP, [*SWEEP, "--around", Q4, "--from", F16, "--device", "cpu,cpu"]):
            Run([*words, "--json", "r.json", "--tsv", "t.tsv", "--heatmap", "h.svg"],
                outputs).killed(N_KILLS // 2, self, "--state", "s.journal")

    def test_killed_importance_matrix(self):
        Run([*IMATRIX, "--stop-when-change", "0.001", "--json", "r.json"], ["m.gguf", "r.json"]).killed(
            N_KILLS // 4, self, "--state", "s.journal")

    def test_killed_tasks(self):
        Run([*self.hellaswag, "--json", "r.json", "--per-task", "t.tsv"],
            ["r.json", "t.tsv"]).killed(N_KILLS, self, "--state", "s.journal")

    def test_killed_requests(self):
        words = requests(self.path)
        Run([*words, "--json", "r.json"], ["r.json"]).killed(
            N_KILLS // 2, self, "--state", "s.journal")
        Run([*words, "--json", "r.json", "-o", "r.jsonl"], ["r.json", "r.jsonl"]).killed(
            N_KILLS // 2, self, "--state", "s.journal")

    def test_killed_recording(self):
        Run([*RECORD, "--json", "r.json"], ["base.kld", "r.json"]).killed(
            N_KILLS, self, "--state", "s.journal")

    def test_killed_recording_of_hidden_states(self):
        Run([*RECORD_HIDDEN, "--json", "r.json"], ["base.assay", "r.json"]).killed(
            N_KILLS, self, "--state", "s.journal")

    def test_killed_comparison_with_a_file(self):
        for words in (RECORD, RECORD_HIDDEN):
            with self.subTest(words=words):
                subprocess.run(list(map(str, words)), cwd=self.path, check=True,
                               capture_output=True)
                words = [ASSAY, "kld", "-m", F16, "--base", self.path / words[-1], *SLOWLY,
                         "--json", "r.json", "--per-token", "t.tsv"]
                Run(words, ["r.json", "t.tsv"]).killed(N_KILLS // 2, self, "--state", "s.journal")

    def test_killed_check(self):
        base = self.path / "checked.kld"
        subprocess.run(list(map(str, [*RECORD[:-1], base])), check=True, capture_output=True)
        words = [ASSAY, "check", "-m", F16, "--kl-divergence-base", base, *SLOWLY, "--json",
                 "r.json", "--per-token", "t.tsv"]
        Run(words, ["r.json", "t.tsv"]).killed(N_KILLS // 2, self, "--state", "s.journal")


unittest.main(argv=sys.argv[:1])
