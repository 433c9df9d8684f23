#!/usr/bin/env python3
"""What a process inherits, against commands: little address space, a small stack, one
allowed thread. Each run ends in time, and says in a sentence what it could not do.

usage: test_inherited.py ASSAY SOURCE_DIR
"""
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

from program import ASSAY, Q4, SOURCE

OTHER_USER = 54321  # who has no other processes: limits of threads do not bind root
SECONDS = 20        # the longest takes a tenth of one
SANITIZED = any(name in pathlib.Path(ASSAY).read_bytes() for name in (b"__asan_init", b"__tsan_init"))


def limit(what, value):
    resource.setrlimit(what, (value, value))


# Name, what the child does before it becomes the program, the user who runs it (None: this one).
ENVIRONMENTS = [
    ("as usual", lambda: None, None),
    ("190 MB of address space", lambda: limit(resource.RLIMIT_AS, 190000 << 10), None),
    ("60 MB of address space", lambda: limit(resource.RLIMIT_AS, 60000 << 10), None),
    ("64 KB of stack", lambda: limit(resource.RLIMIT_STACK, 64 << 10), None),
    ("one allowed thread", lambda: limit(resource.RLIMIT_NPROC, 1),
     OTHER_USER if os.getuid() == 0 else None),
]
EVALUATION = ["perplexity", "-m", "model.gguf", "-f", "text.txt", "-c", "32", "--chunks", "2"]
WORST = ["kld", *EVALUATION[1:], "--base", "model.gguf", "--worst", "5", "-t", "2"]
NO_THREAD = r"the system refused thread 2 of 2: .+"
NO_SPACE = r"OpenBLAS (cannot be loaded: .+|needs \d+ MiB of address space for \d threads?, .+)"
NO_OPENBLAS = r"OpenBLAS cannot be loaded: libopenblas.*"
# Words, and for each environment the error that may come instead of exit code 0.
COMMANDS = [
    (["version"], {}),
    (["--help"], {}),
    (["info", "model.gguf"], {}),
    (["tokenize", "-m", "model.gguf", "-f", "text.txt"], {}),
    ([*EVALUATION, "-t", "1"], {}),
    ([*EVALUATION, "-t", "2"], {"one allowed thread": NO_THREAD, "60 MB of address space": NO_THREAD}),
    (WORST, {"one allowed thread": NO_THREAD, "60 MB of address space": NO_THREAD}),
    ([*EVALUATION, "-t", "1", "--gemm", "openblas"],
     {"as usual": NO_OPENBLAS, "64 KB of stack": NO_OPENBLAS, "190 MB of address space": NO_SPACE,
      "60 MB of address space": NO_SPACE, "one allowed thread": NO_OPENBLAS}),
    ([*EVALUATION, "-t", "2", "--gemm", "openblas"],
     {"as usual": NO_OPENBLAS, "64 KB of stack": NO_OPENBLAS, "190 MB of address space": NO_SPACE,
      "60 MB of address space": f"{NO_SPACE}|{NO_THREAD}", "one allowed thread": NO_THREAD}),
]


class Inherited(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="assay-inherited-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        os.chmod(self.folder, 0o777)
        # Where others cannot follow the paths to them, they can still run the copies.
        shutil.copy(ASSAY, self.folder / "assay")
        shutil.copy(Q4, self.folder / "model.gguf")
        shutil.copy(SOURCE / "docs" / "handbook.md", self.folder / "text.txt")

    def run_in(self, environment, words):
        _, prepare, user = environment
        process = subprocess.Popen(["./assay", *words], cwd=self.folder, text=True, user=user,
                                   preexec_fn=prepare, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            return process, *process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.fail(f"did not end within {SECONDS} s")

    def test_table(self):
        for environment in ENVIRONMENTS:
            name = environment[0]
            if SANITIZED and any(word in name for word in ("address space", "stack", "thread")):
                continue  # a sanitizer has terabytes, larger frames, and a thread of its own
            for words, errors in COMMANDS:
                with self.subTest(environment=name, command=words):
                    process, out, err = self.run_in(environment, words)
                    if process.returncode == 0 and (name == "as usual" or out):
                        continue
                    self.assertIn(process.returncode, (1, 2, 3), err)
                    self.assertIn(name, errors, err)
                    self.assertRegex(err, rf"(?m)^assay: ({errors[name]})$")


if __name__ == "__main__":
    unittest.main(argv=[__file__])
