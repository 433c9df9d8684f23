#!/usr/bin/env python3
"""What the check of subjects finds, and where it has nothing to find.

usage: test_subjects.py SOURCE_DIR
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
from subjects import BEGIN, wrong  # noqa: E402

RIGHT = ["cli: pass the reader a name", "eval/run: make workers a kind", "docs, README: say what is new",
         "lint: embed the list", "ci: run less", 'Revert "cli: pass the reader a name"']
WRONG = ["Ties are what a few roundings of float32 decide, no more", "cli: Pass a name", "cli: passed a name",
         "cli: passing a name", "cli: adds a name", "cli: the name", "cli:pass a name", "cli: pass a name.",
         "cli: pass " + "x" * 63, "fixup! cli: pass a name", "cli: "]


def check(folder):
    done = subprocess.run([sys.executable, "-B", HERE / "subjects.py", folder], capture_output=True,
                          text=True)
    return done.returncode, done.stdout


class Subjects(unittest.TestCase):
    def test_form(self):
        self.assertEqual([s for s in RIGHT if wrong(s)], [])
        self.assertEqual([s for s in WRONG if not wrong(s)], [])

    @unittest.skipUnless(shutil.which("git"), "no git")
    def test_repositories(self):
        def git(*words):
            subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words],
                           check=True, capture_output=True)
        with tempfile.TemporaryDirectory() as name:
            origin, shallow = pathlib.Path(name) / "origin", pathlib.Path(name) / "shallow"
            origin.mkdir()
            self.assertEqual(check(origin)[0], 77)  # no repository
            git("init", "-q", origin)
            self.assertEqual(check(origin)[0], 77)  # no commits
            for subject in ("Something old", "cli: pass a name"):
                git("-C", origin, "commit", "-q", "--allow-empty", "-m", subject)
            code, text = check(origin)
            self.assertEqual((code, BEGIN[:7] in text), (77, True))  # not this project's history
            git("clone", "-q", "--depth", "1", f"file://{origin}", shallow)
            self.assertEqual(check(shallow)[0], 0)
            git("-C", shallow, "commit", "-q", "--allow-empty", "-m", "A sentence of its own")
            code, text = check(shallow)
            self.assertEqual((code, "A sentence of its own" in text), (1, True))
            inside = shallow / "unpacked"
            inside.mkdir()
            self.assertEqual(check(inside)[0], 77)  # an archive in the folder of something else


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
