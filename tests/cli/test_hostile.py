#!/usr/bin/env python3
"""Broken model files: each is refused with one line that names the file and what is wrong, or
evaluated; never a crash, a hang or a second line.

usage: test_hostile.py ASSAY SOURCE_DIR
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

from program import ASSAY, SOURCE, is_sanitized

MODEL = (SOURCE / "data" / "tiny.Q4_K_M.gguf").read_bytes()
TEXT = "Some words that are enough for a window or two, and then a few more of them."
TIMEOUT_S = 300
STEP = 4 if is_sanitized() else 1  # the fuzzers are built so, too
SEED = int(os.environ.get("ASSAY_TEST_SEED", "20260101"))


def header_bytes():
    """Where the tensor data begins."""
    listed = subprocess.run([ASSAY, "info", "--json", "--tensors",
                             SOURCE / "data" / "tiny.Q4_K_M.gguf"], capture_output=True, check=True)
    return min(t["offset"] for t in json.loads(listed.stdout)["tensors"])


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="assay-hostile-")
        cls.path = pathlib.Path(cls.folder.name) / "broken.gguf"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_on(self, data, command="perplexity"):
        self.path.write_bytes(data)
        words = {"perplexity": ["perplexity", "-m", self.path, "-p", TEXT, "-c", "8", "--chunks",
                                "1", "-t", "1"],
                 "info": ["info", self.path],
                 "dump": ["dump", self.path, "--tensor", "output.weight", "-o", "/dev/null"],
                 "tokenize": ["tokenize", "-m", self.path, "-f", "-", "--ids"]}[command]
        return subprocess.run([ASSAY, *words], capture_output=True, timeout=TIMEOUT_S,
                              input=TEXT.encode())

    def assert_refused(self, data, *fragments, command="perplexity"):
        result = self.run_on(data, command)
        message = result.stderr.decode("utf-8", "replace")
        self.assertEqual((result.returncode, result.stdout), (2, b""), message)
        self.assertEqual(message.count("\n"), 1, message)
        self.assertTrue(message.startswith("assay: "), message)
        for fragment in ("broken.gguf", *fragments):
            self.assertIn(fragment, message)

    def test_truncated_at_every_percent(self):
        for percent in range(0, 100, STEP):
            length = len(MODEL) * percent // 100
            for command in ("perplexity", "info", "dump"):
                with self.subTest(percent=percent, command=command):
                    self.assert_refused(MODEL[:length], command=command)

    def test_truncated_in_the_header(self):
        length = header_bytes()
        for part in range(0, 100, STEP):
            with self.subTest(part=part):
                self.assert_refused(MODEL[:length * part // 100])
                self.assert_refused(MODEL[:length * part // 100], command="tokenize")

    def replaced(self, old, new):
        self.assertEqual(MODEL.count(old), 1, old)
        return MODEL.replace(old, new)

    def patched(self, tensor, offset, layout, *values):
        """A field of a tensor's entry in the directory, `offset` bytes after its name."""
        name = struct.pack("<Q", len(tensor)) + tensor.encode()
        self.assertEqual(MODEL.count(name), 1)
        at = MODEL.index(name) + len(name) + offset
        return MODEL[:at] + struct.pack(layout, *values) + MODEL[at + struct.calcsize(layout):]

    def test_not_a_model(self):
        self.assert_refused(b"", )
        self.assert_refused(b"GGML" + MODEL[4:], "GGUF")
        self.assert_refused(b"GGUF" + struct.pack("<I", 1) + MODEL[8:], "version")
        self.assert_refused(b"GGUF" + struct.pack(">I", 3) + MODEL[8:], "big-endian")
        self.assert_refused(b"GGUF" + struct.pack("<I", 77) + MODEL[8:], "77")
        self.assert_refused(bytes(4096))

    def test_unsupported_architecture_names_the_supported(self):
        kind = b"general.architecture" + struct.pack("<IQ", 8, 5)
        self.assert_refused(self.replaced(kind + b"llama", kind + b"mamba"), "mamba", "llama")

    def test_missing_tensor(self):
        self.assert_refused(self.replaced(b"blk.3.ffn_up.weight", b"blk.3.ffn_uq.weight"), "blk.3.ffn_u")

    def test_unknown_type(self):
        data = self.patched("blk.0.attn_q.weight", 4 + 16, "<I", 99)
        self.assert_refused(data, "blk.0.attn_q.weight", "99")

    def test_refused_type_is_named(self):
        data = self.patched("blk.0.attn_q.weight", 4 + 16, "<I", 4)
        self.assert_refused(data, "blk.0.attn_q.weight", "Q4_2")

    def test_wrong_shape(self):
        data = self.patched("blk.0.attn_q.weight", 4, "<QQ", 512, 128)
        self.assert_refused(data, "blk.0.attn_q.weight", "128")

    def test_missing_hyperparameter(self):
        self.assert_refused(self.replaced(b"llama.block_count", b"llama.block_cxunt"), "llama.block_c")

    def test_impossible_count(self):
        self.assert_refused(MODEL[:8] + struct.pack("<Q", 2**63) + MODEL[16:])
        self.assert_refused(MODEL[:16] + struct.pack("<Q", 2**63) + MODEL[24:])

    def test_mutated_headers(self):
        """Keys at the beginning, the tensor directory at the end, and some in between."""
        length = header_bytes()
        rng = random.Random(SEED)
        places = ([rng.randrange(4, 1400) for _ in range(120 // STEP)]
                  + [rng.randrange(length - 2600, length) for _ in range(120 // STEP)]
                  + [rng.randrange(4, length) for _ in range(40 // STEP)])
        outcomes = {}
        for place in places:
            value = rng.choice([0, 1, 0x7f, 0x80, 0xff, MODEL[place] ^ (1 << rng.randrange(8))])
            width = rng.choice([1, 1, 1, 4, 8])
            data = MODEL[:place] + bytes([value] * width) + MODEL[place + width:]
            with self.subTest(seed=SEED, place=place, value=value, width=width):
                result = self.run_on(data)
                outcomes[result.returncode] = outcomes.get(result.returncode, 0) + 1
                self.assertIn(result.returncode, (0, 1, 2), result.stderr[-2000:])
                if result.returncode == 2:
                    self.assertEqual(result.stdout, b"")
                    lines = [l for l in result.stderr.decode("utf-8", "replace").splitlines()
                             if not l.startswith("assay: note: ")]
                    self.assertEqual(len(lines), 1, lines)
        print("exit codes:", dict(sorted(outcomes.items())))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
