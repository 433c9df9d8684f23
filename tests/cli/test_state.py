#!/usr/bin/env python3
"""--state: a run that was killed goes on where it stopped and ends with the bytes of one that was
not; what a journal does not belong to is refused by name.

usage: test_state.py ASSAY SOURCE_DIR
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from interrupted import SEED, Run, without_run

os.environ["ASSAY_PRECISION"] = "exact"  # the same bits with any --isa
ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
DATA, TEXT = SOURCE / "data", SOURCE / "docs" / "handbook.md"
F16, Q4 = DATA / "tiny.F16.gguf", DATA / "tiny.Q4_K_M.gguf"
N_KILLS = 20
# Small batches, so that much is to be interrupted.
SLOWLY = ["-t", "1", "-b", "32", "-q"]
PERPLEXITY = [ASSAY, "perplexity", "-m", Q4, "-f", TEXT, "-c", "32", "--chunks", "60", *SLOWLY]
KLD = [ASSAY, "kld", "-m", Q4, "-m", F16, "--base", F16, "-f", TEXT, "-c", "32", "--chunks", "24",
       "--js", *SLOWLY]


def hellaswag_tasks(n):
    """Tasks cut from the text; what they are about does not matter."""
    words = TEXT.read_text().split()
    lines = []
    for i in range(n):
        text = words[40 * i:40 * i + 40]
        endings = [" ".join(text[10 + 6 * k:16 + 5 * k]) for k in range(4)]
        lines.append(json.dumps({"ctx": " ".join(text[:10]), "endings": endings, "label": i % 4}))
    return "\n".join(lines) + "\n"


class State(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="assay-state-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.tasks = cls.path / "tasks.jsonl"
        cls.tasks.write_text(hellaswag_tasks(40))
        cls.hellaswag = [ASSAY, "perplexity", "--hellaswag", "-m", Q4, "-f", cls.tasks, *SLOWLY]
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

    def test_killed_tasks(self):
        Run([*self.hellaswag, "--json", "r.json", "--per-task", "t.tsv"],
            ["r.json", "t.tsv"]).killed(N_KILLS, self, "--state", "s.journal")

    def run_in(self, folder, *words):
        return subprocess.run([str(word) for word in words], cwd=folder, capture_output=True,
                              timeout=120)

    def test_finished_journal_gives_the_results_again(self):
        """All of it, though nothing is evaluated; other batches, threads, outputs do not matter."""
        for words in (PERPLEXITY, KLD, self.hellaswag):
            with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                first = self.run_in(folder, *words, "--state", "s", "--json", "a.json")
                self.assertEqual(first.returncode, 0, first.stderr)
                again = self.run_in(folder, *words, "--state", "s", "--json", "b.json", "-t", "2",
                                    "-b", "999", "--isa", "scalar")
                self.assertEqual((again.returncode, again.stdout), (0, first.stdout), again.stderr)
                a, b = ((pathlib.Path(folder) / name).read_bytes() for name in ("a.json", "b.json"))
                self.assertEqual(without_run(a), without_run(b))
                run = json.loads(b)["run"]
                self.assertEqual((run["n_inputs"], run["state_file"]), (0, "s"))
                self.assertGreater(run["n_resumed"], 0)
                self.assertIn(b"were finished before", again.stderr)

    def test_interrupted_run_goes_on(self):
        """Ctrl-C keeps the journal as a kill does, and what was finished is reported at once."""
        alone = KLD[:4] + KLD[6:]  # only then are there lines on the way
        for words in (PERPLEXITY, alone, self.hellaswag):
            with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                expected = self.run_in(folder, *words).stdout
                run = Run([*words, "--state", "s"], [])
                process = run.start(folder)
                process.stdout.read(60)  # the first result
                process.send_signal(signal.SIGINT)
                _out, err = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 130, err)
                self.assertIn(b"assay: interrupted: the result is incomplete\n", err)
                again = self.run_in(folder, *words, "--state", "s")
                self.assertEqual((again.returncode, again.stdout), (0, expected), again.stderr)
                self.assertIn(b"were finished before", again.stderr)

    def refuses(self, folder, words, sentence):
        before = (pathlib.Path(folder) / "s").read_bytes()
        result = self.run_in(folder, *words, "--state", "s", "--json", "r.json")
        message = result.stderr.decode()
        self.assertEqual((result.returncode, result.stdout), (2, b""), message)
        self.assertRegex(message, sentence)
        self.assertEqual((pathlib.Path(folder) / "s").read_bytes(), before)
        self.assertNotIn("r.json", os.listdir(folder))

    def test_refuses_another_evaluation(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_in(folder, *PERPLEXITY, "--state", "s")
            for words, difference in (
                    (["-c", "64"], r"settings\.n_ctx 32, this run has 64;"),
                    (["--chunks", "59"], r"settings\.chunks 60, this run has 59;"),
                    (["--ppl-stride", "16"], r"settings\.protocol default, .* strided;"),
                    (["--rope-freq-base", "5000"], r"settings\.rope_freq_base null, .* 5000;"),
                    (["--gemm", "openblas"], r"settings\.gemm own, this run has openblas;"),
                    (["-m", F16], r"model\.id [0-9a-f]+\.\.\., this run has [0-9a-f]+\.\.\.;"),
                    (["-f", SOURCE / "LICENSE"], r"text\.sha256 ")):
                if words[0] == "--gemm" and b"OpenBLAS" in self.run_in(
                        folder, *PERPLEXITY, *words).stderr:
                    continue  # not built in
                with self.subTest(words=words):
                    self.refuses(folder, [*PERPLEXITY, *words],
                                 r"assay: s was made with " + difference)
            self.refuses(folder, KLD, r"made with evaluator perplexity, this run has kld;")
            self.refuses(folder, self.hellaswag, r"evaluator perplexity, this run has hellaswag;")

    def test_refuses_other_candidates(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_in(folder, *KLD, "--state", "s")
            self.refuses(folder, [*KLD, "-m", Q4], r"candidates\[2\] none, this run has ")
            self.refuses(folder, [word for word in KLD if word != "--js"],
                         r"settings\.js true, this run has false;")

    def test_refuses_other_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "s"
            path.write_bytes(b"something precious")
            self.refuses(folder, PERPLEXITY, r"assay: s: is not a journal of assay")
            for name in (folder, "/dev/full", "/no-such-folder/s", "-"):
                result = self.run_in(folder, *PERPLEXITY, "--state", name)
                self.assertEqual((result.returncode, result.stdout), (2, b""))
                self.assertEqual(result.stderr.count(b"\n"), 1, result.stderr)

    def test_two_runs_do_not_share_a_journal(self):
        with tempfile.TemporaryDirectory() as folder:
            process = Run([*PERPLEXITY, "--state", "s"], []).start(folder)
            process.stdout.read(1)
            process.send_signal(signal.SIGSTOP)
            second = self.run_in(folder, *PERPLEXITY, "--state", "s")
            process.send_signal(signal.SIGCONT)
            process.communicate(timeout=120)
            self.assertEqual(second.returncode, 2)
            self.assertIn(b"assay: s: the journal is in use by another run\n", second.stderr)
            self.assertEqual(process.returncode, 0)


unittest.main(argv=sys.argv[:1])
