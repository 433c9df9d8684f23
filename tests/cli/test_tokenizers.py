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


def bytewise(pre="gpt-2", types=None, merges=("1 2", "12 3"), lost=None):
    """A vocabulary with digits joined and a control token; `lost`: a byte that has no token."""
    texts = stand_ins() + ["12", "123", "<x>"]
    if lost is not None:
        texts[lost] = "lost"
    return [g.pair("tokenizer.ggml.model", g.STRING, "gpt2"),
            *([g.pair("tokenizer.ggml.pre", g.STRING, pre)] if pre else []),
            g.pair("tokenizer.ggml.tokens", g.ARRAY, texts, g.STRING),
            g.pair("tokenizer.ggml.token_type", g.ARRAY, [1] * 258 + [3] if types is None else types, g.I32),
            g.pair("tokenizer.ggml.merges", g.ARRAY, merges, g.STRING)]


def tiny_model(vocabulary=GPT_4O, n=len(TOKENS)):
    """A LLaMA of one layer."""
    width = 32
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
    return g.gguf(pairs + vocabulary, [tensor("token_embd.weight", width, n)]
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

    def test_models_that_read_texts_in_other_ways(self):
        """They are refused wherever models are compared; others of the same effect are not."""
        folder = pathlib.Path(self.folder.name)
        base, other, text = folder / "base.gguf", folder / "other.gguf", folder / "text"
        base.write_bytes(tiny_model(bytewise(), 259))
        text.write_text("one 1234 two 1234 three\n" * 8)

        def compared(command, vocabulary):
            other.write_bytes(tiny_model(vocabulary, 259))
            return subprocess.run([ASSAY, *command, "--base", base, other, "-f", text, "-c", "8", "--chunks", "2"],
                                  capture_output=True, text=True)
        end = "; only models that read texts alike can be compared\n"
        for vocabulary, sentence in (
                (bytewise("smollm"), "key tokenizer.ggml.pre is smollm where .* has gpt-2, so \"1234567, .*\" becomes "
                                     "the tokens 49 50 51 52 .* instead of 257 52 .*"),
                (bytewise(merges=["12 3", "1 2"]), "key tokenizer.ggml.merges.0. is '12' '3' where .* has '1' '2'"),
                (bytewise(types=[1] * 258 + [4]), "key tokenizer.ggml.token_type.258. is 4, user-defined: '<x>' where "
                                                  ".* has 3, control: '<x>'")):
            for command in (["kld"], ["best"], ["sweep", "--group", "ffn"], ["explain"]):
                with self.subTest(command, sentence=sentence):
                    done = compared(command, vocabulary)
                    self.assertEqual(done.returncode, 2, done.stdout)
                    self.assertRegex(done.stderr, f"assay: {other}: {sentence}{end}\\Z")
        for vocabulary in (bytewise("olmo"), bytewise(types=[1] * 257 + [5, 3]), bytewise(merges=["1 2", "12 3", "1 2"])):
            self.assertEqual(compared(["kld"], vocabulary).returncode, 0)

    def test_notes(self):
        text = pathlib.Path(self.folder.name) / "text"
        text.write_text("\x1d1234 and \x1d\n" * 8)
        words = ["perplexity", "-f", str(text), "-c", "8", "--chunks", "2"]
        split = "files of architecture llama name how texts are split"
        for pre, found in (("default", "default"), (None, "missing")):
            done = self.run_assay(tiny_model(bytewise(pre), 259), *words)
            self.assertIn(f"note: key tokenizer.ggml.pre is {found}: published {split}", done.stderr)
            self.assertNotIn("left out", done.stderr)
        lost = tiny_model(bytewise(lost=0x1d), 259)
        done = self.run_assay(lost, *words)
        self.assertNotIn(split, done.stderr)
        self.assertIn("note: 16 bytes of the text have no token in the vocabulary and are left out", done.stderr)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.run_assay(lost, *words, "--strict").returncode, 2)

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
