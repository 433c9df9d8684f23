#!/usr/bin/env python3
"""Names and files that change while a run is held in its middle: what is read, what is written, and
what a run has beside that. Either the results are those of an undisturbed run, or a sentence names
the file, the exit code is not 0, and nothing wrong has a final name.

usage: test_names.py ASSAY SOURCE_DIR
"""
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import shards
from documents import without_run
from program import ASSAY, F16, HANG_S, Q4, TEXT, last_of_each, run, small_pipe

WINDOWS = ["-f", "t.txt", "-c", "32", "--chunks", "16"]
SMALL = ["-t", "1", "-b", "32", "-q"]
OUTPUTS = ["--json", "r.json", "--per-token", "r.tsv"]
# Commands with what they read; of each, the files that stay mapped during the run.
COMMANDS = {
    "perplexity": (["perplexity", "-m", "q4.gguf", *WINDOWS, *OUTPUTS], ["q4.gguf"]),
    "split": (["perplexity", "-m", "s-00001-of-00002.gguf", *WINDOWS, *OUTPUTS],
              ["s-00001-of-00002.gguf", "s-00002-of-00002.gguf"]),
    "record": (["record", "-m", "q4.gguf", *WINDOWS, "-o", "r.base", "--json", "r.json"], ["q4.gguf"]),
    "record logits": (["record", "-m", "q4.gguf", *WINDOWS, "-o", "r.base", "--format", "logits"],
                      ["q4.gguf"]),
    "kld": (["kld", "-m", "q4.gguf", "--base", "f16.gguf", *WINDOWS, *OUTPUTS],
            ["q4.gguf", "f16.gguf"]),
    "kld compact": (["kld", "-m", "q4.gguf", "--base", "compact", *OUTPUTS], ["q4.gguf", "compact"]),
    "kld thin": (["kld", "-m", "q4.gguf", "--base", "thin", *OUTPUTS],
                 ["q4.gguf", "thin", "f16.gguf"]),
    "kld logits": (["kld", "-m", "q4.gguf", "--base", "logits", *OUTPUTS], ["q4.gguf", "logits"]),
    "tasks": (["perplexity", "--multiple-choice", "-m", "q4.gguf", "-f", "tasks.jsonl", "--json",
               "r.json", "--per-task", "r.tsv"], ["q4.gguf"]),
    "score": (["score", "requests.jsonl", "-m", "q4.gguf", "--json", "r.json"], ["q4.gguf"]),
}
TASK = {"question": "What is it that is asked here", "choices": ["a text", "a model"], "answer": 1}
REQUEST = {"context": "A model is", "continuation": " a few hundred matrices"}
N_OF_EACH = 60
ROOM = {"kld": 300, "score": 100}  # bytes of a pipe for the first unit; 60 where no other is named
HEAD = 150  # more than what kld prints before it


def split_model(folder):
    """The bundled model in two parts."""
    n = len(shards.contents(Q4)[2])
    for i, part in enumerate(shards.split(Q4, [20, n - 20])):
        (folder / shards.part_name("s", i, 2)).write_bytes(part)


# What others do to a file. The first two change its bytes.

def overwrite(path):
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(os.urandom(65536))


def overwrite_and_restore_time(path):
    before = path.stat()
    overwrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def append(path):
    with open(path, "ab") as file:
        file.write(b"more")


def remove(path):
    path.unlink()


def rename(path):
    path.rename(path.with_name("moved"))


def replace(path):
    other = path.with_name("other")
    other.write_bytes(b"something else")
    other.rename(path)


def link(path):
    os.link(path, path.with_name("link"))


def permit(path):
    path.chmod(0o600)


CHANGES = [overwrite, overwrite_and_restore_time, append]
HARMLESS = [remove, rename, replace, link, permit]


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="assay-names-")
        cls.addClassCleanup(holder.cleanup)
        cls.inputs = pathlib.Path(holder.name)
        shutil.copy(Q4, cls.inputs / "q4.gguf")
        shutil.copy(F16, cls.inputs / "f16.gguf")
        split_model(cls.inputs)
        (cls.inputs / "t.txt").write_bytes(TEXT.read_bytes())
        (cls.inputs / "tasks.jsonl").write_text((json.dumps(TASK) + "\n") * N_OF_EACH)
        (cls.inputs / "requests.jsonl").write_text((json.dumps(REQUEST) + "\n") * N_OF_EACH)
        for name, more in (("compact", []), ("thin", ["--head-by-path"]),
                           ("logits", ["--format", "logits"])):
            made = run("record", "-m", "f16.gguf", *WINDOWS, "-o", name, *more, cwd=cls.inputs)
            assert made.returncode == 0, made.stderr

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="assay-names-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.fill()

    def fill(self):
        """The inputs as they were, and nothing else."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for path in self.inputs.iterdir():
            shutil.copy(path, self.folder)
        # The head is where the base says, in the folder of the inputs: here by its new place.
        thin = (self.folder / "thin").read_bytes()
        old, new = (bytes(folder / "f16.gguf") for folder in (self.inputs.resolve(), self.folder))
        self.assertEqual(len(old), len(new))
        self.reseal(thin, old, new)

    def reseal(self, thin, old, new):
        thin = bytearray(thin.replace(old, new))
        thin[112 + 3 * 32:112 + 4 * 32] = hashlib.sha256(new).digest()
        thin[480:512] = hashlib.sha256(thin[:480]).digest()
        (self.folder / "thin").write_bytes(thin)

    def words(self, words):
        return [ASSAY, *map(str, last_of_each([*words, *SMALL]))]

    def undisturbed(self, words):
        self.fill()
        result = subprocess.run(self.words(words), cwd=self.folder, capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.results(result.stdout)

    def results(self, out):
        found = {"stdout": re.sub(rb"(?m)^.*tokens/s.*\n", b"", out)}
        for path in self.folder.glob("r.*"):
            document = path.suffix == ".json"
            found[path.name] = without_run(json.loads(path.read_bytes())) if document \
                else path.read_bytes()
        return found

    def held(self, words, change):
        """
        (exit code, standard output, standard error) of a run for which `change` is called when the
        first unit is printed. It cannot end before that: standard output is a pipe that has room
        for little more.
        """
        room = ROOM.get(words[0], 60)
        reading, writing = small_pipe(room)
        filled = 4096 - room
        process = subprocess.Popen(self.words(words), cwd=self.folder, stdout=writing,
                                   stderr=subprocess.PIPE)
        os.close(writing)
        deadline = time.monotonic() + HANG_S
        waiting = 0
        wanted = filled + (HEAD if words[0] == "kld" else 1)
        while waiting < wanted and process.poll() is None and time.monotonic() < deadline:
            waiting = struct.unpack("i", fcntl.ioctl(reading, termios.FIONREAD, b"\0" * 4))[0]
            time.sleep(0.002)
        self.addCleanup(process.kill)
        if waiting < wanted:
            self.fail(f"no results, and nothing was changed: {process.poll()}")
        change()
        with os.fdopen(reading, "rb") as stream:
            out = stream.read()[filled:]
        err = process.stderr.read().decode("utf-8", "replace")
        process.stderr.close()
        return process.wait(timeout=HANG_S), out, err

    def assert_refused(self, outcome, code, sentence):
        found, _out, err = outcome
        self.assertEqual(found, code, err)
        self.assertRegex(err.splitlines()[-1], sentence)

    def names(self):
        return {path.name for path in self.folder.iterdir()} - set(os.listdir(self.inputs))


class Read(Names):
    """What is read."""

    def mapped(self, words):
        """Every file of the folder that a run has mapped or open for reading, in its middle."""
        found = set()

        def look():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if os.readlink(f"/proc/{pid}/cwd") != str(self.folder):
                        continue
                    found.update(re.findall(rf"(?m)^\S+ r--s .* {self.folder}/(\S+)$",
                                            pathlib.Path(f"/proc/{pid}/maps").read_text()))
                except OSError:
                    continue
        code, _out, err = self.held(words, look)
        self.assertEqual(code, 0, err)
        return found

    def test_the_list_is_whole(self):
        for name, (words, inputs) in COMMANDS.items():
            with self.subTest(command=name):
                self.fill()
                self.assertEqual(self.mapped(words), set(inputs))

    def test_changed_in_place(self):
        """The run ends with a sentence, and the journal has no unit that is wrong."""
        for name, (words, inputs) in COMMANDS.items():
            expected = self.undisturbed(words)
            for path in inputs:
                for change in CHANGES if name == "perplexity" else CHANGES[:1]:
                    with self.subTest(command=name, path=path, change=change.__name__):
                        self.check_changed(words, path, change, expected)

    def check_changed(self, words, name, change, expected):
        self.fill()
        path = self.folder / name
        before = path.read_bytes()
        outcome = self.held([*words, "--state", "s"], lambda: change(path))
        self.assert_refused(outcome, 1, rf"^assay: \S*{name}: changed while it was read: ")
        self.assertNotRegex(outcome[1], rb"Final|Mean")
        self.assertEqual(self.names() - {"s", "r.base.part"}, set())
        if change != overwrite:
            return
        path.write_bytes(before)
        aloud = [word for word in self.words([*words, "--state", "s"]) if word != "-q"]
        again = subprocess.run(aloud, cwd=self.folder, capture_output=True)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn(b" finished before", again.stderr)
        self.assertEqual(self.results(again.stdout), expected)

    def test_names_that_changed(self):
        """What is mapped stays mapped: nothing happens to the results."""
        for name in ("perplexity", "kld thin"):
            words, inputs = COMMANDS[name]
            expected = self.undisturbed(words)
            for path in inputs:
                for change in HARMLESS:
                    with self.subTest(command=name, path=path, change=change.__name__):
                        self.fill()
                        code, out, err = self.held(words, lambda: change(self.folder / path))
                        self.assertEqual(code, 0, err)
                        self.assertEqual(self.results(out), expected)

    def test_read_at_once(self):
        """Texts, tasks and requests may change as soon as the run has begun."""
        for name, path in (("perplexity", "t.txt"), ("tasks", "tasks.jsonl"),
                           ("score", "requests.jsonl")):
            words = COMMANDS[name][0]
            expected = self.undisturbed(words)
            for change in [overwrite, *HARMLESS]:
                with self.subTest(path=path, change=change.__name__):
                    self.fill()
                    code, out, err = self.held(words, lambda: change(self.folder / path))
                    self.assertEqual((code, self.results(out)), (0, expected), err)

    def test_before_the_first_result(self):
        """The model changes while the text is still being read."""
        for words in (["perplexity", "-c", "32", "--json", "r.json"], ["tokenize"],
                      ["record", "-c", "32", "-o", "r.base"]):
            with self.subTest(words=words):
                self.fill()
                process = subprocess.Popen(
                    [ASSAY, *words, "-m", "q4.gguf", "-f", "fifo"], cwd=self.folder,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) \
                    if os.mkfifo(self.folder / "fifo") is None else None
                with open(self.folder / "fifo", "w") as fifo:  # it has been opened to be read
                    overwrite(self.folder / "q4.gguf")
                    fifo.write(TEXT.read_text()[:4000])
                _out, err = process.communicate(timeout=HANG_S)
                self.assertEqual(process.returncode, 1, err)
                self.assertIn("assay: q4.gguf: changed while it was read: ", err)
                self.assertEqual(self.names(), {"fifo"})

    def test_check(self):
        """It prints nothing before its end: stopped when its journal has an entry."""
        for path in ("f16.gguf", "logits"):
            self.fill()
            process = subprocess.Popen(
                self.words(["check", "-m", "f16.gguf", "--kl-divergence-base", "logits", "--state",
                            "s", "--isa", "scalar"]), cwd=self.folder, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
            journal, n_head = self.folder / "s", 0
            while process.poll() is None and not (n_head and journal.stat().st_size > n_head):
                if journal.exists() and not n_head:
                    head = journal.read_bytes()[:16]
                    n_head = 16 + struct.unpack("<I", head[12:])[0] + 64 if len(head) == 16 else 0
            overwrite(self.folder / path)
            _out, err = process.communicate(timeout=HANG_S)
            self.assertEqual(process.returncode, 1, err)
            self.assertIn(f"assay: {path}: changed while it was read: ", err)


class Written(Names):
    """What is written, and its temporary names."""
    FOREIGN = b"somebody else's file\n"
    RECORD, LOGITS, PERPLEXITY = (COMMANDS[name][0] for name in ("record", "record logits",
                                                                 "perplexity"))

    def put(self, name):
        (self.folder / name).write_bytes(self.FOREIGN)

    def assert_foreign(self, name):
        self.assertEqual((self.folder / name).read_bytes(), self.FOREIGN)

    def test_recording_appears(self):
        for words in (self.RECORD, self.LOGITS):
            expected = self.undisturbed(words)["r.base"]
            self.fill()
            outcome = self.held(words, lambda: self.put("r.base"))
            self.assert_refused(outcome, 2, r"^assay: r\.base: was made by something else "
                                            r"meanwhile, .* is whole, in r\.base\.part: rename it$")
            self.assert_foreign("r.base")
            self.assertEqual((self.folder / "r.base.part").read_bytes(), expected)
            for before in (False, True):  # with --force whatever is there is replaced
                self.fill()
                if before:
                    self.put("r.base")
                change = remove if before else lambda _path: self.put("r.base")
                code, _, err = self.held([*words, "--force"], lambda: change(self.folder / "r.base"))
                self.assertEqual(code, 0, err)
                self.assertEqual((self.folder / "r.base").read_bytes(), expected)

    def test_output_appears(self):
        """It is not replaced, and what was computed is not lost."""
        expected = self.undisturbed(self.PERPLEXITY)
        for name in ("r.json", "r.tsv"):
            for make in (self.put, lambda name: os.symlink("q4.gguf", self.folder / name)):
                self.fill()
                outcome = self.held(self.PERPLEXITY, lambda: make(name))
                self.assert_refused(outcome, 2, rf"^assay: {name}: was made by something else "
                                                r"meanwhile, .* this output is in \S+\.tmp$")
                kept = outcome[2].splitlines()[-1].rpartition(" ")[2]
                kept = (self.folder / kept).read_bytes()
                kept = without_run(json.loads(kept)) if name == "r.json" else kept
                self.assertEqual(kept, expected[name])
                self.assertEqual((self.folder / "q4.gguf").read_bytes(), Q4.read_bytes())
                if make == self.put:
                    self.assert_foreign(name)

    def test_output_that_was_there(self):
        """It is replaced, whatever becomes of its name; what a new link leads to is not."""
        expected = self.undisturbed(self.PERPLEXITY)
        def relink(path):
            path.unlink()
            path.symlink_to("q4.gguf")
        for change in (remove, replace, relink):
            self.fill()
            self.put("r.json")
            code, out, err = self.held([*self.PERPLEXITY, "--force"],
                                       lambda: change(self.folder / "r.json"))
            self.assertEqual((code, self.results(out)), (0, expected), err)
            self.assertEqual((self.folder / "q4.gguf").read_bytes(), Q4.read_bytes())

    def test_part_that_is_not_ours(self):
        """Left as it is, whatever it is; with --force, too."""
        part = self.folder / "r.base.part"
        makers = {
            "a file": lambda: self.put(part.name),
            "the model, by another name": lambda: os.link(self.folder / "q4.gguf", part),
            "the text, by another name": lambda: os.link(self.folder / "t.txt", part),
            "a base, by another name": lambda: os.link(self.folder / "compact", part),
            "a link to the model": lambda: part.symlink_to("q4.gguf"),
            "a link to nothing": lambda: part.symlink_to("nothing"),
            "a pipe": lambda: os.mkfifo(part),
            "a folder": lambda: part.mkdir(),
        }
        for what, make in makers.items():
            for more in ([], ["--force"], ["--state", "s"]):
                with self.subTest(what=what, more=more):
                    self.fill()
                    make()
                    before = os.lstat(part)
                    result = run(*self.words([*self.RECORD, *more])[1:], cwd=self.folder)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertRegex(result.stderr.splitlines()[-1], r"r\.base\.part")
                    after = os.lstat(part)
                    self.assertEqual((before.st_ino, before.st_size, before.st_mode),
                                     (after.st_ino, after.st_size, after.st_mode))
                    self.assertEqual(self.names() - {"s"}, {"r.base.part"})
                    for name in ("q4.gguf", "t.txt", "compact"):
                        self.assertEqual((self.folder / name).read_bytes(),
                                         (self.inputs / name).read_bytes())

    def test_part_loses_its_name(self):
        def swap(part):
            part.rename(part.with_name("moved"))
            part.write_bytes(self.FOREIGN)
        for words in (self.RECORD, self.LOGITS):
            for change in (remove, rename, swap):
                with self.subTest(words=words, change=change.__name__):
                    self.fill()
                    part = self.folder / "r.base.part"
                    self.assert_refused(self.held(words, lambda: change(part)), 2,
                                        r"r\.base\.part: was removed or renamed while it was written")
                    self.assertFalse((self.folder / "r.base").exists())
                    if change == swap:
                        self.assert_foreign("r.base.part")

    def test_part_of_another_size(self):
        """Bytes after it are cut off; bytes that were cut off are missed."""
        for words in (self.RECORD, self.LOGITS):
            expected = self.undisturbed(words)["r.base"]
            for more in ([], ["--state", "s"]):
                self.fill()

                def grow():
                    with open(self.folder / "r.base.part", "ab") as file:
                        file.truncate(len(expected) + 1000)
                code, _out, err = self.held([*words, *more], grow)
                self.assertEqual(code, 0, err)
                self.assertEqual((self.folder / "r.base").read_bytes(), expected)
                self.fill()
                outcome = self.held([*words, *more], lambda: os.truncate(
                    self.folder / "r.base.part", 100))
                self.assert_refused(outcome, 2, r"r\.base\.part: has 100 bytes where \d+ were written")
                self.assertFalse((self.folder / "r.base").exists())

    def test_whole_file_of_another_size(self):
        """Killed after the commit, and something appended: it is recorded again."""
        words = [*self.RECORD, "--state", "s"]
        self.assertEqual(self.held(words, lambda: None)[0], 0)
        expected = (self.folder / "r.base").read_bytes()
        append(self.folder / "r.base")
        result = run(*self.words(words)[1:], cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.folder / "r.base").read_bytes(), expected)

    def test_recording_through_a_dangling_link(self):
        for words in (self.RECORD, self.LOGITS):
            expected = self.undisturbed(words)["r.base"]
            self.fill()
            (self.folder / "sub").mkdir()
            (self.folder / "r.base").symlink_to("sub/real")
            code, _out, err = self.held(words, lambda: self.assertTrue(
                (self.folder / "sub" / "real.part").exists()))
            self.assertEqual(code, 0, err)
            self.assertTrue((self.folder / "r.base").is_symlink())
            self.assertEqual((self.folder / "sub" / "real").read_bytes(), expected)
            (self.folder / "r.base").unlink()
            (self.folder / "r.base").symlink_to("r.base")
            result = run(*self.words(words)[1:], cwd=self.folder)
            self.assertEqual(result.returncode, 2)
            self.assertIn("r.base: cannot be written: Too many levels", result.stderr)

    def test_journal_loses_its_name(self):
        """A run that could not be continued does not pretend that it can."""
        for change in (remove, rename, replace):
            self.fill()
            outcome = self.held([*self.PERPLEXITY, "--state", "s"], lambda: change(self.folder / "s"))
            self.assert_refused(outcome, 2, r"^assay: s: the journal was removed or renamed")
            self.assertEqual(self.names() & {"r.json", "r.tsv"}, set())

    def test_journal_that_others_append_to(self):
        words = [*self.PERPLEXITY, "--state", "s"]
        expected = self.undisturbed(self.PERPLEXITY)
        self.fill()
        code, out, err = self.held(words, lambda: append(self.folder / "s"))
        self.assertEqual((code, self.results(out)), (0, expected), err)
        again = run(*self.words(words)[1:], cwd=self.folder)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.results(again.stdout.encode()), expected)

    def test_names_that_would_be_one(self):
        """An output whose name a recording needs on its way."""
        for words in ([*self.RECORD, "--json", "r.base.part"],
                      [*self.RECORD, "--state", "r.base.part"]):
            result = run(*self.words(words)[1:], cwd=self.folder)
            self.assertEqual(result.returncode, 2)
            self.assertIn("are the same file", result.stderr)
            self.assertEqual(self.names(), set())


if __name__ == "__main__":
    unittest.main(argv=[__file__, *sys.argv[3:]])
