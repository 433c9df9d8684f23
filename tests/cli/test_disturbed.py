#!/usr/bin/env python3
"""What happens to a run from outside, beside Ctrl-C during the evaluation: Ctrl-C before it, a
model that shrinks, outputs that cannot be written. A sentence, an exit code, and nothing half
written under a final name.

usage: test_disturbed.py ASSAY SOURCE_DIR
"""
import fcntl
import os
import pathlib
import pwd
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from program import ASSAY, F16, HANG_S, Q4, TEXT, last_of_each, small_pipe

SMALL = ["-f", TEXT, "-c", "32", "-t", "1", "-q"]
PERPLEXITY = [ASSAY, "perplexity", "-m", Q4, *SMALL]
KLD = [ASSAY, "kld", "-m", Q4, "--base", F16, *SMALL]
TASK = '{"question": "What is it", "choices": ["a text", "a model", "something else"], "answer": 1}\n'
REQUEST = '{"context": "A model is", "continuation": " a few hundred matrices"}\n'
TASKS = [ASSAY, "perplexity", "--multiple-choice", "-m", Q4, "-f", "tasks.jsonl", "-t", "1", "-q"]
SCORE = [ASSAY, "score", "requests.jsonl", "-m", Q4, "-t", "1", "-q"]
RECORD = [ASSAY, "record", "-m", Q4, *SMALL, "--chunks", "20"]
CHECK = [ASSAY, "check", "-m", Q4, "--kl-divergence-base", "base.kld", "-t", "1", "-q"]
COMPARE = [ASSAY, "compare", "a.json", "a.json"]
DUMP = [ASSAY, "dump", F16, "--tensor", "output.weight"]
# Every command with each of its outputs.
OUTPUTS = [(PERPLEXITY + ["--chunks", "20"], "--json"),
           (PERPLEXITY + ["--chunks", "20"], "--per-token"),
           (PERPLEXITY + ["--chunks", "20"], "--state"),
           (KLD + ["--chunks", "20"], "--json"),
           (KLD + ["--chunks", "20"], "--per-token"),
           (KLD + ["--chunks", "20"], "--state"),
           (TASKS, "--json"), (TASKS, "--per-task"), (TASKS, "--state"), (DUMP, "-o"),
           (SCORE, "-o"), (SCORE, "--json"), (SCORE, "--state"), (CHECK, "--json"), (CHECK, "--per-token"),
           (CHECK, "--state"), (COMPARE, "--json")]
# What takes its name when it is whole, and is kept beside it until then.
RECORDINGS = [(RECORD, "-o"), (RECORD + ["--format", "logits"], "-o"),
              (PERPLEXITY + ["--chunks", "20"], "--kl-divergence-base")]
LIMIT_BYTES = 700  # less than any of them


def words_of(words):
    return [str(word) for word in last_of_each(words)]


class Disturbed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.inputs = {"tasks.jsonl": TASK.encode() * 40, "requests.jsonl": REQUEST.encode() * 40}
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(words_of([*PERPLEXITY, "--chunks", "4", "--kl-divergence-base",
                                     "base.kld", "--json", "a.json"]),
                           cwd=folder, check=True, capture_output=True)
            for name in ("base.kld", "a.json"):
                cls.inputs[name] = (pathlib.Path(folder) / name).read_bytes()

    def setUp(self):
        self.holder = tempfile.TemporaryDirectory(prefix="assay-disturbed-")
        self.folder = pathlib.Path(self.holder.name)
        for name, data in self.inputs.items():
            (self.folder / name).write_bytes(data)

    def assert_nothing_else_there(self):
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(self.inputs))

    def tearDown(self):
        self.holder.cleanup()

    def run_in(self, words, **more):
        return subprocess.run(words_of(words), cwd=self.folder, capture_output=True, timeout=HANG_S,
                              **more)

    def interrupt_while_reading(self, words, number):
        """The text comes from a pipe that stays open: the evaluation cannot have begun."""
        process = subprocess.Popen(words_of(words), cwd=self.folder, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(b"some words")
        process.stdin.flush()
        deadline = time.monotonic() + HANG_S
        while not self.waits_for_more(process):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate(timeout=HANG_S)
        self.assertEqual((process.returncode, out), (130, b""), err)
        self.assertTrue(err.endswith(b"assay: interrupted: there is no result\n"), err)
        self.assert_nothing_else_there()

    @staticmethod
    def waits_for_more(process):
        """It has read all there was, and sleeps."""
        unread = fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4)
        state = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return unread == b"\0" * 4 and state == "S"

    def test_interrupt_before_the_evaluation(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for words in ([ASSAY, "perplexity", "-m", Q4], [ASSAY, "kld", "-m", Q4, "--base", F16],
                          [ASSAY, "perplexity", "--hellaswag", "-m", Q4]):
                with self.subTest(words=words, number=number):
                    self.interrupt_while_reading(
                        [*words, "-f", "-", "--json", "r.json", "--state", "s"], number)
        self.interrupt_while_reading([ASSAY, "tokenize", "-m", Q4, "-f", "-"], signal.SIGINT)

    def test_model_that_shrinks(self):
        for n_bytes, threads in ((0, "1"), (100000, "2")):
            with self.subTest(n_bytes=n_bytes, threads=threads):
                model = self.folder / "model.gguf"
                shutil.copy(Q4, model)
                self.shrink(model, n_bytes, [ASSAY, "perplexity", "-m", model, *SMALL, "-b", "32",
                                             "-t", threads, "--json", "r.json"])
                self.assertFalse((self.folder / "r.json").exists())

    def shrink(self, path, n_bytes, words):
        """
        After the first results of a run, which cannot end before they are read. Whichever is
        noticed first: its size, or that a page of it is gone.
        """
        reading, writing = small_pipe(1000)
        process = subprocess.Popen(words_of(words), cwd=self.folder, stdout=writing,
                                   stderr=subprocess.PIPE)
        os.close(writing)
        unread = 0
        while unread < 4096 - 600:
            self.assertIsNone(process.poll())
            unread, = struct.unpack("i", fcntl.ioctl(reading, termios.FIONREAD, b"\0" * 4))
            time.sleep(0.002)
        os.truncate(path, n_bytes)
        with open(reading, "rb") as stream:
            stream.read()
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(HANG_S), 1, err)
        self.assertRegex(err.splitlines()[-1].decode(),
                         rf"{path.name}: (a part of it can no longer be read: the file became "
                         r"shorter, or its disk failed$|changed while it was read: it has \d+ bytes "
                         r"now, \d+ when it was opened;)")

    def refused(self, result, name):
        """One sentence about the output, exit code 2. Returns it."""
        lines = [line for line in result.stderr.decode().splitlines() if line.startswith("assay: ")]
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(name, lines[-1])
        return lines[-1]

    def test_full_device(self):
        for words, option in OUTPUTS:
            with self.subTest(words=words, option=option):
                self.refused(self.run_in([*words, option, "/dev/full"]), "/dev/full: ")

    def test_full_standard_output(self):
        few = ["--chunks", "20"]
        for words in (PERPLEXITY + few, KLD + few, TASKS, [ASSAY, "info", Q4], [ASSAY, "version"],
                      [ASSAY, "help", "kld"], [ASSAY, "tokenize", "-m", Q4, "-f", TEXT]):
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                process = subprocess.run(words_of(words), cwd=self.folder, stdout=full,
                                         stderr=subprocess.PIPE, timeout=HANG_S)
                self.assertEqual(process.returncode, 2)
                self.assertIn(b"standard output: writing failed: No space left on device",
                              process.stderr)

    def test_quota(self):
        """A limit on the size of files, as a full disk or a quota: the name is not taken."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))
        for words, option in OUTPUTS:
            for before in (None, b"what was there before"):
                with self.subTest(words=words, option=option, before=before):
                    path = self.folder / "output"
                    before = None if option == "--state" else before  # not to be replaced
                    if before:
                        path.write_bytes(before)
                    force = ["--force"] if before else []  # it is a text
                    result = self.run_in([*words, option, "output", *force], preexec_fn=limit)
                    self.assertIn("output: writing failed: ", self.refused(result, "output"))
                    self.assertEqual(path.read_bytes() if path.exists() else None, before)
                    path.unlink(missing_ok=True)
                    self.assert_nothing_else_there()

    def test_journal_that_met_a_quota_goes_on(self):
        words = [*PERPLEXITY, "--chunks", "20", "--state", "s"]
        expected = self.run_in(words[:-2]).stdout
        for n_bytes in (1000, 4000, 6000):
            result = self.run_in(words, preexec_fn=lambda n=n_bytes: resource.setrlimit(
                resource.RLIMIT_FSIZE, (n, n)))
            self.refused(result, "s: writing failed: File too large")
        words.remove("-q")
        result = self.run_in(words)
        self.assertEqual((result.returncode, result.stdout), (0, expected), result.stderr)
        self.assertIn(b" finished before", result.stderr)

    def test_read_only_folder(self):
        """As a user who may not write there; root, who always may, becomes nobody for it."""
        become = None
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody").pw_uid
            become = lambda: os.setuid(nobody)
            if subprocess.run(["cat", ASSAY, Q4, TEXT], preexec_fn=become, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode != 0:
                self.skipTest("nobody cannot read the checkout")
        os.chmod(self.folder, 0o555)
        for words, option in OUTPUTS:
            with self.subTest(words=words, option=option):
                result = self.run_in([*words, option, "output"], preexec_fn=become)
                self.refused(result, "output: ")
                self.assertEqual(result.stdout, b"")
        self.assert_nothing_else_there()
        os.chmod(self.folder, 0o755)

    def test_recordings(self):
        """Devices are refused; a quota ends the run and leaves neither the name nor a part."""
        for words, option in RECORDINGS:
            with self.subTest(words=words):
                result = self.run_in([*words, option, "/dev/full"])
                self.assertIn("is not a regular file", self.refused(result, "/dev/full: "))
                for n_bytes in (700, 200000):
                    def limit(n=n_bytes):
                        resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))
                    self.refused(self.run_in([*words, option, "output"], preexec_fn=limit),
                                 "output")
                    self.assert_nothing_else_there()

    def test_base_that_shrinks(self):
        self.run_in([*PERPLEXITY, "--chunks", "200", "--kl-divergence-base", "base.kld", "--force"])
        self.shrink(self.folder / "base.kld", 5000,
                    [ASSAY, "kld", "-m", Q4, "--base", "base.kld", "-t", "1", "-b", "32", "-q"])

    def test_folders_that_nobody_can_write(self):
        for words, option in OUTPUTS:
            for path in ("/proc/output", "no-such-folder/output"):
                with self.subTest(words=words, option=option, path=path):
                    result = self.run_in([*words, option, path])
                    self.refused(result, path)
                    self.assertEqual(result.stdout, b"")  # told before anything is evaluated


unittest.main(argv=sys.argv[:1])
