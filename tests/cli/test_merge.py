#!/usr/bin/env python3
"""assay merge: journals of ranges of windows become the journal of one run, to the byte, and the
results that are written from it are that run's; what is missing, twice or different is named.

usage: test_merge.py ASSAY SOURCE_DIR
"""
import ctypes
import json
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from interrupted import KLD, PERPLEXITY, RECORD, SLOWLY, Run, hellaswag
from program import ASSAY, F16, Q4, SOURCE, TEXT, last_of_each

FSYNC, LINKAT, RENAMEAT2 = 74, 265, 316  # system calls of x86-64
N_KILLS = 8
ALL = [word if word != "60" else "-1" for word in PERPLEXITY]  # 458 windows
SHORT_BYTES = 16000  # of a text that has a third of them


def die_at(call):
    """From now on this process is killed when it makes that system call."""
    load_number, jump_unless_equal, answer = 0x20, 0x15, 0x06  # instructions of a BPF filter
    allow, kill = 0x7fff0000, 0x80000000
    program = b"".join(struct.pack("HBBI", *words) for words in (
        (load_number, 0, 0, 0), (jump_unless_equal, 0, 1, call), (answer, 0, 0, kill),
        (answer, 0, 0, allow)))
    instructions = ctypes.create_string_buffer(program)
    about = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    no_new_privileges, seccomp, with_filter = 38, 22, 2
    for words in ((no_new_privileges, 1, 0, 0, 0), (seccomp, with_filter, about, 0, 0)):
        if prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


class Merge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-merge-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.text = self.path / "short.txt"
        self.text.write_bytes(TEXT.read_bytes()[:SHORT_BYTES])

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
        self.merges([*ALL, "-f", self.text], [(0, 40), (40, 75), (115, -1)])

    def test_a_last_part_with_fewer_windows_than_asked_for(self):
        self.merges([*ALL, "-f", self.text], [(0, 100), (100, 100)])

    def test_the_first_windows(self):
        self.merges(PERPLEXITY, [(0, 7), (7, 3)], "--chunks", "10")

    def test_overlapping_windows(self):
        words = last_of_each([*ALL, "-f", self.text, "-c", "512", "-b", "512", "--ppl-stride", "300"])
        self.merges(words, [(0, 7), (7, -1)])

    def test_other_protocols(self):
        words = last_of_each([*ALL, "-f", self.text, "-c", "512", "-b", "512", "--protocol", "fixed"])
        self.merges(words, [(0, 4), (4, -1)])

    def test_a_comparison(self):
        words = last_of_each([*KLD, "-f", self.text, "-c", "128", "-b", "128", "--chunks", "-1"])
        self.merges(words, [(0, 15), (15, 23), (38, -1)])

    def test_a_recorded_base_and_a_check(self):
        base = self.path / "base.kld"
        self.assertEqual(self.run_in(*RECORD[:-1], base).returncode, 0)
        self.merges([ASSAY, "kld", "-m", F16, "--base", base, *SLOWLY], [(0, 30), (30, 30)])
        for name in (*self.path.glob("*.state"), *self.path.glob("*.json")):
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
        self.assertIn(b"the command of the parts without --chunk-from and --chunks, with --state all.state "
                      b"and --chunks 10, writes the results", merged.stderr)
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
        self.refuses([a], "windows 10 to 463 (from 0) are in no part")
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
        self.assertIn(b"all.state: is a text, expected a new file or a journal of assay; give another "
                      b"name, or --force to replace it", result.stderr)
        self.assertEqual((self.path / "all.state").read_text(), "precious")
        for more in (["--force"], []):  # over the text, and over a journal
            self.assertEqual(self.merge(a, "--chunks", "5", *more).returncode, 0)

    def test_an_output_that_is_read(self):
        a = self.make(PERPLEXITY, [(0, 5)])[0]
        before = (self.path / a).read_bytes()
        (self.path / "link").symlink_to(a)
        for part in (a, "0.json"):
            for out in (a, "link", "-"):
                with self.subTest(part=part, out=out), open(self.path / a, "ab") as stdout:
                    result = subprocess.run([ASSAY, "merge", part, "--chunks", "5", "-o", out],
                                            cwd=self.path, stdout=stdout, stderr=subprocess.PIPE)
                    self.assertEqual(result.returncode, 2)
                    self.assertIn(b"would replace the file that the merge reads", result.stderr)
                    self.assertEqual((self.path / a).read_bytes(), before)

    def test_a_full_disk_and_streams(self):
        a = self.make(PERPLEXITY, [(0, 5)])[0]
        self.assertEqual(self.merge(a, "--chunks", "5").returncode, 0)
        merged = (self.path / "all.state").read_bytes()
        (self.path / "all.state").unlink()
        for out in ("-", "/dev/stdout"):
            result = self.run_in(ASSAY, "merge", a, "--chunks", "5", "-o", out)
            self.assertEqual((result.returncode, result.stdout), (0, merged))
        result = self.run_in(ASSAY, "merge", a, "--chunks", "5", "-o", "/dev/full")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"/dev/full: writing failed: No space left on device", result.stderr)
        before = sorted(self.path.iterdir())
        result = subprocess.run([ASSAY, "merge", a, "--chunks", "5", "-o", "all.state"],
                                cwd=self.path, capture_output=True, preexec_fn=lambda: (
                                    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))))
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"all.state: writing failed: File too large", result.stderr)
        self.assertEqual(sorted(self.path.iterdir()), before)

    def test_a_kill_on_the_way_to_the_disk(self):
        """Everything is written by then, and nothing has the name yet."""
        a = self.make(PERPLEXITY, [(0, 5)])[0]
        before = sorted(self.path.iterdir())
        for call in (FSYNC, LINKAT, RENAMEAT2):
            with self.subTest(call=call):
                result = subprocess.run([ASSAY, "merge", a, "--chunks", "5", "-o", "all.state"],
                                        cwd=self.path, capture_output=True,
                                        preexec_fn=lambda call=call: die_at(call))
                left = [path for path in self.path.iterdir() if path not in before]
                if call != LINKAT or result.returncode:  # not every file system needs it
                    self.assertEqual(result.returncode, -signal.SIGSYS)
                    self.assertEqual([path for path in left if path.suffix != ".tmp"], [])
                for path in left:
                    path.unlink()

    def test_kills_and_interruptions(self):
        """A temporary file with a name, as on a file system that can do no other: all.state.PID.1.tmp,
        since the first is taken. It is there while the parts are copied."""
        names = self.make(ALL, [(0, 200), (200, -1)])
        self.assertEqual(self.merge(*names).returncode, 0)
        whole = (self.path / "all.state").read_bytes()
        for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            n_stopped = sum(self.stopped(names, number, whole) for _attempt in range(N_KILLS))
            print(f"{n_stopped} of {N_KILLS} merges ended by signal {number}")

    def stopped(self, names, number, whole):
        """Whether the signal came before the end."""
        (self.path / "all.state").unlink(missing_ok=True)
        process = subprocess.Popen(
            ["sh", "-c", 'touch all.state.$$.0.tmp; exec "$@"', "sh", ASSAY, "merge", "-q", *names,
             "-o", "all.state"], cwd=self.path, stderr=subprocess.PIPE)
        first = self.path / f"all.state.{process.pid}.0.tmp"
        temporary = self.path / f"all.state.{process.pid}.1.tmp"
        while process.poll() is None and not temporary.exists():
            pass
        process.send_signal(number)
        _out, err = process.communicate()
        first.unlink()
        made = self.path / "all.state"
        if number != signal.SIGKILL:
            self.assertFalse(temporary.exists())
            self.assertIn(process.returncode, (0, 130), err)
            self.assertEqual(made.exists(), process.returncode == 0)
        temporary.unlink(missing_ok=True)
        self.assertTrue(not made.exists() or made.read_bytes() == whole)
        return process.returncode != 0


unittest.main(argv=sys.argv[:1])
