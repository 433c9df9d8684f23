#!/usr/bin/env python3
"""--state: what was finished is not evaluated again, and what a journal does not belong to is refused
by name. test_killed.py kills runs.

usage: test_state.py ASSAY SOURCE_DIR
"""
import hashlib
import itertools
import json
import math
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from documents import without_run
from interrupted import ATTEMPTS, IMATRIX, KLD, PERPLEXITY, RECORD, RECORD_HIDDEN, Run, hellaswag, requests
from program import ASSAY, F16, HANG_S, Q4, SOURCE, last_of_each


class State(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="assay-state-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.hellaswag = hellaswag(cls.path)
        cls.requests = requests(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_refuses_another_recording(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_in(folder, *RECORD_HIDDEN, "--state", "s")
            self.refuses(folder, [*RECORD_HIDDEN, "--hidden", "f32", "--force"],
                         r"recording\.hidden f16, this run has f32;")
            self.refuses(folder, PERPLEXITY, r"recording\.format compact, this run has null;")

    def test_recording_goes_on_only_with_what_it_vouches_for(self):
        for words, name in ((RECORD, "base.kld"), (RECORD_HIDDEN, "base.assay")):
            with self.subTest(words=words):
                self.check_what_it_vouches_for(words, name)

    def check_what_it_vouches_for(self, record, name):
        """The part was removed, is another model's, or the file is there under its final name."""
        words = [*record, "--state", "s"]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            self.run_in(folder, *record)
            expected = (folder / name).read_bytes()

            def finish(n_done, *more):
                again = self.run_in(folder, *words, *more)
                self.assertEqual(again.returncode, 0, again.stderr)
                self.assertEqual((folder / name).read_bytes(), expected)
                self.assertIs(n_done, b" finished before" in again.stderr)
                self.assertEqual(sorted(os.listdir(folder)), [name, "s"])

            def stop(words):
                for _attempt in range(ATTEMPTS):  # on a busy machine it may just have ended
                    (folder / name).unlink(missing_ok=True)
                    (folder / words[-1]).unlink(missing_ok=True)
                    Run(words, []).stopped(folder, signal.SIGKILL)
                    if (folder / f"{name}.part").exists():
                        return
                self.fail("it always ended before it was killed")

            stop(words)
            finish(True)
            finish(True)  # all is there: nothing to do
            (folder / name).write_bytes(expected[:-1] + b"x")
            again = self.run_in(folder, *words)
            self.assertEqual(again.returncode, 2)
            self.assertIn(f"assay: {name}: exists, but does not match s; --force replaces "
                          f"it\n", again.stderr.decode())
            finish(False, "--force")
            (folder / "s").unlink()
            again = self.run_in(folder, *words)
            if "record" in words:  # without a journal it is recorded anew
                self.assertEqual(again.returncode, 0, again.stderr)
            else:
                self.assertIn(f"assay: {name}: exists; --force replaces it\n", again.stderr.decode())
            (folder / "s").unlink()
            stop(words)
            (folder / f"{name}.part").unlink()
            finish(False)
            (folder / "s").unlink()
            stop(words)
            stop([*record, "-m", F16, "--state", "other"])
            (folder / "other").unlink()
            if record is RECORD:  # whose format does not name the model: the sums tell
                finish(False)
                return
            again = self.run_in(folder, *words)
            self.assertEqual(again.returncode, 2)
            self.assertIn(b"assay: base.assay.part: was begun with another model", again.stderr)

    def test_interrupted_recording(self):
        """Ctrl-C keeps the part with a journal, and without one leaves nothing."""
        for words, state in itertools.product((RECORD, RECORD_HIDDEN), ([], ["--state", "s"])):
            with self.subTest(words=words, state=state), \
                    tempfile.TemporaryDirectory() as folder:
                code, out, err = Run([*words, *state], []).stopped(folder, signal.SIGINT)
                self.assertEqual(code, 130, err)
                self.assertIn(b"Incomplete estimate: PPL = ", out)
                self.assertEqual(sorted(os.listdir(folder)),
                                 [f"{words[-1]}.part", "s"] if state else [])

    def run_in(self, folder, *words):
        return subprocess.run([str(word) for word in last_of_each(words)], cwd=folder, capture_output=True,
                              timeout=HANG_S)

    def test_finished_journal_gives_the_results_again(self):
        """All of it, though nothing is evaluated; other batches, threads, outputs do not matter."""
        for words in (PERPLEXITY, KLD, self.hellaswag, self.requests):
            with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                first = self.run_in(folder, *words, "--state", "s", "--json", "a.json")
                self.assertEqual(first.returncode, 0, first.stderr)
                again = self.run_in(folder, *words, "--state", "s", "--json", "b.json", "-t", "2",
                                    "-b", "999", "--isa", "scalar")
                self.assertEqual((again.returncode, again.stdout), (0, first.stdout), again.stderr)
                a, b = (json.loads((pathlib.Path(folder) / name).read_bytes())
                        for name in ("a.json", "b.json"))
                self.assertEqual(without_run(a), without_run(b))
                run = b["run"]
                self.assertEqual((run["n_inputs"], run["state_file"]), (0, "s"))
                self.assertGreater(run["n_resumed"], 0)
                self.assertIn(b" finished before", again.stderr)

    def test_more_chunks_go_on(self):
        """Only the windows that are new are evaluated; results and journal are a fresh run's."""
        for words in (PERPLEXITY, KLD):
            with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder)
                for state in ("old", "new"):
                    for n in (("3", "3", "9") if state == "old" else ("9",)):
                        done = self.run_in(folder, *words, "--chunks", n, "--state", state, "--json", f"{state}.json",
                                           "-c", "32")
                        self.assertEqual(done.returncode, 0, done.stderr)
                        (path / state).with_suffix(".out").write_bytes(done.stdout)
                self.assertEqual((path / "old").read_bytes(), (path / "new").read_bytes())
                self.assertEqual((path / "old.out").read_bytes(), (path / "new.out").read_bytes())
                old, new = (json.loads((path / f"{name}.json").read_bytes()) for name in ("old", "new"))
                self.assertEqual(without_run(old), without_run(new))
                self.assertEqual((old["run"]["n_resumed"], new["run"]["n_resumed"]), (3, 0))
                fewer = self.run_in(folder, *words, "--chunks", "3", "--state", "old")
                self.assertEqual(fewer.returncode, 2)
                self.assertIn(b"settings.chunks", fewer.stderr)
                self.assertEqual((path / "old").read_bytes(), (path / "new").read_bytes())

    def test_interrupted_run_goes_on(self):
        """Ctrl-C keeps the journal as a kill does, and what was finished is reported at once."""
        alone = KLD[:4] + KLD[6:]  # only then are there lines on the way
        for words in (PERPLEXITY, alone, self.hellaswag, self.requests):
            with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                expected = self.run_in(folder, *words).stdout
                code, _out, err = Run([*words, "--state", "s"], []).stopped(folder, signal.SIGINT)
                self.assertEqual(code, 130, err)
                self.assertIn(b"assay: interrupted: the result is incomplete; the same command goes on from ", err)
                again = self.run_in(folder, *words, "--state", "s")
                self.assertEqual((again.returncode, again.stdout), (0, expected), again.stderr)
                self.assertIn(b" finished before", again.stderr)

    def test_sums_of_an_importance_matrix(self):
        """They lie beside the journal; a run goes on only where both are there and whole."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            whole, sums = path / "m.gguf", path / "s.sums"
            self.assertEqual(self.run_in(folder, *IMATRIX, "--no-ppl").returncode, 0)
            expected = whole.read_bytes()

            def finish(resumed, note=b""):
                whole.unlink(missing_ok=True)
                again = self.run_in(folder, *IMATRIX, "--state", "s")
                self.assertEqual((again.returncode, whole.read_bytes() == expected), (0, True), again.stderr)
                self.assertIs(resumed, b" finished before" in again.stderr)
                self.assertIn(note, again.stderr)

            for _attempt in range(ATTEMPTS):  # on a busy machine it may just have ended
                for name in os.listdir(folder):
                    (path / name).unlink()
                process = Run([*IMATRIX, "--state", "s"], []).start(folder)
                while process.poll() is None and not sums.exists():
                    pass
                process.send_signal(signal.SIGINT)
                _out, err = process.communicate(timeout=HANG_S)
                if process.returncode == 130:
                    break
            self.assertEqual((process.returncode, sorted(os.listdir(folder))), (130, ["s", "s.sums"]), err)
            finish(True)
            finish(True)  # all is there
            sums.write_bytes(sums.read_bytes()[:-70] + b"x" * 70)
            finish(False, b"s.sums: is damaged: its checksum is another one; all windows are evaluated anew")
            sums.unlink()
            finish(False)
            (path / "s").unlink()
            finish(False, b"s.sums has sums of 60 windows, the journal has 0; all windows are evaluated anew")
            self.refuses(folder, [*IMATRIX, "--stop-when-rows", "9"], r"settings\.stop_when_rows 0, this run has 9;")

    def with_values(self, journal, change):
        """A journal whose numbers are `change`d, with the checksums that belong to them."""
        n_head = 16 + struct.unpack_from("<I", journal, 12)[0] + 64
        out, at, chain = journal[:n_head], n_head, journal[n_head - 64:n_head]
        while at < len(journal):
            n = struct.unpack_from("<Q", journal, at + 8)[0]
            values = struct.unpack_from(f"<{n}d", journal, at + 16)
            record = journal[at:at + 16] + struct.pack(f"<{n}d", *map(change, values))
            chain = hashlib.sha256(chain + record).hexdigest().encode()
            out, at = out + record + chain, at + 16 + 8 * n + 64
        return out

    def test_layout_is_the_documented_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "s"
            for words in (PERPLEXITY, KLD, self.hellaswag, self.requests):
                path.unlink(missing_ok=True)
                self.run_in(folder, *words, "--state", "s")
                journal = path.read_bytes()
                self.assertEqual(journal[:12], b"ASSAYJNL" + struct.pack("<I", 1))
                n_head = 16 + struct.unpack_from("<I", journal, 12)[0]
                settings = json.loads(journal[16:n_head])
                self.assertIn("settings", settings)
                self.assertEqual(journal[n_head:n_head + 64],
                                 hashlib.sha256(journal[:n_head]).hexdigest().encode())
                self.assertEqual(self.with_values(journal, lambda x: x), journal)

    def test_nonsense_is_no_crash(self):
        """Numbers that no model gives, under right checksums: figures of them, or exit code 1."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "s"
            for words in (PERPLEXITY, KLD, self.hellaswag, self.requests):
                path.unlink(missing_ok=True)
                self.run_in(folder, *words, "--state", "s")
                journal = path.read_bytes()
                for name in ("r.json", "t.tsv"):
                    (pathlib.Path(folder) / name).unlink(missing_ok=True)
                more = {"kld": ["--worst", "3", "--context-curve", "--per-token", "t.tsv"],
                        "perplexity": ["--context-curve", "--per-token", "t.tsv"],
                        "score": ["-o", "t.jsonl"]}[words[1]]
                if words is self.hellaswag:
                    more = ["--per-task", "t.tsv"]
                for value in (math.nan, math.inf, -math.inf, 1e308, -1e308, 7.5, 0.0, -0.0):
                    with self.subTest(words=words, value=value):
                        path.write_bytes(self.with_values(journal, lambda _: value))
                        result = self.run_in(folder, *words, "--state", "s", "--json", "r.json",
                                             *more)
                        self.assertIn(result.returncode, (0, 1), result.stderr)
                        self.assertIn(b" finished before", result.stderr)
                        json.loads((pathlib.Path(folder) / "r.json").read_text())

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

    def test_a_model_that_was_moved(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            self.run_in(folder, *PERPLEXITY, "--state", "s", "--json", "a.json")
            (folder / "other.gguf").symlink_to(Q4)
            words = ["other.gguf" if word == Q4 else word for word in PERPLEXITY]
            again = self.run_in(folder, *words, "--state", "s", "--json", "b.json")
            self.assertEqual(again.returncode, 0, again.stderr)
            a, b = (json.loads((folder / name).read_text()) for name in ("a.json", "b.json"))
            self.assertEqual(b["run"]["n_resumed"], 60)
            self.assertEqual((a["model"]["file"], b["model"]["file"]), (Q4.name, "other.gguf"))

    def test_refuses_other_requests(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_in(folder, *self.requests, "--state", "s")
            for words, difference in ((["-c", "64"], r"settings\.n_ctx 48, this run has 64;"),
                                      (["--bos", "never"], r"settings\.bos true, .* false;"),
                                      (["-m", F16], r"model\.id ")):
                with self.subTest(words=words):
                    self.refuses(folder, [*self.requests, *words], r"made with " + difference)
            other = pathlib.Path(folder) / "other.jsonl"
            other.write_text(pathlib.Path(self.requests[2]).read_text().replace(" the ", " a "))
            self.refuses(folder, [ASSAY, "score", other, *self.requests[3:]], r"text\.sha256 ")

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
        words = [*PERPLEXITY, "--chunks", "-1", "--state", "s"]
        for _attempt in range(ATTEMPTS):  # on a busy machine the first may be over before it is held
            with tempfile.TemporaryDirectory() as folder:
                process = Run(words, []).start(folder)
                process.stdout.read(1)
                process.send_signal(signal.SIGSTOP)
                second = self.run_in(folder, *words)
                process.kill()
                process.communicate()
            if second.returncode:
                break
        self.assertEqual(second.returncode, 2)
        self.assertIn(b"assay: s: the journal is in use by another run\n", second.stderr)


unittest.main(argv=sys.argv[:1])
