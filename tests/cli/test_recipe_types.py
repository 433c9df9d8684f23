#!/usr/bin/env python3
"""assay check --recipe: which tensors have another type than the rules say; what llama-quantize
makes of rows that do not fit, and of tensors that it leaves alone, is no mistake.

usage: test_recipe_types.py ASSAY SOURCE_DIR
"""
import json
import os
import pathlib
import tempfile
import unittest

from documents import check
from gguf_make import STRING, gguf, pair
from program import F16, Q4, run

BYTES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "BF16": (30, 1, 2), "I32": (26, 1, 4), "F64": (28, 1, 8),
         "Q4_0": (2, 32, 18), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
         "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210)}


def tensor(name, kind, *ne):
    number, elems, size = BYTES[kind]
    n = 1
    for d in ne:
        n *= d
    return name, number, ne, bytes(n // elems * size)


class RecipeTypes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, *tensors):
        path = self.folder / "m.gguf"
        path.write_bytes(gguf([pair("general.architecture", STRING, "llama")], tensors))
        return path

    def check(self, code, *recipes, model=None):
        words = [word for recipe in recipes for word in ("--recipe", recipe)]
        done = run("check", "-m", model or self.folder / "m.gguf", *words, "--json", "c.json", "--force",
                   cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        if code == 2:
            return done.stderr
        document = json.loads((self.folder / "c.json").read_text())
        check(self, document)
        self.assertEqual(done.stdout.splitlines()[0], document["result"]["sentence"])
        self.outcomes = {t["name"]: t["outcome"] for t in document["tensors"]}
        return document

    def test_what_was_ignored(self):
        """One tensor is not what a rule says."""
        self.file(tensor("blk.0.ffn_down.weight", "Q6_K", 256, 2), tensor("blk.1.ffn_down.weight", "Q4_K", 256, 2),
                  tensor("output.weight", "Q8_0", 256, 2))
        done = self.check(1, "ffn_down=q6_K")
        self.assertEqual(self.outcomes, {"blk.0.ffn_down.weight": "right", "blk.1.ffn_down.weight": "wrong"})
        self.assertEqual(done["result"]["sentence"], "m.gguf is not what the recipe says: 1 of 2 tensors has another "
                         "type; 1 tensor is not named")
        self.assertEqual(done["tensors"][1]["type"], "Q4_K")

    def test_all_ignored(self):
        self.file(tensor("blk.0.ffn_down.weight", "Q4_K", 256, 2), tensor("blk.0.ffn_norm.weight", "F32", 256))
        done = self.check(1, "ffn_=q6_k")
        self.assertIn("was not made by this recipe: of 1 tensor that it names", done["result"]["sentence"])
        self.assertEqual(self.outcomes["blk.0.ffn_norm.weight"], "left")

    def test_rows_that_do_not_fit(self):
        """576 is no multiple of 256: the type's fallback of either program; F16 where that has no blocks, either."""
        rule = "attn=q5_k"
        for kind, ne, outcome in (("Q5_1", (576, 2), "fallback"), ("F16", (576, 2), "wrong"), ("F16", (33, 2), "fallback"), ("Q5_0", (576, 2), "wrong"),
                                  ("Q5_1", (512, 2), "wrong"), ("F32", (576, 2), "wrong")):
            self.file(tensor("blk.0.attn_q.weight", kind, *ne), tensor("blk.1.attn_q.weight", "Q5_K", 256, 2))
            self.check(outcome == "wrong", rule)
            self.assertEqual(self.outcomes["blk.0.attn_q.weight"], outcome, (kind, ne))
        self.file(tensor("blk.0.attn_q.weight", "F16", 33, 2))
        self.check(0, "attn=q4_0")
        self.assertEqual(self.outcomes["blk.0.attn_q.weight"], "fallback")

    def test_what_is_never_quantised(self):
        """Vectors, norms, routers; but not where they have a type of blocks."""
        names = ("blk.0.attn_norm.weight", "blk.0.ffn_gate_inp.weight", "rope_freqs")
        self.file(*(tensor(name, "F32", 256, 2) for name in names), tensor("blk.0.ffn_up.weight", "F32", 256),
                  tensor("blk.1.ffn_up.weight", "Q4_0", 256, 2))
        self.check(0, ".=q4_0")
        self.assertEqual(set(self.outcomes.values()), {"left", "right"})
        self.file(tensor(names[0], "Q8_0", 256, 2), tensor("blk.1.ffn_up.weight", "Q4_0", 256, 2))
        self.check(1, ".=q4_0")

    def test_nothing_is_judged(self):
        """A recipe that names only what is never quantised says nothing of a file."""
        self.file(tensor("blk.0.attn_norm.weight", "F32", 256), tensor("blk.0.ffn_up.weight", "Q4_0", 256, 2))
        done = self.check(1, "norm=q4_0")["result"]
        self.assertEqual((done["verdict"], done["n_left"]), ("differs", 1))
        self.assertIn("no tensor that the recipe names and that a quantiser would change", done["sentence"])
        for kind, code in (("I32", 1), ("F64", 1), ("BF16", 0)):
            self.file(tensor("blk.0.attn_norm.weight", kind, 256), tensor("blk.0.ffn_up.weight", "Q4_0", 256, 2))
            self.check(code, ".=q4_0")

    def test_first_rule_counts(self):
        self.file(tensor("blk.0.ffn_up.weight", "Q4_0", 256, 2), tensor("blk.1.ffn_up.weight", "Q8_0", 256, 2))
        (self.folder / "rules").write_text("# a comment = q4_0\n\\.0\\.ffn_up=q4_0  blk\\.(\\d+)\\.ffn=Q8_0\n")
        done = self.check(0, "rules", "ffn_up=f16", "BLK\\.7=f16")
        self.assertEqual([r["n_tensors"] for r in done["rules"]], [1, 1, 0, 0])
        self.assertIn("2 rules name no tensor", done["result"]["sentence"])
        self.check(1, "ffn_up=f16", "rules")
        self.file(tensor("A.weight", "Q4_0", 256, 2), tensor("b.weight", "Q8_0", 256, 2))
        self.assertEqual(self.check(0, "A.=q8_0", "b.=q8_0")["rules"][0]["n_tensors"], 0)

    def test_documents(self):
        """What assay recipe writes, whole names; a tensor that is missing; another architecture."""
        self.file(tensor("a.weight", "Q4_0", 256, 2), tensor("aa.weight", "Q8_0", 256, 2))
        document = {"schema": "assay-recipe", "schema_version": 1, "files": [{"file": "x", "id": None, "sha256": None}],
                    "tensors": [{"name": "a.weight", "type": "Q4_0", "file": 0}, {"name": "aa.weight", "file": 0}]}
        path = self.folder / "r.json"
        path.write_text(json.dumps(document))
        self.assertEqual(self.check(0, "r.json")["result"]["n_not_named"], 1)
        document["tensors"].append({"name": "b.weight", "type": "Q4_0", "file": 0})
        path.write_text(json.dumps(document))
        self.check(1, "r.json")
        self.assertEqual(self.outcomes, {"a.weight": "right", "b.weight": "missing"})
        self.check(1, "r.json", model=F16)
        self.assertEqual(set(self.outcomes.values()), {"missing"})
        self.assertIn("has no tensor that the recipe names", self.check(1, "nothing=q4_0")["result"]["sentence"])

    def test_own_lists(self):
        """A list of every tensor of a file is what that file is, and what no other is."""
        about = json.loads(run("info", "--tensors", "--json", Q4).stdout)["tensors"]
        (self.folder / "list").write_text("".join(f"^{t['name'].replace('.', chr(92) + '.')}$={t['type']}\n" for t in about))
        self.assertEqual(self.check(0, "list", model=Q4)["result"]["n_right"], len(about))
        self.assertGreater(self.check(1, "list", model=F16)["result"]["n_wrong"], 0)

    def test_hostile(self):
        """Many rules, expressions and steps have bounds in common; whole names cost no search."""
        self.file(*(tensor("a" * 28 + str(i), "Q4_0", 32) for i in range(100, 200)))
        rules = self.folder / "rules"
        rules.write_text("a*a*a*a*[bc]=q4_0\n" * 100)
        self.assertIn("take more than 200000000 steps to be found in the names", self.check(2, "rules"))
        rules.write_text("a=q4_0\n" * 10001)
        self.assertIn("rules: more than 10000 rules with expressions", self.check(2, "rules"))
        rules.write_text("(((a{30}){30}){9})=q4_0\n" * 10000)
        self.assertIn("rules: its expressions take more than 64 MiB", self.check(2, "rules"))
        names = [f"blk.{i}.weight" for i in range(3000)]
        self.file(*(tensor(name, "Q5_1", 32 * (1 + i % 7), 2) for i, name in enumerate(names)))
        document = {"schema": "assay-recipe", "schema_version": 1, "files": [{"file": "x", "id": None, "sha256": None}],
                    "tensors": [{"name": name, "type": "Q5_K", "file": 0} for name in names]}
        (self.folder / "r.json").write_text(json.dumps(document))
        done = self.check(0, "nothing=q4_0", "blk\\.7\\.=q5_k", "r.json", "blk=q8_0")
        self.assertEqual([r["n_tensors"] for r in done["rules"]], [0, 1] + [i != 7 for i in range(3000)] + [0])
        shown = run("check", "-m", "m.gguf", "--recipe", "r.json", cwd=self.folder).stdout
        self.assertEqual(shown.count("Q5_K\tQ5_1\t"), 7)
        self.assertIn("\nQ5_K\tQ5_1\t429 tensors of rows of 32, no multiple of 256\n", shown)

    def test_refused(self):
        """Rules that are none, a file that ends early, outputs that are inputs."""
        path = self.file(tensor("a.weight", "Q4_0", 256, 2))
        for rule, sentence in (("a=", "'' is no type"), ("=q4_0", "'=q4_0' is no rule"), ("a=q4_9", "'q4_9' is no type"),
                               ("(=q4_0", "'(' is no expression"), ("no-such-file", "no-such-file: cannot be opened")):
            self.assertIn(sentence, self.check(2, rule), rule)
        (self.folder / "bad").write_text("a=q4_0 b")
        self.assertIn("bad: 'b' is no rule", self.check(2, "bad"))
        (self.folder / "empty").write_text("# nothing\n")
        self.assertIn("empty: has no rule", self.check(2, "empty"))
        self.assertIn("takes too many steps", self.check(2, "(.*)*(.*)*(.*)*(.*)*[^a-z0-9._]=q4_0", model=Q4))
        path.write_bytes(path.read_bytes()[:-40])
        self.assertIn("m.gguf", self.check(2, "a=q4_0"))
        done = run("check", "-m", Q4, "--recipe", "bad", "--json", "bad", "--force", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        done = run("check", "-m", Q4, "--recipe", "a=q4_0", "--max-kld", "1", cwd=self.folder)
        self.assertIn("with --recipe it would do nothing", done.stderr)
        for words in (("-t", "2"), ("--device", "cpu"), ("--precision", "fast"), ("--isa", "scalar"), ("--gemm", "openblas"),
                      ("--mpi", "off"), ("--split", "layers"), ("--override-kv", "a=int:1"), ("-ctk", "f16"),
                      ("--tokenizer", "x.gguf"), ("--tokenizer-pre", "gpt-2"), ("--rope-scale", "2")):
            done = run("check", "-m", Q4, "--recipe", "a=q4_0", *words, cwd=self.folder)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, "with --recipe it would do nothing: the types of tensors alone", words)


if __name__ == "__main__":
    unittest.main(argv=["test_recipe_types.py"])
