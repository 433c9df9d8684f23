#!/usr/bin/env python3
"""assay info as JSON and as text, on files with awkward metadata.

usage: test_info.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import struct
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

    def test_cache(self):
        """Layers that see all, layers with windows, compressed rows; nothing of an unknown one."""
        common = {"block_count": 4, "context_length": 8192, "embedding_length": 64,
                  "feed_forward_length": 96, "attention.head_count": 4,
                  "attention.layer_norm_rms_epsilon": 1e-6}
        for arch, own, cache, n_bytes in (
                ("gemma2", {"attention.head_count_kv": 2, "attention.key_length": 16,
                            "attention.value_length": 16, "attention.sliding_window": 100},
                 {"k": 64, "v": 64, "window": 100, "window_k": 64, "window_v": 64},
                 2 * 128 * (1000 + 100)),
                ("deepseek2", {"attention.head_count_kv": 1, "attention.kv_lora_rank": 32,
                               "attention.key_length": 40, "attention.value_length": 32,
                               "attention.key_length_mla": 24, "attention.value_length_mla": 16,
                               "rope.dimension_count": 8, "leading_dense_block_count": 4,
                               "expert_count": 0},
                 {"k": 160, "v": 0, "window": 0, "window_k": 0, "window_v": 0}, 2 * 160 * 1000),
                ("other", {}, None, None)):
            pairs = [g.pair("general.architecture", g.STRING, arch)]
            pairs += [g.pair(f"{arch}.{key}", g.F32 if isinstance(value, float) else g.U32, value)
                      for key, value in {**common, **own}.items()]
            found = json.loads(self.made(pairs, (), "--json", "--context", "1000"))
            self.assertEqual(found.get("cache"), cache and {**cache, "state_bytes": 0}, arch)
            self.assertEqual(found.get("cache_bytes"), n_bytes)
            text = self.made(pairs, (), "--context", "1000").decode()
            self.assertEqual(f"  1000 tokens          {n_bytes} bytes (" in text, bool(cache))
            self.assertEqual("of the last 100 tokens\n" in text, arch == "gemma2")
            self.assertNotIn("tokens   ", self.made(pairs).decode())

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

    def test_types_of_ik_llama(self):
        """Listed with the sizes that they have, named by ik_llama.cpp's numbers."""
        tensors = [("a.weight", 144, (256, 2), bytes(2 * (4 + 136))),  # IQ4_KS: a prefix per row
                   ("b.weight", 212, (256, 4), bytes(4 * 144)), ("c.weight", 0, (2,), bytes(8))]
        pairs = [g.pair("general.file_type", g.U32, 15)]
        document = json.loads(self.made(pairs, tensors, "--json", "--tensors"))
        self.assertEqual([(t["type"], t["type_id"], t["n_bytes"]) for t in document["tensors"]],
                         [("IQ4_KS", 144, 280), ("Q4_K_R4", 212, 576), ("F32", 0, 8)])
        self.assertEqual(document["tensors"][0]["bits_per_weight"], 4.375)
        self.assertEqual(document["total"]["n_bytes"], 864)
        self.assertEqual((document["quantisation"], document["quantisation_by"]),
                         ("Q4_K_R4", "tensors"))
        self.assertEqual((document["types_of"], document["unsupported"]), ("ik_llama.cpp", None))
        text = self.made(pairs, tensors).decode()
        self.assertRegex(text, r"(?m)^types of  ik_llama\.cpp, which alone has some of them$")
        self.assertRegex(text, r"(?m)^  IQ4_KS +1 +512 +280 +4\.3750$")

    def test_file_type_of_ik_llama(self):
        """The same number means another mixture in llama.cpp's files; what both have tells nothing."""
        def told(file_type, type_id, n_bytes, columns=256):
            document = json.loads(self.made([g.pair("general.file_type", g.U32, file_type)],
                                            [("a.weight", type_id, (columns, 4), bytes(n_bytes))],
                                            "--json"))
            return document["quantisation"], document["quantisation_by"], document.get("types_of")
        self.assertEqual(told(145, 144, 560), ("IQ4_KS", "general.file_type", "ik_llama.cpp"))
        self.assertEqual(told(340, 339, 576), ("IQ4_K_R4", "general.file_type", "ik_llama.cpp"))
        self.assertEqual(told(146, 138, 440), ("IQ3_KL", "general.file_type", "ik_llama.cpp"))
        self.assertEqual(told(999, 138, 440), ("IQ3_K", "tensors", "ik_llama.cpp"))
        self.assertEqual(told(145, 42, 288), ("Q2_0", "tensors", "llama.cpp"))
        self.assertEqual(told(41, 42, 288), ("Q2_0", "general.file_type", "llama.cpp"))
        self.assertEqual(told(41, 41, 144), ("Q1_0", "tensors", None))

    def test_types_without_a_decoder(self):
        """Withdrawn formats and those of activations are refused by name."""
        for type_id, name in ((15, "Q8_K"), (31, "Q4_0_4_4"), (149, "Q8_KR8")):
            document = json.loads(self.made([], [("a", type_id, (32, 8), bytes(256))], "--json"))
            self.assertRegex(document["unsupported"],
                             rf"tensor 'a': has type {type_id} \({name}\), expected a type that can")

    def test_unknown_types(self):
        """By number; where there are several, together. Their sizes nobody knows."""
        tensors = [("a", 0, (2,), bytes(8)), ("b", 77777, (8,), bytes(32))]
        text = self.made([], tensors, "--tensors").decode()
        self.assertRegex(text, r"(?m)^  id 77777 +1 +8 +\? +\?$")
        self.assertRegex(text, r"(?m)^  all +2 +10 +\? +\?$")
        self.assertRegex(text, r"(?m)^  b +id 77777 +8 +\? +\?$")
        tensors.append(("c", 4, (8,), bytes(32)))
        tensors.append(("d", 500, (8,), bytes(32)))
        document = json.loads(self.made([], tensors, "--json", "--tensors"))
        self.assertEqual([(t["type"], t["type_id"], t["n_bytes"]) for t in document["types"]],
                         [("F32", 0, 8), ("unknown", None, None), ("Q4_2", 4, None)])
        self.assertEqual([t["type_id"] for t in document["tensors"]], [0, 77777, 4, 500])
        self.assertIsNone(document["total"]["bits_per_weight"])
        self.assertRegex(self.made([], tensors).decode(), r"(?m)^  unknown +2 +16 +\? +\?$")

    def test_name_of_the_mixture(self):
        def quantisation(model, old=b"", new=b""):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "m.gguf"
                path.write_bytes((DATA / model).read_bytes().replace(old, new, 1))
                document = json.loads(info(path, "--json"))
                text = info(path).decode()
                self.assertIn(f"\nquantised {document['quantisation']}", text)
                return document["quantisation"], document["quantisation_by"], text
        key = b"general.file_type" + struct.pack("<I", g.U32)
        self.assertEqual(quantisation("tiny.Q4_K_M.gguf")[:2], ("Q4_K_M", "general.file_type"))
        # Another key in its place: the types tell the mixture.
        self.assertEqual(quantisation("tiny.Q4_K_M.gguf", b"general.file_type", b"general.file_typo")[:2],
                         ("Q4_K_M", "tensors"))
        wrong = quantisation("tiny.Q4_K_M.gguf", key + struct.pack("<I", 15), key + struct.pack("<I", 17))
        self.assertEqual(wrong[:2], ("Q4_K_M", "tensors"))
        self.assertIn("quantised Q4_K_M (by the tensors' types; general.file_type says Q5_K_M)\n",
                      wrong[2])
        self.assertEqual(quantisation("tiny.F16.gguf", key + struct.pack("<I", 1),
                                      key + struct.pack("<I", 999))[:2], ("F16", "tensors"))

    def test_types_that_were_fallen_back_to(self):
        """Rows too short for the blocks of what was asked for; ends of a better type."""
        def quantisation(file_type, *tensors):
            pairs = [g.pair("general.file_type", g.U32, file_type)]
            return json.loads(self.made(pairs, tensors, "--json"))["quantisation"]
        short = ("blk.0.ffn_up.weight", 2, (576, 4), bytes(18 * 18 * 4))  # Q4_0
        self.assertEqual(quantisation(12, short), "Q3_K_M, mostly Q4_0")
        self.assertEqual(quantisation(2, short), "Q4_0")
        whole = ("blk.0.ffn_down.weight", 2, (512, 4), bytes(18 * 16 * 4))
        self.assertEqual(quantisation(12, whole), "Q4_0")
        end = ("token_embd.weight", 8, (576, 8), bytes(34 * 18 * 8))  # Q8_0
        self.assertEqual(quantisation(2, short, end), "Q4_0")
        self.assertEqual(quantisation(0, short, end), "Q8_0")

    def test_long_strings_in_json(self):
        limit = 65536
        pairs = [g.pair("s", g.STRING, "x" + "\u00e9" * limit), g.pair("k" * 70000, g.U8, 1),
                 g.pair("whole", g.STRING, "y" * limit),
                 g.pair("list", g.ARRAY, ["z", "z" * 70000], g.STRING)]
        found = json.loads(self.made(pairs, (), "--json"))["metadata"]
        self.assertEqual([m.get("cut") for m in found], [True, True, None, True])
        self.assertEqual(found[0]["value"], "x" + "\u00e9" * (limit // 2 - 1))
        self.assertEqual(found[1]["key"], "k" * limit)
        self.assertEqual(found[3]["value"], ["z", "z" * limit])

    def test_per_layer_hyperparameters(self):
        pairs = [g.pair("general.architecture", g.STRING, "llama"),
                 g.pair("llama.attention.head_count", g.ARRAY, [8, 4], g.U32)]
        document = json.loads(self.made(pairs, (), "--json"))
        self.assertEqual(document["hyperparameters"]["n_heads"], [8, 4])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
