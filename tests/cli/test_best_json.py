#!/usr/bin/env python3
"""assay best on files of its own making: the answer is that of assay kld of all windows; the same
document however computed; a run that goes on; a base that is a file of rows; the page.

usage: test_best_json.py ASSAY SOURCE_DIR
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from documents import check, without_run
from program import ASSAY, F16, HANG_S, Q4, TEXT, run

os.environ["ASSAY_PRECISION"] = "exact"  # the same bits with any --isa
WINDOWS = ["-f", TEXT, "-c", "32", "--chunks", "24"]
BATCH = ["-b", "256"]  # of 8 windows: what the first look takes


def changed(path, to, names, mask):
    """A model whose weights are off: bytes of these tensors with some bits turned."""
    data = bytearray(path.read_bytes())
    listed = json.loads(run("info", "--json", "--tensors", path).stdout)["tensors"]
    for t in listed:
        if any(name in t["name"] for name in names):
            for at in range(t["offset"] + 4, t["offset"] + t["n_bytes"], 144):
                data[at] ^= mask
    to.write_bytes(data)
    return to


class Best(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name)
        cls.bad = changed(Q4, cls.path / "bad.gguf", ["blk.1.ffn_up", "blk.2.attn_v"], 0xff)
        cls.good = changed(F16, cls.path / "good.gguf", ["blk.1.ffn_up"], 0x10)
        cls.files = [cls.good, cls.bad, Q4]
        cls.words = ["best", "--base", F16, *WINDOWS, *cls.files]
        cls.document, cls.printed = cls.best("-q", *BATCH)

    @classmethod
    def best(cls, *words, command=None, code=0):
        """(document, standard output)"""
        done = run(*(command or cls.words), *words, "--json", cls.path / "r.json")
        assert done.returncode == code, done.stderr
        return json.loads((cls.path / "r.json").read_text()), done.stdout

    def names(self, document):
        return [c["model"]["file"] for c in document["candidates"]]

    def answer(self, document):
        return self.names(document)[document["result"]["answer"]]

    def test_the_document(self):
        d = self.document
        check(self, d)
        self.assertEqual(self.names(d), ["bad.gguf", "tiny.Q4_K_M.gguf", "good.gguf"])
        self.assertEqual(self.answer(d), "good.gguf")
        self.assertEqual([c["standing"] for c in d["candidates"]], ["worse", "worse", "answer"])
        self.assertTrue(d["result"]["clear"] and d["result"]["complete"])
        self.assertLess(d["result"]["n_windows"], 24)
        self.assertEqual(d["verdict"], self.printed.splitlines()[:3])
        n = sum(c["n_windows"] for c in d["candidates"])
        self.assertAlmostEqual(d["result"]["share_of_tokens"], n / 3 / 24)

    def test_as_all_windows_have_it(self):
        """Means of assay kld over the whole text lie in the intervals, and give the same answer."""
        whole = json.loads(run("kld", "--base", F16, *WINDOWS, "--json", "-",
                               *(w for f in self.files for w in ("-m", f))).stdout)
        kld = {c["model"]["file"]: c["kld"]["mean"] for c in whole["candidates"]}
        names = self.names(self.document)
        for p in self.document["pairs"]:
            difference = kld[names[p["a"]]] - kld[names[p["b"]]]
            self.assertLess(p["low"], difference)
            self.assertLess(difference, p["high"])
            worse = difference > 0.001 + 0.05 * kld[names[p["b"]]]
            self.assertIn(p["a_is"], (None, "worse" if worse else "as good"))

    def test_margins_and_limits(self):
        for words, expected in ((["--margin", "1"], "bad.gguf"),
                                (["--size", str(Q4.stat().st_size)], "tiny.Q4_K_M.gguf"),
                                (["--memory", "4MB"], "tiny.Q4_K_M.gguf")):
            with self.subTest(words=words):
                document, printed = self.best("-q", *BATCH, *words)
                check(self, document)
                self.assertEqual(self.answer(document), expected)
                self.assertTrue(printed.startswith(f"Take {expected}:"), printed)
                self.assertEqual(len(document["too_large"]), words[0] != "--margin")

    def test_a_copy_is_left_out(self):
        copy = self.path / "copy.gguf"
        copy.write_bytes(Q4.read_bytes())
        document, _ = self.best(copy, *BATCH)
        self.assertEqual(self.names(document), self.names(self.document))
        self.assertEqual(document["remarks"],
                         ["copy.gguf is left out: it is the same model as tiny.Q4_K_M.gguf"])

    def test_what_is_not_clear_says_so(self):
        words = [w if w != "24" else "3" for w in self.words]
        document, printed = self.best("-q", *BATCH, command=words)
        check(self, document)
        self.assertFalse(document["result"]["clear"])
        self.assertTrue(document["result"]["complete"])
        self.assertTrue(printed.startswith("Take, as far as this text tells, "), printed)

    def test_same_however_computed(self):
        for words in (["-t", "1", "-b", "1"], ["-b", "64", "--device", "cpu,cpu"]):
            with self.subTest(words=words):
                document, printed = self.best("-q", *words)
                self.assertEqual(without_run(document), without_run(self.document))
                self.assertEqual(printed, self.printed)

    def test_what_is_not_finite_is_not_taken(self):
        data = bytearray(F16.read_bytes())
        listed = json.loads(run("info", "--json", "--tensors", F16).stdout)["tensors"]
        t = next(t for t in listed if t["name"] == "blk.0.attn_q.weight")
        data[t["offset"]:t["offset"] + t["n_bytes"]] = b"\x00\x7e" * (t["n_bytes"] // 2)
        nan = self.path / "nan.gguf"
        nan.write_bytes(data)
        document, printed = self.best("-q", *BATCH, code=1,
                                      command=["best", "--base", F16, *WINDOWS, nan, Q4])
        check(self, document)
        self.assertEqual(self.answer(document), Q4.name)
        self.assertIn("nan has divergences that are not finite", printed)

    def test_a_journal_goes_on(self):
        state = self.path / "state"
        run(*self.words, *BATCH, "-q", "--state", state)
        data = state.read_bytes()
        state.write_bytes(data[:len(data) * 2 // 3])
        document, printed = self.best("-q", *BATCH, "--state", state)
        self.assertEqual(without_run(document), without_run(self.document))
        self.assertEqual(printed, self.printed)
        other = run(*self.words, "-q", "--state", state, "--margin", "2%")
        self.assertEqual(other.returncode, 2)  # other files would have left it

    def test_an_interruption_has_the_result_so_far(self):
        # So much like the answer that the text does not tell.
        changed(F16, self.path / "twin.gguf", ["blk.1.ffn_up"], 0x11)
        words = [w for w in self.words if w not in ("--chunks", "24")]
        process = subprocess.Popen([ASSAY, *words, self.path / "twin.gguf", "--margin", "0", "-b", "1",
                                    "-t", "1", "--json", self.path / "i.json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if "are still compared" in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 130, err)
        document = json.loads((self.path / "i.json").read_text())
        check(self, document)
        self.assertFalse(document["result"]["complete"])
        self.assertTrue(out.startswith("So far it is "), out)

    def test_a_base_of_rows(self):
        rows = self.path / "base.assay"
        run("record", "-m", F16, *WINDOWS, "-o", rows)
        document, _ = self.best("-q", *BATCH, command=["best", "--base", rows, *self.files])
        check(self, document)
        for key in ("result", "pairs", "verdict"):
            self.assertEqual(document[key], self.document[key])

    def test_the_page(self):
        page = self.path / "p.html"
        document, _ = self.best("-q", *BATCH, "--report", page)
        text = page.read_text()
        for sentence in document["verdict"]:
            self.assertIn(sentence, text)
        self.assertIn("block bootstrap over windows", text)
        self.assertNotIn("was interrupted", text)
        for name in ("n", "n_tokens", "step"):
            self.assertIn(f"<bdi>windows.{name}</bdi></th><td>{document['windows'][name]}<", text)

    def test_the_page_has_a_set_of_windows_in_a_row(self):
        """A perplexity less the base's is the difference beside it, where the windows are as many."""
        page = self.path / "w.html"
        twin = changed(F16, self.path / "twin.gguf", ["blk.1.ffn_up"], 0x11)
        document, _ = self.best("-q", *BATCH, twin, "--margin", "0", "--report", page)
        text = page.read_text()
        n_windows = sorted(c["n_windows"] for c in document["candidates"])
        self.assertLess(n_windows[0], n_windows[-1])  # else there is nothing to test
        rows = [{k: float(v) for k, v in re.findall('data-label="([^"]*)" data-value="([^"]*)"', row)
                 if k in ("windows", "PPL", "ΔPPL")}
                for row in text.split('<table class="sortable"')[1].split("<tr")[2:]]
        base = rows[0]
        self.assertEqual(sorted(r["windows"] for r in rows[1:]), n_windows)
        self.assertEqual(base["windows"], n_windows[-1])
        for row in rows[1:]:
            differs = abs(row["PPL"] - base["PPL"] - row["ΔPPL"]) > 1e-6
            self.assertEqual(differs, row["windows"] < base["windows"])
        self.assertIn(f"on the {n_windows[0]} to {n_windows[-1]} windows", text)
        self.assertIn(f"There are only {n_windows[0]} windows", text)


if __name__ == "__main__":
    unittest.main(argv=["test_best_json.py"])
