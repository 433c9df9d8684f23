#!/usr/bin/env python3
"""Bounds as properties: random commands take at most the memory that they said; every parser at
most so many bytes and so many seconds for a byte of its input, whatever is in it.

usage: test_bounds.py ASSAY SOURCE_DIR
ASSAY_TEST_SLOW=1: more commands and larger inputs, in an order that ASSAY_TEST_SEED=n decides, as
many as each test begins within a minute.
"""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

import gguf_make as g
from program import ASSAY, F16, Q4, SOURCE, TEXT

SLOW = bool(os.environ.get("ASSAY_TEST_SLOW"))
SEED = int(os.environ.get("ASSAY_TEST_SEED", "20261122"))
N_COMMANDS = 100 if SLOW else 12
N_BYTES = (30 if SLOW else 1) * 10**6
MINUTE = 60
TASKS = SOURCE / "tests" / "data" / "tasks"
# A small process between: what a program takes counts what started it, if that was larger.
STARTER = """import os, sys
out, *words = sys.argv[1:]
flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
streams = [(os.POSIX_SPAWN_OPEN, fd, out + end, flags, 0o600) for fd, end in ((1, ".out"), (2, ".err"))]
_, status, usage = os.wait4(os.posix_spawn(words[0], words, os.environ, file_actions=streams), 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)"""


class Bounds(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="assay-bounds-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.end = time.monotonic() + MINUTE

    def sample(self, items):
        """All of them; at length, those that can be begun in time."""
        items = list(items)
        if SLOW:
            random.Random(SEED).shuffle(items)
        for n, item in enumerate(items):
            if SLOW and time.monotonic() > self.end:
                print(f"{self.id()}: {n} of {len(items)} in time, seed {SEED}", flush=True)
                return
            yield item

    def measure(self, *words):
        """Exit code, most bytes resident, processor seconds and standard error of a run."""
        done = subprocess.run([sys.executable, "-I", "-S", "-c", STARTER, self.folder / "ran", ASSAY,
                               *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              check=True, timeout=300)
        code, peak, seconds = done.stdout.split()
        return (int(code), int(peak), float(seconds),
                (self.folder / "ran.err").read_text(errors="replace"))


class Memory(Bounds):
    """The line "memory: at most ..." of a run, and run.memory_bound_bytes."""

    def words(self, rng):
        model = rng.choice([F16, Q4])
        windows = ["-f", TEXT, "-c", rng.choice([4, 16, 64, 200]), "--chunks", rng.choice([1, 3, 12])]
        kind = rng.choice(["perplexity", "stride", "kld", "file", "score", "tasks", "record", "check"])
        if kind == "perplexity":
            words = ["perplexity", "-m", model, *windows,
                     *rng.choice([[], ["--per-token", "t"], ["--protocol", "fixed"]])]
        elif kind == "stride":
            words = ["perplexity", "-m", model, "-f", TEXT, "-c", 32, "--chunks", 3, "--ppl-stride",
                     rng.choice([1, 8, 30])]
        elif kind == "kld":
            words = ["kld", "--base", rng.choice([F16, Q4]), *windows,
                     *rng.choice([[], ["--js"], ["--worst", 100]])]
            for _ in range(rng.choice([1, 2, 3])):
                words += ["-m", rng.choice([F16, Q4])]
        elif kind == "file":
            words = ["kld", "-m", model, "--base", rng.choice(["compact", "logits"])]
        elif kind == "check":
            words = ["check", "-m", model, "--base", "logits"]
        elif kind == "record":
            words = ["record", "-m", model, *windows, "-o", "recorded", "--force"]
        elif kind == "tasks":
            words = ["perplexity", "-m", model, "--hellaswag", "--hellaswag-tasks",
                     rng.choice([1, 5, 20]), "-f", TASKS / "hellaswag.txt"]
        else:
            words = ["score", "-m", model, f"requests{rng.randrange(3)}", "-c", 400]
        words += ["-t", rng.choice([1, 2, 3, 16, 33, 64]), "-b", rng.choice([1, 16, 100, 512, 4096])]
        if rng.random() < 0.3:
            (self.folder / "s.state").unlink(missing_ok=True)
            words += ["--state", "s.state"]
        if rng.random() < 0.2:
            words += ["--device", "cpu,cpu"]
        if rng.random() < 0.2:
            words += ["--precision", rng.choice(["exact", "fast"])]
        return [*words, "--json", "r.json", "--force"]

    def test_random_commands(self):
        small = ["-m", F16, "-f", TEXT, "-c", "64", "--chunks", "4"]
        self.assertEqual(self.measure("record", *small, "-o", "compact")[0], 0)
        self.assertEqual(self.measure("perplexity", *small, "--kl-divergence-base", "logits")[0], 0)
        for i, (n, words) in enumerate(((1, 1), (40, 3), (600, 60))):
            (self.folder / f"requests{i}").write_text("".join(
                json.dumps({"context": f"In the town number {k % 7} " + "a b " * words,
                            "continuation": " there was" + " and" * (k % words)}) + "\n"
                for k in range(n)))
        for number in self.sample(range(N_COMMANDS)):
            words = self.words(random.Random(SEED + number))
            with self.subTest(seed=SEED, number=number, words=" ".join(map(str, words))):
                code, peak, _, err = self.measure(*words)
                self.assertEqual(code, 0, err)
                found = re.search(r"memory: at most (\d+\.\d) MB: (.*)", err)
                self.assertTrue(found, err)
                self.assertLessEqual(peak, 1e6 * float(found[1]) + 5e4, found[0])
                run = json.loads((self.folder / "r.json").read_text())["run"]
                self.assertLessEqual(run["memory_peak_bytes"], run["memory_bound_bytes"])

    def test_threads(self):
        """Each has working memory and comes to use its stack."""
        (self.folder / "r").write_text('{"text": "In the town there was"}\n' * 8)
        for threads in (1, 16, 96):
            with self.subTest(threads=threads):
                code, peak, _, err = self.measure("score", "-m", F16, "r", "-t", threads, "-b", 1)
                self.assertEqual(code, 0, err)
                self.assertLessEqual(peak, 1e6 * float(re.search(r"at most (\d+\.\d) MB", err)[1]))

    def test_who_starts_it(self):
        """The most that this process held is not what the one before it in its place did."""
        large = bytearray(b"x" * (60 << 20))
        subprocess.run([ASSAY, "perplexity", "-q", "-m", F16, "-f", TEXT, "-c", "16", "--chunks", "1",
                        "-t", "1", "--json", self.folder / "r.json"], check=True, capture_output=True)
        run = json.loads((self.folder / "r.json").read_text())["run"]
        self.assertLess(run["memory_peak_bytes"], len(large))

    def test_reading_took_more(self):
        """A text of one word takes more to cut into tokens than its evaluation does."""
        (self.folder / "t").write_text("a" * 3000000)
        code, peak, _, err = self.measure("perplexity", "-m", F16, "-f", "t", "-c", 16, "--chunks", 1,
                                          "-t", 1)
        self.assertEqual(code, 0, err)
        found = re.search(r"at most (\d+\.\d) MB: .*; reading the files took that much already", err)
        self.assertTrue(found, err)
        self.assertLessEqual(peak, 1e6 * float(found[1]) + 5e4)


OUTSET, SECONDS = 16e6, 0.4  # of a run that reads next to nothing
JSON_BYTES, JSON_MOST = 45, 500e6


class Parsers(Bounds):
    """Bytes resident and processor seconds are linear in the input, with a small factor."""

    def check(self, data, words, factor, seconds_per_mb=0.2, most=float("inf"), codes=(0, 2)):
        (self.folder / "in").write_bytes(data)
        limit = SECONDS + seconds_per_mb * len(data) / 1e6
        for _attempt in range(3):  # those of a processor with much else to do come out longer
            code, peak, seconds, err = self.measure(*words)
            self.assertIn(code, codes, err)
            self.assertLessEqual(peak, OUTSET + min(factor * len(data), most), (len(data), err[:300]))
            if seconds <= limit:
                return err
        self.fail(f"{seconds:.2f} s, expected at most {limit:.2f} s: {err[:300]}")

    def test_gguf(self):
        n = N_BYTES
        files = {
            "a string": (lambda: [g.pair("k", g.STRING, b"\1" * n)], 2),
            "strings": (lambda: [g.pair("k", g.ARRAY, [b"\1" * (n // 64)] * 64, g.STRING)], 12),
            "a key": (lambda: [g.pair(b"k" * n, g.U8, 1)], 2),
            "keys": (lambda: [g.pair(f"k{i}", g.U8, 1) for i in range(n // 20)], 45),
            "an array": (lambda: [g.pair("k", g.ARRAY, [f"t{i}" for i in range(n // 22)], g.STRING)], 4),
        }
        for name, (pairs, factor) in self.sample(files.items()):
            data = g.gguf(pairs(), [])
            for more in ([], ["--json"]):
                with self.subTest(file=name, more=more):
                    self.check(data, ["info", "in", *more], factor, codes=(0,))

    def test_gguf_of_tensors(self):
        tensors = g.gguf([], [(f"t{i}", 0, (1,), bytes(4)) for i in range(N_BYTES // 80)])
        for more in ([], ["--tensors"], ["--tensors", "--json"]):
            with self.subTest(more=more):
                self.check(tensors, ["info", "in", *more], 45, codes=(0,))

    def test_gguf_of_a_vocabulary(self):
        n = N_BYTES // 22
        pairs = [g.pair("tokenizer.ggml.model", g.STRING, "llama"),
                 g.pair("tokenizer.ggml.tokens", g.ARRAY, [f"t{i}" for i in range(n)], g.STRING),
                 g.pair("tokenizer.ggml.scores", g.ARRAY, [0.0] * n, g.F32),
                 g.pair("tokenizer.ggml.token_type", g.ARRAY, [1] * n, g.I32)]
        self.check(g.gguf(pairs, []), ["tokenize", "-m", "in", "-p", "a"], 8, codes=(0,))

    def test_long_string_of_metadata(self):
        """A hundred megabytes of control characters: below a second, and cut in what is printed."""
        data = g.gguf([g.pair("k", g.STRING, b"\1" * 10**8)], [])
        for more in ([], ["--json"]):
            self.check(data, ["info", "in", *more], 1.2, seconds_per_mb=0.01, codes=(0,))
            self.assertLess((self.folder / "ran.out").stat().st_size, 10**6)

    def test_json(self):
        n = N_BYTES
        texts = {"numbers": b"[" + b"1," * (n // 2) + b"1]", "nested": b"[" * n,
                 "a string": b'"' + b"x" * n + b'"', "objects": b"[" + b"{}," * (n // 3) + b"0]",
                 "members": b"{" + b",".join(b'"%d":0' % i for i in range(n // 10)) + b"}",
                 "escapes": b'"' + b"\\u0001" * (n // 6) + b'"'}
        for name, text in self.sample(texts.items()):
            with self.subTest(text=name):
                self.check(text, ["table", "in"], JSON_BYTES, most=JSON_MOST, codes=(2,))
                self.check(b'{"text": "a", "x": ' + text + b"}\n", ["score", "-m", F16, "in", "-t", "1"],
                           JSON_BYTES, most=JSON_MOST + 4 * n)

    def test_json_of_too_many_values(self):
        """42 MB took 1.7 GB."""
        text = b"[" + b"1," * (21 * 10**6) + b"1]"
        sentence = r"42000003 bytes of JSON with 21000002 values, expected at most 4194304"
        err = self.check(text, ["table", "in"], 3, codes=(2,))
        self.assertRegex(err, f"^assay: in: {sentence}\n$")
        err = self.check(b'{"text": "a"}\n' + text + b"\n", ["score", "-m", F16, "in", "-t", "1"], 5,
                         codes=(2,))
        self.assertRegex(err, f"^assay: in: line 2: {sentence}\n$")

    def test_lines(self):
        n = N_BYTES
        score = ["score", "-m", F16, "in", "-t", "1", "-o", "/dev/null"]
        self.check(b'{"text":""}\n' * (n // 12), score, 40, codes=(0,))
        self.check(b'{"text":"a"}\n' * (n // 13), [*score, "-c", "1"], 45, seconds_per_mb=1, codes=(0,))
        self.check(b"\n" * n, score, 4)

    def test_tasks_and_texts(self):
        n = N_BYTES
        tasks = ["perplexity", "-m", F16, "-t", "1", "-f", "in"]
        one = {"--hellaswag": ["--hellaswag-tasks", "1"], "--winogrande": ["--winogrande-tasks", "1"],
               "--multiple-choice": ["--multiple-choice-tasks", "1"]}
        for kind, text in self.sample((
                           ("--hellaswag", b"a\n1\nb\nc\nd\ne\n" * (n // 12)),
                           ("--hellaswag", b"a\n" * (n // 2)), ("--hellaswag", b"\n" * n),
                           ("--winogrande", b"1,a_b,c,d,1\n" * (n // 12)),
                           ("--winogrande", b"a_b," * (n // 4)), ("--winogrande", b'"' * n),
                           ("--multiple-choice", b"\xff\xff\xff\x7f" * (n // 4)),
                           ("--multiple-choice", b"\x01\0\0\0" * (n // 4)),
                           ("--multiple-choice", b'{"question": "a", "choices": ["b", "c"], '
                                                 b'"answer": 0}\n' * (n // 60)))):
            with self.subTest(kind=kind, text=text[:12]):
                self.check(text, [*tasks, kind, *one[kind], "--force-text"], 30, seconds_per_mb=0.5)
        for text in self.sample((b"a b c d e f\n" * (n // 12), b"a" * n, b"\xff" * n, b" " * n)):
            with self.subTest(text=text[:12]):
                self.check(text, [*tasks, "-c", "16", "--chunks", "1"], 60, seconds_per_mb=0.6)

    def test_journal(self):
        run = ["perplexity", "-m", F16, "-f", TEXT, "-c", "16", "--chunks", "2", "-t", "1", "--state",
               "in"]
        self.assertEqual(self.measure(*run)[0], 0)
        whole = (self.folder / "in").read_bytes()
        rng = random.Random(SEED)
        rests = b"\xff" * N_BYTES, rng.randbytes(N_BYTES), whole * (N_BYTES // len(whole))
        for rest, kept in self.sample((rest, kept) for rest in rests
                                      for kept in (len(whole), 8, 16, len(whole) // 2)):
            self.check(whole[:kept] + rest, run, 3 if kept == len(whole) else 4)

    def test_bases(self):
        """Counts that the file does not have room for take none."""
        small = ["-m", F16, "-f", TEXT, "-c", "64", "--chunks", "2", "-t", "1"]
        self.assertEqual(self.measure("record", *small, "-o", "compact")[0], 0)
        self.assertEqual(self.measure("perplexity", *small, "--kl-divergence-base", "logits")[0], 0)
        rng = random.Random(SEED)
        for name in ("compact", "logits"):
            whole = (self.folder / name).read_bytes()
            places = [*range(8, 128, 8)] + [rng.randrange(8, len(whole) - 8) for _ in range(4)]
            for at, value in self.sample((at, value) for at in places for value in (
                    b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0\0\0\x01\0\0\0\0")):
                data = whole[:at] + value + whole[at + len(value):]
                self.check(data, ["kld", "-m", F16, "--base", "in", "-t", "1"], 30, codes=(0, 1, 2))
            self.check(whole + bytes(N_BYTES), ["kld", "-m", F16, "--base", "in", "-t", "1"], 30)


if __name__ == "__main__":
    unittest.main(argv=["test_bounds.py"])
