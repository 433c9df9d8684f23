#!/usr/bin/env python3
"""The examples in Python do what they say, on the bundled models.

usage: test_examples.py ASSAY SOURCE_DIR LIBRARY

Skipped (77) where no Python here has numpy. pytest and matplotlib are used where they are.
"""
import importlib.util
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from numpys import with_numpy

with_numpy()
ASSAY, SOURCE, LIBRARY = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
DATA, EXAMPLES = SOURCE / "data", SOURCE / "examples"
F16 = DATA / "tiny.F16.gguf"
ENVIRONMENT = {**os.environ, "PATH": f"{ASSAY.parent}:{os.environ['PATH']}", "ASSAY_LIBRARY": str(LIBRARY),
               "PYTHONPATH": str(SOURCE / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if importlib.util.find_spec("pytest") else None
BY_HAND = ["-c", "import runpy, sys\nfor name, f in runpy.run_path(sys.argv[1]).items():\n"
                 "    if name.startswith('test_'):\n        print(name, flush=True)\n        f()"]


def python(*words, **environment):
    return subprocess.run([sys.executable, *words], env=ENVIRONMENT | environment, capture_output=True, text=True)


def array(data, key):
    """(number of elements, where the first one is) of an array among the keys of a GGUF file."""
    at = data.index(key) + len(key)
    return struct.unpack_from("<Q", data, at + 8)[0], at + 16


def field(number, content):
    """A field of a protocol buffer: a message or a string, or a whole number below 128."""
    if isinstance(content, int):
        return varint(number << 3) + bytes([content])
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def sentencepiece(data):
    """The tokens of a GGUF file as tokenizer.model has them."""
    n, at = array(data, b"tokenizer.ggml.tokens")
    _, scores = array(data, b"tokenizer.ggml.scores")
    _, types = array(data, b"tokenizer.ggml.token_type")
    pieces = []
    for i in range(n):
        size = struct.unpack_from("<Q", data, at)[0]
        kind = struct.unpack_from("<i", data, types + 4 * i)[0]
        pieces.append(field(1, field(1, data[at + 8:at + 8 + size]) + b"\x15" + data[scores + 4 * i:scores + 4 * i + 4]
                            + field(3, kind)))
        at += 8 + size
    return b"".join(pieces) + field(2, field(3, 2) + field(35, 1)) + field(3, field(4, 0))


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def published(self, *more):
        where = self.folder / "published"
        done = python("-B", SOURCE / "tests" / "docs" / "publish.py", F16, where, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        (where / "tokenizer.model").write_bytes(sentencepiece(F16.read_bytes()))
        return {"PUBLISHED": str(where), "CONVERTED": str(F16)}

    def test_a_conversion(self):
        files = self.published()
        for runner in (PYTEST, BY_HAND):
            if runner:
                done = python(*runner, EXAMPLES / "test_conversion.py", **files)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("3 passed" if runner is PYTEST else "test_log_probabilities", done.stdout)

    def test_a_conversion_with_a_defect(self):
        files = self.published("other")
        done = python(*BY_HAND, EXAMPLES / "test_conversion.py", **files)
        self.assertEqual(done.stdout, "test_tensors\n")
        self.assertRegex(done.stderr, r"AssertionError: blk\.\d\.attn_[qk]\.weight\n$")
        if PYTEST:
            done = python(*PYTEST, EXAMPLES / "test_conversion.py", **files)
            self.assertIn("2 failed, 1 passed", done.stdout)

    def test_divergence_by_token(self):
        words = [EXAMPLES / "divergence_by_token.py", F16, DATA / "tiny.Q4_K_M.gguf", DATA / "text.txt"]
        (self.folder / "matplotlib.py").write_text("raise ImportError('it is not there')")
        without = f"{self.folder}:{SOURCE / 'python'}"
        drawn = []
        for name, environment in (("a.svg", {"PYTHONPATH": without}), ("b.svg", {})):
            done = python(*words, self.folder / name, **environment, DISPLAY="")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"\A199 tokens, 0\.00\d+ nats in the mean; the farthest:\n( +0\.\d+  .* -> .*\n){5}\Z")
            drawn.append(xml.etree.ElementTree.parse(self.folder / name).getroot())
        self.assertEqual(len(list(drawn[0])), 199)
        self.assertTrue(all(root.tag == "{http://www.w3.org/2000/svg}svg" for root in drawn))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
