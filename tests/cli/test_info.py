#!/usr/bin/env python3
"""assay info as JSON and as text, on files with awkward metadata.

usage: test_info.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import gguf_make as g

ASSAY, DATA = sys.argv[1], pathlib.Path(sys.argv[2]) / "data"


def info(path, *options):
    return subprocess.run([ASSAY, "info", path, *options], capture_output=True, check=True).stdout


class Info(unittest.TestCase):
    def made(self, pairs, tensors=(), *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "made.gguf"
            path.write_bytes(g.gguf(pairs, list(tensors)))
            return info(path, *options)

    def test_bundled_model(self):
        document = json.loads(info(DATA / "tiny.Q4_K_M.gguf", "--json", "--tensors"))
        self.assertEqual(document["schema"], "assay-info")
        self.assertEqual(document["schema_version"], 1)
        self.assertEqual(document["hyperparameters"]["n_layers"], 4)
        self.assertEqual(document["hyperparameters"]["head_size"], 32)
        self.assertEqual(document["hyperparameters"]["n_vocab"], 2048)
        self.assertEqual(document["total"]["n_tensors"], len(document["tensors"]))
        self.assertEqual(document["total"]["n_weights"],
                         sum(t["n_weights"] for t in document["types"]))
        self.assertEqual(document["total"]["n_bytes"], sum(t["n_bytes"] for t in document["tensors"]))
        self.assertEqual(document["file_bytes"], (DATA / "tiny.Q4_K_M.gguf").stat().st_size)
        self.assertRegex(document["model_id"], "^[0-9a-f]{64}$")
        by_name = {t["name"]: t for t in document["tensors"]}
        self.assertEqual(by_name["output.weight"]["type"], "Q6_K")
        self.assertEqual(by_name["output.weight"]["ne"], [256, 2048])
        self.assertEqual(by_name["output.weight"]["bits_per_weight"], 6.5625)

    def test_without_tensors_option(self):
        self.assertNotIn("tensors", json.loads(info(DATA / "tiny.F16.gguf", "--json")))
        self.assertNotIn(b"output.weight", info(DATA / "tiny.F16.gguf"))

    def test_every_value_type(self):
        values = [("u8", g.U8, 255), ("i8", g.I8, -128), ("u16", g.U16, 65535),
                  ("i16", g.I16, -32768), ("u32", g.U32, 2**32 - 1), ("i32", g.I32, -(2**31)),
                  ("u64", g.U64, 2**64 - 1), ("i64", g.I64, -(2**63)), ("f64", g.F64, 0.1),
                  ("f32", g.F32, 0.5), ("bool", g.BOOL, 1), ("string", g.STRING, "a\"b\nc")]
        document = json.loads(self.made([g.pair(n, k, v) for n, k, v in values], (), "--json"))
        found = {m["key"]: m for m in document["metadata"]}
        for name, _kind, value in values:
            self.assertEqual(found[name]["type"], name)
            self.assertEqual(found[name]["value"], bool(value) if name == "bool" else value)
        text = self.made([g.pair(n, k, v) for n, k, v in values]).decode()
        self.assertIn("18446744073709551615", text)
        self.assertIn("-9223372036854775808", text)
        self.assertIn('a"b\\nc', text)

    def test_arrays(self):
        pairs = [g.pair("short", g.ARRAY, [3, 4], g.I32),
                 g.pair("empty", g.ARRAY, [], g.F32),
                 g.pair("words", g.ARRAY, ["x", "y"], g.STRING),
                 g.pair("long", g.ARRAY, list(range(1000)), g.U16)]
        found = {m["key"]: m for m in json.loads(self.made(pairs, (), "--json"))["metadata"]}
        self.assertEqual(found["short"]["value"], [3, 4])
        self.assertEqual(found["empty"]["value"], [])
        self.assertEqual(found["words"]["value"], ["x", "y"])
        self.assertEqual(found["long"]["count"], 1000)
        self.assertEqual(found["long"]["first"], list(range(64)))
        self.assertNotIn("value", found["long"])

    def test_not_finite(self):
        pairs = [g.pair("nan", g.F32, float("nan")), g.pair("inf", g.F64, float("inf"))]
        for m in json.loads(self.made(pairs, (), "--json"))["metadata"]:
            self.assertIsNone(m["value"])

    def test_bytes_that_are_no_text(self):
        """Neither a terminal nor a JSON reader meets them."""
        hostile = b"\x1b[2Jred\x00\xff\xfe end"
        pairs = [g.pair("k", g.STRING, hostile)]
        text = self.made(pairs)
        self.assertNotIn(b"\x1b", text)
        self.assertIn(rb"\x1b[2Jred\x00\xff\xfe end", text)
        document = json.loads(self.made(pairs, (), "--json"))
        self.assertEqual(document["metadata"][0]["value"], "\x1b[2Jred\ufffd\ufffd\ufffd end")

    def test_long_values_are_cut(self):
        text = self.made([g.pair("k", g.STRING, "\u00e9" * 5000)]).decode()
        line = next(l for l in text.splitlines() if l.startswith("  k "))
        self.assertLess(len(line), 200)
        self.assertTrue(line.endswith("..."))

    def test_no_model_at_all(self):
        document = json.loads(self.made([], (), "--json"))
        self.assertEqual(document["hyperparameters"], {})
        self.assertEqual(document["total"],
                         {"n_tensors": 0, "n_weights": 0, "n_bytes": 0, "bits_per_weight": 0})

    def test_per_layer_hyperparameters(self):
        pairs = [g.pair("general.architecture", g.STRING, "llama"),
                 g.pair("llama.attention.head_count", g.ARRAY, [8, 4], g.U32)]
        document = json.loads(self.made(pairs, (), "--json"))
        self.assertEqual(document["hyperparameters"]["n_heads"], [8, 4])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
