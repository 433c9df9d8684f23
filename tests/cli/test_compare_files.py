#!/usr/bin/env python3
"""assay compare of two GGUF files: keys and tensors that differ, in how many blocks, how far; and
what the two are to each other, where a change is known.

usage: test_compare_files.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import random
import struct
import tempfile
import unittest

from documents import check
from gguf_make import ARRAY, BOOL, F32, I8, I32, I64, STRING, U8, U32, U64, gguf, pair
from program import F16, Q4, run

KEYS = [pair("general.architecture", STRING, "llama"), pair("general.name", STRING, "one"),
        pair("llama.context_length", U32, 64), pair("tokenizer.ggml.tokens", ARRAY, ["a", "b"], STRING)]


def q8_0(values):
    """Blocks of 32: a half and 32 bytes."""
    data = b""
    for i in range(0, len(values), 32):
        d = struct.unpack("e", struct.pack("e", max(map(abs, values[i:i + 32])) / 127))[0] or 1.0
        data += struct.pack("<e32b", d, *(max(-127, min(127, round(x / d))) for x in values[i:i + 32]))
    return data


def matrix(name, values, kind="F16"):
    data = {"F16": lambda: struct.pack(f"<{len(values)}e", *values), "Q8_0": lambda: q8_0(values),
            "F32": lambda: struct.pack(f"<{len(values)}f", *values)}[kind]()
    return name, {"F32": 0, "F16": 1, "Q8_0": 8}[kind], (64, len(values) // 64), data


class CompareFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        rng = random.Random(1)
        self.values = [[rng.gauss(0, 1) for _ in range(64 * 16)] for _ in range(3)]

    def write(self, name, tensors, keys=KEYS):
        path = self.folder / name
        path.write_bytes(gguf(keys, tensors))
        return path

    def matrices(self, kind, *values):
        return [matrix(f"blk.{i}.ffn_up.weight", v, kind) for i, v in enumerate(values or self.values)]

    def compare(self, a, b, *options, code=0):
        done = run("compare", a, b, *options, "-q", "--json", "c.json", "--force", cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        if code:
            return done.stderr
        document = json.loads((self.folder / "c.json").read_text())
        check(self, document)
        self.assertEqual(done.stdout.splitlines()[0], document["result"]["sentence"])
        self.assertEqual(done.stdout, run("compare", a, b, *options, "-q", "-t", "1", cwd=self.folder).stdout)
        return document

    def verdict(self, *words):
        return self.compare(*words)["result"]["verdict"]

    def test_same(self):
        a = self.write("a.gguf", self.matrices("F16"))
        self.assertEqual(self.verdict(a, a), "same")
        other_order = self.write("b.gguf", self.matrices("F16")[::-1], KEYS[::-1])
        self.assertEqual(self.verdict(a, other_order), "same")

    def test_keys(self):
        """A name is metadata; a number that is computed with is not, nor is a list of tokens."""
        a = self.write("a.gguf", self.matrices("F16"))
        for at, key, verdict in ((1, pair("general.name", STRING, "two"), "metadata"),
                                 (0, pair("general.architecture", STRING, "qwen2"), "keys"),
                                 (2, pair("llama.context_length", U32, 65), "keys"),
                                 (2, pair("llama.context_length", F32, 64), "keys"),
                                 (3, pair("tokenizer.ggml.tokens", ARRAY, ["a", "c"], STRING), "keys"),
                                 (3, pair("tokenizer.ggml.tokens", ARRAY, ["a"], STRING), "keys")):
            keys = list(KEYS)
            keys[at] = key
            found = self.compare(a, self.write("b.gguf", self.matrices("F16"), keys))
            self.assertEqual(found["result"]["verdict"], verdict, key)
            self.assertEqual(len(found["keys"]), 1)
        for one, other, same in (((U32, 64), (I32, 64), True), ((U8, 64), (U64, 64), True),
                                 ((I8, -1), (I64, -1), True), ((I64, -1), (U64, 2**64 - 1), False),
                                 ((U32, 64), (I32, 63), False), ((BOOL, 1), (U8, 1), False),
                                 ((ARRAY, [3, 4], U32), (ARRAY, [3, 4], I64), True),
                                 ((ARRAY, [3, 4], U32), (ARRAY, [3, 5], I64), False)):
            files = [self.write(f"{i}.gguf", self.matrices("F16"), KEYS + [pair("llama.x", *value)])
                     for i, value in enumerate((one, other))]
            for order in (files, files[::-1]):
                self.assertEqual(self.verdict(*order), "same" if same else "keys", (one, other))
        found = self.compare(a, self.write("b.gguf", self.matrices("F16"), KEYS[:2] + KEYS[3:]))
        self.assertEqual([(k["key"], k["outcome"]) for k in found["keys"]], [("llama.context_length", "only_a")])

    def test_a_block(self):
        """One code of one block, by one."""
        a = self.write("a.gguf", self.matrices("Q8_0"))
        tensors = self.matrices("Q8_0")
        data = bytearray(tensors[1][3])
        data[34 * 5 + 9] ^= 1
        tensors[1] = (*tensors[1][:3], bytes(data))
        found = self.compare(a, self.write("b.gguf", tensors))
        t = found["tensors"][1]
        self.assertEqual((found["result"]["verdict"], t["n_blocks"], t["n_blocks_differ"], t["n_bytes_differ"]),
                         ("compiler", 32, 1, 1))
        self.assertEqual([t["outcome"] for t in found["tensors"]], ["same", "values", "same"])
        self.assertEqual(found["tensors"][0]["error"], None)

    def test_errors(self):
        """The error of each from the other and from the base, by their definition."""
        base = self.write("base.gguf", self.matrices("F32"))
        a = self.write("a.gguf", self.matrices("Q8_0"))
        b = self.write("b.gguf", self.matrices("F16"))
        t = self.compare(a, b, "--base", base)["tensors"][0]
        x = struct.unpack("<1024f", matrix("", self.values[0], "F32")[3])
        y = struct.unpack("<1024e", matrix("", self.values[0], "F16")[3])
        rms = lambda u, v: (sum((p - q) ** 2 for p, q in zip(u, v)) / sum(p * p for p in u)) ** 0.5
        self.assertAlmostEqual(t["base_error_b"], rms(x, y), delta=1e-9)
        self.assertGreater(t["base_error_a"], t["base_error_b"])
        self.assertEqual((t["outcome"], t["far"]), ("type", False))

    def test_kin(self):
        """Another quantisation of the same values, other types, other weights, another model."""
        rng = random.Random(2)
        near = [[x + rng.gauss(0, 0.003) for x in v] for v in self.values]
        tuned = [[x + rng.gauss(0, 0.2) for x in v] for v in self.values]
        other = [[rng.gauss(0, 1) for _ in v] for v in self.values]
        a = self.write("a.gguf", self.matrices("Q8_0"))
        write = lambda kind, values: self.write("b.gguf", self.matrices(kind, *values))
        self.assertEqual(self.verdict(a, write("Q8_0", near)), "matrix")
        self.assertEqual(self.verdict(a, write("F16", self.values)), "recipe")
        self.assertEqual(self.verdict(a, write("Q8_0", tuned)), "weights")
        self.assertEqual(self.verdict(a, write("F16", tuned)), "weights")
        self.assertEqual(self.verdict(a, write("F16", other)), "none")
        self.assertEqual(self.verdict(a, write("Q8_0", self.values[:2] + [self.values[0]])), "weights")
        self.assertEqual(self.verdict(F16, Q4), "recipe")
        norm = lambda x: self.matrices("Q8_0") + [matrix("blk.0.ffn_norm.weight", [1.0] * 63 + [x], "F32")]
        found = self.compare(self.write("c.gguf", norm(1.0)), self.write("d.gguf", norm(2.0)))
        self.assertEqual(found["result"]["verdict"], "weights")

    def both_orders(self, a, b):
        """The verdict and the last tensor of the document, which are the same in both orders."""
        done = [self.compare(*files) for files in ((a, b), (b, a))]
        self.assertEqual(done[0]["result"]["verdict"], done[1]["result"]["verdict"])
        last = [d["tensors"][-1] for d in done]
        for field in ("far", "n_finite_once"):
            self.assertEqual(last[0][field], last[1][field], field)
        return done[0]["result"]["verdict"], last[0]

    def test_not_finite(self):
        """A value that is finite in one file only is no version of the other's, whatever the type."""
        nan, inf = float("nan"), float("inf")
        norm = lambda name, kind, x: self.write(name, self.matrices("Q8_0") + [matrix("n.weight", [1.0] * 63 + [x], kind)])
        fine = norm("a.gguf", "F32", 1.0)
        for kind in ("F32", "F16"):
            for x in (nan, inf):
                verdict, t = self.both_orders(fine, norm("b.gguf", kind, x))
                self.assertEqual((verdict, t["n_finite_once"], t["far"]), ("weights", 1, True), (kind, x))
        self.assertEqual(self.both_orders(norm("a.gguf", "F32", nan), norm("b.gguf", "F16", nan))[0], "recipe")
        tensors = self.matrices("Q8_0")
        broken = bytearray(tensors[2][3])
        broken[34 * 5:34 * 5 + 2] = struct.pack("e", nan)
        bad = self.write("b.gguf", tensors[:2] + [(*tensors[2][:3], bytes(broken))])
        for kind in ("Q8_0", "F16", "F32"):
            verdict, t = self.both_orders(self.write("a.gguf", self.matrices(kind)), bad)
            self.assertEqual((verdict, t["n_finite_once"]), ("weights", 32), kind)
        broken[34 * 7 + 9] ^= 1
        verdict, t = self.both_orders(bad, self.write("a.gguf", tensors[:2] + [(*tensors[2][:3], bytes(broken))]))
        self.assertEqual((verdict, t["n_finite_once"]), ("compiler", 0))
        self.assertIn("32 values are finite in one of them only",
                      run("compare", self.write("a.gguf", tensors), bad, cwd=self.folder).stdout)

    def test_infinite_block(self):
        """An infinity on both sides hides nothing that the other blocks of its matrix hold."""
        rng = random.Random(3)
        tuned = [x + rng.gauss(0, 0.3) for x in self.values[0]]
        name = "blk.0.ffn_up.weight"
        values = [float("inf")] + [float("nan")] * 31 + self.values[0][32:]
        blocks = struct.pack("<e32b", float("inf"), 1, *[0] * 31) + q8_0(tuned[32:])
        a = self.write("a.gguf", [matrix(name, values, "F32")])
        b = self.write("b.gguf", [(name, 8, (64, 16), blocks)])
        verdict, t = self.both_orders(a, b)
        self.assertEqual((verdict, t["n_finite_once"]), ("weights", 0))

    def test_numbers_without_blocks(self):
        """In one type another value is other weights; in two, what rounding does not explain."""
        write = lambda name, kind, values: self.write(name, [matrix("blk.0.ffn_up.weight", values, kind)])
        values = [struct.unpack("e", struct.pack("e", x))[0] for x in self.values[0]]
        tuned = list(values)
        tuned[64 * 3 + 1] = values[64 * 3 + 1] * (1 + 2**-10)
        for kind in ("F16", "F32"):
            verdict, t = self.both_orders(write("a.gguf", kind, values), write("b.gguf", kind, tuned))
            self.assertEqual((verdict, t["n_rows_far"], t["far"]), ("weights", 1, True), kind)
        self.assertIn("\t1 row is beyond the bound, the first is 3\n",
                      run("compare", "a.gguf", "b.gguf", cwd=self.folder).stdout)
        self.assertEqual(self.both_orders(write("a.gguf", "F32", values), write("b.gguf", "F16", tuned))[0], "recipe")
        tuned[64 * 3 + 1] = values[64 * 3 + 1] * 1.01
        verdict, t = self.both_orders(write("a.gguf", "F32", values), write("b.gguf", "F16", tuned))
        self.assertEqual((verdict, t["n_rows_far"]), ("weights", 1))
        small = [x * 2**-22 for x in values]
        self.assertEqual(self.both_orders(write("a.gguf", "F32", small), write("b.gguf", "F16", small))[0], "recipe")

    def test_names_and_shapes(self):
        """Tensors that one lacks, another shape, another architecture."""
        a = self.write("a.gguf", self.matrices("Q8_0"))
        found = self.compare(a, self.write("b.gguf", self.matrices("Q8_0")[:2]))
        self.assertEqual((found["result"]["verdict"], found["tensors"][2]["outcome"]), ("recipe", "only_a"))
        found = self.compare(self.folder / "b.gguf", a)
        self.assertEqual(found["tensors"][2]["outcome"], "only_b")
        self.assertIn("1 tensor is in one of them only", found["result"]["sentence"])
        tensors = self.matrices("Q8_0")
        tensors[0] = (*tensors[0][:2], (32, 32), tensors[0][3])
        found = self.compare(a, self.write("b.gguf", tensors))
        self.assertEqual((found["result"]["verdict"], found["tensors"][0]["outcome"]), ("weights", "shape"))
        self.assertEqual(self.verdict(a, Q4), "none")

    def test_refused(self):
        a = self.write("a.gguf", self.matrices("Q8_0"))
        cut = self.write("cut.gguf", self.matrices("Q8_0"))
        cut.write_bytes(cut.read_bytes()[:-300])
        self.assertIn("cut.gguf", self.compare(a, cut, code=2))
        self.assertIn("cut.gguf", self.compare(cut, a, code=2))
        self.assertIn("these are models", self.compare(a, a, "--candidate-a", "1", code=2))
        for option in ("--resamples", "--seed"):
            self.assertIn("are of the intervals of two results; these are models", self.compare(a, a, option, "1", code=2))
        statistics = self.write("i.gguf", [("blk.0.ffn_up.weight.in_sum2", 0, (64,), bytes(256)),
                                           ("blk.0.ffn_up.weight.counts", 0, (1,), struct.pack("<f", 1))],
                                [pair("general.type", STRING, "imatrix"), pair("imatrix.chunk_count", U32, 1),
                                 pair("imatrix.chunk_size", U32, 1), pair("imatrix.datasets", ARRAY, ["x"], STRING)])
        for files in ((a, statistics), (statistics, a)):
            self.assertIn("i.gguf is an importance matrix and", self.compare(*files, code=2))
        self.assertIn("these are importance matrices", self.compare(statistics, statistics, "--seed", "1", code=2))
        (self.folder / "t.json").write_text("{}")
        self.assertIn("t.json", self.compare(a, "t.json", code=2))
        self.assertIn("nowhere", self.compare(a, "nowhere", code=2))
        self.assertIn("--threads is for two GGUF files", self.compare("t.json", "t.json", "-t", "2", code=2))
        self.assertIn("--base is for two GGUF files", self.compare("t.json", "t.json", "--base", a, code=2))
        done = run("compare", a, a, "--json", a, cwd=self.folder)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=["test_compare_files.py"])
