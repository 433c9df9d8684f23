#!/usr/bin/env python3
"""Vocabularies of several kinds as a user meets them: ids, --llama-compat, refusals.

usage: test_tokenizers.py ASSAY
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import gguf_make as g

ASSAY = sys.argv[1]


def stand_ins():
    """GPT-2's printable characters for the 256 bytes."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b) if b in own else chr(next(others)) for b in range(256)]


def spell(text):
    return "".join(stand_ins()[b] for b in text)


# Joins the two letters "zhe" of different case, byte by byte, where they are one piece.
MERGES = [(b"\xb6", b"\xd0")]
TOKENS = stand_ins() + [spell(a + b) for a, b in MERGES]
GPT_4O = [g.pair("tokenizer.ggml.model", g.STRING, "gpt2"),
          g.pair("tokenizer.ggml.pre", g.STRING, "gpt-4o"),
          g.pair("tokenizer.ggml.tokens", g.ARRAY, TOKENS, g.STRING),
          g.pair("tokenizer.ggml.merges", g.ARRAY, [f"{spell(a)} {spell(b)}" for a, b in MERGES],
                 g.STRING)]
BYTES = [f"<0x{b:02X}>" for b in range(256)]
GEMMA4 = [g.pair("tokenizer.ggml.model", g.STRING, "gemma4"),
          g.pair("tokenizer.ggml.tokens", g.ARRAY, ["<bos>", "\u2581", "a", "\u2581a", *BYTES],
                 g.STRING),
          g.pair("tokenizer.ggml.token_type", g.ARRAY, [3, 1, 1, 1] + [6] * 256, g.I32),
          g.pair("tokenizer.ggml.bos_token_id", g.U32, 0)]
GEMMA4_MERGES = g.pair("tokenizer.ggml.merges", g.ARRAY, ["\u2581 a"], g.STRING)
TEXT = "жЖ"  # one small letter, one capital


def tiny_model():
    """A LLaMA of one layer with the vocabulary of GPT_4O."""
    width, n = 32, len(TOKENS)
    keys = {"block_count": 1, "context_length": 64, "embedding_length": width,
            "feed_forward_length": width, "attention.head_count": 1, "rope.dimension_count": width}
    pairs = [g.pair("general.architecture", g.STRING, "llama"),
             g.pair("llama.attention.layer_norm_rms_epsilon", g.F32, 1e-5)]
    pairs += [g.pair("llama." + k, g.U32, v) for k, v in keys.items()]

    def tensor(name, *ne):
        size = ne[0] * (ne[1] if len(ne) > 1 else 1)
        values = [((i * 2654435761) % 1000 - 500) / 2000 for i in range(size)]
        return name, 0, ne, struct.pack(f"<{size}f", *values)
    square = [f"blk.0.{name}.weight" for name in
              ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")]
    norms = ["output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"]
    return g.gguf(pairs + GPT_4O, [tensor("token_embd.weight", width, n)]
                  + [tensor(name, width, width) for name in square]
                  + [tensor(name, width) for name in norms])


class Tokenizers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "made.gguf"

    def tearDown(self):
        self.folder.cleanup()

    def run_assay(self, data, *args):
        self.path.write_bytes(data)
        return subprocess.run([ASSAY, args[0], "-m", self.path, *args[1:]], capture_output=True,
                              text=True, check=False)

    def ids(self, pairs, text, *options):
        run = self.run_assay(g.gguf(pairs, []), "tokenize", "-p", text, "--ids", *options)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return json.loads(run.stdout)

    def refused(self, pairs, sentence, *options):
        run = self.run_assay(g.gguf(pairs, []), "tokenize", "-p", "a", *options)
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn(sentence, run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1)

    def test_case_of_other_alphabets(self):
        joined = TOKENS.index(spell(b"\xb6\xd0"))
        self.assertEqual(self.ids(GPT_4O, TEXT), list(TEXT.encode()))
        self.assertEqual(self.ids(GPT_4O, TEXT, "--llama-compat"), [0xD0, joined, 0x96])

    def test_evaluations_take_the_option(self):
        text = pathlib.Path(self.folder.name) / "text"
        text.write_text(TEXT * 60)
        n_tokens = []
        for options in ([], ["--llama-compat"]):
            run = self.run_assay(tiny_model(), "perplexity", "-f", text, "-c", "16", "-q", "--json",
                                 "-", *options)
            self.assertEqual(run.returncode, 0, run.stderr)
            n_tokens.append(json.loads(run.stdout)["tokens"]["n"])
        self.assertEqual(n_tokens, [240, 240 - 60])

    def test_gemma4(self):
        pairs = [*GEMMA4, GEMMA4_MERGES]
        self.assertEqual(self.ids(pairs, "a a"), [0, 2, 3])  # BOS, and no space in front
        self.assertEqual(self.ids(pairs, "é\n"), [0, 4 + 0xC3, 4 + 0xA9, 4 + 0x0A])
        self.refused(GEMMA4, "key tokenizer.ggml.merges is missing")
        self.refused(pairs, "this vocabulary is gemma4, which has none", "--tokenizer-pre", "qwen2")

    def test_unknown_names(self):
        self.refused([g.pair("tokenizer.ggml.pre", g.STRING, "x")] + GPT_4O[:1] + GPT_4O[2:],
                     "pre-tokeniser 'x' is not known; known are default, gpt-2, ")
        self.refused([g.pair("tokenizer.ggml.model", g.STRING, "t5")] + GPT_4O[1:],
                     "supported are llama (SentencePiece), gpt2 (byte-level BPE) and gemma4")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
