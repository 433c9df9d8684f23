#!/usr/bin/env python3
"""cmake/commit.cmake names the commit of a checkout and of an archive, and nothing elsewhere.

usage: test_commit.py ASSAY SOURCE_DIR

Skipped (77) without git.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import SOURCE

if not shutil.which("git"):
    print("git is not installed")
    sys.exit(77)
# No settings of the user or of a hook that runs this.
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
               **{f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER")
                  for what in ("NAME", "EMAIL")}}


class Commit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.checkout, self.out = self.root / "checkout", self.root / "commit.c"
        (self.checkout / "cmake").mkdir(parents=True)
        for name in (".gitattributes", "cmake/commit.cmake"):
            shutil.copy(SOURCE / name, self.checkout / name)
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "all")
        self.commit = self.git("rev-parse", "HEAD").strip()[:12]

    def call(self, *command):
        return subprocess.run(list(map(str, command)), env=ENVIRONMENT, check=True, capture_output=True,
                              text=True).stdout

    def git(self, *words):
        return self.call("git", "-C", self.checkout, *words)

    def named(self, source):
        self.call("cmake", f"-DSOURCE={source}", f"-DOUT={self.out}", "-P", source / "cmake" / "commit.cmake")
        (name,) = re.findall(r'^const char cli_commit\[\] = "(.*)";$', self.out.read_text(), re.MULTILINE)
        return name

    def test_checkout(self):
        self.assertEqual(self.named(self.checkout), self.commit)
        self.git("tag", "-a", "v1.0.0", "-m", "a release")
        self.assertEqual(self.named(self.checkout), self.commit)
        (self.checkout / "untracked").touch()
        self.assertEqual(self.named(self.checkout), self.commit)
        with open(self.checkout / ".gitattributes", "a") as file:
            file.write("# changed\n")
        self.assertEqual(self.named(self.checkout), self.commit + "-dirty")

    def test_unchanged_file_is_not_written(self):
        self.named(self.checkout)
        os.utime(self.out, (1, 1))
        self.named(self.checkout)
        self.assertEqual(self.out.stat().st_mtime, 1)

    def test_archive(self):
        archive = self.root / "archive.tar"
        self.git("archive", "--prefix=archive/", "-o", archive, "HEAD")
        self.call("tar", "-xf", archive, "-C", self.root)
        self.assertEqual(self.named(self.root / "archive"), self.commit)

    def test_copy_within_another_checkout(self):
        copy = self.checkout / "vendored"
        (copy / "cmake").mkdir(parents=True)
        shutil.copy(SOURCE / "cmake" / "commit.cmake", copy / "cmake")
        self.assertEqual(self.named(copy), "")

    def test_checkout_that_git_cannot_read(self):
        shutil.rmtree(self.checkout / ".git" / "objects")
        self.assertEqual(self.named(self.checkout), "")


if __name__ == "__main__":
    unittest.main(argv=[__file__])
