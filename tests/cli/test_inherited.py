#!/usr/bin/env python3
"""What a process inherits, against commands: closed descriptors, ignored signals, little address
space, a small stack, one thread, few descriptors, small files, no /proc, a working folder that is
gone. Each run ends in time, by an exit code, and says in a sentence what it could not do; files
that have their final name are whole.

usage: test_inherited.py ASSAY SOURCE_DIR
"""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

from program import ASSAY, HANG_S, Q4, SOURCE, TEXT, is_sanitized

# Who has no other processes, also where two of these tests run: limits of threads do not bind root.
OTHER_USER = 20000 + os.getpid() % 40000


def limit(what, value):
    resource.setrlimit(what, (value, value))


def close(*numbers):
    for number in numbers:
        os.close(number)


def ignore():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)


def remove_folder():
    """The working folder, which the program's files are then not in: all are named in full."""
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir(os.getcwd())


# Name, what the child does before it becomes the program, the user who runs it (None: this one).
ENVIRONMENTS = [
    ("as usual", lambda: None, None),
    ("190 MB of address space", lambda: limit(resource.RLIMIT_AS, 190000 << 10), None),
    ("60 MB of address space", lambda: limit(resource.RLIMIT_AS, 60000 << 10), None),
    ("64 KB of stack", lambda: limit(resource.RLIMIT_STACK, 64 << 10), None),
    ("one allowed thread", lambda: limit(resource.RLIMIT_NPROC, 1),
     OTHER_USER if os.getuid() == 0 else None),
    ("no standard input", lambda: close(0), None),
    ("no standard output", lambda: close(1), None),
    ("no standard error", lambda: close(2), None),
    ("no descriptors", lambda: close(0, 1, 2), None),
    ("ignored signals", ignore, None),
    ("12 descriptors", lambda: limit(resource.RLIMIT_NOFILE, 12), None),
    ("4 descriptors", lambda: limit(resource.RLIMIT_NOFILE, 4), None),
    ("files of 1 KB", lambda: limit(resource.RLIMIT_FSIZE, 1 << 10), None),
    ("no core, no locked memory", lambda: limit(resource.RLIMIT_MEMLOCK, 0), None),
    ("no working folder", remove_folder, None),
    ("no /proc", None, None),
]
EVALUATION = ["perplexity", "-m", "MODEL", "-f", "TEXT", "-c", "32", "--chunks", "2"]
OUTPUTS = ["--json", "r.json", "--per-token", "t.tsv", "--state", "s.state"]
TASKS = ["perplexity", "-m", "MODEL", "--hellaswag", "--hellaswag-tasks", "2", "-f", "TASKS"]
NO_THREAD = r"the system refused thread 2 of 2: .+"
NO_SPACE = r"OpenBLAS (cannot be loaded: .+|needs \d+ MiB of address space for \d threads?, .+)"
NO_OPENBLAS = r"OpenBLAS cannot be loaded: libopenblas.*"
THREADS = {"one allowed thread": NO_THREAD, "60 MB of address space": NO_THREAD}
# Words, and for each environment the error that may come instead of exit code 0.
COMMANDS = [
    (["version"], {}),
    (["--help"], {}),
    (["info", "MODEL"], {}),
    (["info", "--json", "MODEL"], {}),
    (["dump", "MODEL", "--tensor", "output_norm.weight", "-o", "d.npy"], {}),
    (["tokenize", "-m", "MODEL", "-f", "TEXT"], {}),
    ([*EVALUATION, "-t", "1"], {}),
    ([*EVALUATION, "-t", "1", *OUTPUTS], {}),
    ([*EVALUATION, "-t", "2"], THREADS),
    (["kld", *EVALUATION[1:], "--base", "MODEL", "--worst", "5", "-t", "2", "--json", "r.json"],
     THREADS),
    (["kld", "-m", "MODEL", "--base", "COMPACT", "--worst", "5", "-t", "2"], THREADS),
    (["kld", "-m", "MODEL", "--base", "LOGITS", "--worst", "5", "-t", "2"], THREADS),
    (["check", "-m", "MODEL", "--base", "LOGITS", "--worst", "5", "-t", "2"], THREADS),
    (["record", *EVALUATION[1:], "-t", "1", "-o", "b.assay"], {}),
    ([*EVALUATION, "-t", "1", "--kl-divergence-base", "b.logits"], {}),
    ([*TASKS, "-t", "2", "--json", "r.json"], THREADS),
    (["score", "-m", "MODEL", "REQUESTS", "-t", "1", "-o", "o.jsonl"], {}),
    (["table", "RESULT"], {}),
    (["compare", "RESULT", "RESULT"], {}),
    ([*EVALUATION, "-t", "1", "--gemm", "openblas"],
     {"190 MB of address space": NO_SPACE, "60 MB of address space": NO_SPACE, None: NO_OPENBLAS}),
    ([*EVALUATION, "-t", "2", "--gemm", "openblas"],
     {"190 MB of address space": NO_SPACE, "60 MB of address space": f"{NO_SPACE}|{NO_THREAD}",
      "one allowed thread": NO_THREAD, None: NO_OPENBLAS}),
]
# What any command may say there. None: it ends with this code and cannot say anything.
ANYWHERE = {
    "4 descriptors": r".*(Too many open files|is not readable|cannot be).*",
    "files of 1 KB": r".*File too large.*",
    "no standard output": r"standard output: (writing failed|cannot be written): Bad file descriptor",
    "no descriptors": None,
    "no working folder": r".*(No such file or directory|working folder).*",
}


class Inherited(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="assay-inherited-")
        cls.addClassCleanup(holder.cleanup)
        cls.inputs = pathlib.Path(holder.name)
        os.chmod(cls.inputs, 0o755)
        # Where others cannot follow the paths to them, they can still run the copies.
        cls.assay = shutil.copy(ASSAY, cls.inputs / "assay")
        cls.names = {"MODEL": Q4, "TEXT": TEXT,
                     "TASKS": SOURCE / "tests" / "data" / "tasks" / "hellaswag.txt"}
        cls.names = {name: shutil.copy(path, cls.inputs / name) for name, path in cls.names.items()}
        for name in ("COMPACT", "LOGITS", "RESULT", "REQUESTS"):
            cls.names[name] = cls.inputs / name
        cls.names["REQUESTS"].write_text('{"text": "In the town there was a river"}\n')
        for words in (["record", *EVALUATION[1:], "-o", "COMPACT", "--json", "RESULT"],
                      [*EVALUATION, "--kl-divergence-base", "LOGITS"]):
            subprocess.run(cls.command(words), check=True, capture_output=True)

    @classmethod
    def command(cls, words):
        return [cls.assay, *(str(cls.names.get(word, word)) for word in words)]

    def run_in(self, environment, words, folder):
        """Exit code (negative: a signal), and what it said; None for closed streams."""
        _, prepare, user = environment
        command = self.command(words)
        if prepare is None:
            command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh",
                       *command]
        process = subprocess.Popen(command, cwd=folder, text=True, user=user, preexec_fn=prepare,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        try:
            return process, *process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.fail(f"did not end within {HANG_S} s")

    def check_files(self, folder, complete):
        """What has its final name is whole; and after a failure there is nothing else."""
        for path in folder.iterdir():
            if path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".jsonl":
                self.assertEqual([sorted(json.loads(line)) for line in path.read_text().splitlines()],
                                 [["is_greedy", "logprob", "tokens"]])
            elif path.suffix == ".tsv":
                self.assertEqual(len(path.read_text().splitlines()), 1 + 2 * 15)
            elif path.suffix == ".npy":
                self.assertEqual(path.stat().st_size, 128 + 4 * 256)
            elif path.suffix in (".assay", ".logits"):
                read = subprocess.run(self.command(["kld", "-m", "MODEL", "--base", path]),
                                      capture_output=True, text=True)
                self.assertEqual(read.returncode, 0, read.stderr)
            elif path.suffix == ".state":
                again = subprocess.run(self.command([*EVALUATION, "--state", path]),
                                       capture_output=True, text=True)
                self.assertEqual(again.returncode, 0, again.stderr)
            else:
                self.assertFalse(complete, path)

    def check_run(self, environment, words, errors):
        name = environment[0]
        with tempfile.TemporaryDirectory(prefix="assay-inherited-") as holder:
            folder = pathlib.Path(holder)
            os.chmod(folder, 0o777)
            process, out, err = self.run_in(environment, words, folder)
            code = process.returncode
            self.assertGreaterEqual(code, 0, f"ended by a signal: {err}")
            self.check_files(folder, code == 0)
        if code == 0:
            self.assertTrue(out or name in ("no standard output", "no descriptors")
                            or "-o" in words, err)
            return
        self.assertIn(code, (1, 2, 3), err)
        allowed = [errors.get(name), errors.get(None), ANYWHERE.get(name)]
        if name in ("no descriptors", "no standard error"):
            self.assertEqual(err, "")
            return
        self.assertTrue(any(e and re.search(rf"(?m)^assay: ({e})$", err) for e in allowed), err)

    def test_table(self):
        for environment in ENVIRONMENTS:
            name = environment[0]
            if is_sanitized() and any(word in name for word in ("address space", "stack", "thread", "proc")):
                continue  # a sanitizer has terabytes, larger frames, and a thread of its own
            if environment[1] is None and subprocess.run(
                    ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/proc"],
                    capture_output=True).returncode != 0:
                print("no rights to hide /proc")
                continue
            for words, errors in COMMANDS:
                with self.subTest(environment=name, command=words):
                    self.check_run(environment, words, errors)


if __name__ == "__main__":
    unittest.main(argv=[__file__])
