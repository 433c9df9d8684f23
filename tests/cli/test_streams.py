#!/usr/bin/env python3
"""What a process inherits and what it is blocked by: closed descriptors, ignored signals, streams
that take nothing, and outputs that are one stream.

usage: test_streams.py ASSAY SOURCE_DIR
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from program import ASSAY, Q4, TEXT

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
                              timeout=60, **more)


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
        process = subprocess.Popen([ASSAY, *map(str, [*SHORT, "--chunks", "40", "-b", "32"])],
                                   preexec_fn=ignore, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        seen = process.stdout.read(20)
        for number in sent:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, err)
        return (seen + out).decode()

    def test_both(self):
        both = [signal.SIGINT, signal.SIGTERM]
        self.assertIn("Final estimate: PPL = ", self.check(both, both + both, 0))

    def test_one(self):
        self.assertIn("Incomplete", self.check([signal.SIGINT], [signal.SIGINT, signal.SIGTERM],
                                               130))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
