#!/usr/bin/env python3
"""assay perplexity in the place of llama-perplexity and of ik_llama.cpp's perplexity: every spelling
of peer-options.tsv, in front of the others and at the end, and the command lines of
peer-commands.tsv. Accepted ones give the result that they would give without; refused ones say why.

usage: test_drop_in.py ASSAY SOURCE_DIR
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import ASSAY, F16, HANG_S, Q4, SOURCE, TEXT

HERE, TASKS = SOURCE / "tests" / "cli", SOURCE / "tests" / "data" / "tasks"
REST = ["-m", str(Q4), "-f", str(TEXT), "-c", "32", "--chunks", "1", "--json", "r.json"]
FILES = {"MODEL": str(Q4), "TEXT": "text.txt", "BASE": "base", "NEW": "new",
         "HELLASWAG": str(TASKS / "hellaswag.txt"), "WINOGRANDE": str(TASKS / "winogrande.csv"),
         "CHOICES": str(TASKS / "multiple-choice.bin")}
NEUTRAL = ["-t", "-tb", "-b", "--ppl-stride", "--ppl-output-type", "-ngl", "-dev", "--rope-freq-base",
           "--rope-freq-scale", "--yarn-orig-ctx", "--hellaswag-tasks", "--winogrande-tasks",
           "--multiple-choice-tasks", "--no-escape"]  # with the values of the list
AT_ONCE = 80


def table(name):
    lines = [line for line in (HERE / name).read_text().splitlines() if not line.startswith("#")]
    head = lines[0].split("\t")
    return [dict(zip(head, line.split("\t"), strict=True)) for line in lines[1:]]


def uses(row, values=None):
    """A spelling with its values, for each spelling and each number of values."""
    for name in row["spellings"].split():
        for n in row["values"].split("|"):
            yield [name, *((values or row["example"]).split() * int(n != "0") + ["x"] * 2)[:int(n)]]


def flat(lists):
    return [word for words in lists for word in words]


class DropIn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="assay-drop-in-")
        cls.rows = table("peer-options.tsv")
        (pathlib.Path(cls.folder) / "text.txt").write_bytes(TEXT.read_bytes()[:2000])
        cls.document = cls().document_of([])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_words(self, words, command=(ASSAY, "perplexity"), **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("LLAMA_", "ASSAY_"))}
        return subprocess.run([*command, *words], capture_output=True, text=True, check=False,
                              cwd=self.folder, timeout=HANG_S,
                              env={**env, "XDG_CONFIG_HOME": self.folder, **variables})

    def document_of(self, words, at_end=True, **variables):
        """The result document without `run`; the ignored options, in self.ignored."""
        run = self.run_words([*REST, *words] if at_end else [*words, *REST], **variables)
        self.assertEqual(run.returncode, 0, f"{words}: {run.stderr}")
        found = re.search("^assay: ignored, because no result depends on it: (.*)$", run.stderr, re.M)
        self.ignored = found[1].split(", ") if found else []
        document = json.loads((pathlib.Path(self.folder) / "r.json").read_text())
        del document["run"]
        return document

    def of(self, outcome):
        return [row for row in self.rows if row["outcome"] == outcome]

    def check_refused(self, run, word):
        self.assertEqual((run.returncode, run.stdout), (2, ""), word)
        self.assertRegex(run.stderr, rf"\Aassay: {re.escape(word)}[ =:;].+\n\Z")

    def test_every_ignored_spelling(self):
        chosen = [words for row in self.of("ignored") for words in uses(row)]
        self.assertGreater(len(chosen), 400)
        for begin in range(0, len(chosen), AT_ONCE):
            part = chosen[begin:begin + AT_ONCE]
            for at_end in (False, True):
                self.assertEqual(self.document_of(flat(part), at_end), self.document)
                self.assertEqual(self.ignored, [words[0] for words in part])
        for words in uses({"spellings": "-fa --fit --context-shift", "values": "0", "example": "-"}):
            self.assertEqual(self.document_of(words, at_end=False), self.document)
            self.assertEqual(self.ignored, words)

    def test_every_refused_spelling(self):
        for row in self.of("refused"):
            for words in uses(row):
                for line in ([*words, *REST], [*REST, *words]):
                    self.check_refused(self.run_words(line), words[0])

    def test_accepted_values_of_refused_options(self):
        for row in self.of("refused"):
            for value in row["accepted"].split() if row["accepted"] != "-" else []:
                self.assertEqual(self.document_of(flat(uses(row, value))), self.document)
                self.assertEqual(self.ignored, [])

    def test_every_answered_spelling(self):
        for words in (words for row in self.of("answered") for words in uses(row)):
            run = self.run_words(words)
            self.assertEqual((run.returncode, run.stderr), (0, ""), words)
            self.assertTrue(run.stdout, words)

    def test_every_honoured_spelling(self):
        neutral = []
        for row in self.of("same"):
            for words in uses(row):
                run = self.run_words([*words, "--help"]) # what comes before it is parsed
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertRegex(run.stdout, "^usage: assay perplexity")
                if words[0] in NEUTRAL:
                    neutral += words
        self.assertEqual(self.document_of(neutral)["result"], self.document["result"])

    def test_variables(self):
        ignored, honoured = {}, {}
        for row in self.rows:
            value = row["example"] if row["values"] != "0" else "1"
            for name in row["variables"].split() if row["variables"] != "-" else []:
                if row["outcome"] == "refused":
                    run = self.run_words(REST[2:], **{name: value})
                    self.check_refused(run, name)
                else:
                    (ignored if row["outcome"] == "ignored" else honoured)[name] = value
        self.assertEqual(self.document_of([], **ignored), self.document)
        run = self.run_words(["--help"], **honoured)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        fetched = {"LLAMA_ARG_HF_REPO": "a/b", "LLAMA_ARG_MODEL_URL": "x", "LLAMA_ARG_DOCKER_REPO": "x",
                   "LLAMA_ARG_HF_FILE": "x"}
        self.assertEqual(self.document_of([], **fetched), self.document)  # -m is given

    def test_command_lines(self):
        self.assertEqual(self.run_words(["-m", str(F16), "-f", "text.txt", "-c", "32", "--chunks", "4",
                                         "--kl-divergence-base", "base"]).returncode, 0)
        for line in (HERE / "peer-commands.tsv").read_text().splitlines():
            if line.startswith("#"):
                continue
            refused, _, text = line.partition("\t")
            words = [FILES.get(word, word) for word in shlex.split(text)]
            with self.subTest(text):
                if refused:
                    self.check_refused(self.run_words(small(words)), refused)
                    continue
                run = self.run_words(small(words))
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertRegex(run.stdout, "Final (estimate|Winogrande|result)|Harness acc")

    def test_names_of_the_program(self):
        for name, called in (("llama-perplexity", True), ("perplexity", True),
                             ("llama-perplexity-cuda", True), ("assay", True), ("other", False)):
            os.symlink(ASSAY, os.path.join(self.folder, name))
            command = [os.path.join(self.folder, name)]
            run = self.run_words(REST, command)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("Final estimate", run.stdout)
            run = self.run_words(["--help"], command)
            self.assertRegex(run.stdout, "^usage: assay perplexity" if called and name != "assay"
                             else "^usage: assay COMMAND")
            run = self.run_words(["--version"], command)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertRegex(run.stdout, r"^assay +\d+\.\d+\.\d+")

    def by_peer(self, config, words=REST, **variables):
        """A run by the name of llama-perplexity with a user's configuration file."""
        folder = pathlib.Path(self.folder, "config", "llama.cpp")
        link = pathlib.Path(self.folder, "llama-perplexity-config")
        folder.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(ASSAY)
        (folder / "config.ini").write_text(config)
        return self.run_words(words, [link], XDG_CONFIG_HOME=str(folder.parent), **variables)

    def settings_by_peer(self, config, words=(), **variables):
        """Context size and cache types of such a run without -c."""
        run = self.by_peer(config, [*REST[:4], *REST[6:], *words], **variables)
        self.assertEqual(run.returncode, 0, run.stderr)
        settings = json.loads((pathlib.Path(self.folder) / "r.json").read_text())["settings"]
        return settings["n_ctx"], settings.get("cache_type_k", ["F32"])[0]

    def test_configuration(self):
        """What llama.cpp 0.5.0 made of the same files, seen in its log."""
        for config, n_ctx in (("c = 64\nctx-size = 32\n", 32), ("ctx-size = 32\nc = 64\n", 32),
                              ("c = 64\n[default]\nctx-size = 32\n", 32), ("[*]\nc = 64\n", 64),
                              ("[default]\nc = 32\n[*]\nc = 64\n", 32), ("c = 64; x", 64),
                              ("[ default]\rc=64\r\n", 64), ("LLAMA_ARG_CTX_SIZE = 48", 48),
                              ("c = 64\nc = 48\n", 48)):
            self.assertEqual(self.settings_by_peer(config)[0], n_ctx, config)
        for config in ("[other]\nc = 64\n", "[default ]\nc = 64\n", "c = 64\n[default]\nb = 1\n",
                       "ctx_size = 64\n", ""):
            self.assertEqual(self.settings_by_peer(config, ["-fa", "-c", "16"])[0], 16)
            self.assertNotIn(" = 64", self.by_peer(config).stderr)
        config = "ctx-size = 64\ncache-type-k = q8_0\nflash-attn = on\nprompt = x\nctx_size = 3\n"
        self.assertEqual(self.settings_by_peer(config), (64, "Q8_0"))
        self.assertEqual(self.settings_by_peer(config, LLAMA_ARG_CTX_SIZE="48"), (48, "Q8_0"))
        self.assertEqual(self.settings_by_peer(config, ["-c", "32", "-ctk", "f32"]), (32, "F32"))
        run = self.by_peer(config)
        self.assertRegex(run.stderr, "note: .*/llama.cpp/config.ini gives cache-type-k = q8_0, "
                                     "ctx-size = 64 where neither a variable nor an option does\n")
        self.assertRegex(run.stderr, "note: .*/config.ini: not used here: ctx_size, prompt\n")

    def test_configuration_is_refused(self):
        for config, sentence in (
                (" c = 64", "line 1: expected 'key = value', '.section.' or a comment, found ' c = 64', "
                            "which begins with a blank"),
                ("\nctx-size 64", "line 2: expected .* found 'ctx-size 64'"),
                ("c = x", "c: 'x' is not a whole number, or several with commas between"),
                ("lora = x", "lora=x: adapters are not implemented"),
                ("hellaswag = off", "hellaswag = off: llama-perplexity takes any value as on")):
            run = self.by_peer(config)
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            self.assertRegex(run.stderr, rf"\Aassay: .*/llama.cpp/config.ini: {sentence}.*\n\Z")

    def test_every_honoured_key(self):
        honoured = [row for row in self.of("same") if row["program"] == "both"]
        for key, row in ((name.lstrip("-"), row) for row in honoured for name in row["spellings"].split()):
            value = row["example"] if row["values"] != "0" else "on"
            run = self.by_peer(f"{key} = {FILES.get(value, value)}")
            text = key in ("f", "file", "p", "prompt", "bf", "binary-file")
            self.assertIn(f"not used here: {key}\n" if text else f"config.ini gives {key} = ", run.stderr)
            self.assertIn(run.returncode, (0, 1, 2), run.stderr)
            self.assertNotIn("(null)", run.stderr)

    def test_configuration_and_rules(self):
        """A configuration may give what an option needs, and not what it does not go with."""
        out = str(pathlib.Path(self.folder, "rules.kld"))
        for config, words, sentence in (
                ("ppl-stride = 128", ["--kl-divergence-base", out],
                 "--kl-divergence-base does not go with --ppl-stride: it has the default windows"),
                ("kl-divergence = on", [], "--kl-divergence goes with --kl-divergence-base only"),
                ("ppl-stride = 128", ["--protocol", "fixed"], "--ppl-stride goes with --protocol default only"),
                ("hellaswag = on", ["--winogrande"], "give one of --hellaswag, --winogrande, --multiple-choice and --mc2")):
            run = self.by_peer(config, [*REST, *words])
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(sentence, run.stderr)
        self.assertFalse(os.path.exists(out))
        run = self.by_peer("kl-divergence-base = none.kld", [*REST, "--kl-divergence"])
        self.assertIn("none.kld", run.stderr)
        self.assertNotIn("goes with", run.stderr)
        self.assertEqual(self.by_peer("ctx-size", ["--help"]).returncode, 0)

    def test_configuration_by_the_name_assay(self):
        self.by_peer("ctx-size = 64\nthreads = 1\n")
        home = str(pathlib.Path(self.folder, "config"))
        run = self.run_words([*REST[:4], *REST[6:]], XDG_CONFIG_HOME=home)
        self.assertRegex(run.stderr, "note: .*/config.ini gives llama-perplexity ctx-size = 64; by the "
                                     "name of assay it is not read\n")
        self.assertNotIn("config.ini", self.run_words(REST, XDG_CONFIG_HOME=home).stderr)

    def test_recording_twice(self):
        link = os.path.join(self.folder, "llama-perplexity-twice")
        os.symlink(ASSAY, link)
        words = [*REST[:-2], "--kl-divergence-base", "again"]
        self.assertEqual(self.run_words(words).returncode, 0)
        run = self.run_words(words)
        self.assertEqual(run.returncode, 2)
        self.assertIn("exists; --force replaces it", run.stderr)
        run = self.run_words(words, [link])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("note: again exists and is replaced", run.stderr)
        other = pathlib.Path(self.folder) / "other.txt"
        other.write_text("kept\n")
        run = self.run_words([*words[:-1], "other.txt"], [link])
        self.assertEqual((run.returncode, other.read_text()), (2, "kept\n"))


def small(words):
    """The same with less to compute; a comparison has the windows of its base."""
    most = {"-c": 64, "--ctx-size": 64, "--ppl-stride": 16}
    words = list(words)
    if "--kl-divergence" in words:
        return words
    for i, word in enumerate(words[:-1]):
        if word in most:
            words[i + 1] = str(min(int(words[i + 1]), most[word]))
        if word == "--chunks":
            words[i + 1] = "1"
    return words


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
