#!/usr/bin/env python3
"""What a process inherits and what it is blocked by: closed descriptors, ignored signals, streams
that take nothing, and outputs that are one stream.

usage: test_streams.py ASSAY SOURCE_DIR
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from program import ASSAY, HANG_S, Q4, TEXT, last_of_each, small_pipe

os.environ["ASSAY_PRECISION"] = "exact"
SHORT = ["perplexity", "-m", Q4, "-f", TEXT, "-c", "32", "--chunks", "3", "-t", "1"]


class Folder(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory(prefix="assay-streams-")
        self.addCleanup(self.kept.cleanup)
        self.folder = pathlib.Path(self.kept.name)

    def shell(self, redirection, *words, **more):
        """Run the program with a shell's redirection, such as '>&-'."""
        return subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirection}', ASSAY,
                               *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              timeout=HANG_S, **more)


class Closed(Folder):
    """Descriptors 0 to 2 that come closed are no output file's."""
    FILES = ["--json", "r.json", "--per-token", "t.tsv", "--state", "s.state"]

    def check_files(self, expected):
        self.assertEqual(json.loads((self.folder / "r.json").read_text())["result"],
                         expected["result"])
        head = (self.folder / "t.tsv").read_text().splitlines()[0]
        self.assertTrue(head.startswith("window\t"), head)
        again = self.shell("", *SHORT, "--state", "s.state")  # the journal is a journal still
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("3 of 3 windows were finished before", again.stderr)

    def whole(self):
        result = self.shell("", *SHORT, "--json", "whole.json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads((self.folder / "whole.json").read_text())

    def test_standard_output(self):
        expected = self.whole()
        result = self.shell(">&-", *SHORT, *self.FILES)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("assay: standard output: writing failed: Bad file descriptor\n",
                      result.stderr)
        self.check_files(expected)

    def test_standard_error(self):
        expected = self.whole()
        result = self.shell("2>&-", *SHORT, *self.FILES)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"(?m)^Final estimate: PPL = ")
        self.check_files(expected)

    def test_all(self):
        expected = self.whole()
        result = self.shell("<&- >&- 2>&-", *SHORT, *self.FILES)
        self.assertEqual(result.returncode, 2)
        self.check_files(expected)

    def test_standard_input(self):
        expected = self.whole()
        result = self.shell("<&-", *SHORT, *self.FILES)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check_files(expected)
        result = self.shell("<&-", "perplexity", "-m", Q4, "-f", "-", "-c", "32")
        self.assertEqual(result.returncode, 2)
        self.assertIn("Bad file descriptor", result.stderr)

    def test_document_on_standard_output(self):
        """What makes way for the document has nowhere to go, and that is no failure."""
        result = self.shell("2>&-", *SHORT, "--json", "-")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(json.loads(result.stdout)["result"], self.whole()["result"])

    def test_commands_that_print(self):
        for words in (["version"], ["help"], ["info", Q4], ["info", "--json", Q4],
                      ["tokenize", "-m", Q4, "-f", TEXT], ["perplexity", "--help"]):
            with self.subTest(words=words):
                self.assertEqual(self.shell(">&-", *words).returncode, 2)
                self.assertEqual(self.shell("2>&-", *words).returncode, 0)


class Ignored(Folder):
    """What is ignored at the start, as in a background job, stays ignored."""

    def check(self, ignored, sent, code):
        def ignore():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        words = last_of_each([*SHORT, "--chunks", "40", "-b", "32"])
        for _attempt in range(20):  # on a busy machine a run may be over before its signal comes
            process = subprocess.Popen([ASSAY, *map(str, words)],
                                       preexec_fn=ignore, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            seen = process.stdout.read(20)
            for number in sent:
                process.send_signal(number)
            out, err = process.communicate(timeout=HANG_S)
            if process.returncode == code:
                return (seen + out).decode()
            self.assertEqual(process.returncode, 0, err)
        self.fail(f"exit code 0 each time, expected {code}")

    def test_both(self):
        both = [signal.SIGINT, signal.SIGTERM]
        self.assertIn("Final estimate: PPL = ", self.check(both, both + both, 0))

    def test_one(self):
        self.assertIn("Incomplete", self.check([signal.SIGINT], [signal.SIGINT, signal.SIGTERM],
                                               130))


class Blocked(Folder):
    """The first signal ends a run that waits for the other end of a pipe."""
    READ_S = 0.4  # after a signal, how long it waits for somebody who reads
    LONG = ["perplexity", "-m", Q4, "-f", TEXT, "-c", "32", "-t", "1", "-b", "32", "-q"]

    def stop(self, process):
        """The exit code after one signal."""
        process.send_signal(self.number)
        return process.wait(timeout=HANG_S)

    def start(self, words, **more):
        process = subprocess.Popen([ASSAY, *map(str, words)], cwd=self.folder, **more)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def until_asleep(self, process):
        """Wait until the process waits: none of its threads wants to run, several times."""
        def is_asleep():
            stats = pathlib.Path(f"/proc/{process.pid}/task").glob("*/stat")
            return all(stat.read_text().rsplit(")", 1)[1].split()[0] == "S" for stat in stats)
        times = 0
        while times < 5:
            time.sleep(0.01)
            self.assertIsNone(process.poll(), "it ended, and should have waited")
            times = times + 1 if is_asleep() else 0

    def each_signal(self, check):
        for self.number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=self.number):
                check()

    def test_opening_without_a_reader(self):
        os.mkfifo(self.folder / "fifo")

        def check():
            for option in ("--json", "--per-token"):
                process = self.start([*self.LONG, option, "fifo"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
                self.until_asleep(process)
                self.assertEqual(self.stop(process), 130)
                self.assertIn(b"assay: interrupted: fifo: cannot be written: ",
                              process.stderr.read())
        self.each_signal(check)

    def full_pipe(self):
        """A pipe that is full but for a few lines, and that nobody reads."""
        reading, writing = small_pipe(96)
        self.addCleanup(os.close, reading)
        return reading, writing

    def test_standard_output(self):
        def check():
            for more in (self.LONG, [*self.LONG, "--ppl-output-type", "1"],
                         [*self.LONG, "--json", "r.json"],
                         ["kld", "--base", Q4, *self.LONG[1:]]):
                reading, writing = self.full_pipe()
                process = self.start(more, stdout=writing, stderr=subprocess.PIPE)
                os.close(writing)
                self.until_asleep(process)
                self.assertEqual(self.stop(process), 130)
                self.assertIn(b"assay: interrupted: the result is incomplete\n",
                              process.stderr.read())
            document = json.loads((self.folder / "r.json").read_text())
            self.assertFalse(document["result"]["complete"])
            self.assertGreaterEqual(document["result"]["n_windows"], 1)
        self.each_signal(check)

    def test_end_of_standard_output(self):
        """All is evaluated, and the last lines wait."""
        def check():
            reading, writing = self.full_pipe()
            os.write(writing, b"x" * 80)
            process = self.start([*SHORT, "-q", "--json", "r.json"], stdout=writing,
                                 stderr=subprocess.PIPE)
            os.close(writing)
            self.until_asleep(process)
            self.assertEqual(self.stop(process), 130)
            self.assertIn(b"assay: interrupted: ", process.stderr.read())
        self.each_signal(check)

    def test_document_into_a_pipe(self):
        def check():
            reading, writing = self.full_pipe()
            process = self.start(last_of_each([*SHORT, "--chunks", "40", "--json", "-"]),
                                 stdout=writing, stderr=subprocess.PIPE)
            os.close(writing)
            self.until_asleep(process)
            self.assertEqual(self.stop(process), 130)
            self.assertIn(b"assay: interrupted: standard output: writing failed: ",
                          process.stderr.read())
        self.each_signal(check)

    def test_standard_error(self):
        def check():
            for words in ([*self.LONG[:-1], "--ppl-output-type", "1"], ["compare", "a", "b"]):
                reading, writing = self.full_pipe()
                os.write(writing, b"x" * 90)
                process = self.start(words, stdout=subprocess.DEVNULL, stderr=writing)
                os.close(writing)
                self.until_asleep(process)
                self.assertEqual(self.stop(process), 130)
        self.each_signal(check)

    def test_both_streams(self):
        def check():
            reading, writing = self.full_pipe()
            process = self.start(self.LONG, stdout=writing, stderr=writing)
            os.close(writing)
            self.until_asleep(process)
            self.assertEqual(self.stop(process), 130)
        self.each_signal(check)

    def test_slow_reader_gets_all(self):
        """A pipe that is full when the signal comes, and read soon after."""
        def check():
            seen, late = b"", True
            while late:  # on a busy machine this reader may be
                reading, writing = self.full_pipe()
                process = self.start(self.LONG, stdout=writing, stderr=subprocess.PIPE)
                os.close(writing)
                self.until_asleep(process)
                began = time.monotonic()
                process.send_signal(self.number)
                time.sleep(0.05)
                seen = os.read(reading, 4096)
                late = time.monotonic() - began > self.READ_S
                while chunk := os.read(reading, 4096):
                    seen += chunk
                self.assertEqual(process.wait(timeout=HANG_S), 130)
            self.assertRegex(seen[4000:], rb"^\[1\][\d.]+,\[2\]")
            self.assertRegex(seen, rb"Incomplete estimate: PPL = \d+")
        self.each_signal(check)


class OneFile(Folder):
    """llama.cpp's tests send both streams to one file and read the last decimal number on the line
    that begins with [1]. Progress must not get in between."""
    N_CTX, SECONDS, MOST = 64, 3.5, 3000

    def evaluate(self, n_chunks, n_batch):
        (self.folder / "text").write_text(TEXT.read_text() * 16)
        result = self.shell(">log 2>&1", "perplexity", "-m", Q4, "-f", "text", "-c", self.N_CTX,
                            "--chunks", n_chunks, "-b", n_batch, "-t", "1")
        log = (self.folder / "log").read_text()
        self.assertEqual(result.returncode, 0, log)
        return log

    def check(self, log):
        line, = (line for line in log.splitlines() if line.startswith("[1]"))
        final = re.search(r"(?m)^Final estimate: PPL = (\d+\.\d{4}) ", log)[1]
        self.assertEqual(re.findall(r"\d+\.\d+", line)[-1], final)

    def test_line_is_whole(self):
        speed = float(re.search(r"([\d.]+) tokens/s", self.evaluate(16, 1024))[1])
        n_chunks, first_batch = max(10, int(speed * self.SECONDS / self.N_CTX)), ""
        # What is due after two seconds does not come in a run that is faster than it seemed to be.
        while not re.search(r"(?m)^assay: \d+ % done, \d+:\d\d left$", first_batch):
            self.assertLess(n_chunks, self.MOST, "no progress is shown")
            log = self.evaluate(n_chunks, n_chunks * 9 // 10 * self.N_CTX)
            self.check(log)
            first_batch = log.partition("[1]")[0]
            n_chunks *= 2
        self.check(self.evaluate(n_chunks // 2, self.N_CTX))


class Names(Folder):
    """Outputs by names that are not plain ones."""

    def run_short(self, *words, redirection=""):
        return self.shell(redirection, *SHORT, *words)

    def test_device_twice(self):
        result = self.run_short("--json", "/dev/null", "--per-token", "/dev/null", "--state", "s")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, "Final estimate: PPL = ")

    def test_stream_twice(self):
        for a, b in (("-", "-"), ("-", "/dev/stdout"), ("/dev/stdout", "-"), ("-", "/dev/fd/1"),
                     ("/proc/self/fd/1", "/dev/stdout"), ("/dev/stderr", "/dev/fd/2")):
            with self.subTest(names=(a, b)):
                result = self.run_short("--json", a, "--per-token", b)
                self.assertEqual(result.returncode, 2, result.stdout)
                self.assertEqual(result.stdout, "")
                self.assertEqual(result.stderr,
                                 f"assay: --per-token {b} and --json {a} are the same file\n"
                                 if result.stderr.startswith("assay: --per-token") else
                                 f"assay: --json {a} and --per-token {b} are the same file\n")

    def test_stream_and_the_file_behind_it(self):
        result = self.run_short("--json", "-", "--per-token", "out", redirection=">out")
        self.assertEqual(result.returncode, 2)
        self.assertIn("are the same file", result.stderr)
        result = self.run_short("--json", "/dev/stdout", "--per-token", "/dev/stderr",
                                redirection=">out 2>&1")
        self.assertEqual(result.returncode, 2)

    def test_number_of_standard_output(self):
        """A file behind it is not replaced but written to, and what is printed makes way."""
        for name in ("/dev/fd/1", "/proc/self/fd/1"):
            (self.folder / "out").write_text("before\n")
            inode = (self.folder / "out").stat().st_ino
            result = self.run_short("--json", name, redirection=">>out")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("Final estimate: PPL = ", result.stderr)
            head, document = (self.folder / "out").read_text().split("\n", 1)
            self.assertEqual(head, "before")
            self.assertTrue(json.loads(document)["result"]["complete"])
            self.assertEqual((self.folder / "out").stat().st_ino, inode)

    def test_dangling_link(self):
        (self.folder / "there").mkdir()
        os.symlink("second", self.folder / "first")
        os.symlink("there/r.json", self.folder / "second")
        result = self.run_short("--json", "first")
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in ("first", "second"):
            self.assertTrue((self.folder / name).is_symlink())
        self.assertTrue(json.loads((self.folder / "there/r.json").read_text())["result"])
        self.assertEqual(os.listdir(self.folder / "there"), ["r.json"])

    def test_dangling_link_and_its_target(self):
        os.symlink("r", self.folder / "link")
        result = self.run_short("--json", "link", "--per-token", "r")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("are the same file", result.stderr)
        self.assertEqual(os.listdir(self.folder), ["link"])

    def test_links_that_lead_nowhere(self):
        os.symlink("missing/r", self.folder / "link")
        os.symlink("loop", self.folder / "loop")
        for name in ("link", "loop"):
            result = self.run_short("--json", name)
            self.assertEqual(result.returncode, 2, name)
            self.assertTrue((self.folder / name).is_symlink())
            self.assertEqual(sorted(os.listdir(self.folder)), ["link", "loop"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
