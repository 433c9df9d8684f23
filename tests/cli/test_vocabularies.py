#!/usr/bin/env python3
"""Models whose vocabulary is padded, or has tokens more than the base's: the common tokens are compared,
and the share of the others is what the logits say; other vocabularies are refused.

usage: test_vocabularies.py ASSAY SOURCE_DIR
"""
import functools
import json
import math
import os
import pathlib
import struct
import tempfile
import unittest
import zipfile

from documents import check, without_run
from program import F16, TEXT, run
from vocabularies import CONTROL, NORMAL, USER_DEFINED, enlarged, padding, random_rows

os.environ["ASSAY_PRECISION"] = "exact"  # the same bits with any --isa
V, N_MORE, N_CTX, N_WINDOWS = 2048, 64, 32, 2
WINDOWS = ["-f", TEXT, "-c", str(N_CTX), "--chunks", str(N_WINDOWS)]


def log_sum(logits):
    most = max(logits)
    return most + math.log(math.fsum(math.exp(x - most) for x in logits))


class Vocabularies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        cls.rows = random_rows(F16, N_MORE)
        other = bytearray(F16.read_bytes())  # the same vocabulary, other weights
        table = next(t for t in json.loads(run("info", "--json", "--tensors", F16).stdout)["tensors"]
                     if t["name"] == "output_norm.weight")
        for at in range(table["offset"], table["offset"] + table["n_bytes"], 4):
            struct.pack_into("<f", other, at, 0.9 * struct.unpack_from("<f", other, at)[0])
        cls.other = cls.write("other.gguf", other)
        cls.padded = cls.write("padded.gguf", enlarged(cls.other, padding(V, N_MORE), cls.rows))
        cls.padded_base = cls.write("padded-base.gguf", enlarged(F16, padding(V, N_MORE), cls.rows))

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    @classmethod
    def write(cls, name, data):
        path = cls.folder / name
        path.write_bytes(data)
        return path

    def kld(self, model, base, *words, windows=WINDOWS, command="kld"):
        return run(command, "-m", model, "--base", base, *windows, *words)

    def document(self, *words, **more):
        result = self.kld(*words, "--json", self.folder / "r.json", **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads((self.folder / "r.json").read_text())
        check(self, document)
        return document, result

    @functools.cache
    def logits(self, model):
        """Those of the scored positions, window by window: the last ones of what comes before."""
        ids, found = json.loads(run("tokenize", "-m", F16, "-f", TEXT, "--ids").stdout), []
        for w in range(N_WINDOWS):
            window = [1, *ids[w * N_CTX + 1:(w + 1) * N_CTX]]
            for p in range(N_CTX // 2, N_CTX - 1):
                done = run("trace", "-m", model, "--ids", ",".join(map(str, window[:p + 1])), "--tensor",
                           "result_output", "-o", self.folder / "l.npz", "-t", "1")
                self.assertEqual(done.returncode, 0, done.stderr)
                with zipfile.ZipFile(self.folder / "l.npz") as archive:
                    data = archive.read(archive.namelist()[0])
                n = V + N_MORE if model in (self.padded, self.padded_base) else V
                found.append(struct.unpack(f"<{n}f", data[-4 * n:]))
        return found

    def expected(self, model, base):
        """(mean divergence on the common tokens, shares of the others: the model's, the base's)"""
        kld, shares = [], ([], [])
        for q, p in zip(self.logits(model), self.logits(base)):
            lq, lp = log_sum(q[:V]), log_sum(p[:V])
            kld.append(math.fsum(math.exp(a - lp) * (a - lp - b + lq) for a, b in zip(p[:V], q)))
            for of, logits in zip(shares, (q, p)):
                of.append(1 - math.exp(log_sum(logits[:V]) - log_sum(logits)))
        return math.fsum(kld) / len(kld), *shares

    def assert_shares(self, found, shares):
        self.assertAlmostEqual(found["mean"], math.fsum(shares) / len(shares), delta=1e-12)
        self.assertAlmostEqual(found["max"], max(shares), delta=1e-12)

    def same_figures(self, document, other):
        """But for the model itself."""
        found, expected = ({k: v for k, v in d["candidates"][0].items() if k not in ("model", "vocabulary")}
                           for d in (document, other))
        self.assertEqual(found, expected)

    def test_common_tokens_are_compared_and_the_others_weighed(self):
        plain, _ = self.document(self.other, F16)
        self.assertNotIn("vocabulary", plain["candidates"][0])
        for model, base in ((self.padded, F16), (self.other, self.padded_base)):
            document, result = self.document(model, base)
            self.same_figures(document, plain)
            kld, *shares = self.expected(model, base)
            said = document["candidates"][0]["vocabulary"]
            self.assertAlmostEqual(document["candidates"][0]["kld"]["mean"], kld, delta=1e-9 * kld)
            self.assert_shares(said["others"], shares[0])
            self.assert_shares(said["base_others"], shares[1])
            self.assertEqual(said["n_common"], V)
            self.assertEqual({said["n_base"], said["n_model"]}, {V, V + N_MORE})
            self.assertGreater(max(map(max, shares)), 1e-4)
            self.assertRegex(result.stdout, rf"\nTokens compared: {V} of \d+, base \d+\nOn others, Q   : +\S+ mean, ")
            self.assertRegex(result.stderr, r"note: \S+ has \d+ tokens, \S+ has \d+: the 2048 that both have are "
                                            r"compared, as if there were no others; the first of these is token 2048, "
                                            r"'\[PAD2048\]'")
            self.assertIn("the 2048 that both have", "\n".join(document["remarks"]))

    def test_a_padded_model_is_no_other_model(self):
        document, _ = self.document(self.padded_base, F16)
        self.assertEqual(document["candidates"][0]["kld"]["max"], 0)
        document, _ = self.document(self.padded, self.padded_base)
        self.assertNotIn("vocabulary", document["candidates"][0])

    def test_however_computed(self):
        first, _ = self.document(self.padded, F16)
        for words in (["-t", "1", "-b", "1"], ["--isa", "scalar"], ["--device", "cpu,cpu"],
                      ["--state", self.folder / "state"], ["--state", self.folder / "state"]):
            again, _ = self.document(self.padded, F16, *words)
            self.assertEqual(without_run(again), without_run(first))

    def test_recorded_bases(self):
        live, _ = self.document(self.padded, F16)
        for base, model in ((F16, self.padded), (self.padded_base, self.other)):
            recorded = self.folder / "base"
            for words in ([], ["--head", "path"]):
                done = run("record", "-m", base, *WINDOWS, *words, "--force", "-o", recorded)
                if done.returncode == 2 and words:
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                document, _ = self.document(model, recorded, windows=[])
                self.same_figures(document, live)
                self.assertIn("vocabulary", document["candidates"][0])
        logits = self.folder / "logits"
        run("record", "-m", F16, *WINDOWS, "--format", "logits", "-o", logits)
        found = [self.document(m, logits, windows=[])[0] for m in (self.padded, self.other)]
        self.same_figures(*found)
        run("record", "-m", self.padded_base, *WINDOWS, "--format", "logits", "--force", "-o", logits)
        self.refused(r"a vocabulary of 2048 tokens where \S+logits has 2112; only", self.other, logits, windows=[])

    def test_other_commands(self):
        for command in ("best", "explain"):
            result = self.kld(self.padded, F16, command=command)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("the 2048 that both have are compared", result.stderr)
        result = self.kld(self.padded, F16, "-m", self.padded)
        self.assertRegex(result.stdout, r"Tokens compared: 2048 of 2112, base 2048\n")

    def test_only_who_has_others_is_said_to(self):
        document, result = self.document(self.other, F16, "-m", self.padded)
        self.assertEqual(["vocabulary" in c for c in document["candidates"]], [False, True])
        self.assertEqual(result.stdout.count("Tokens compared: "), 1)

    def refused(self, said, *words, code=2, **more):
        result = self.kld(*words, **more)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertRegex(result.stderr, said)

    def test_what_is_refused(self):
        self.refused(r"--strict: padded\.gguf has 2112 tokens, tiny\.F16\.gguf has 2048: ", self.padded, F16, "--strict")
        self.refused(r"with-words\.gguf: a vocabulary of 2050 tokens where \S+tiny\.F16\.gguf has 2048, and token 2049, "
                     r"'ship', is of plain text; only ",
                     self.write("with-words.gguf", enlarged(F16, [("<a>", CONTROL), ("ship", NORMAL)], self.rows[:2])),
                     F16)
        renamed = self.padded.read_bytes().replace(b"[PAD2050]", b"<think-->")
        self.refused(r"renamed\.gguf: token 2050 is '<think-->' where \S+padded-base\.gguf has '\[PAD2050\]'; only ",
                     self.write("renamed.gguf", renamed), self.padded_base)
        data = bytearray(self.padded.read_bytes())
        at = data.index(struct.pack("<Q", 4) + b"\xe2\x96\x81t") + 8  # a common token
        data[at + 3:at + 4] = b"\x7f"
        self.refused(r"other-text\.gguf: token \d+ is .* where \S+tiny\.F16\.gguf has '.xe2.x96.x81t'; only ",
                     self.write("other-text.gguf", data), F16)
        self.refused(r"tiny\.F16\.gguf: it has 2048 tokens in common with \S+padded-base\.gguf, \S+padded\.gguf has 2112: ",
                     self.padded, self.padded_base, "-m", F16)

    def test_a_text_with_such_a_token_is_refused(self):
        model = self.write("added.gguf", enlarged(F16, [("<step>", USER_DEFINED)], self.rows[:1]))
        text = self.folder / "text"
        for of_text, code in (("<step> ", 2), ("", 0)):
            text.write_text(of_text + TEXT.read_text())
            result = self.kld(model, F16, windows=["-f", text, *WINDOWS[2:]])
            self.assertEqual(result.returncode, code, result.stderr)
        text.write_text("<step> " + TEXT.read_text())
        self.refused(r"token \d+ of the text is 2048, and the vocabularies have 2048 in common; only", model, F16,
                     windows=["-f", text, *WINDOWS[2:]])


if __name__ == "__main__":
    unittest.main(argv=["test_vocabularies"])
