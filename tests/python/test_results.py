#!/usr/bin/env python3
"""The Python functions that return results: the program's documents, its errors, its progress.

usage: test_results.py ASSAY SOURCE_DIR
"""
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

SOURCE = pathlib.Path(sys.argv[2]).resolve()
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests" / "cli")]

import assay_gguf  # noqa: E402
from assay_gguf import AssayError  # noqa: E402
from program import ASSAY, F16, Q4, TEXT, run  # noqa: E402

SHORT = {"binary": ASSAY, "ctx_size": 32, "chunks": 2}


class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        temporary = self.folder / "temporary"
        temporary.mkdir()
        for change in (mock.patch.object(tempfile, "tempdir", str(temporary)),
                       mock.patch.dict(os.environ, {"TMPDIR": str(temporary)})):
            change.start()
            self.addCleanup(change.stop)
        self.addCleanup(lambda: self.assertEqual(os.listdir(temporary), []))

    def plain(self, *words):
        """The document that the program writes."""
        done = run(*words, "-c", "32", "--chunks", "2", "--json", self.folder / "plain.json", "--force")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.folder / "plain.json").read_text())

    def assert_same(self, a, b):
        for document in (a, b):
            document.pop("run")
        self.assertEqual(a, b)

    def test_kld_check_and_report(self):
        found = assay_gguf.kld([Q4, F16], F16, TEXT, **SHORT)
        self.assert_same(dict(found), self.plain("kld", "-m", Q4, "-m", F16, "--base", F16, "-f", TEXT))
        self.assertEqual([c["model"]["file"] for c in found["candidates"]], [Q4.name, F16.name])
        recording = self.folder / "t.kld"
        one = assay_gguf.perplexity(Q4, str(TEXT), kl_divergence_base=recording, **SHORT)
        plain = self.plain("perplexity", "-m", Q4, "-f", TEXT)
        self.assertEqual(one["result"], plain["result"])
        self.assertEqual(one["recorded"]["kind"], "logits")
        with self.assertRaisesRegex(AssayError, r"above --max-kld 1e-05 \(exit code 1\)$") as caught:
            assay_gguf.check(F16, recording, binary=ASSAY, max_kld=1e-5)
        error = caught.exception
        self.assertEqual(error.code, 1)
        self.assertGreater(error.result["result"]["kld"]["mean"], 1e-3)
        (self.folder / "one.json").write_text(json.dumps(one))
        page = assay_gguf.report([found, self.folder / "one.json"], self.folder / "page.html", binary=ASSAY)
        self.assertIn(Q4.name, page.read_text())

    def test_every_command(self):
        """Which commands write a document is read from their help."""
        names = re.findall(r"^  (\w+) ", assay_gguf.run("help", binary=ASSAY), re.M)
        self.assertGreater(len(names), 20)
        found = {name: assay_gguf.results.writes(ASSAY, name) for name in names}
        self.assertEqual([name for name in names if found[name] == ""], ["info"])
        self.assertEqual({name for name in names if found[name] == " FILE"},
                         {name for name in names if "--json FILE" in run("help", name).stdout})
        for name in ("perplexity", "kld", "best", "check", "compare", "explain", "sweep", "recipe"):
            self.assertEqual(found[name], " FILE", name)
        self.assertIsNone(found["report"])

    def test_run(self):
        seen = []
        best = assay_gguf.run("best", F16, Q4, base=F16, f=TEXT, progress=seen.append, **SHORT)
        self.assertEqual(best["schema"], "assay-best")
        self.assertEqual([c["model"]["file"] for c in best["candidates"]], [Q4.name])
        kld = assay_gguf.run("kld", Q4, base=F16, f=TEXT, **SHORT)
        self.assert_same(dict(kld), self.plain("kld", "-m", Q4, "--base", F16, "-f", TEXT))
        self.assertRegex(assay_gguf.run("table", kld, binary=ASSAY), r"\A\| model .*\n\| -.*\n\| F16 .*\n\| Q4_K_M ")
        sweep = assay_gguf.run("sweep", base=F16, from_=Q4, f=TEXT, by="layer", **SHORT)
        recipe = assay_gguf.run("recipe", sweep, binary=ASSAY, size="10MB")
        self.assertEqual(recipe["schema"], "assay-recipe")
        plan = assay_gguf.run("plan", "perplexity", "-m", Q4, "-f", TEXT, "-c", 32, binary=ASSAY)
        self.assertEqual(plan["schema"], "assay-plan")
        self.assertEqual(assay_gguf.run("info", Q4, binary=ASSAY)["file"], str(Q4))
        self.assertRegex(assay_gguf.run("version", binary=ASSAY), r"^assay +\d+\.\d+\.\d+")
        with self.assertRaisesRegex(AssayError, r"^unknown command 'bst'.*\(exit code 2\)$"):
            assay_gguf.run("bst", binary=ASSAY)

    def test_words(self):
        """Lists give an option several times, None and False leave it out."""
        with mock.patch.object(assay_gguf.results, "execute") as ran, \
                mock.patch.object(assay_gguf.results, "writes", return_value=" FILE"):
            with self.assertRaises(FileNotFoundError):
                assay_gguf.perplexity("m", ["a", "b"], binary="p", ctk=["f16", "q8_0"], strict=True,
                                      escape=False, t=2, state=None)
        command = ran.call_args[0][0]
        self.assertEqual(command[:3], ["p", "perplexity", "--json"])
        self.assertEqual(command[4:], ["-m", "m", "-f", "a", "-f", "b", "--ctk", "f16", "--ctk", "q8_0",
                                       "--strict", "-t", "2"])
        with self.assertRaisesRegex(AssayError, "^json: the document is read by this package$"):
            assay_gguf.kld("a", "b", "c", binary=ASSAY, json="x")

    def test_errors(self):
        with self.assertRaises(AssayError) as caught:
            assay_gguf.perplexity("no/such.gguf", TEXT, binary=ASSAY)
        error = caught.exception
        self.assertEqual((error.code, error.result), (2, None))
        self.assertRegex(error.sentence, r"^no/such\.gguf: cannot be opened")
        self.assertEqual(str(error), error.sentence + " (exit code 2)")
        with self.assertRaisesRegex(AssayError, "^/no/such cannot be run: No such file") as caught:
            assay_gguf.perplexity(Q4, TEXT, binary="/no/such")
        self.assertIsNone(caught.exception.code)
        with self.assertRaisesRegex(AssayError, "was ended by signal 9$") as caught:
            assay_gguf.perplexity(Q4, TEXT, binary=self.fake("kill -9 $$"))
        self.assertEqual(caught.exception.code, -9)

    def fake(self, text):
        """A program that does this, and writes a document."""
        file = self.folder / "assay"
        file.write_text("#!/bin/sh\n[ $1 != help ] || exec echo '  --json FILE'\n"
                        "echo '{\"a\": 1}' >\"$3\"\n" + text)
        file.chmod(0o755)
        return file

    LINES = "echo 'assay: 40 % done, 1:00 left' >&2; echo 'assay: note: ships' >&2; " \
            "echo 'assay: 98 % done, 0:01 left' >&2"

    def test_progress(self):
        fractions = []
        with self.assertLogs("assay_gguf.client", "WARNING") as logs:
            found = assay_gguf.perplexity(Q4, TEXT, binary=self.fake(self.LINES), progress=fractions.append)
        self.assertEqual((found, fractions), ({"a": 1}, [0.4, 0.98]))
        self.assertEqual([r.getMessage() for r in logs.records], ["note: ships"])
        for is_terminal, shown in ((True, "\rassay perplexity:  40%\rassay perplexity:  98%\r" + 22 * " " + "\r"),
                                   (False, "")):
            screen = io.StringIO()
            screen.isatty = lambda is_terminal=is_terminal: is_terminal
            with mock.patch.object(sys, "stderr", screen), self.assertLogs("assay_gguf.client"):
                assay_gguf.perplexity(Q4, TEXT, binary=self.fake(self.LINES))
                assay_gguf.perplexity(Q4, TEXT, binary=self.fake(self.LINES), progress=False)
            self.assertEqual(screen.getvalue(), shown)

    def test_a_callers_function_that_fails_ends_the_program(self):
        def refuse(_):
            raise ValueError("enough")
        pid = self.folder / "pid"
        with self.assertRaisesRegex(ValueError, "enough"):
            assay_gguf.perplexity(Q4, TEXT, progress=refuse,
                                  binary=self.fake(f"echo $$ >{pid}; {self.LINES}; exec sleep 60"))
        self.assertFalse(pathlib.Path("/proc", pid.read_text().strip()).exists())

    def test_interrupt(self):
        """Ctrl-C in a notebook, where the program does not get it: it ends, and leaves nothing."""
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import assay_gguf\n"
                  "assay_gguf.perplexity(sys.argv[2], sys.argv[3], binary=sys.argv[4])")
        pid = self.folder / "pid"
        process = subprocess.Popen(
            [sys.executable, "-B", "-c", script, SOURCE / "python", Q4, TEXT,
             self.fake(f"echo $$ >{pid}.part; mv {pid}.part {pid}; exec sleep 60")],
            stderr=subprocess.PIPE, text=True, start_new_session=True)
        while not pid.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
        self.assertEqual(process.returncode, -signal.SIGINT, said)
        self.assertTrue(said.rstrip().endswith("KeyboardInterrupt"), said)
        self.assertFalse(pathlib.Path("/proc", pid.read_text().strip()).exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
