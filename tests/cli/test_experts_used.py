#!/usr/bin/env python3
"""--experts-used: another number of experts for a trial, against files that say that number.

usage: test_experts_used.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import random
import re
import sys
import tempfile
import unittest

from program import ASSAY, F16, SOURCE, run
from serving import Server

sys.path.append(str(SOURCE / "tests" / "random_models"))
import architectures  # noqa: E402
import rewrite  # noqa: E402
from evaluate import Evaluation  # noqa: E402


class ExpertsUsed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        cls.model, cls.others, cls.text = cls.make("qwen3moe", "a", 4)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    @classmethod
    def make(cls, arch, seed, n_experts=2, wanted=""):
        """A random model, {n: the same that says n}, its text's words. wanted: a key above 0."""
        for attempt in range(100):
            rng = random.Random(f"experts {arch} {seed} {attempt}")
            generated = architectures.generate(rng, arch)
            keys = {key: value for key, _, value, _ in generated.pairs}
            evaluation = Evaluation(generated, rng)
            few = evaluation.n < 16  # tokens: see test_llama_compat
            if keys[arch + ".expert_count"] in range(n_experts, 9) and not evaluation.fixed and few:
                if not wanted or keys.get(f"{arch}.{wanted}"):
                    break
        else:
            raise AssertionError(f"no model of {arch} in 100 attempts")
        key = arch + ".expert_used_count"
        files = {}
        for n in range(1, keys[arch + ".expert_count"] + 1):
            pairs = [(k, kind, n if k == key else value, of) for k, kind, value, of in generated.pairs]
            files[n] = rewrite.write(cls.folder, pairs, generated.tensors, name=f"{arch}.{n}.gguf")
        text = cls.folder / f"{arch}.txt"
        text.write_text(evaluation.text)
        return files.pop(keys[key]), files, ["-q", "-f", str(text), "-c", str(evaluation.n)]

    def result(self, *words):
        out = self.folder / f"{words[0]}.json"  # commands do not write over one another's
        done = run(*map(str, words), "--json", str(out))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(out.read_text()), done.stdout

    def refused(self, sentence, *words, code=2):
        done = run(*map(str, words))
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, re.compile(sentence))

    def test_perplexity(self):
        for arch, seed in (("qwen3moe", "a"), ("deepseek2", "b"), ("qwen35moe", "c")):
            model, others, text = (self.model, self.others, self.text) if arch == "qwen3moe" else \
                self.make(arch, seed)
            for n, other in others.items():
                if run("perplexity", str(other), *text).returncode:  # groups hold fewer
                    self.refused("groups? hold", "perplexity", model, *text, "--experts-used", n)
                    self.assertEqual(arch, "deepseek2")
                    continue
                expected, _ = self.result("perplexity", other, *text)
                got, _ = self.result("perplexity", model, *text, "--experts-used", n)
                self.assertEqual(got["result"], expected["result"])
                self.assertEqual((got["settings"]["experts_used"], got["model"]["experts_used"]), (n, n))
        expected, _ = self.result("perplexity", other, *text)
        same, _ = self.result("perplexity", other, *text, "--experts-used", n)
        self.assertEqual(same["result"], expected["result"])
        self.assertNotIn("experts_used", same["model"])  # nothing was changed

    def test_kld(self):
        n, other = next(iter(self.others.items()))
        expected, _ = self.result("kld", other, *self.text, "--base", self.model)
        for base in (["--base", self.model], []):
            got, said = self.result("kld", "-m", self.model, *self.text, *base, "--experts-used", n)
            a, b = expected["candidates"][0], got["candidates"][0]
            self.assertEqual(a["kld"], b["kld"])
            self.assertGreater(b["kld"]["mean"], 0)
            self.assertEqual(b["model"]["experts_used"], n)
            self.assertNotIn("experts_used", got["base"])
        got, _ = self.result("kld", "-m", self.model, *self.text, "--ctk", "f16,bf16", "--experts-used", n)
        self.assertEqual([c["model"]["experts_used"] for c in got["candidates"]], [n, n])
        table = run("table", str(self.folder / "kld.json")).stdout
        self.assertEqual(len(re.findall(rf"K (F16|BF16) experts {n} ", table)), 4, table)

    def test_identity(self):
        """What is kept of one number is not taken for another's."""
        n = next(iter(self.others))
        state = self.folder / "state"
        words = ["perplexity", self.model, *self.text]
        self.result(*words, "--state", state)
        self.refused("state", *words, "--state", state, "--experts-used", n)
        bases = [self.folder / "a.assay", self.folder / "b.assay"]
        for base, more in zip(bases, ([], ["--experts-used", n])):
            self.assertEqual(run("record", str(self.model), *self.text, "-o", str(base),
                                 *map(str, more)).returncode, 0)
        a, b = (self.result("kld", "-m", self.model, "-q", "--base", base)[0] for base in bases)
        self.assertNotEqual(a["base"]["id"], b["base"]["id"])
        self.assertEqual(a["candidates"][0]["kld"]["mean"], 0)
        b, _ = self.result("kld", "-m", self.model, "-q", "--base", bases[1], "--experts-used", n)
        self.assertEqual(b["candidates"][0]["kld"]["mean"], 0)

    def test_matrices(self):
        n, other = next(iter(self.others.items()))
        files = [str(self.folder / name) for name in ("a.gguf", "b.gguf", "c.gguf")]
        for file, model, more in zip(files, (self.model, other, self.model), (["--experts-used", str(n)], [], [])):
            done = run("imatrix", str(model), *self.text, "-o", file, *more)
            self.assertEqual(done.returncode, 0, done.stderr)
        same = "A and B have the same bits of sums and the same counts"
        self.assertIn(same, run("compare", *files[:2]).stdout)
        self.assertNotIn(same, run("compare", files[0], files[2]).stdout)

    def test_llama_compat(self):
        """Of batches of fewer than 16 tokens llama-imatrix counts the rows of experts alone."""
        self.assertLess(int(self.text[-1]), 16)
        counts = []
        for more in (["--llama-compat", "-b", self.text[-1]], []):
            file = str(self.folder / "imatrix.gguf")
            self.assertEqual(run("imatrix", str(self.model), *self.text, "--no-ppl", "-o", file,
                                 *more).returncode, 0)
            rows = json.loads(run("info", "--json", file).stdout)["matrices"]
            counts.append({row["name"]: row["rows"] for row in rows})
        self.assertEqual(counts[0], {name: n for name, n in counts[1].items() if "_exps" in name})
        self.assertLess(len(counts[0]), len(counts[1]))

    def test_server(self):
        """The base of a server goes through its file's number, also where it is the same file."""
        n = next(iter(self.others))
        words = ["-m", str(self.model), "--base", str(self.model), "--experts-used", str(n)]
        expected, _ = self.result("kld", *words, *self.text)
        with Server(ASSAY, *words, *self.text[1:3]) as server:
            if not server.port:
                self.skipTest("built without libmicrohttpd")
            got = server.post("/v1/evaluate", {"kind": "kld", "ctx_size": int(self.text[-1])}).json
        self.assertEqual(got["candidates"][0]["kld"], expected["candidates"][0]["kld"])

    def test_refused(self):
        most = len(self.others) + 1
        words = ["perplexity", self.model, *self.text, "--experts-used"]
        self.refused(f"{most + 1} experts of a token .--experts-used., expected 1 to the {most} that there are",
                     *words, most + 1)
        self.refused("--experts-used", *words, "-1")
        self.refused(r"F16\.gguf: has no experts, expected a mixture", "perplexity", F16, *self.text[:3],
                     "--experts-used", 2)
        model, others, text = self.make("deepseek4", "d", wanted="hash_layer_count")
        self.refused("says which experts each token goes through", "perplexity", model, *text,
                     "--experts-used", min(others))


if __name__ == "__main__":
    unittest.main(argv=["test"])
