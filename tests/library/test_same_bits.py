#!/usr/bin/env python3
"""The library gives the numbers of the program's tables, to the last digit: for several
architectures, each precision, one thread and two, and for divergences; and those of its tensors.

usage: test_same_bits.py ASSAY SOURCE_DIR BY_HEADER
"""
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

SOURCE, BY_HEADER = pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
import folders  # noqa: E402
from program import ASSAY, F16, Q4, TEXT  # noqa: E402
import rewrite  # noqa: E402

N_WINDOWS = 3
# Beside llama: residuals of several streams, compressed keys and experts, layers with a state.
ARCHITECTURES = "gemma3n", "deepseek2", "qwen3next"


def table_of(text, columns):
    rows = list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    return [[row[name] for name in columns] for row in rows]


def said(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


class SameBits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def compare(self, models, text, n_ctx, precision, n_threads):
        table = self.folder / "table"
        command = ["kld", "--base", models[0], "-m", models[1], "--js"] if len(models) > 1 else [
            "perplexity", "-m", models[0]]
        said(ASSAY, *command, "-q", "-f", text, "-c", n_ctx, "--chunks", N_WINDOWS, "-t", n_threads,
             "--precision", precision, "--per-token", table)
        found = said(BY_HEADER, text, n_ctx, N_WINDOWS, n_threads, precision, *models)
        columns = found.splitlines()[0].split("\t")
        expected = table_of(table.read_text(), columns)
        self.assertEqual(len(expected), N_WINDOWS * (n_ctx - 1 - n_ctx // 2))
        self.assertEqual(table_of(found, columns), expected)
        return expected

    def check(self, models, text, n_ctx):
        for precision in ("high", "exact", "fast"):
            tables = [self.compare(models, text, n_ctx, precision, n) for n in (1, 2)]
            self.assertEqual(*tables)

    def test_bundled(self):
        self.check([F16], TEXT, 64)
        self.check([Q4], TEXT, 64)

    def test_divergence(self):
        self.check([F16, Q4], TEXT, 64)
        self.check([Q4, Q4], TEXT, 64)

    def test_random(self):
        for arch in ARCHITECTURES:
            rng = random.Random(f"library {arch}")
            made = type(arch, (architectures.FAMILIES[arch],), {"arch": arch})(rng)
            folder = self.folder / arch
            folder.mkdir()
            file = rewrite.write(folder, made.pairs, made.tensors)
            text = folder / "text"
            text.write_text(made.text(120)[0])
            with self.subTest(arch):
                self.check([file], text, 24)

    def test_tensors(self):
        """Of a GGUF file, and of a published folder, whose rows are turned and lie in several files."""
        made = folders.Folder(random.Random("library folder"), folders.mixtral, "BF16")
        where = self.folder / "mixtral"
        made.write(where, 2)
        tokens = rewrite.write(self.folder, made.gguf_pairs(), made.tensors)
        for model, more in ((Q4, []), (where, [tokens])):
            listed = json.loads(said(ASSAY, "info", "--tensors", "--json", model))
            for name in [tensor["name"] for tensor in listed["tensors"]]:
                said(ASSAY, "dump", model, "--tensor", name, "-o", self.folder / "t.npy", "--force")
                dumped = (self.folder / "t.npy").read_bytes()
                found = subprocess.run([BY_HEADER, model, name, *more], capture_output=True, check=True).stdout
                self.assertEqual(dumped[-len(found):], found, name)
                self.assertTrue(dumped[:-len(found)].rstrip().endswith(b"}"), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
