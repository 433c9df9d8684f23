#!/usr/bin/env python3
"""Progress on a terminal: a bar, and nothing with --quiet. test_progress.c has the rest.

usage: test_terminal.py ASSAY SOURCE_DIR
"""
import os
import pathlib
import pty
import re
import subprocess
import sys
import termios
import unittest

from program import last_of_each

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
# Slow enough for a few drawings of the bar, which come every tenth of a second.
COMMAND = [ASSAY, "perplexity", "-m", SOURCE / "data" / "tiny.F16.gguf", "-f",
           SOURCE / "data" / "text.txt", "-c", "64", "-b", "128", "-t", "1", "--chunks", "120"]


def read_all(descriptor):
    seen = b""
    while True:
        try:
            piece = os.read(descriptor, 4096)
        except OSError:  # how Linux says that the other side of a terminal was closed
            return seen
        if not piece:
            return seen
        seen += piece


def on_terminal(*options, stdout_too):
    """(standard output or b"", what the terminal got)"""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(last_of_each([*COMMAND, *options]), stderr=theirs,
                               stdout=theirs if stdout_too else subprocess.PIPE)
    os.close(theirs)
    terminal = read_all(ours)
    out = b"" if stdout_too else process.stdout.read()
    process.wait()
    os.close(ours)
    assert process.returncode == 0, terminal
    return out, terminal


def several_on_terminal(columns):
    """(standard output, what a terminal of so many columns got) of a run of two models"""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    data = SOURCE / "data"
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    process = subprocess.Popen(
        [ASSAY, "kld", "-m", data / "tiny.Q4_K_M.gguf", "-m", data / "tiny.F16.gguf", "--base",
         data / "tiny.F16.gguf", "-f", SOURCE / "data" / "text.txt", "-c", "64", "-b", "128", "-t", "1",
         "--chunks", "40", "--label", "one", "--label", "two"], stderr=theirs, stdout=subprocess.PIPE, env=environment)
    os.close(theirs)
    terminal = read_all(ours)
    out = process.stdout.read().decode()
    process.wait()
    os.close(ours)
    assert process.returncode == 0, terminal
    return out, terminal.decode()


BAR = rb"\r\[[#.]{30}\] +\d+ %  \d+ of 7560 tokens  [\d:?]+ left\x1b\[K"


class Terminal(unittest.TestCase):
    def test_bar_beside_output_in_a_file(self):
        out, terminal = on_terminal(stdout_too=False)
        self.assertRegex(terminal, BAR)
        self.assertRegex(out, rb"\A\[1\][\d.]+,(\[\d+\][\d.]+,){119}\nTokens scored")
        self.assertNotIn(b"\x1b", out)
        # The last bar was taken away before the lines that stay.
        self.assertRegex(terminal, rb"\r\x1b\[Kassay: \d+ tokens evaluated")
        self.assertIn(b"Final estimate", terminal)

    def test_bar_below_output_on_the_same_terminal(self):
        _, terminal = on_terminal(stdout_too=True)
        self.assertRegex(terminal, BAR)
        self.assertEqual(terminal.count(b"Final estimate"), 1)
        # What remains on the screen when each bar is wiped: every window, in lines.
        shown = re.sub(BAR, b"", terminal).replace(b"\r\x1b[K", b"")
        windows = re.findall(rb"\[(\d+)\][\d.]+,", shown)
        self.assertEqual([int(w) for w in windows], list(range(1, 121)))
        self.assertRegex(shown, rb"(?m)^Tokens scored")

    def test_time_is_told_within_the_first_batch(self):
        _, terminal = on_terminal("-b", "7560", stdout_too=True)
        before = terminal.split(b"[1]")[0]
        bars = re.findall(rb"(\d+) of 7560 tokens  (\d+:\d\d) left", before)
        self.assertGreater(len(bars), 0, terminal)
        counts = [int(count) for count, _ in bars]
        self.assertEqual(counts, sorted(set(counts)))
        self.assertLess(counts[-1], 7560)

    def test_several_models(self):
        """Each mean so far beside the bar, in one line of the terminal; then a table, in 80 columns."""
        out, terminal = several_on_terminal(columns=56)
        bars = re.findall(r"\r(\[[#.]{10}\][^\r\n]*)\x1b\[K", terminal)
        self.assertTrue(bars, terminal)
        self.assertLess(max(map(len, bars)), 56)
        self.assertRegex(bars[-1], r"\] +\d+ %  [\d:]+ left  KLD one 0\.00\d+  two 0$")
        head, *rows = out.splitlines()
        self.assertRegex(head, r"^model +bpw +size MiB .*KLD +KLD 99.9 % +Same top p %$")
        self.assertEqual([row.split()[0] for row in rows[:3]], ["F16", "two", "one"])
        cut = several_on_terminal(columns=50)[1]
        self.assertRegex(cut, r"left  KLD one [\d.e-]+ …\x1b\[K")

    def test_quiet(self):
        out, terminal = on_terminal("--quiet", "--chunks", "4", stdout_too=False)
        self.assertNotIn(b"left", terminal)
        self.assertNotIn(b"\x1b", terminal)
        self.assertIn(b"Final estimate", out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
