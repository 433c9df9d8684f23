#!/usr/bin/env python3
"""Downloads that were given their size beforehand and are not whole: refused, or named in a note.

usage: test_zeros.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import sys
import tempfile
import unittest

from program import Q4, TEXT, run

N = Q4.stat().st_size


class Zeros(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.addCleanup(self.kept.cleanup)
        self.file = pathlib.Path(self.kept.name) / "m.gguf"
        self.json = pathlib.Path(self.kept.name) / "r.json"
        self.tensors = {t["name"]: t for t in json.loads(run("info", "--json", "--tensors", Q4).stdout)["tensors"]}

    def perplexity(self, begin, end):
        """Of the bundled model with zeros in the place of these bytes."""
        data = bytearray(Q4.read_bytes())
        data[begin:end] = bytes(end - begin)
        self.file.write_bytes(data)
        return run("perplexity", "-m", self.file, "-f", TEXT, "-c", "32", "--chunks", "1", "--json",
                   self.json)

    def test_gaps(self):
        for begin, end in ((0.3, 1), (0.5, 1), (0.9, 1), (0.995, 1), (0.4, 0.45), (0.7, 0.75)):
            with self.subTest(begin=begin, end=end):
                done = self.perplexity(int(N * begin), int(N * end))
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, r"m\.gguf: nothing but zeros in \d+ bytes from byte \d+ on, in "
                                 r"tensor '.*', expected weights; this may be an incomplete download: ")

    def test_a_matrix(self):
        for name in "blk.1.ffn_down.weight", "blk.0.attn_k.weight":
            with self.subTest(name):
                at, n = self.tensors[name]["offset"], self.tensors[name]["n_bytes"]
                done = self.perplexity(at, at + n)
                said = f"tensor '{name}' has nothing but zeros: this may be an incomplete download"
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertIn(said, json.loads(self.json.read_text())["model"]["remarks"])

    def test_a_bias_may_be_zero(self):
        at, n = self.tensors["blk.1.ffn_norm.weight"]["offset"], self.tensors["blk.1.ffn_norm.weight"]["n_bytes"]
        self.assertNotIn("zeros", self.perplexity(at, at + n).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
