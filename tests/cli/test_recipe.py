#!/usr/bin/env python3
"""assay recipe and assay mix: the choice is the best of all there are, the file has the size that
was said and the tensors that were chosen, whoever reads it; what cannot be right is refused.

usage: test_recipe.py ASSAY SOURCE_DIR
"""
import copy
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import time
import unittest

from documents import check
from gguf_make import F32, I32, STRING, U16, U32, gguf, pair
from program import ASSAY, F16, HANG_S, Q4, TEXT, run

SEED = int(os.environ.get("ASSAY_TEST_SEED", str(random.randrange(1 << 30))))


def info(path):
    return json.loads(run("info", "--tensors", "--json", path).stdout)


def tensor_bytes(path, about):
    data = pathlib.Path(path).read_bytes()
    return {t["name"]: data[t["offset"]:t["offset"] + t["n_bytes"]] for t in about["tensors"]}


def identity(path, about):
    return {"file": str(path), "id": about["model_id"], "sha256": None,
            "n_weights": about["total"]["n_weights"]}


def make_sweep(rng, files, abouts):
    """Groups: each layer's attention, each matrix of the feed-forward, the embedding, the head;
    the divergences are invented."""
    names = {}
    for t in abouts[0]["tensors"]:
        if t["type"] != "F32":
            names.setdefault(re.sub(r"attn_.*", "attn", t["name"]), []).append(t["name"])
    tensors = [{t["name"]: t for t in about["tensors"]} for about in abouts]
    joined = lambda f, group: "+".join(dict.fromkeys(tensors[f][n]["type"] for n in group))
    size = lambda f, group: sum(tensors[f][n]["n_bytes"] for n in group)
    groups = []
    for name, group in names.items():
        kld = rng.uniform(1e-4, 1e-2)
        groups.append({
            "name": name, "tensors": group, "n_elements": 1,
            "around": {"type": joined(0, group), "bytes": size(0, group)},
            "choices": [{"candidate": f - 1, "type": joined(f, group), "bytes": size(f, group),
                         "kld": {"mean": kld * rng.uniform(0.5, 1.5) / f, "se": kld / 50}}
                        for f in range(1, len(files))]})
    return {"schema": "assay-sweep", "schema_version": 1, "base": identity(files[0], abouts[0]),
            "around": None, "candidates": [identity(*x) for x in list(zip(files, abouts))[1:]],
            "reference": {"kld": {"mean": 0, "se": 0}}, "groups": groups,
            "rest": [{"name": t["name"], "type": t["type"], "bytes": t["n_bytes"]}
                     for t in abouts[0]["tensors"] if t["type"] == "F32"]}


class Recipe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        print("seed: ASSAY_TEST_SEED=%d" % SEED)
        cls.rng = random.Random(SEED)
        cls.files = [F16, Q4]
        cls.abouts = [info(f) for f in cls.files]
        cls.sweep = make_sweep(cls.rng, cls.files, cls.abouts)

    def write(self, document, name="d.json"):
        path = self.folder / name
        path.write_text(json.dumps(document))
        return path

    def recipe(self, document, *options):
        done = run("recipe", self.write(document, "s.json"), "-q", "--json", "r.json", *options,
                   cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.folder / "r.json").read_text())

    def mix(self, name="m.gguf"):
        done = run("mix", "r.json", "-o", name, "--force", "-q", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return self.folder / name

    def all_choices(self, sweep):
        """(bytes, predicted divergence, files by group) of everything there is."""
        options = [[(g["around"]["bytes"], 0, 0)]
                   + [(c["bytes"], c["kld"]["mean"], c["candidate"] + 1) for c in g["choices"]]
                   for g in sweep["groups"]]
        for choice in itertools.product(*options):
            yield sum(c[0] for c in choice), sum(c[1] for c in choice), [c[2] for c in choice]

    def few_groups(self):
        """A sweep of nine groups drawn from the whole; what is left out stays the base's."""
        sweep = copy.deepcopy(self.sweep)
        self.rng.shuffle(sweep["groups"])
        for group in sweep["groups"][9:]:
            n = [t for t in self.abouts[0]["tensors"] if t["name"] in group["tensors"]]
            sweep["rest"] += [{"name": t["name"], "type": t["type"], "bytes": t["n_bytes"]}
                              for t in n]
        del sweep["groups"][9:]
        return sweep

    def test_best_of_all(self):
        for _ in range(4):
            sweep = self.few_groups()
            everything = list(self.all_choices(sweep))
            rest = sum(r["bytes"] for r in sweep["rest"])
            n_weights = self.abouts[0]["total"]["n_weights"]
            largest = self.recipe(sweep, "--kld", "0")["predicted"]
            other = largest["file_bytes"] - sum(g["around"]["bytes"] for g in sweep["groups"])
            for _ in range(4):
                size, kld, _ = self.rng.choice(everything)
                limit = size + self.rng.randrange(20000)
                by_size = self.recipe(sweep, "--size", str(limit + other))["predicted"]
                best = min(k for b, k, _ in everything if b <= limit)
                self.assertAlmostEqual(by_size["kld"]["mean"], best, delta=1e-15)
                self.assertEqual(by_size["gap"], 0)
                self.assertEqual(self.mix().stat().st_size, by_size["file_bytes"])
                self.assertLessEqual(by_size["file_bytes"], limit + other)

                bpw = 8 * (limit + rest) / n_weights
                by_bpw = self.recipe(sweep, "--bpw", repr(bpw))["predicted"]
                self.assertAlmostEqual(by_bpw["kld"]["mean"], best, delta=1e-15)
                self.assertLessEqual(by_bpw["bits_per_weight"], bpw)

                kld *= 1 + 1e-9
                by_kld = self.recipe(sweep, "--kld", repr(kld))["predicted"]
                least = min(b for b, k, _ in everything if k <= kld)
                self.assertEqual(by_kld["file_bytes"], least + other)
                self.assertLessEqual(by_kld["kld"]["mean"], kld)

    def test_same_sweep_same_recipe(self):
        sweep = self.few_groups()
        first, second = (self.recipe(sweep, "--bpw", "14", "--points", "5") for _ in range(2))
        self.assertEqual({**first, "run": 0}, {**second, "run": 0})

    def test_the_curve_is_of_best_choices(self):
        sweep = self.few_groups()
        everything = list(self.all_choices(sweep))
        curve = self.recipe(sweep, "--kld", "1", "--points", "12")["curve"]
        other = curve[-1]["file_bytes"] - sum(g["around"]["bytes"] for g in sweep["groups"])
        self.assertGreater(len(curve), 5)
        for p in curve:
            best = min(k for b, k, _ in everything if b <= p["file_bytes"] - other)
            self.assertAlmostEqual(p["kld"]["mean"], best, delta=1e-15)
            self.assertEqual(sum(p["groups"].values()), 9)
        sizes = [p["file_bytes"] for p in curve]
        self.assertEqual(sizes, sorted(set(sizes)))

    def test_mix_has_what_was_chosen(self):
        recipe = self.recipe(self.sweep, "--size", "4MiB")
        path = self.mix()
        about = info(path)
        sources = [tensor_bytes(f, a) for f, a in zip(self.files, self.abouts)]
        mixed = tensor_bytes(path, about)
        self.assertEqual([t["name"] for t in about["tensors"]],
                         [t["name"] for t in self.abouts[0]["tensors"]])
        self.assertEqual({t["name"] for t in recipe["tensors"]}, set(mixed))
        self.assertEqual({t["file"] for t in recipe["tensors"]}, {0, 1})
        for t in recipe["tensors"]:
            self.assertEqual(mixed[t["name"]], sources[t["file"]][t["name"]], t["name"])
        self.assertEqual({t["name"]: t["type"] for t in about["tensors"]},
                         {t["name"]: t["type"] for t in recipe["tensors"]})
        self.assertEqual(about["total"]["bits_per_weight"],
                         recipe["predicted"]["bits_per_weight"])

        keys = {k["key"]: k for k in about["metadata"]}
        base = {k["key"]: k for k in self.abouts[0]["metadata"]}
        changed = {k for k in keys.keys() | base.keys() if keys.get(k) != base.get(k)}
        self.assertEqual(changed, {"general.file_type", "general.quantization_version",
                                   "assay.mix.recipe", "assay.mix.files", "assay.mix.ids"})
        self.assertEqual(keys["assay.mix.recipe"]["value"],
                         hashlib.sha256((self.folder / "r.json").read_bytes()).hexdigest())
        self.assertEqual(keys["assay.mix.ids"]["value"], [a["model_id"] for a in self.abouts])
        self.assertEqual(about["quantisation_by"], "assay.mix.recipe")
        self.assertEqual(about["quantisation"],
                         f"mixture, {about['total']['bits_per_weight']:.2f} bpw")
        done = run("kld", "-q", "-m", path, "--base", F16, "-f", TEXT, "-c", "32", "--chunks", "2")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_from_a_sweep_to_a_divergence(self):
        """A figure of assay sweep is that of the mixed file, to the bit, and sizes are right."""
        text = ["-f", TEXT, "-c", "32", "--chunks", "2", "-q", "--json"]
        done = run("sweep", "--base", F16, "--from", Q4, *text, "sweep.json", "--by", "role",
                   cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        sweep = json.loads((self.folder / "sweep.json").read_text())
        ids = [identity(*x) for x in zip(self.files, self.abouts)]
        for group in self.rng.sample(sweep["groups"], 3):
            (self.folder / "r.json").write_text(json.dumps(
                {"schema": "assay-recipe", "schema_version": 1, "files": ids,
                 "tensors": [{"name": t, "file": 1} for t in group["tensors"]]}))
            figure = run("kld", "-m", self.mix(), "--base", F16, *text, "-")
            self.assertEqual(json.loads(figure.stdout)["candidates"][0]["kld"]["mean"],
                             group["choices"][0]["kld"]["mean"])
        recipe = self.recipe(sweep, "--bpw", "9")
        self.assertEqual([f["file"] for f in recipe["files"]], [str(F16), str(Q4)])
        self.assertEqual(self.mix().stat().st_size, recipe["predicted"]["file_bytes"])

    def test_all_from_one_file_is_that_file(self):
        """The tensors of the other file, and of the base again: the same divergence, or none."""
        tensors = [t for t in self.abouts[0]["tensors"]]
        ids = [identity(*x) for x in zip(self.files, self.abouts)]
        figures = []
        for f in (0, 1):
            (self.folder / "r.json").write_text(json.dumps(
                {"schema": "assay-recipe", "schema_version": 1, "files": ids,
                 "tensors": [{"name": t["name"], "file": f} for t in tensors]}))
            done = run("kld", "-q", "-m", self.mix(), "-m", Q4, "--base", F16, "-f", TEXT, "-c",
                       "32", "--chunks", "2", "--json", "-")
            figures.append([c["kld"]["mean"] for c in json.loads(done.stdout)["candidates"]])
        self.assertEqual(figures[0][0], 0)
        self.assertEqual(figures[1][0], figures[1][1])

    def test_document_is_described(self):
        recipe = self.recipe(self.sweep, "--bpw", "6")
        check(self, recipe)
        self.assertEqual(recipe["sweep"]["sha256"],
                         hashlib.sha256((self.folder / "s.json").read_bytes()).hexdigest())

    def test_lists_of_types(self):
        recipe = self.recipe(self.sweep, "--bpw", "6", "--tensor-types", "t.txt", "--tool-suite",
                             "t.recipe")
        lines = (self.folder / "t.txt").read_text().splitlines()
        self.assertEqual(len(lines), len(recipe["tensors"]))
        for line, t in zip(lines, recipe["tensors"]):
            expression, kind = line.split("=")
            self.assertEqual([u["name"] for u in recipe["tensors"]
                              if re.search(expression, u["name"])], [t["name"]])
            self.assertEqual(kind.upper(), t["type"])
        self.assertIn("^blk\\.0\\.ffn_norm\\.weight$=f32", lines)
        suite = (self.folder / "t.recipe").read_text().splitlines()
        self.assertEqual([line for line in suite if not line.startswith("#")], lines)
        self.assertEqual(len(suite), len(lines) + 1)

    def test_around_another_model(self):
        """Differences may be below 0, and their sum is added to that model's divergence."""
        sweep = copy.deepcopy(self.sweep)
        sweep["around"], sweep["candidates"] = sweep["candidates"][0], [sweep["base"]]
        sweep["reference"]["kld"] = {"mean": 0.05, "se": 0.001}
        for i, group in enumerate(sweep["groups"]):
            choice = group["choices"][0]
            excess = -choice["kld"]["mean"] if i % 2 else 1e-4
            group["around"], group["choices"] = (
                {k: choice[k] for k in ("type", "bytes")},
                [{"candidate": 0, **group["around"], "kld": {"mean": 7, "se": 7},
                  "excess_kld": {"mean": excess, "se": 1e-5}}])
        q4 = {t["name"]: t for t in self.abouts[1]["tensors"]}
        for rest in sweep["rest"]:
            rest["bytes"] = q4[rest["name"]]["n_bytes"]
        best = self.recipe(sweep, "--size", "1GB")["predicted"]
        gain = [g["choices"][0]["excess_kld"]["mean"] for g in sweep["groups"][1::2]]
        self.assertAlmostEqual(best["kld"]["mean"], 0.05 + sum(gain), delta=1e-15)
        self.assertAlmostEqual(best["kld"]["se"], 0.001 + 1e-5 * len(gain), delta=1e-15)
        self.assertEqual(self.mix().stat().st_size, best["file_bytes"])

    def test_files_that_are_not_there(self):
        """Then sizes are those of the sweep, and types where it says them for each tensor."""
        sweep = copy.deepcopy(self.sweep)
        for about in (sweep["base"], *sweep["candidates"]):
            about["file"] = "nothing.gguf"
        path = self.write(sweep)
        done = run("recipe", path, "--bpw", "6", "--points", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("is not there"), 2)
        self.assertIn("Gap: 0:", done.stdout)
        done = run("recipe", path, "--bpw", "6", "--tensor-types", self.folder / "no.txt", "-q")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, "the sweep does not say which tensors of 'blk.* are .*\\+")
        self.assertFalse((self.folder / "no.txt").exists())

    def refused(self, words, sentence, code=2):
        done = run(*words, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(done.stderr, sentence)

    def test_bad_sweeps(self):
        g = lambda s, i=0: s["groups"][i]
        for change, sentence in (
                (lambda s: s.update(schema="assay-recipe"), r"schema is 'assay-recipe', exp"),
                (lambda s: s.update(schema="assay.sweep/1"),
                 r"d\.json: schema is 'assay\.sweep/1', the name before 0\.1\.0, expected "
                 r"'assay-sweep' with schema_version 1; make the document again, or change "),
                (lambda s: s.update(schema_version=2), "schema_version is 2, this program reads 1"),
                (lambda s: s.pop("groups"), "groups is missing"),
                (lambda s: s.update(groups=[]), "has no groups"),
                (lambda s: s.update(groups={}), "groups is an object, expected a list"),
                (lambda s: s.pop("candidates"), "candidates is missing"),
                (lambda s: s.update(candidates=[{"file": "x"}] * 2000), "has 2000 candidates"),
                (lambda s: s["base"].pop("file"), r"base\.file is missing"),
                (lambda s: s["base"].update(n_weights=0), "n_weights is 0"),
                (lambda s: s["reference"]["kld"].update(mean=None), r"reference\.kld\.mean"),
                (lambda s: g(s).update(tensors=[]), r"groups\[0\]\.tensors is empty"),
                (lambda s: g(s).update(tensors=[3]), r"tensors\[0\] is not a tensor's name"),
                (lambda s: g(s, 1).update(tensors=g(s)["tensors"]), "is in two groups"),
                (lambda s: s["rest"][0].update(name=g(s)["tensors"][0]), "was there before"),
                (lambda s: g(s)["choices"][0].update(candidate=1), "does not list"),
                (lambda s: g(s)["choices"][0].update(candidate=-1), "expected a whole number"),
                (lambda s: g(s)["choices"].append(g(s)["choices"][0]), "second one of its cand"),
                (lambda s: g(s)["choices"][0].update(bytes=0), r"bytes is 0, expected a tensor's"),
                (lambda s: g(s)["choices"][0].update(bytes=2 ** 51), "makes more than"),
                (lambda s: g(s)["choices"][0].update(bytes=1.5), "expected a whole number"),
                (lambda s: g(s)["choices"][0]["kld"].update(mean=1e9), "more than a million nats"),
                (lambda s: g(s)["choices"][0].update(bytes=12), "expected the file that was swept"),
                (lambda s: g(s).update(tensors=["x"]), "has no tensor 'x'; expected the file"),
                (lambda s: s["candidates"][0].update(file=str(TEXT)), "text.txt: ")):
            sweep = copy.deepcopy(self.sweep)
            change(sweep)
            with self.subTest(sentence):
                self.refused(["recipe", self.write(sweep), "--bpw", "6"], sentence)

    def test_bad_limits(self):
        path = self.write(self.sweep)
        for words, sentence in (
                (["--size", "1kB"], "--size 1kB: the smallest file of this sweep has 26"),
                (["--bpw", "1"], "--bpw 1: the smallest file of this sweep has 4.9"),
                (["--size", "4.2 GX"], "--size: '4.2 GX' is not a size"),
                (["--bpw", "0"], "--bpw: 0 is out of range"),
                (["--kld", "-1"], "--kld: -1 is out of range"),
                (["--kld", "nan"], "is not a finite number"),
                (["--kld", "1", "--bpw", "5"], "--size, --bpw and --kld: expected one"),
                (["--json", "x.json"], "--json: there is no recipe without --size"),
                (["--bpw", "6", "--json", path], "--json .* would replace the file that recipe")):
            with self.subTest(sentence):
                self.refused(["recipe", path, *words], sentence)

    def test_bad_recipes(self):
        good = self.recipe(self.sweep, "--size", "4MiB")
        head = [pair("general.architecture", STRING, "llama")]
        odd = {"other.gguf": gguf([pair("general.architecture", STRING, "qwen2")], []),
               "arch.gguf": gguf([pair("general.architecture", STRING, "qwen2")],
                                 [("output_norm.weight", 0, [256], bytes(1024))]),
               "shape.gguf": gguf(head, [("output_norm.weight", 0, [128, 2], bytes(1024))])}
        for name, data in odd.items():
            (self.folder / name).write_bytes(data)
        t = lambda r, i=0: r["tensors"][i]
        norm = lambda r: next(x for x in r["tensors"] if x["name"] == "output_norm.weight")
        from_file = lambda r, name: (r["files"].append({"file": name}), norm(r).update(file=2))
        for change, sentence in (
                (lambda r: r.update(files=[]), "has 0 files, expected 1 to"),
                (lambda r: r.pop("tensors"), "tensors is missing"),
                (lambda r: t(r).update(file=2), r"tensors\[0\]\.file is 2, expected 0 to 1"),
                (lambda r: t(r).update(name=t(r, 1)["name"]), "has the name of a tensor before"),
                (lambda r: t(r).update(name=""), "has the name of a tensor before it, or none"),
                (lambda r: t(r).update(name="x"), "has no tensor 'x', which .*d.json takes"),
                (lambda r: t(r).update(type="Q2_K"), r"tensor '.*' is .*, in .* it is Q2_K"),
                (lambda r: r["files"][1].update(id="0" * 64), "Q4_K_M.gguf: its id is .*, that of"),
                (lambda r: r["files"][0].update(sha256="0" * 64), "its SHA-256 is "),
                (lambda r: r["files"][0].update(file="no.gguf"), "no.gguf: "),
                (lambda r: from_file(r, "shape.gguf"),
                 "'output_norm.weight' has the dimensions 128 x 2 x 1 x 1, in .*F16.gguf it has "
                 "256 x 1 x 1 x 1"),
                (lambda r: from_file(r, "other.gguf"),
                 "other.gguf: has no tensor 'output_norm.weight', which"),
                (lambda r: from_file(r, "arch.gguf"),
                 "arch.gguf: general.architecture is 'qwen2', that of .* is 'llama'"),
                (lambda r: r.update(schema="assay-sweep"), "schema is 'assay-sweep'"),
                (lambda r: r.update(schema="assay.recipe/1"),
                 r"'assay\.recipe/1', the name before 0\.1\.0, expected 'assay-recipe' with ")):
            recipe = copy.deepcopy(good)
            change(recipe)
            with self.subTest(sentence):
                self.refused(["mix", self.write(recipe), "-q", "-o", "x.gguf"], sentence)
                self.assertEqual(list(self.folder.glob("x.gguf*")), [])

    def small(self, change):
        """Mix two files of one matrix and what `change` adds to them: (base's, other's)."""
        head = [pair("general.architecture", STRING, "llama"), pair("general.alignment", U32, 64),
                pair("split.no", 2, 0), pair("split.count", 2, 1), pair("x", F32, 1.5)]
        extra = change
        for name, more in zip(("a.gguf", "b.gguf"), extra):
            (self.folder / name).write_bytes(gguf(
                head, [("x.weight", 0, [4, 3], bytes(range(48))),
                       ("y.weight", 0, [8], name[:1].encode() * 32), *more], alignment=64))
        (self.folder / "r.json").write_text(json.dumps(
            {"schema": "assay-recipe", "schema_version": 1,
             "files": [{"file": "a.gguf"}, {"file": "b.gguf"}],
             "tensors": [{"name": "y.weight", "file": 1}]}))
        return run("mix", "r.json", "-o", "s.gguf", "--force", cwd=self.folder)

    def test_small_files(self):
        done = self.small(([], []))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("has no id of it"), 2)
        self.assertIn("1 tensor that r.json does not name comes from a.gguf", done.stderr)
        about = info(self.folder / "s.gguf")
        self.assertEqual(tensor_bytes(self.folder / "s.gguf", about),
                         {"x.weight": bytes(range(48)), "y.weight": b"b" * 32})
        self.assertEqual([t["offset"] % 64 for t in about["tensors"]], [0, 0])
        self.assertEqual([k["key"] for k in about["metadata"]],
                         ["assay.mix.recipe", "assay.mix.files", "assay.mix.ids",
                          "general.architecture", "general.alignment", "x", "general.file_type",
                          "general.quantization_version"])

    def test_a_split_base(self):
        """Parts of a base, each with a tensor: the mix is one file, with the keys of the first."""
        for no, name in enumerate(("x.weight", "y.weight")):
            keys = [pair("split.no", U16, no), pair("split.count", U16, 2),
                    pair("split.tensors.count", I32, 2)]
            first = [pair("general.architecture", STRING, "llama"), pair("x", F32, 1.5)]
            (self.folder / f"p-0000{no + 1}-of-00002.gguf").write_bytes(
                gguf(first * (1 - no) + keys, [(name, 0, [8], bytes([no + 1]) * 32)]))
        (self.folder / "r.json").write_text(json.dumps(
            {"schema": "assay-recipe", "schema_version": 1,
             "files": [{"file": "p-00001-of-00002.gguf"}], "tensors": []}))
        about = info(self.mix())
        self.assertEqual(about["n_parts"], 1)
        self.assertEqual(tensor_bytes(self.folder / "m.gguf", about),
                         {"x.weight": b"\1" * 32, "y.weight": b"\2" * 32})
        self.assertFalse([k for k in about["metadata"] if k["key"].startswith("split.")])
        self.refused(["mix", "r.json", "-o", "p-00002-of-00002.gguf", "--force"],
                     "would replace the file that the recipe reads")

    def test_scales_go_with_their_matrices(self):
        scale = lambda value: [("y.scale", 0, [1], bytes([value, 0, 0, 0]))]
        self.assertEqual(self.small((scale(1), scale(1))).returncode, 0)
        for extra in ((scale(1), scale(2)), (scale(1), []), ([], scale(1))):
            done = self.small(extra)
            self.assertEqual(done.returncode, 2)
            self.assertIn("tensor 'y.weight' of b.gguf would be multiplied by another scale",
                          done.stderr)

    def test_outputs_that_are_in_use(self):
        self.recipe(self.sweep, "--size", "4MiB")
        self.refused(["mix", "r.json", "-o", "r.json"], "-o r.json would replace the file that mix")
        (self.folder / "link.gguf").symlink_to(Q4)
        self.refused(["mix", "r.json", "-o", "link.gguf", "--force"],
                     "-o link.gguf would replace the file that the recipe reads")
        self.mix("there.gguf")
        before = (self.folder / "there.gguf").read_bytes()
        done = run("mix", "r.json", "-o", "there.gguf", "-q", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "there.gguf").read_bytes(), before)
        (self.folder / "model.gguf").write_bytes(Q4.read_bytes())
        self.refused(["mix", "r.json", "-o", "model.gguf"], "model.gguf: is a GGUF model, expected a "
                     "new file or a GGUF model that assay mix wrote; give another name")
        (self.folder / "p.gguf.part").write_text("of somebody else")
        self.refused(["mix", "r.json", "-o", "p.gguf"], "p.gguf.part: is a text, and is left as it is")

    def test_full_disk(self):
        self.recipe(self.sweep, "--size", "4MiB")
        done = subprocess.run(["bash", "-c", f"ulimit -f 2000; {ASSAY} mix r.json -q -o f.gguf"],
                              cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\Aassay: .*f\.gguf\.part: .*\n\Z")
        self.assertEqual(list(self.folder.glob("f.gguf*")), [])

    def test_interrupted(self):
        """A file of 1 GiB of zeros, which takes no space itself, is stopped on its way."""
        name, big = "big.gguf", 1 << 30
        head = gguf([pair("general.architecture", STRING, "llama")],
                    [("x.weight", 0, [1 << 20, big >> 22], b"")])
        with open(self.folder / name, "wb") as file:
            file.write(head)
            file.truncate(len(head) + big)
        self.write({"schema": "assay-recipe", "schema_version": 1, "files": [{"file": name}],
                    "tensors": []}, "big.json")
        part, whole = self.folder / "i.gguf.part", self.folder / "i.gguf"
        for _attempt in range(20):  # on a busy machine it may be over before its signal comes
            whole.unlink(missing_ok=True)
            process = subprocess.Popen([ASSAY, "mix", "big.json", "-q", "-o", whole.name],
                                       cwd=self.folder, stderr=subprocess.PIPE, text=True)
            while process.poll() is None and self.size_of(part) <= 1 << 23:
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=HANG_S)
            if process.returncode:
                break
        self.assertEqual((process.returncode, errors),
                         (130, "assay: interrupted: nothing was written\n"))
        self.assertEqual(list(self.folder.glob("i.gguf*")), [])

    @staticmethod
    def size_of(path):
        """0 where it is not, or no more."""
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0


if __name__ == "__main__":
    import sys
    unittest.main(argv=sys.argv[:1])
