#!/usr/bin/env python3
"""Random published folders, and the same models as GGUF: the same table of scores, to the byte.
Then folders with one thing wrong: each is refused with a sentence.

usage: test_folders.py ASSAY SOURCE_DIR [SEED]
"""
import copy
import json
import math
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
import folders  # noqa: E402
import folders_by_table  # noqa: E402
import packed  # noqa: E402
import quantised  # noqa: E402
import rewrite  # noqa: E402
from evaluate import Evaluation, compare  # noqa: E402
from formats import Tensor  # noqa: E402

SEED = int((sys.argv[3:4] or ["1"])[0])


def assay(*words, text=True):
    return subprocess.run([ASSAY, *map(str, words)], capture_output=True, text=text)


class Folders(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.kept.name)
        self.addCleanup(self.kept.cleanup)

    def make(self, describe, n_files=1, kind="BF16"):
        """The folder, the GGUF file, and a text."""
        made = quantised.Quantised if isinstance(kind, quantised.Form) else folders.Folder
        self.model = made(random.Random(f"{describe.__name__} {SEED}"), describe, kind)
        where = pathlib.Path(tempfile.mkdtemp(dir=self.at)) / describe.__name__
        self.model.write(where, n_files)
        file = rewrite.write(where.parent, self.model.gguf_pairs(), self.model.tensors)
        self.text = self.at / "text"
        self.text.write_text(self.model.vocabulary.text(60)[0])
        return where, file

    def table(self, model, *more, precision="exact"):
        out = self.at / "table"
        done = assay("perplexity", "-q", model, "-f", self.text, "-c", 20, "--per-token", out,
                     "--precision", precision, "-t", 1, *more)
        note = f"assay: note: {model} has its own tokens; --tokenizer has no effect on it\n"
        self.assertEqual((done.returncode, done.stderr.replace(note, "")), (0, ""))
        return out.read_bytes()

    def matrices(self, model, *more):
        """A file of importance matrices, without the id of the model: that covers what files hold."""
        out = self.at / "imatrix"
        done = assay("imatrix", "-q", model, "-f", self.text, "-c", 20, "-o", out, "-t", 1, "--no-ppl",
                     "--precision", "exact", *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        data, n = re.subn(rb"(assay\.imatrix\.model.{12})[0-9a-f]{64}", rb"\1", out.read_bytes(), flags=re.DOTALL)
        self.assertEqual(n, 1)
        return data

    def test_same_bytes(self):
        for i, describe in enumerate(folders.ALL + folders_by_table.ALL):
            with self.subTest(describe.__name__):
                where, file = self.make(describe, 1 + i % 3, ("BF16", "F16", "F32")[i % 3])
                self.assertEqual(self.table(where, "--tokenizer", file), self.table(file))
                if (i + SEED) % 4 == 0:
                    self.assertEqual(self.matrices(where, "--tokenizer", file), self.matrices(file))

    def test_quantised(self):
        for i, (describe, form) in enumerate(quantised.ALL + packed.ALL):
            with self.subTest(f"{describe.__name__} {i}"):
                where, file = self.make(describe, 1 + i % 2, form)
                self.assertEqual(self.table(where, "--tokenizer", file), self.table(file))
                if (i + SEED) % 8 == 0:
                    self.assertEqual(self.matrices(where, "--tokenizer", file), self.matrices(file))

    def test_lossless(self):
        """A file of Q4_0 with a folder's own integers has its results in `high`, too; a usual one loses something."""
        where, file = self.make(folders.qwen3, kind=packed.Lossless("compressed", symmetric=True))
        own = [Tensor(t.name, "Q4_0", t.ne, self.model.q4_0[t.data]) if t.data in self.model.q4_0 else t
               for t in self.model.tensors]
        n = sum(t.kind == "Q4_0" for t in own)
        self.assertEqual(n, 7 * folders.LAYERS)
        usual = [Tensor(t.name, "Q4_0", t.ne, packed.q4_0(t.values())) if t.kind == "Q4_0" else t for t in own]
        for tensors, n_lossless in ((own, n), (usual, 0)):
            file = rewrite.write(self.at, self.model.gguf_pairs(), tensors)
            done = assay("check", "-q", "-m", file, "--base", where)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertIn(f", {n_lossless} of {n} quantised matrices without loss; ", done.stdout)
            other = [(key, kind, 7.0 if key.endswith("freq_base") else value, of)
                     for key, kind, value, of in self.model.gguf_pairs()]
            done = assay("check", "-q", "-m", rewrite.write(self.at, other, tensors), "--base", where)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f": 1 hyper-parameter differs; {n_lossless} of {n} quantised matrices without loss", done.stdout)
            file = rewrite.write(self.at, self.model.gguf_pairs(), tensors)
            for precision in ("exact", "high"):
                tables = [self.table(path, "--tokenizer", file, precision=precision) for path in (where, file)]
                (self.assertEqual if n_lossless else self.assertNotEqual)(*tables)
        rows = [self.table(where, "--tokenizer", file, precision=p) for p in ("exact", "high")]
        self.assertNotEqual(*rows)  # of integers

    def test_bits_of_integers(self):
        for form, name, bits in ((packed.ALL[1][1], "INT4_VALUES", "4.6250"), (packed.ALL[4][1], "INT8_APART", "8.7500"),
                                 (packed.ALL[9][1], "INT4_APART", "4.5000")):
            with self.subTest(name):
                where, _ = self.make(folders.llama, kind=form)
                self.assertRegex(assay("info", where).stdout, rf"\n  {name} +\d+ +\d+ +\d+ +{bits}\n")

    def test_bits_of_quantised(self):
        where, file = self.make(quantised.ALL[8][0], kind=quantised.ALL[8][1])
        self.assertRegex(assay("info", where).stdout, r"\n  NVFP4_APART +\d+ +\d+ +\d+ +4\.5000\n")
        done = assay("perplexity", "-q", where, "-f", self.text, "-c", 20, "-t", 1, "--tokenizer", file, "--json", "-")
        types = json.loads(done.stdout)["model"]["types"]
        self.assertEqual([8 * t["n_bytes"] / t["n_weights"] for t in types if t["type"] == "NVFP4_APART"], [4.5])

    def test_quantised_in_float64(self):
        rng = random.Random(SEED)
        for describe, form in quantised.ALL[:10:9] + quantised.ALL[12:13] + packed.ALL[1:7:5]:
            with self.subTest(describe.__name__):
                where, file = self.make(describe, 1, form)
                keys = {key: value for key, _, value, _ in self.model.gguf_pairs()}
                model = architectures.model(keys, {t.name: t for t in self.model.tensors})
                evaluation = Evaluation(self.model.vocabulary, rng)
                table = evaluation.run(ASSAY, where, rng, more=["--tokenizer", file])
                self.assertGreater(compare(model, evaluation, table, 2e-5)[1], 3)

    def test_other_commands(self):
        where, file = self.make(folders.mixtral, 2)
        for name in ("blk.1.attn_q.weight", "blk.0.ffn_up_exps.weight", "output_norm.weight"):
            found = [assay("dump", model, "--tensor", name, "-o", "-", text=False).stdout for model in (where, file)]
            self.assertEqual(*found)
            self.assertTrue(found[0])
        told = assay("info", where)
        self.assertRegex(told.stdout, r"format +published folder, \d+ bytes in 2 files\n")
        done = assay("kld", "--base", where, "-m", file, "-f", self.text, "-c", 20)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"note: {where} has the tokens of {file}; --tokenizer FILE takes others", done.stderr)
        self.assertRegex(done.stdout, r"Mean +KLD: +0\.0000")

    def test_column(self):
        """A file keeps the decays of delta nets as a column, where its folder has a vector."""
        where, file = self.make(folders_by_table.kimi, 1)
        self.assertIn([1, folders_by_table.HEADS], [t.ne for t in self.model.tensors if t.name == "blk.0.ssm_a"])
        done = assay("check", "-q", "-m", file, "--base", where)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_gap(self):
        """A file of several whose second half has not come."""
        where, file = self.make(folders.mixtral, 2, "F32")
        shard = sorted(where.glob("*.safetensors"))[1]
        data = shard.read_bytes()
        shard.write_bytes(data[:len(data) // 2] + bytes(len(data) - len(data) // 2))
        done = assay("perplexity", where, "-f", self.text, "-c", 20, "--tokenizer", file)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, rf"{re.escape(shard.name)}: nothing but zeros in \d+ bytes .* incomplete download")

    def test_memory(self):
        """What a folder takes as the base is said beforehand, and counted."""
        where, file = self.make(folders.mixtral, 3)
        done = assay("kld", "--base", where, "-m", file, "-f", self.text, "-c", 20, "--json", "-")
        ran = json.loads(done.stdout)["run"]
        if b"__asan_init" not in pathlib.Path(ASSAY).read_bytes():  # which keeps memory of its own
            self.assertLessEqual(ran["memory_peak_bytes"], ran["memory_bound_bytes"])
        size = sum(p.stat().st_size for p in [file, *where.glob("*.safetensors")])
        found = re.search(r"memory: at most .*: model files (\d+\.\d),", done.stderr)
        self.assertAlmostEqual(float(found[1]), size / 1e6, delta=0.1)

    def test_sweep(self):
        """Tensors in a folder's places, and the figures of the same places in its file."""
        where, file = self.make(folders.qwen3, 2)
        coarse = [Tensor.of(t.name, [round(16 * v) / 16 for v in t.values()], t.ne) if ".ffn" in t.name and len(t.ne) > 1 else t
                  for t in self.model.tensors]
        tried = rewrite.write(self.at, self.model.gguf_pairs(), coarse)
        words = ("-f", self.text, "-c", 20, "--by", "role", "--precision", "exact")
        both = [assay("sweep", "--base", base, "--from", tried, *words) for base in (where, file)]
        lines = [sorted(done.stdout.splitlines()[1:]) for done in both]
        self.assertEqual(*lines)
        self.assertEqual(len(lines[0]), 4)  # the last one: where costs do not add up
        self.assertIn(f"note: {where} has the tokens of {tried}; --tokenizer FILE takes others\n", both[0].stderr)
        done = assay("sweep", "--base", where, "--types", "Q8_0", *words)
        self.assertEqual((done.returncode, done.stderr), (2, f"assay: --base {where} is a published folder, of which "
                         "no quantizer makes models; expected a GGUF file with --types; convert it, or give models "
                         "of it with --from\n"))

    def refused(self, where, sentence, code=2):
        done = assay("perplexity", "-m", where, "-p", "x", "--tokenizer", self.file)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, sentence)

    def changed(self, change, original=folders.mixtral):
        """A folder, of Mixtral's, after a change of the model's members and tensors."""
        def describe(model):
            original(model)
            change(model)
        where, self.file = self.make(describe)
        describe.__name__ = "again"
        return where

    def others_refuse(self, where, sentence):
        """What does not bind a model refuses the folder, too."""
        for command in (("check", "-q", "-m", self.file, "--base", where),
                        ("dump", where, "--tensor", "blk.0.attn_q.weight", "-o", "-")):
            done = assay(*command)
            self.assertEqual(done.returncode, 2, command)
            self.assertRegex(done.stderr, sentence)

    def wrong_scales(self, of, wrong):
        for i in sorted({case[0] for case in wrong}):
            where, self.file = self.make(of[i][0], kind=of[i][1])
            stored, config = self.model.stored, self.model.config
            for change, sentence in (case[1:] for case in wrong if case[0] == i):
                with self.subTest(f"{i} {sentence}"):
                    self.model.stored, self.model.config = dict(stored), copy.deepcopy(config)
                    change(self.model)
                    shutil.rmtree(where)
                    self.model.write(where, 1)
                    if sentence:
                        self.refused(where, sentence)
                        if of is packed.ALL and "not finite" not in sentence:
                            self.others_refuse(where, sentence)
                    else:
                        self.table(where, "--tokenizer", self.file)

    def test_wrong_scales(self):
        self.wrong_scales(quantised.ALL, quantised.WRONG)

    def test_wrong_integers(self):
        self.wrong_scales(packed.ALL, packed.WRONG)

    def test_ids_of_integers(self):
        """Folders that differ in one byte of zero points, in groups, or in how zero points are stored."""
        where, file = self.make(folders.llama, kind=packed.ALL[1][1])
        stored, config, ids = self.model.stored, copy.deepcopy(self.model.config), []
        data = {part: stored[packed.Q + part][2] for part in ("qzeros", "g_idx")}
        groups = struct.unpack(f"<{len(data['g_idx']) // 4}i", data["g_idx"])
        other = next(i for i, group in enumerate(groups) if group != groups[0])
        exchanged = packed.numbers(groups[other], *groups[1:other], groups[0], *groups[other + 1:])
        byte = data["qzeros"][-1]
        for change in (lambda m: None, packed.said(checkpoint_format="gptq_v2"),
                       packed.changed("qzeros", len(data["qzeros"]) - 1, bytes([byte & 15 | ((byte >> 4) + 1) % 15 << 4])),
                       packed.changed("g_idx", 0, exchanged)):
            self.model.stored, self.model.config = dict(stored), copy.deepcopy(config)
            change(self.model)
            shutil.rmtree(where)
            self.model.write(where, 1)
            done = assay("info", where, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            ids.append(json.loads(done.stdout)["model_id"])
        self.assertEqual(len(set(ids)), 4, ids)

    def test_biases_of_zeros(self):
        """They stay where the architecture has such biases: q, k, v of Qwen 2."""
        def qwen2(m):
            m.common("Qwen2ForCausalLM", "qwen2")
            m.ends()
            for i in range(folders.LAYERS):
                m.norms(i, folders.TWO)
                m.attention(i, bias=True)
                m.dense(i)
        where, _ = self.make(qwen2, kind=packed.ALL[0][1])
        for name, (dtype, shape, data) in self.model.stored.items():
            if name.endswith(("q_proj.bias", "k_proj.bias", "v_proj.bias")):
                self.model.stored[name] = (dtype, shape, bytes(len(data)))
        tensors = [Tensor.of(t.name, [0.0] * t.ne[0]) if re.search(r"attn_[qkv]\.bias", t.name) else t for t in self.model.tensors]
        shutil.rmtree(where)
        self.model.write(where, 1)
        file = rewrite.write(self.at, self.model.gguf_pairs(), tensors)
        done = assay("check", "-q", "-m", file, "--base", where)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_refusals(self):
        first = "model.layers.0.block_sparse_moe.experts."
        changes = [
            (lambda m: m.stored.pop(first + "1.w1.weight"), "blk.0.ffn_gate_exps.weight lacks expert 1"),
            (lambda m: m.stored.update({first + "7.w1.weight": m.stored[first + "1.w1.weight"]}),
             "has expert 7, expected 3 of them"),
            (lambda m: m.stored.update({first + "1.w1.weight": m.stored[first + "1.w2.weight"]}),
             "has another type or shape than"),
            (lambda m: m.stored.update({"model.layers.0.more": m.stored["model.norm.weight"]}),
             "tensor 'model.layers.0.more': has no name in GGUF's llama"),
            (lambda m: m.stored.update({"norm.weight": m.stored["model.norm.weight"]}), "expected one of them"),
            (lambda m: m.stored.update({"lm_head.weight": ("F8_E4M3", [8], bytes(8))}), "has dtype F8_E4M3"),
            (lambda m: m.config.update(architectures=["NoSuchModel"]), "the architecture is 'NoSuchModel'"),
            (lambda m: m.config.update(quantization_config={"quant_method": "aqlm"}), "quant_method 'aqlm'"),
            (lambda m: m.config.update(hidden_act="relu"), "config.json: hidden_act is 'relu', expected silu"),
            (lambda m: m.config.update(hidden_size=1.5), "config.json: hidden_size is 1.5, expected a whole number from 0 to 2.32 - 1"),
            (lambda m: m.config.pop("hidden_size"), "config.json: hidden_size is missing, expected a number"),
            (lambda m: m.config.update(rope_scaling={"rope_type": "dynamic"}), "RoPE has type 'dynamic'"),
        ]
        for i, (change, sentence) in enumerate(changes):
            with self.subTest(sentence):
                self.at = pathlib.Path(self.kept.name) / str(i)
                self.at.mkdir()
                self.refused(self.changed(change), sentence)

    def test_wrong_tables(self):
        """A table of n-grams in three parts, and constants of it that are tensors."""
        at = "model.language_model.layers.0.ple.ple_embedding."
        part, sizes = at + "ngram_embedding.shard_{}.weight", at + "ngram_heads_vocab_sizes"

        def put(name, dtype, shape, size):
            return lambda m: m.stored.update({name: (dtype, shape, bytes([1]) * size * math.prod(shape))})

        def numbers(*values):
            return lambda m: m.stored.update({sizes: ("I64", [len(values)], struct.pack(f"<{len(values)}q", *values))})
        changes = [
            (lambda m: m.stored.pop(part.format(1)),
             "tensor per_layer_token_embd.weight lacks part 1, expected parts 0 to 2"),
            (lambda m: m.stored.pop(part.format(2)),
             r"tensor 'per_layer_token_embd.weight' has shape \[16, 44\], expected \[16, 60\]"),
            (put(part.format(1), "BF16", [22, 8], 2),
             r"shard_1.weight' has dtype BF16, 2 dimensions, 22 rows of 8, expected BF16, 2, 22 of 16, as of '.*shard_0"),
            (put(part.format(1), "BF16", [21, 16], 2), "21 rows of 16, expected BF16, 2, 22 of 16, as of"),
            (put(part.format(2), "BF16", [23, 16], 2), "23 rows of 16, expected BF16, 2, at most 22 of 16, as of"),
            (put(part.format(1), "F32", [22, 16], 4), "has dtype F32, 2 dimensions, 22 rows of 16, expected BF16"),
            (put(part.format(0), "BF16", [22, 16, 1], 2), "shard_0.weight' has dtype BF16, 3 dimensions"),
            (put(part.format(5000), "BF16", [22, 16], 2), "has a name or a number that is too long"),
            (lambda m: [put(part.format(i), "F8_E4M3", [22, 16], 1)(m) for i in range(3)], "has dtype F8_E4M3"),
            (put(sizes, "F32", [4], 4), "ngram_heads_vocab_sizes' has dtype F32, expected I64"),
            (put(sizes, "I32", [4], 4), "ngram_heads_vocab_sizes' has dtype I32, expected I64"),
            (numbers(11, 13, -17, 19), r"element 2 of tensor '.*vocab_sizes' is -17, expected 0 to 2\^63 - 1"),
            (numbers(11, 13, 17), "ple.head_vocab_sizes' is not an array of 4 whole numbers"),
            (numbers(11, 13, 17, 24), r"has shape \[16, 64\], expected \[16, 65\]"),
            (numbers(11, 13, 17, 2**40), "has 1099511627776 for hash 3, expected 1 or more that end at most at row"),
            (lambda m: m.stored.pop(sizes), "ple.head_vocab_sizes' is missing"),
        ]
        for i, (change, sentence) in enumerate(changes):
            with self.subTest(sentence):
                self.at = pathlib.Path(self.kept.name) / str(i)
                self.at.mkdir()
                self.refused(self.changed(change, folders_by_table.qwen4exp), sentence)

    def own_tokens(self):
        """tokenizer.json and the like, as the GGUF file has the tokens: of characters."""
        v = self.model.vocabulary
        keys = {key.removeprefix("tokenizer.ggml."): value for key, _, value, _ in v.pairs}
        ids = {token: i for i, token in enumerate(keys["tokens"])}
        steps = [{"type": "Prepend", "prepend": "\u2581"}] * v.has_prefix
        steps.append({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})
        added = [{"id": ids[t], "content": t, "special": True, "normalized": False}
                 for t in ("<unk>", "<s>", "</s>")]
        return {"added_tokens": added, "normalizer": {"type": "Sequence", "normalizers": steps},
                "model": {"type": "BPE", "vocab": ids, "merges": [], "byte_fallback": True, "unk_token": "<unk>"}}

    def write_tokens(self, where, tokens):
        (where / "tokenizer.json").write_text(json.dumps(tokens))
        (where / "tokenizer_config.json").write_text(json.dumps(
            {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": self.model.vocabulary.has_bos}))

    def test_own_tokens(self):
        """The folder's tokens give the table of the file's; other ones are told of."""
        where, file = next(pair for pair in map(self.make, folders.ALL)
                           if "\u00e9" in self.model.vocabulary.letters)
        tokens = self.own_tokens()
        self.write_tokens(where, tokens)
        table = self.table(file)
        self.assertEqual(self.table(where), table)
        self.assertEqual(self.table(where, "--tokenizer", file), table)
        words = ("-f", self.text, "-c", 20)
        done = assay("kld", "--base", where, "-m", file, *words)
        self.assertEqual((done.returncode, done.stderr.count("tokenizer.json")), (0, 0), done.stderr)
        vocab = tokens["model"]["vocab"]
        vocab["z"], vocab["y"] = vocab["y"], vocab["z"]
        self.write_tokens(where, tokens)
        n = self.text.read_text().count("z") + self.text.read_text().count("y")
        for command in (("kld", "--base", where, "-m", file), ("perplexity", where, "--tokenizer", file)):
            done = assay(*command, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, rf"note: {n} of \d+ tokens of the text are others by {where} itself "
                             rf"than by {file}: the first is token \d+, at byte \d+, '[yz]' there and '[yz]' here; "
                             rf"those of {file} are used\n")
        self.assertNotEqual(self.table(where), table)
        tokens["added_tokens"].append({"id": len(vocab), "content": "<image>", "special": True})
        self.write_tokens(where, tokens)
        done = assay("perplexity", where, *words)
        self.assertRegex(done.stderr, r"tokenizer.json: '<image>' has id \d+, but the embedding has \d+ rows")
        vocab["new"] = len(vocab) + 9
        self.write_tokens(where, tokens)
        done = assay("perplexity", where, *words)
        self.assertRegex(done.stderr, r"model.vocab: 'new' has id \d+, expected an id below \d+, the embedding's rows")
        done = assay("info", where)
        self.assertRegex(done.stderr, r"note: .*'new' has id \d+, expected an id below")
        self.assertIn("published folder", done.stdout)

    def test_products(self):
        """A tensor of Kimi K3's that is a product of two: each must be there, with as many values."""
        name = "language_model.model.layers.1.mlp_res_"
        for change, sentence in (
                (lambda m: m.stored.pop(name + "proj.weight"),
                 f"kimi_k3: tensor '{name}norm.weight' is one of two that make blk.1.ffn_res_score.weight, and the other"),
                (lambda m: m.stored.pop(name + "norm.weight"), f"kimi_k3: tensor '{name}proj.weight' is one of two that"),
                (lambda m: m.stored.update({name + "proj.weight": ("F32", [1, 2], bytes(8))}),
                 f"kimi_k3: tensor '{name}proj.weight' has 2 elements, and '{name}norm.weight', by which it is multiplied, 64;"),
                (lambda m: m.stored.update({name + "proj.weight": ("I32", [1, 64], bytes(256))}),
                 f"kimi_k3: tensor '{name}proj.weight' has dtype I32, expected F32, F16 or BF16"),
                (lambda m: m.stored.update({"language_model.model.layers.0.self_attn.A_log": ("F32", [7], bytes(28))}),
                 "self_attn.A_log' has 7 values, expected one for each of 8 heads")):
            with self.subTest(sentence):
                where, self.file = self.make(folders_by_table.kimi_k3)
                change(self.model)
                shutil.rmtree(where)
                self.model.write(where, 1)
                self.refused(where, sentence)

    def test_tokens(self):
        where, file = self.make(folders.qwen3)
        done = assay("perplexity", "-m", where, "-p", "x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no tokenizer.json or tokenizer.model, the forms of tokens that are read; expected one, or --tokenizer FILE.gguf", done.stderr)
        done = assay("perplexity", "-m", file, "-f", self.text, "-c", 20, "--tokenizer", file)
        self.assertIn(f"note: {file} has its own tokens; --tokenizer has no effect on it", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
