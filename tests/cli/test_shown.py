#!/usr/bin/env python3
"""Names and texts that others wrote, on a terminal, in Markdown and in a page: none steers the
terminal, turns or hides what stands beside it, or is a link or a tag.

usage: test_shown.py ASSAY SOURCE_DIR
"""
import json
import pathlib
import re
import shutil
import tempfile
import unicodedata
import unittest

from program import F16, Q4, run

EVIL = "<i>[x](a:b)|\x1b[2J\x9b\u202e\u2028\u200b\n"
SHOWN = r"<i>[x](a:b)|\x1b[2J\xc2\x9b\xe2\x80\xae\xe2\x80\xa8\xe2\x80\x8b\x0a"
LINK = r"\<i\>\[x\](a:b)\|"
WINDOWS = ["-f", "t.txt", "-c", "32", "--chunks", "2", "-q"]


class Shown(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model = EVIL + ".gguf"
        shutil.copy(Q4, cls.folder / cls.model)
        shutil.copy(F16, cls.folder / "f16.gguf")
        for name in "t.txt", EVIL + ".txt":
            (cls.folder / name).write_text("What is it that is asked here, and who is to say it? " * 8)

    def run_in(self, *words, code=0):
        done = run(*words, cwd=self.folder)
        self.assertEqual(done.returncode, code, (words, done.stderr))
        for c in done.stdout + done.stderr:
            if c not in "\n\t":
                self.assertNotIn(unicodedata.category(c), ("Cc", "Cf", "Zl", "Zp"), (words, c))
        return done

    def assert_no_markup(self, text):
        plain = re.sub(r"`[^`\n]*`|\\[!-/:-@\[-`{-~]", "", re.sub(r"```.*?```", "", text, flags=re.S))
        self.assertNotRegex(plain, r"<i>|\]\(")
        rows = [line for line in text.splitlines() if line.startswith("|")]
        self.assertGreater(len(rows), 2)
        self.assertEqual(len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}), 1, text)

    def test_terminal(self):
        """What each command prints of a file's name."""
        sweep = self.run_in("sweep", "--base", "f16.gguf", self.model, "--by", "role", *WINDOWS, "--json", "s.json")
        self.assertIn(SHOWN, sweep.stdout)
        collected = self.run_in("imatrix", self.model, *WINDOWS, "-o", EVIL + ".imatrix")
        self.assertIn(SHOWN + ".imatrix", collected.stdout)
        self.run_in("recipe", "s.json", "--bpw", "16", "--json", "r.json")
        mixed = self.run_in("mix", "r.json", "-o", EVIL + ".mixed.gguf", "-q")
        self.assertIn(SHOWN + ".mixed.gguf: ", mixed.stdout)
        self.run_in("info", self.model)
        self.assertIn(SHOWN + ".imatrix", self.run_in("info", EVIL + ".imatrix").stdout)
        self.run_in("compare", EVIL + ".imatrix", EVIL + ".imatrix")
        self.run_in("perplexity", "-m", self.model, *WINDOWS[2:], "-f", "t.txt", "-f", EVIL + ".txt")
        self.run_in("perplexity", "-m", EVIL + ".none", *WINDOWS, code=2)
        self.run_in("explain", self.model, "--base", "f16.gguf", *WINDOWS, "--activations", "q8_0")
        self.run_in("best", "--base", "f16.gguf", self.model, *WINDOWS)

    def test_markdown(self):
        for option in "--markdown", "--new-type":
            done = self.run_in("kld", "-m", self.model, "-m", "f16.gguf", "--base", self.model, *WINDOWS, option,
                               "--json", "k.json")
            self.assert_no_markup(done.stdout)
            self.assertIn("| " + LINK, done.stdout)
        contexts = self.run_in("kld", "-m", self.model, "--base", "f16.gguf", "-f", "t.txt", "-c", "8,16", "-q")
        self.assertIn("| " + LINK, contexts.stdout)
        document = json.loads((self.folder / "k.json").read_text())
        for model in [document["base"], *(c["model"] for c in document["candidates"])]:
            model.update({key: EVIL for key in ("name", "quantisation", "label") if key in model})
            model["kv_types"] = {"k": EVIL, "v": "F32"}
        (self.folder / "evil.json").write_text(json.dumps(document))
        self.assert_no_markup(self.run_in("table", "evil.json").stdout)
        self.run_in("table", "evil.json", "--csv")
        self.run_in("compare", "evil.json", "evil.json", "--candidate-a", "1", "--candidate-b", "1")
        card = self.run_in("card", "evil.json").stdout
        self.assert_no_markup(card[:card.index("\n- **")])
        self.run_in("report", "evil.json", "-o", "p.html")
        page = (self.folder / "p.html").read_text()
        self.assertNotIn("<i>", page)
        self.assertNotRegex(page, "[\u202e\u2028\u200b]")

    def test_undefined_numbers_are_dashes(self):
        self.run_in("kld", "-m", self.model, "--base", "f16.gguf", *WINDOWS, "--json", "k.json")
        self.run_in("report", "k.json", "-o", "p.html")
        page = (self.folder / "p.html").read_text()
        self.assertIn('data-value="nan"><span>-</span>', page)
        self.assertNotIn(">nan<", page)


if __name__ == "__main__":
    unittest.main(argv=["test_shown"])
