#!/usr/bin/env python3
"""Random published folders and GGUF files of them: right ones, and ones with a mistake each, which
assay check finds and names.

usage: test_conversions.py ASSAY SOURCE_DIR [SEED]
"""
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import folders  # noqa: E402
import folders_by_table  # noqa: E402
import rewrite  # noqa: E402
from formats import TYPES, Tensor, f32, random_blocks  # noqa: E402

SEED = int((sys.argv[3:4] or ["1"])[0])
VECTORS = SOURCE / "tests" / "data" / "tokenizer-json.jsonl"
Q, K = "blk.0.attn_q.weight", "blk.1.attn_k.weight"


def q8_0(t):
    """As its definition has it, where rows are whole blocks."""
    out = b""
    for i in range(0, len(t.values()), 32):
        x = t.values()[i:i + 32]
        d = max(map(abs, x)) / 127
        out += struct.pack("<e32b", d, *(round(v / d) if d else 0 for v in x))
    return Tensor(t.name, "Q8_0", t.ne, out)


def bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return struct.unpack("<f", struct.pack("<I", bits + 0x7fff + (bits >> 16 & 1) & 0xffff0000))[0]


def changed(t, change):
    return Tensor.of(t.name, [f32(change(x)) for x in t.values()], t.ne)


class Declared:
    """A vocabulary that a tokenizer.json declares, and its keys as a converter writes them."""

    def __init__(self, form, pre):
        d = self.json = next(row["tokenizer"] for row in map(json.loads, VECTORS.read_text().splitlines())
                             if row["name"] == form)
        for left, right in (("1", "2"), ("12", "3")):  # which some cut apart
            d["model"]["vocab"][left + right] = max(a["id"] for a in d["added_tokens"]) + len(left)
            d["model"]["merges"].append([left, right])
        texts = {i: t for t, i in d["model"]["vocab"].items()} | {a["id"]: a["content"] for a in d["added_tokens"]}
        kinds = {a["id"]: 3 if a["special"] else 4 for a in d["added_tokens"]}
        self.n_vocab = max(texts) + 1
        key = "tokenizer.ggml."
        self.pairs = [
            (key + "model", folders.STRING, "gpt2", None), (key + "pre", folders.STRING, pre, None),
            (key + "tokens", folders.ARRAY, [texts[i] for i in range(self.n_vocab)], folders.STRING),
            (key + "token_type", folders.ARRAY, [kinds.get(i, 1) for i in range(self.n_vocab)], folders.U32),
            (key + "merges", folders.ARRAY, [m if isinstance(m, str) else " ".join(m) for m in d["model"]["merges"]],
             folders.STRING)]


class Conversions(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.kept.name)
        self.addCleanup(self.kept.cleanup)

    def make(self, describe, kind="BF16"):
        self.model = folders.Folder(random.Random(f"{describe.__name__} {SEED}"), describe, kind)
        self.where = self.at / f"{describe.__name__}-{kind}"
        self.model.write(self.where, 1)
        self.tensors = {t.name: t for t in self.model.tensors}

    def check(self, *more, pairs=None):
        file = rewrite.write(self.at, pairs or self.model.gguf_pairs(), self.tensors.values())
        return subprocess.run([ASSAY, "check", "-q", "-m", file, "--base", self.where, *map(str, more)],
                              capture_output=True, text=True)

    def right(self, *words, **more):
        done = self.check(*words, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertRegex(done.stdout, r"\Amodel\.gguf is what .* gives: \d+ tensors, .* types; \d+ hyper-"
                                      r"parameters, \d+ entries of the tokenizer(, 33 prompts)?\n\Z")

    def wrong(self, said, *lines, words=(), **more):
        """The sentence, and further lines; the tensors are as they should be afterwards."""
        done = self.check(*words, **more)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(said, done.stdout.splitlines()[0])
        for line in lines:
            self.assertRegex(done.stdout, f"(?m){line}")
        self.tensors = {t.name: t for t in self.model.tensors}

    def exchange(self, first, second):
        a, b = self.tensors[first], self.tensors[second]
        self.tensors |= {first: Tensor(first, b.kind, b.ne, b.data), second: Tensor(second, a.kind, a.ne, a.data)}

    def stored(self, name, published):
        """A tensor of the file with the bytes that are published."""
        t = self.tensors[name]
        self.tensors[name] = Tensor(name, t.kind, t.ne, self.model.stored[published][2])

    def change(self, name, change):
        self.tensors[name] = changed(self.tensors[name], change)

    def test_right(self):
        for i, describe in enumerate(folders.ALL):
            with self.subTest(describe.__name__):
                self.make(describe, ("BF16", "F16", "F32")[i % 3])
                self.right()

    def test_types(self):
        self.make(folders.qwen3)
        for name, t in self.tensors.items():
            self.tensors[name] = q8_0(t) if len(t.ne) > 1 and t.ne[0] % 32 == 0 else t.decoded()
        self.right()
        block = bytearray(self.tensors[Q].data)
        block[-9] ^= 64  # a code of the last row
        n, i = math.prod(self.tensors[Q].ne), self.tensors[Q].ne[1] - 1
        self.tensors[Q] = Tensor(Q, "Q8_0", self.tensors[Q].ne, bytes(block))
        self.wrong("1 of 25 tensors differs (no known mistake: 1)",
                   rf"^{Q}\tQ8_0\t1 of {n} values\t.*\tfrom row {i} on$")
        self.make(folders.qwen3, "F32")
        for name, t in self.tensors.items():
            halves = struct.pack(f"<{len(t.values())}e", *t.values())
            self.tensors[name] = Tensor(name, "F16", t.ne, halves) if len(t.ne) > 1 else t
        self.right()

    def test_blocks(self):
        """The folder has what blocks stand for: their type is right, another layer's is not."""
        self.addCleanup(setattr, folders, "WIDTH", folders.WIDTH)
        folders.WIDTH = 256
        self.make(folders.qwen3, "F32")
        for kind in ("TQ2_0", "Q2_0", "Q4_K", "Q6_K", "IQ4_NL", "Q1_0", "MXFP4"):
            for i in (0, 1):
                name = f"blk.{i}.attn_k.weight"
                n = 16 * 256 // TYPES[kind][1]
                blocks = random_blocks(self.model.rng, kind, n, 0.05)
                self.tensors[name] = Tensor(name, kind, [256, 16], blocks)
                values = self.tensors[name].decoded()
                self.model.stored[f"model.layers.{i}.self_attn.k_proj.weight"] = ("F32", [16, 256], values.data)
            (self.where / "model.safetensors").write_bytes(folders.safetensors(self.model.stored))
            self.model.tensors = list(self.tensors.values())
            self.right()
            self.exchange("blk.0.attn_k.weight", K)
            self.wrong("(layers 0 and 1 are exchanged: 2)", rf"^{K}\t{kind}\t\d+ rows\t")

    def test_rows(self):
        self.make(folders.mixtral)
        self.stored(Q, "model.layers.0.self_attn.q_proj.weight")
        self.stored(K, "model.layers.1.self_attn.k_proj.weight")
        self.wrong("2 of 23 tensors differ (the rows of its heads are not permuted: 2)", f"^{Q}\tBF16\t")
        t = self.tensors[Q]
        self.tensors[Q] = Tensor(Q, t.kind, t.ne, folders.turned(t.data, t.ne[1], folders.HEADS))
        self.wrong("permuted once too often: 1")

    def test_experts(self):
        self.make(folders.mixtral, "F16")
        for part in ("gate", "up", "down"):
            name = f"blk.1.ffn_{part}_exps.weight"
            t = self.tensors[name]
            a, b, c = folders.rows_of(t.data, 3)
            self.tensors[name] = Tensor(name, t.kind, t.ne, a + c + b)
        self.wrong("3 of 23 tensors differ (experts 1 and 2 are exchanged: 3)")
        self.exchange("blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight")
        self.wrong("(ffn_gate_exps.weight and ffn_up_exps.weight are exchanged: 2)")

    def test_norms(self):
        self.make(folders.gemma3)
        self.change("blk.1.attn_norm.weight", lambda x: x - 1)
        self.change("output_norm.weight", lambda x: x - 1)
        self.wrong("(1 was not added: 2)", "^output_norm.weight\tF32\t64 of 64 values\t.*\t1 was not added$")
        self.change("blk.0.ffn_norm.weight", lambda x: x + 1)
        self.wrong("(1 was added once too often: 1)")

    def test_layers(self):
        self.make(folders.qwen3)
        for name in [n for n in self.tensors if n.startswith("blk.0.")]:
            self.exchange(name, name.replace("blk.0.", "blk.1."))
        self.wrong("22 of 25 tensors differ (layers 0 and 1 are exchanged: 22)")

    def test_values(self):
        self.make(folders.qwen3, "F32")
        self.change(Q, bf16)
        self.wrong("(its values went through BF16: 1)")
        self.change(Q, lambda x: 3 * x)
        self.wrong("(it is multiplied by 3: 1)")
        self.change(Q, lambda x: 0)
        self.wrong("(all its values are 0: 1)")
        t = self.tensors["blk.0.attn_output.weight"]
        values, n = t.values(), folders.WIDTH
        over = [values[n * j + i] for i in range(n) for j in range(n)]
        self.tensors[t.name] = Tensor.of(t.name, over, t.ne)
        self.wrong("(it is transposed: 1)")
        t = self.tensors["blk.0.ffn_up.weight"]
        self.tensors[t.name] = Tensor(t.name, t.kind, t.ne[::-1], t.data)
        self.wrong("(of another shape: 1)", "^blk.0.ffn_up.weight\tF32\t{1} x {0}, expected {0} x {1}\t".format(*t.ne))
        t = self.tensors["token_embd.weight"]
        values = t.values()
        swapped = values[:2 * n] + values[3 * n:4 * n] + values[2 * n:3 * n] + values[4 * n:]
        self.tensors[t.name] = Tensor.of(t.name, swapped, t.ne)
        self.wrong("(no known mistake: 1)", f"^token_embd.weight\tF32\t{2 * n} of .*\tfrom row 2 on$")

    def test_another_model(self):
        self.make(folders.qwen3, "F32")
        rng = random.Random(SEED)
        matrices = [name for name, t in self.tensors.items() if len(t.ne) > 1]
        for name in matrices[1:]:
            self.change(name, lambda x: rng.gauss(0, 0.1))
        n = len(matrices)
        self.wrong(f": {n - 1} of {n} matrices have no correlation with the folder's", "^.* is another model's file, not what ")

    def test_fine_tune(self):
        """Values that differ by a little, each by its own."""
        self.make(folders.qwen3, "F32")
        rng = random.Random(SEED)
        for name in list(self.tensors):
            self.change(name, lambda x: x * (1.00003 + rng.uniform(-1e-3, 1e-3)))
        n = len(self.tensors)
        self.wrong(f"{n} of {n} tensors differ (no known mistake: {n})")

    def test_names(self):
        self.make(folders.qwen3)
        del self.tensors["blk.1.attn_q_norm.weight"]
        self.tensors["blk.0.attn_q.bias"] = Tensor.of("blk.0.attn_q.bias", [0.0] * 64)
        self.wrong("2 of 26 tensors differ (superfluous: 1; missing: 1)")
        self.make(folders.llama)
        t = self.tensors["token_embd.weight"]
        self.tensors["output.weight"] = Tensor("output.weight", t.kind, t.ne, t.data)
        self.right()
        self.change("rope_freqs.weight", lambda x: x * 1.01)
        self.wrong("1 of", "^rope_freqs.weight\tF32\t4 of 4 values\t")

    def test_keys(self):
        self.make(folders.mixtral)
        for key, value, shown in (("rope.freq_base", 10000.0, "1000\t10000"), ("expert_used_count", 1, r"2 \(layer 0\)\t1 \(layer 0\)"),
                                  ("attention.layer_norm_rms_epsilon", f32(1e-6), r"9\.99999975e-06\t9\.99999997e-07")):
            kept = self.model.keys[key]
            self.model.keys[key] = value
            named = "attention.layer_norm" if "norm" in key else key
            self.wrong(": 1 hyper-parameter differs", rf"^llama\.{named}\S*\t{shown}$")
            self.model.keys[key] = kept
        self.model.keys["rope.dimension_count"] = folders.SIZE  # what a reader takes without it
        self.right()
        self.make(folders_by_table.mimo2)
        self.right()
        self.model.keys["attention.value_scale"] = 0.5  # a key that few architectures have
        self.wrong(": 1 hyper-parameter differs", r"^mimo2\.attention\.value_scale\t0\.75\t0\.5$")

    def test_tokens(self):
        self.make(folders.mixtral)
        pairs = {p[0]: p for p in self.model.gguf_pairs()}
        tokens = pairs["tokenizer.ggml.tokens"][2]
        bos = pairs["tokenizer.ggml.bos_token_id"][2]
        said = {"bos_token": {"content": tokens[bos]}, "chat_template": "{{ a }}", "added_tokens_decoder": {
            str(bos): {"content": tokens[bos], "special": True}}}
        (self.where / "tokenizer_config.json").write_text(json.dumps(said))
        key = "tokenizer.chat_template"
        pairs[key] = (key, folders.STRING, "{{ a }}", None)
        self.right(pairs=pairs.values())

        def wrong(key, value, line):
            other = (*pairs[key][:2], value, pairs[key][3])
            self.wrong("of the tokenizer differ", line, pairs=(pairs | {key: other}).values())
        other = (bos + 1) % len(tokens)
        wrong("tokenizer.ggml.bos_token_id", other, rf"^tokenizer\.ggml\.bos_token_id\t{tokens[bos]}\t")
        pairs[key] = (key, folders.STRING, "{{ b }}", None)  # which renders alike: nothing
        self.right(pairs=pairs.values())
        self.wrong(" prompts differ", r"^a question, from byte 0 on\t\tb$",
                   pairs=(pairs | {key: (key, folders.STRING, "b", None)}).values())
        types = list(pairs["tokenizer.ggml.token_type"][2])
        types[bos] = 1
        wrong("tokenizer.ggml.token_type", types, rf"token_type\[{bos}\]\ta special token\tan ordinary token")
        lost = list(tokens)
        lost[bos] = "lost"
        wrong("tokenizer.ggml.tokens", lost, rf"tokens\[{bos}\]\t{tokens[bos]}\tlost$")
        file = rewrite.write(self.at, pairs.values(), [], name="tokens.gguf")
        self.right("--tokenizer", file, pairs=pairs.values())
        swapped, name = list(tokens), "tokenizer.ggml.tokens"
        swapped[20], swapped[21] = swapped[21], swapped[20]
        self.wrong("1 entry of the tokenizer differs", r"^tokenizer\.ggml\.tokens\[20\] and 1 more\t'.+'\t'",
                   words=["--tokenizer", file],
                   pairs=(pairs | {name: (*pairs[name][:2], swapped, folders.STRING)}).values())
        del pairs[key]
        named = said | {"chat_template": [{"name": "tool_use", "template": "{{ a }}"}]}
        (self.where / "tokenizer_config.json").write_text(json.dumps(named))
        result = self.at / "named.json"
        self.assertEqual(self.check("--json", result, pairs=pairs.values()).returncode, 0)
        notes = " ".join(json.loads(result.read_text())["notes"])
        self.assertIn("the template 'tool_use' is not compared: the file has none of this name", notes)
        self.assertIn("have names, and none is 'default'", notes)
        (self.where / "tokenizer_config.json").write_text(json.dumps(said))
        self.wrong("of the tokenizer differs", r"^tokenizer\.chat_template\tpresent\tabsent$", pairs=pairs.values())

    def test_reading(self):
        """What a tokenizer.json declares, and files that read texts in another way."""
        declared = Declared("qwen2", "qwen2")
        self.addCleanup(setattr, folders, "Vocabulary", folders.Vocabulary)
        folders.Vocabulary = lambda rng: declared
        self.make(folders.qwen3)
        (self.where / "tokenizer.json").write_text(json.dumps(declared.json))
        pairs = {p[0]: p for p in self.model.gguf_pairs()}

        def changed(name, value):
            key = f"tokenizer.ggml.{name}"
            return (pairs | {key: (key, pairs[key][1], value, pairs[key][3])}).values()
        self.right(pairs=pairs.values())
        self.right(pairs=changed("pre", "hunyuan"))
        for other in ("default", "gpt-2", "smaug-bpe"):
            self.wrong("of the tokenizer differ", rf"^tokenizer\.ggml\.pre\tqwen2, megrez, .*\t{other}$",
                       r'^ids of ".*"\t[0-9 .]+\t[0-9 .]+$', pairs=changed("pre", other))
        types, tokens = (pairs[f"tokenizer.ggml.{name}"][2] for name in ("token_type", "tokens"))
        for kind, word, other in ((3, "control", 4), (4, "user-defined", 3), (3, "control", 1)):
            i = len(types) - 1 - types[::-1].index(kind)
            if kind == 3:  # the name of <|endoftext|> makes it one whatever its type
                i = tokens.index("<|im_start|>")
            self.wrong(" entr", rf"^tokenizer\.ggml\.token_type\[{i}\]\t{kind}, {word}: '.*'\t{other}, ",
                       pairs=changed("token_type", types[:i] + [other] + types[i + 1:]))
        merges = pairs["tokenizer.ggml.merges"][2]
        self.wrong(" entr", r"^tokenizer\.ggml\.merges\[1\]\t'", pairs=changed("merges", [merges[0], *merges[2:]]))
        self.wrong(" entr", r"^tokenizer\.ggml\tcan be read\t.*scores", pairs=changed("model", "llama"))
        self.wrong(" entr", r"^tokenizer\.ggml\tcan be read\t.*supported are", pairs=changed("model", "other"))
        for key, line in (("pre", r"pre\tqwen2, .*\tdefault"), ("token_type", r"token_type\[.*\t3, control: .*1, normal: "),
                          ("merges", r"merges is missing"), ("tokens", "tokens is missing")):
            less = [p for p in pairs.values() if p[0] != f"tokenizer.ggml.{key}"]
            self.wrong(" entr", line, pairs=less)

    def test_document(self):
        self.make(folders.mixtral)
        self.stored(Q, "model.layers.0.self_attn.q_proj.weight")
        for t in ("1", "2"):
            done = self.check("--json", self.at / t, "-t", t)
            self.assertEqual(done.returncode, 1)
        self.assertEqual((self.at / "1").read_bytes(), (self.at / "2").read_bytes())
        document = json.loads((self.at / "1").read_text())
        self.assertEqual(document["result"]["verdict"], "differs")
        tensor, = document["tensors"]
        self.assertEqual((tensor["name"], tensor["looks_like"], tensor["rule"]), (Q, "not_permuted", "exact"))
        self.assertTrue(0 < tensor["n_wrong"] <= tensor["n_values"])
        self.assertLess(tensor["correlation"], 1)

    def test_text(self):
        self.make(folders.qwen3)
        text = self.at / "text"
        text.write_text(self.model.vocabulary.text(60)[0])
        done = self.check("-f", text, "-c", 20, "--json", self.at / "r")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\nOn the text the file is 0\.0000e\+00 ± .* and 100\.000 % of \d+ tokens")
        self.assertEqual(json.loads((self.at / "r").read_text())["result"]["kld"], 0)
        done = self.check("-c", 20)
        self.assertEqual(done.returncode, 2)
        self.assertIn("-c goes with -f only: without a text the files alone are compared", done.stderr)
        done = self.check("--max-kld", 1)
        self.assertIn("--max-kld goes with -f only: without a text", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
