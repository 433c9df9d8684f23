#!/usr/bin/env python3
"""Ctrl-C: a prompt end with the result so far, marked incomplete; a second one kills.

usage: test_interrupt.py ASSAY SOURCE_DIR
"""
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from interrupted import ATTEMPTS
from program import ASSAY, HANG_S, SOURCE, TEXT

LIMIT_S = 1  # of processor time between the signal and the end: what else runs does not count
TICKS = os.sysconf("SC_CLK_TCK")


def spent(process):
    """Seconds of processor time of a process so far."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def spent_by_ended():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Over(AssertionError):
    """A run ended before it got its signal, as may happen on a busy machine."""


def again(test):
    """Repeat it where a run was over."""
    def repeated(*words):
        for _attempt in range(ATTEMPTS):
            try:
                return test(*words)
            except Over as why:
                last = why
        raise last
    return repeated


class Interrupt(unittest.TestCase):
    def start(self, folder, *options):
        """A run that would last long; it has finished a window when this returns."""
        process = subprocess.Popen(
            [ASSAY, "perplexity", "-m", SOURCE / "data" / "tiny.F16.gguf", "-f",
             TEXT, "-t", "1", "-c", "64", *options],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seen = b""
        while b"[1]" not in seen:
            byte = process.stdout.read(1)
            self.assertTrue(byte, process.stderr.read() if not byte else "")
            seen += byte
        return process

    def stop(self, process, number=signal.SIGINT):
        """(stdout, stderr) of a run that gets a signal; it must end soon."""
        before = spent_by_ended() + spent(process)
        process.send_signal(number)
        out, err = process.communicate(timeout=HANG_S)
        if process.returncode == 0:
            raise Over
        self.assertEqual(process.returncode, 130, err)
        self.assertLessEqual(spent_by_ended() - before, LIMIT_S)
        return out, err

    @again
    def check_orderly_end(self, number):
        with tempfile.TemporaryDirectory() as folder:
            process = self.start(folder, "-b", "64", "--json", "r.json", "--per-token", "t.tsv")
            out, err = self.stop(process, number)
            document = json.loads((pathlib.Path(folder) / "r.json").read_text())
            names = sorted(os.listdir(folder))
        self.assertRegex(out.decode(), r"(?m)^Incomplete estimate: PPL = \d+\.\d{4} \+/- "
                                       r"\d+\.\d{5} \(\d+ of \d+ windows\)$")
        self.assertNotIn(b"Final", out + err)
        self.assertIn(b"assay: interrupted: the result is incomplete\n", err)
        self.assertFalse(document["result"]["complete"])
        self.assertGreaterEqual(document["result"]["n_windows"], 1)
        self.assertEqual(document["result"]["n_windows"], len(document["windows"]["sums"]))
        self.assertEqual(names, ["r.json", "t.tsv"])

    def test_interrupt(self):
        self.check_orderly_end(signal.SIGINT)

    def test_terminate(self):
        self.check_orderly_end(signal.SIGTERM)

    def test_the_terminal_is_closed(self):
        self.check_orderly_end(signal.SIGHUP)

    @again
    def test_in_the_middle_of_a_large_batch(self):
        """All windows are one batch: nothing but the first are done, however late the signal."""
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [ASSAY, "perplexity", "-m", SOURCE / "data" / "tiny.F16.gguf", "-f",
                 TEXT, "--isa", "scalar", "-t", "1", "-c", "256",
                 "-b", "1000000", "--json", "r.json"],
                cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while b"memory:" not in process.stderr.readline():
                self.assertIsNone(process.poll())
            time.sleep(0.5)
            out, _err = self.stop(process)
            document = json.loads((pathlib.Path(folder) / "r.json").read_text())
        self.assertIn(b"Incomplete: none of ", out)
        self.assertEqual(document["result"]["n_windows"], 0)
        self.assertIsNone(document["result"]["ppl"])
        self.assertIsNone(document["result"]["nll"])

    @again
    def check_partial_results(self, words, count):
        """A run that prints lines, interrupted after its first ones; small batches, so that much is
        left. count: what the document calls its number of windows or tasks."""
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [*map(str, words), "-t", "1", "-b", "32", "-q", "--json", "r.json"],
                cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdout.read(200)
            out, err = self.stop(process)
            self.assertIn(b"assay: interrupted: the result is incomplete\n", err)
            self.assertRegex(out, rb"(?m)^Incomplete")
            document = json.loads((pathlib.Path(folder) / "r.json").read_text())
            self.assertFalse(document["result"]["complete"])
            self.assertGreaterEqual(document["result"][count], 1)
            lines = (pathlib.Path(folder) / "t.tsv").read_text().splitlines()
            self.assertGreater(len(lines), 1)
            self.assertEqual(sorted(os.listdir(folder)), ["r.json", "t.tsv"])
            return document, lines

    def test_comparison(self):
        data = SOURCE / "data"
        document, lines = self.check_partial_results(
            [ASSAY, "kld", "-m", data / "tiny.Q4_K_M.gguf", "--base", data / "tiny.F16.gguf", "-f",
             TEXT, "-c", "32", "--per-token", "t.tsv"], "n_windows")
        self.assertEqual(len(lines) - 1, document["result"]["n_tokens"])
        self.assertGreater(document["candidates"][0]["kld"]["mean"], 0)

    def test_tasks(self):
        with tempfile.TemporaryDirectory() as folder:
            tasks = pathlib.Path(folder) / "tasks.jsonl"
            tasks.write_text('{"question": "Why is it so that the figures in this table", '
                             '"choices": ["differ", "are the same"], "answer": 0}\n' * 600)
            document, lines = self.check_partial_results(
                [ASSAY, "perplexity", "--multiple-choice", "-m",
                 SOURCE / "data" / "tiny.Q4_K_M.gguf", "-f", tasks, "--per-task", "t.tsv"],
                "n_tasks")
        self.assertEqual(len(lines) - 1, document["result"]["n_tasks"])
        self.assertEqual(len(document["tasks"]), document["result"]["n_tasks"])

    @again
    @unittest.skipIf(b"__tsan_init" in pathlib.Path(ASSAY).read_bytes(),
                     "ThreadSanitizer holds signals back until its runtime is left")
    def test_second_signal_kills(self):
        """Both signals wait for the stopped process, so the second comes before the orderly end."""
        with tempfile.TemporaryDirectory() as folder:
            process = self.start(folder, "-b", "64")
            process.send_signal(signal.SIGSTOP)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            out, err = self.stop(process, signal.SIGCONT)
            self.assertNotIn(b"ncomplete", out + err)

    def test_requests_leave_no_short_file(self):
        for output in (["-o", "scores.jsonl"], []):
            self.check_requests(output)

    @again
    def check_requests(self, output):
        """Standard output keeps the lines that were printed; a file with fewer lines than there
        are requests would be taken for the whole."""
        text = TEXT.read_text()
        lines = [json.dumps({"text": text[i:i + 400]}) + "\n" for i in range(0, 80000, 160)]
        with tempfile.TemporaryDirectory() as folder:
            requests = pathlib.Path(folder) / "r.jsonl"
            requests.write_text("".join(lines))
            process = subprocess.Popen(
                [ASSAY, "score", "-m", SOURCE / "data" / "tiny.F16.gguf", requests, "-t", "1",
                 "-c", "64", "-b", "64", "--isa", "scalar", "--json", "r.json", *output],
                cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
            if output:
                while b"requests" not in process.stderr.readline():
                    self.assertIsNone(process.poll())
                time.sleep(0.5)
                first = b""
            else:
                first = process.stdout.readline()
            out, err = self.stop(process)
            self.assertIn(b"assay: interrupted: the result is incomplete\n", err)
            self.assertEqual(sorted(os.listdir(folder)), ["r.json", "r.jsonl"])
            result = json.loads((pathlib.Path(folder) / "r.json").read_text())["result"]
        self.assertFalse(result["complete"])
        printed = (first + out).splitlines()
        if not output:
            self.assertEqual(len(printed), result["n_requests"])
            self.assertTrue(0 < len(printed) < len(lines))
            self.assertTrue(all(json.loads(line)["tokens"] > 0 for line in printed))

    @again
    def test_check(self):
        """Windows that are done are reported, and nothing is said of the limit but what is known."""
        with tempfile.TemporaryDirectory() as folder:
            model = SOURCE / "data" / "tiny.F16.gguf"
            subprocess.run([ASSAY, "perplexity", "-m", model, "-f", TEXT,
                            "-c", "64", "--kl-divergence-base", "b.kld"], cwd=folder, check=True,
                           capture_output=True)
            process = subprocess.Popen(
                [ASSAY, "check", "-m", model, "--kl-divergence-base", "b.kld", "-t", "1", "-b",
                 "64", "--isa", "scalar", "--json", "r.json"],
                cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while b"memory:" not in process.stderr.readline():
                self.assertIsNone(process.poll())
            time.sleep(0.5)
            out, err = self.stop(process)
            self.assertRegex(out.decode(), r"\AIncomplete: \d+ tokens scored in \d+ of \d+ windows\n")
            self.assertIn(b"assay: interrupted: the result is incomplete\n", err)
            document = json.loads((pathlib.Path(folder) / "r.json").read_text())
            self.assertFalse(document["result"]["complete"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
