#!/usr/bin/env python3
"""Every option that writes, against what may be there: docs/files.md. WRITES has a row for each;
the last test compares it with what the commands' help names."""
import os
import pathlib
import re
import shutil
import tempfile
import threading
import unittest

from program import F16, HANG_S, Q4, SOURCE, TEXT, run

WINDOWS = ["-f", "t.txt", "-c", "16", "--chunks", "2", "-q"]
ONE = ["-m", "m.gguf", *WINDOWS]
TWO = ["--base", "f16.gguf", "-m", "m.gguf", *WINDOWS]
SWEEP = ["sweep", "--base", "f16.gguf", "--from", "m.gguf", *WINDOWS, "--group", "output"]
TASKS = ["perplexity", "--hellaswag", "--hellaswag-tasks", "2", "-m", "m.gguf", "-f", "tasks.jsonl",
         "-q"]
CHECK = ["check", "-m", "m.gguf", "--kl-divergence-base", "rows.kld", "-q"]
RECIPE = ["recipe", "sweep.json", "--bpw", "15"]

DOCUMENT, TABLE, PAGE, CHART = "a document (assay-{})", "a table of {}", "a page of assay report", "a chart of assay"
JOURNAL, MATRIX = "a journal of assay", "an importance matrix"
TYPES = "a list of types for {}"

# Words, the option that names the file, and what is written.
WRITES = [
    (["perplexity", *ONE], "--json", DOCUMENT.format("perplexity")),
    (["perplexity", *ONE], "--per-token", TABLE.format("tokens")),
    (["perplexity", *ONE], "--state", JOURNAL),
    (["perplexity", *ONE], "--kl-divergence-base", "a base-logits file"),
    (TASKS, "--json", DOCUMENT.format("tasks")),
    (TASKS, "--per-task", TABLE.format("choice tasks")),
    (["record", *ONE], "-o", "a recording of assay record"),
    (["record", *ONE, "--format", "logits"], "-o", "a base-logits file"),
    (["kld", *TWO], "--json", DOCUMENT.format("kld")),
    (["kld", *TWO], "--per-token", TABLE.format("tokens")),
    (["best", *TWO], "--json", DOCUMENT.format("best")),
    (["best", *TWO], "--report", PAGE),
    (["explain", *TWO], "--json", DOCUMENT.format("explain")),
    (SWEEP, "--json", DOCUMENT.format("sweep")),
    (SWEEP, "--tsv", TABLE.format("a sweep")),
    (SWEEP, "--heatmap", CHART),
    (CHECK, "--json", DOCUMENT.format("check")),
    (CHECK, "--per-token", TABLE.format("tokens")),
    (["score", "requests.jsonl", "-m", "m.gguf", "-q"], "-o", "scores of assay score"),
    (["score", "requests.jsonl", "-m", "m.gguf", "-q", "-o", "/dev/null"], "--json",
     DOCUMENT.format("score")),
    (["imatrix", *ONE], "-o", MATRIX),
    (["imatrix", *ONE, "--output-format", "dat"], "-o", "an importance matrix in the older format"),
    (["imatrix", *ONE, "-o", "/dev/null"], "--json", DOCUMENT.format("imatrix")),
    (["imatrix", *ONE, "-o", "/dev/null"], "--state", JOURNAL),
    (["merge", "part.journal", "--chunks", "2"], "-o", JOURNAL),
    (["merge", "part.imatrix.gguf"], "-o", MATRIX),
    (["compare", "kld.json", "kld.json"], "--json", DOCUMENT.format("compare")),
    (["compare", "part.imatrix.gguf", "part.imatrix.gguf"], "--json",
     DOCUMENT.format("imatrix-compare")),
    (["card", "kld.json"], "-o", "a card of assay card"),
    (["card", "kld.json", "-o", "/dev/null"], "--svg", CHART),
    (["report", "kld.json"], "-o", PAGE),
    (RECIPE, "--json", DOCUMENT.format("recipe")),
    (RECIPE, "--tensor-types", TYPES.format("llama-quantize")),
    (RECIPE, "--tool-suite", TYPES.format("GGUF-Tool-Suite")),
    (["mix", "recipe.json", "-q"], "-o", "a GGUF model that assay mix wrote"),
    (["dump", "m.gguf", "--tensor", "output_norm.weight"], "-o", "a NumPy array"),
    (["trace", "-m", "m.gguf", "-p", "a text", "--tensor", "result_norm"], "-o",
     "a file of NumPy arrays"),
]

# Options of other commands that write, and where they are tested.
ELSEWHERE = {
    ("plan", "--json"): "below: its options stand before the command",
    ("draft", "--json"): "as trace -o: no bundled model has a block for further tokens",
}


def is_in_parts(words, option):
    """What is written under another name that tells who else writes it: no pipe will do."""
    return option in ("--state", "--kl-divergence-base") or words[0] in ("record", "mix")


class Written(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        inputs = tempfile.TemporaryDirectory(prefix="assay-written-")
        cls.addClassCleanup(inputs.cleanup)
        cls.inputs = pathlib.Path(inputs.name)
        shutil.copy(Q4, cls.inputs / "m.gguf")
        shutil.copy(F16, cls.inputs / "f16.gguf")
        text = TEXT.read_text()[:3000]
        (cls.inputs / "t.txt").write_text(text)
        shutil.copy(SOURCE / "tests" / "data" / "tasks" / "hellaswag.jsonl", cls.inputs / "tasks.jsonl")
        (cls.inputs / "requests.jsonl").write_text('{"context": "a", "continuation": " b"}\n')
        for words in (["perplexity", *ONE, "--kl-divergence-base", "rows.kld"],
                      ["perplexity", *ONE, "--state", "part.journal"],
                      ["kld", *TWO, "--json", "kld.json"], [*SWEEP, "--json", "sweep.json"],
                      ["imatrix", *ONE, "-o", "part.imatrix.gguf"],
                      [*RECIPE, "--json", "recipe.json"]):
            done = run(*words, cwd=cls.inputs)
            assert done.returncode == 0, done.stderr
        cls.before = cls.contents(cls.inputs)

    @staticmethod
    def contents(folder):
        return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}

    def tearDown(self):
        after = self.contents(self.inputs)
        self.assertEqual({name: after.get(name) for name in self.before}, self.before)

    def at(self, words, option):
        """For each row a folder of its own, with nothing at `out`."""
        folder = tempfile.TemporaryDirectory(prefix="assay-written-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.words, self.option = words, option
        return self.folder / "out"

    def write(self, path, *more):
        done = run(*self.words, self.option, path, *more, cwd=self.inputs, timeout=HANG_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(path.stat().st_size, 0)

    def refused(self, path, sentence, *more):
        """And nothing is written, nor left beside it."""
        before = sorted(os.listdir(self.folder)), self.contents(self.folder)
        done = run(*self.words, self.option, path, *more, cwd=self.inputs, timeout=HANG_S)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], sentence)
        self.assertEqual((sorted(os.listdir(self.folder)), self.contents(self.folder)), before)

    def each(self, test):
        for words, option, kind in WRITES:
            out = self.at(words, option)
            with self.subTest(command=words[0], option=option, kind=kind):
                test(out, kind)

    def test_its_own_kind(self):
        """A new file, by way of links, too; over an empty one, and over what it was."""
        def test(out, kind):
            real = self.folder / "real"
            out.symlink_to(real.name)
            self.write(out)
            self.assertTrue(out.is_symlink())
            only_new = self.option == "--kl-divergence-base"  # else who forgets --kl-divergence loses it
            if only_new:
                self.refused(out, "out: exists; --force replaces it")
            self.write(out, *(["--force"] if only_new else []))
            self.assertTrue(out.is_symlink() and not real.is_symlink())
            real.write_bytes(b"")
            self.write(out, *(["--force"] if only_new else []))
        self.each(test)

    def test_another_kind(self):
        """A model, a text, another program's JSON, other documents: by name and by a link."""
        others = {"a GGUF model": Q4.read_bytes(), "a text": b"notes of mine\n",
                  "JSON": b'{"model_type": "llama", "hidden_size": 8}\n',
                  "a document \\(assay-other\\)": b'{"schema": "assay-other", "x": 1}\n',
                  "a file that assay does not write": bytes(range(256)),
                  "an importance matrix": (self.inputs / "part.imatrix.gguf").read_bytes(),
                  "a document \\(assay-kld\\)": (self.inputs / "kld.json").read_bytes(),
                  "a journal of assay": (self.inputs / "part.journal").read_bytes()}
        def test(out, kind):
            real, last = self.folder / "real", b""
            for what, content in others.items():
                if what.replace("\\", "") == kind:
                    continue
                for path in (real, out):
                    real.write_bytes(last := content)
                    if path is out and not out.is_symlink():
                        out.symlink_to(real.name)
                    kept = self.option == "--state"
                    self.refused(path, "is not a journal of assay; it was left as it is" if kept else
                                 f"{path.name}: is {what}, expected a new file or {re.escape(kind)}; give "
                                 "another name, or --force to replace it$")
            if self.option == "--state":
                self.refused(out, "is not a journal", "--force")
                return
            self.write(out, "--force")
            self.assertTrue(out.is_symlink())
            self.assertNotEqual(real.read_bytes(), last)
        self.each(test)

    def test_places(self):
        """A folder, a folder that nobody may write to, one that is not there."""
        def test(out, _kind):
            out.mkdir()
            self.refused(out, "is a directory|Is a directory|is not a regular file", "--force"
                         if self.option != "--state" else "-q")
            self.refused(pathlib.Path("/proc/out"), "/proc/out")
            self.refused(self.folder / "none" / "out", "none/out")
            locked = self.folder / "locked"
            locked.mkdir(mode=0o500)
            if os.geteuid() != 0:
                self.refused(locked / "out", "cannot be|Permission denied")
        self.each(test)

    def test_a_pipe(self):
        """It is written through; what is written in parts, or is gone on with, refuses it."""
        def test(out, _kind):
            os.mkfifo(out)
            if is_in_parts(self.words, self.option):
                done = run(*self.words, self.option, out, cwd=self.inputs, timeout=HANG_S)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, "is not a regular file")
                return
            read = []
            reader = threading.Thread(target=lambda: read.append(out.read_bytes()), daemon=True)
            reader.start()
            done = run(*self.words, self.option, out, cwd=self.inputs, timeout=HANG_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            reader.join(HANG_S)
            self.assertGreater(len(read[0]), 0)
            self.assertTrue(out.is_fifo())
        self.each(test)

    def test_an_input(self):
        """What is read is not replaced, whatever its kind, and with --force, either."""
        for words, option in ((["merge", "part.journal"], "-o"), (["report", "kld.json"], "-o"),
                              (["merge", "part.imatrix.gguf"], "-o"),
                              (["compare", "kld.json", "kld.json"], "--json"),
                              (["perplexity", *ONE], "--json"), (["mix", "recipe.json"], "-o")):
            self.at(words, option)
            read = words[words.index("-m") + 1] if "-m" in words else words[1]
            for more in ([], ["--force"]):
                self.refused(pathlib.Path(read), "would replace the file that ", *more)

    def test_sums_beside_a_journal(self):
        out = self.at(["imatrix", *ONE, "-o", "/dev/null"], "--state")
        beside = self.folder / "out.sums"
        beside.write_text("sums of mine\n")
        done = run(*self.words, self.option, out, cwd=self.inputs)
        self.assertEqual((done.returncode, beside.read_text()), (2, "sums of mine\n"))
        self.assertIn("out.sums: is a text, expected a new file or sums beside a journal", done.stderr)

    def test_files_of_watch(self):
        for option, other, kind in (("--watch", "--watch-status", "command"),
                                    ("--watch-status", "--watch", "status")):
            out = self.at(["perplexity", *ONE, other, "other"], option)
            for content, what in ((b"notes of mine\n", "a text"), (Q4.read_bytes(), "a GGUF model")):
                out.write_bytes(content)
                self.refused(out, f"out: is {what}, expected a new file or a {kind} of --watch")

    def test_plan(self):
        out = self.at([], "--json")
        words = ["perplexity", *ONE]
        for content, code in ((Q4.read_bytes(), 2), (b"", 0)):
            out.write_bytes(content)
            done = run("plan", "--seconds", "1", "--json", out, *words, cwd=self.inputs)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertTrue(code == 0 or out.read_bytes() == content)

    def test_that_is_all_of_them(self):
        """Options whose help says that they write are in the list above."""
        listed = {(words[0], option) for words, option, _ in WRITES} | set(ELSEWHERE)
        for words, option, _ in WRITES:  # spellings of one option
            if option == "-o":
                listed |= {(words[0], "--output")}
        commands = re.findall(r"^  ([a-z]+) ", run("help").stdout, re.M)
        self.assertGreater(len(commands), 15)
        for command in commands:
            if command in ("help", "serve"):  # serve: test_serve_attack.py
                continue
            shown = run("help", command).stdout
            rows = re.split(r"\n  (?=-)", shown.partition("\n  -")[0] + "\n  -" + shown.partition("\n  -")[2])
            for row in rows[1:]:
                names, _, text = re.sub(r"\s+", " ", row.replace(" FILE", "  FILE", 1)).partition(" FILE ")
                writes = re.match(r"(also )?(write|record|keep a journal|draw)|the (file|page|Markdown|journal)",
                                  text) or names.startswith("-o,")
                if not writes or names.strip().startswith(("--cache-file", "--watch")):
                    continue
                spellings = {name.strip() for name in names.split(",")}
                if "--state FILE" in shown and spellings & {"--state", "--json"}:
                    continue  # the driver's, for all commands
                self.assertTrue(any((command, name) in listed for name in spellings), (command, names))


if __name__ == "__main__":
    unittest.main(argv=["written"])
