#!/usr/bin/env python3
"""Completions: every command, option and choice that help lists; the functions of the shells that
are installed (zsh's is only parsed: its completion needs a terminal).

usage: test_completion.py ASSAY SOURCE_DIR
"""
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from program import ASSAY, SOURCE, run

FOLDER = SOURCE / "cli" / "completions"


def offered(*words):
    done = run("complete", *words)
    assert (done.returncode, done.stderr) == (0, ""), done
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = re.findall(r"^  (\w+) +[A-Z]", run("help").stdout, re.M)

    def test_commands(self):
        self.assertGreater(len(self.commands), 10)
        self.assertEqual(offered(""), self.commands)
        self.assertEqual(offered("perp"), ["perplexity"])
        self.assertEqual(offered("help", "perp"), ["perplexity"])
        self.assertEqual(offered("nonsense", ""), [])

    def test_options_are_those_of_help(self):
        for command in self.commands[:-1]:
            shown = "\n".join(re.findall(r"^  (-.*?)(?:  |$)", run("help", command).stdout, re.M))
            names = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", shown)) - {"-h"}
            self.assertEqual(set(offered(command, "-")), names, command)
        self.assertEqual(offered("--kl"), offered("perplexity", "--kl"))

    def test_values(self):
        self.assertEqual(offered("kld", "--precision", ""), ["high", "exact", "fast"])
        self.assertEqual(offered("kld", "--precision", "h"), ["high"])
        self.assertEqual(offered("kld", "-m", ""), [":file"])
        self.assertEqual(offered("kld", "-c", ""), [])
        self.assertEqual(offered("kld", "--js", "--precision", "e"), ["exact"])
        self.assertEqual(offered("info", ""), [":file"])
        self.assertEqual(offered("table", "--svg", ""), [":file"])

    def shell(self, script, cwd="."):
        done = subprocess.run(script, capture_output=True, text=True, cwd=cwd)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def bash(self, *words, cwd="."):
        line = " ".join(shlex.quote(word) for word in (ASSAY, *words))
        return self.shell(["bash", "--norc", "-c", f"source {FOLDER / 'assay.bash'}; "
                           f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _assay; "
                           'printf "%s\\n" "${COMPREPLY[@]}"; complete -p assay >/dev/null'], cwd)

    def test_bash(self):
        self.assertEqual(self.bash("perp"), ["perplexity"])
        self.assertEqual(self.bash("kld", "--precision", "h"), ["high"])
        self.assertEqual(set(self.bash("report", "-")), set(offered("report", "-")))
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "model.gguf").touch()
            self.assertEqual(self.bash("info", "mod", cwd=folder), ["model.gguf"])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        def zsh(*words):
            return self.shell(["zsh", "-f", "-c", "_files() { print :file }; "
                               "_describe() { print -l $found }; "
                               f"run() {{ words=({shlex.join([ASSAY, *words])}); "
                               f"CURRENT={len(words) + 1}; source {FOLDER / '_assay'} }}; run"])

        self.assertEqual(zsh("vers")[0], "version:Print")
        self.assertEqual(zsh("kld", "--precision", "h"), ["high:"])
        self.assertEqual(zsh("info", ""), [":file"])

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        with tempfile.TemporaryDirectory() as home:
            pathlib.Path(home, "assay").symlink_to(ASSAY)
            script = (f"set -x PATH {home} $PATH; source {FOLDER / 'assay.fish'}; "
                      "complete -C 'assay perp'; complete -C 'assay kld --precision h'")
            done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True,
                                  text=True, env={"HOME": home, "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.stderr, "")
        self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()],
                         ["perplexity", "high"])


if __name__ == "__main__":
    unittest.main(argv=[__file__])
