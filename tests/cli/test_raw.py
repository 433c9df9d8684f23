#!/usr/bin/env python3
"""Nothing that comes from a file, its name or the command line reaches a terminal as it is: of
control characters both streams of every command have newlines and tabs alone, and all is UTF-8.

usage: test_raw.py ASSAY SOURCE_DIR
"""
import hashlib
import json
import os
import re
import struct
import subprocess
import tempfile
import unittest

import gguf_make as g
from program import ASSAY, F16, Q4, SOURCE, TEXT

# Clears the screen, sets a title, moves back; C1, a byte of no character, DEL.
HOSTILE = b"\x1b[2J\x1b]0;t\x07\r\t\x08\n\xc2\x9b31m\xff\x7f"
NAME = b"m" + HOSTILE
SHORT = ["-c", "16", "--chunks", "2", "-t", "1"]
COMMANDS = ["perplexity", "record", "kld", "check", "score", "compare", "table", "tokenize",
            "info", "dump", "version"]


def same_length(data, old, new):
    """Put `new`, repeated and cut to its length, in the place of some text of a model."""
    assert data.count(old) >= 1, old
    return data.replace(old, (new * len(old))[:len(old)], 1)


class Raw(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="assay-raw-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = os.fsencode(holder.name)
        model = same_length(Q4.read_bytes(), b"tiny-4m", b"\x1b[2J\xc2\x9b\xff")
        model = same_length(model, b"tiny.imatrix.gguf", HOSTILE)
        model = same_length(model, "\u2581the".encode(), b"\x1b[2J\xff\x7f")
        cls.write(NAME, model)
        cls.write(b"second-" + NAME, model)
        cls.write(b"unknown-" + NAME, same_length(model, b"llama.vocab_size", b"llama." + HOSTILE))
        cls.write(b"arch-" + NAME, model.replace(b"\x05\0\0\0\0\0\0\0llama",
                                                 b"\x05\0\0\0\0\0\0\0\x1b[2J\xff"))
        cls.write(b"pre-" + NAME, g.gguf(
            [g.pair("tokenizer.ggml.model", g.STRING, "gpt2"),
             g.pair("tokenizer.ggml.pre", g.STRING, HOSTILE),
             g.pair("tokenizer.ggml.tokens", g.ARRAY, [HOSTILE], g.STRING),
             g.pair("tokenizer.ggml.merges", g.ARRAY, [HOSTILE], g.STRING),
             g.pair(HOSTILE.replace(b"\0", b""), g.ARRAY, [HOSTILE] * 3, g.STRING)],
            [(HOSTILE, 77777, (8,), bytes(32)), (b"t", 0, (2,), bytes(8))]))
        cls.write(b"text-" + NAME, HOSTILE * 3 + TEXT.read_bytes()[:3000] + HOSTILE)
        cls.write(b"tasks-" + NAME, b"\n".join(
            [b"a river " + HOSTILE.replace(b"\n", b""), b"1", b"one" + HOSTILE[:9], b"two", b"three",
             b"four"] * 3))
        cls.write(b"requests-" + NAME,
                  b'{"id": "\xc2\x9b31m\x7f\xff\xc3\\u001b", "text": "A river \xc2\x9b"}\n')

    @classmethod
    def write(cls, name, data):
        with open(os.path.join(cls.folder, name), "wb") as file:
            file.write(data)

    @classmethod
    def read(cls, name):
        with open(os.path.join(cls.folder, name), "rb") as file:
            return file.read()

    def run_raw(self, *words, codes=(0, 1, 2)):
        result = subprocess.run([ASSAY, *words], cwd=self.folder, stdin=subprocess.DEVNULL,
                                capture_output=True, timeout=60)
        for name, stream in ("out", result.stdout), ("err", result.stderr):
            try:
                text = stream.decode()
            except UnicodeDecodeError as error:
                self.fail(f"{words}: {name}: {error}: {stream[error.start - 20:error.end + 20]}")
            bad = re.search("[\0-\x08\x0b-\x1f\x7f-\x9f]", text)
            self.assertIsNone(bad, f"{words}: {name}: {bad and text[bad.start() - 40:bad.end()]!r}")
        self.assertIn(result.returncode, codes, (words, result.stderr))
        return result

    def done(self, *words):
        return self.run_raw(*words, codes=(0,))

    def test_inspecting(self):
        for model in (NAME, b"arch-" + NAME, b"pre-" + NAME, b"unknown-" + NAME):
            self.done("info", model, "--tensors")
            self.done("info", model, "--tensors", "--json")
            self.run_raw("tokenize", "-m", model, "-f", b"text-" + NAME)
            self.run_raw("dump", model, "--tensor", HOSTILE, "-o", b"out-" + NAME)
            self.run_raw("perplexity", "-m", model, "-f", b"text-" + NAME, *SHORT)
            self.run_raw("perplexity", "-m", model, "-f", b"text-" + NAME, *SHORT, "--allow-unknown")
        self.done("tokenize", "-m", NAME, "-f", b"text-" + NAME)

    def test_evaluating(self):
        text = ["-f", b"text-" + NAME, *SHORT]
        for _ in range(2):  # the second time all is in the journal
            self.done("perplexity", "-m", NAME, *text, "--json", b"p-" + NAME, "--per-token",
                      b"t-" + NAME, "--state", b"s-" + NAME)
        self.done("perplexity", "-m", NAME, *text, "--json", "-")
        self.done("record", "-m", NAME, *text, "-o", b"base-" + NAME)
        self.run_raw("record", "-m", NAME, *text, "-o", b"base-" + NAME)
        self.done("perplexity", "-m", NAME, *text, "--kl-divergence-base", b"kld-" + NAME)
        for base in (NAME, b"base-" + NAME, b"kld-" + NAME):
            words = [] if base != NAME else text
            self.done("kld", "-m", NAME, "-m", b"second-" + NAME, "--base", base, *words,
                      "--worst", "5", "--json", b"k-" + NAME, "-t", "1")
        self.done("check", "-m", NAME, "--base", b"kld-" + NAME, "--worst", "5", "-t", "1")
        self.run_raw("kld", "-m", F16, "--base", NAME, *text)  # another vocabulary
        self.run_raw("kld", "-m", NAME, "--base", b"base-" + NAME, "-f", TEXT)  # another text
        for words in (["table"], ["table", "--csv"], ["table", "--by-metric"]):
            self.run_raw(*words, b"p-" + NAME, b"k-" + NAME)
        self.run_raw("compare", b"p-" + NAME, b"p-" + NAME)
        self.run_raw("compare", b"p-" + NAME, b"k-" + NAME)
        self.done("score", "-m", NAME, b"requests-" + NAME, "-t", "1")
        self.run_raw("score", "-m", NAME, b"tasks-" + NAME)
        self.run_raw("perplexity", "-m", NAME, "--hellaswag", "-f", b"tasks-" + NAME, "-t", "1")
        for kind in ("--winogrande", "--multiple-choice"):
            self.run_raw("perplexity", "-m", NAME, kind, "-f", b"text-" + NAME, "-t", "1")

    def test_description_of_a_base(self):
        """That of a compact base is a text that anybody may have written."""
        self.done("record", "-m", Q4, "-f", TEXT, *SHORT, "-o", "base")
        data = self.read(b"base")
        n, = struct.unpack_from("<Q", data, 96)
        at = data.index(b'{\n\t"schema"')
        evil = "\x1b[2J\x9b31m\x7f"
        described = json.dumps({"base": {"name": evil, "architecture": evil, "remarks": [evil]},
                                "settings": {"precision": evil}}, ensure_ascii=False).encode()
        described += b" " * (n - len(described))
        header = bytearray(data[:480])
        header[112 + 64:112 + 96] = hashlib.sha256(described).digest()
        self.write(b"evil", header + hashlib.sha256(header).digest() + data[512:at] + described
                   + data[at + n:])
        result = self.done("kld", "-m", Q4, "--base", "evil", "-t", "1", "--json", "-")
        self.assertIn(rb"was recorded with --precision \x1b[2J\xc2\x9b31m\x7f, ", result.stderr)

    def test_results_of_any_kind(self):
        """A document of another hand, hostile in every text."""
        self.done("kld", "-m", Q4, "--base", F16, "-f", TEXT, *SHORT, "--json", "r.json")
        document = json.loads(self.read(b"r.json"))

        def places(value, path=()):
            if isinstance(value, (dict, list)):
                items = value.items() if isinstance(value, dict) else enumerate(value)
                for key, inner in items:
                    yield from places(inner, (*path, key))
            else:
                yield path
        for path in places(document):
            inner = document
            for step in path[:-1]:
                inner = inner[step]
            kept, inner[path[-1]] = inner[path[-1]], "\x1b[2J\x9b31m\x7f\n"
            self.write(b"e.json", json.dumps(document, ensure_ascii=False).encode())
            if isinstance(kept, str) or path[0] in ("candidates", "windows", "tokens"):
                self.run_raw("table", "e.json", "r.json")
                self.run_raw("compare", "e.json", "r.json")
            inner[path[-1]] = kept

    def test_every_option(self):
        """A hostile value for each, and hostile words in its place."""
        for command in COMMANDS:
            usage = subprocess.run([ASSAY, "help", command], capture_output=True, text=True).stdout
            begin = {"info": [NAME], "dump": [NAME, "--tensor", "t"], "table": [NAME],
                     "compare": [NAME, NAME], "score": ["-m", NAME, NAME],
                     "version": []}.get(command, ["-m", NAME])
            for option in re.findall(r"^  (--?[\w-]+)(?:, --[\w-]+)* [A-Z]", usage, re.MULTILINE):
                self.run_raw(command, *begin, option, HOSTILE)
                self.run_raw(command, *begin, os.fsencode(option) + b"=" + HOSTILE)
            self.run_raw(command, *begin, b"--" + HOSTILE)
            self.run_raw(command, *begin, HOSTILE, HOSTILE, HOSTILE)
        self.run_raw(HOSTILE)
        self.run_raw("help", HOSTILE)


if __name__ == "__main__":
    unittest.main(argv=["test_raw.py"])
