#!/usr/bin/env python3
"""Tensors that are replaced while the program runs (docs/hot-swap.md): the protocol that other
programs drive, with files that vanish, are half written, do not fit or change while they are read.
Every result is compared, to the bit, with that of a fresh run over the same tensors.

usage: test_hot_swap.py ASSAY SOURCE_DIR

ASSAY_TEST_SLOW=1: 200 swaps in each of the two runs of many. ASSAY_TEST_SEED=n: others.
"""
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import shards
from program import ASSAY, F16, HANG_S, Q4, TEXT, run

SLOW = os.environ.get("ASSAY_TEST_SLOW") == "1"
SEED = int(os.environ.get("ASSAY_TEST_SEED", "1"))
WINDOWS = ["-f", TEXT, "-c", "32", "--chunks", "2"]
SMALL = ["-t", "1"]


class Files:
    """The files of two models of the same tensors, and of tensors that do not fit."""

    def __init__(self):
        self.tensors = shards.contents(F16)[2]
        self.names = [t[0] for t in self.tensors]
        self.kinds = {kind: shards.split(path, order=self.names)
                      for kind, path in (("f16", F16), ("q4", Q4))}
        self.n = len(self.kinds["f16"])
        # Those that differ between the models, and one of another shape for each.
        self.swappable = [i for i in range(1, self.n)
                          if self.kinds["f16"][i] != self.kinds["q4"][i]]
        self.other_shape = {i: next(j for j, u in enumerate(self.tensors) if u[2] != t[2])
                            for i, t in enumerate(self.tensors)}

    def name(self, i):
        return self.names[i - 1]

    def payload(self, kind, i):
        tensors = shards.contents({"f16": F16, "q4": Q4}[kind])[2]
        return next(t[3] for t in tensors if t[0] == self.name(i))

    def misshapen(self, i):
        """This tensor's name with another one's shape and bytes."""
        other = self.tensors[self.other_shape[i - 1]]
        return shards.part(i, self.n, [(self.name(i), *other[1:])])

    def foreign(self, i):
        """A file of another model: no tensor of it is known."""
        return shards.part(i, self.n, [("blk.77." + self.name(i), *self.tensors[i - 1][1:])])


FILES = None


def bare(value):
    """A result without what is of the opened file, and of the run."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items()
                if k not in ("run", "id", "quantisation", "swapped", "file", "remarks",
                             "imatrix_file", "imatrix_dataset")}
    return [bare(v) for v in value] if isinstance(value, list) else value


class Session:
    """A program that is driven by two files, in a folder of its own."""

    def __init__(self, folder, words, variables=True):
        self.folder, self.words, self.variables = folder, words, variables
        self.number = self.iteration = self.offset = 0
        self.process = self.log = None
        self.start()

    def start(self):
        self.number = 0
        self.log = open(self.folder / "log", "wb")
        environment = dict(os.environ)
        words = [ASSAY, *map(str, self.words)]
        if self.variables:
            environment |= {"LLAMA_HOTSWAP_ENABLED": "", "LLAMA_HOTSWAP_CONTROL_FILE": "control",
                            "LLAMA_HOTSWAP_STATUS_FILE": "status"}
        else:
            words += ["--watch", "control", "--watch-status", "status"]
        (self.folder / "status").unlink(missing_ok=True)
        self.process = subprocess.Popen(words, cwd=self.folder, env=environment, stdout=self.log,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.iteration, self.offset = 1, 0

    def state(self):
        try:
            return (self.folder / "status").read_text()
        except OSError:
            return ""

    def wait(self, *states):
        """Until one of these lines is the state; what was logged since the last time."""
        deadline = time.monotonic() + HANG_S
        while self.state() not in states:
            if self.process.poll() is not None and self.state() not in states:
                raise AssertionError(f"{self.process.returncode}: {self.all()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"state {self.state()!r}, expected {states}: {self.all()}")
            time.sleep(0.005)
        return self.read()

    def all(self):
        return (self.folder / "log").read_text()[-2000:]

    def read(self):
        text = (self.folder / "log").read_bytes()
        new, self.offset = text[self.offset:].decode(), len(text)
        return new

    def send(self, word, halves=False):
        self.number += 1
        line = f"{word} {self.number}\n"
        if halves:
            with open(self.folder / "control", "w") as file:
                for c in (line[:3], line[3:-1], line[-1]):
                    file.write(c)
                    file.flush()
                    time.sleep(0.06)
        else:
            (self.folder / "control.new").write_text(line)
            (self.folder / "control.new").rename(self.folder / "control")

    def done(self):
        return self.wait(f"done {self.iteration} {self.number}\n")

    def failed(self):
        return self.wait(f"reload_failed {self.iteration} {self.number}\n")

    def again(self, word="reload", **more):
        self.send(word, **more)
        self.iteration += 1
        return self.done()

    def exit(self, word="exit"):
        self.send(word)
        code = self.process.wait(HANG_S)
        assert self.state() == f"exiting {self.iteration} {self.number}\n", self.state()
        self.close()
        return code

    def close(self):
        self.log.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class HotSwap(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        global FILES
        FILES = FILES or Files()
        holder = tempfile.TemporaryDirectory(prefix="assay-swap-")
        cls.addClassCleanup(holder.cleanup)
        cls.inputs = pathlib.Path(holder.name)
        made = run("perplexity", "-m", F16, *WINDOWS, *SMALL, "--kl-divergence-base", "base.kld",
                   cwd=cls.inputs)
        assert made.returncode == 0, made.stderr
        cls.known = {}

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="assay-swap-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        (self.folder / "fresh").mkdir()
        shutil.copy(self.inputs / "base.kld", self.folder)
        for i, data in enumerate(FILES.kinds["f16"]):
            self.path(i).write_bytes(data)
        self.model = self.path(0).name

    def path(self, i):
        return self.folder / shards.part_name("m", i, FILES.n)

    def session(self, *words, **more):
        s = Session(self.folder, words, **more)
        self.addCleanup(s.close)
        return s

    def perplexity(self, *words, **more):
        return self.session("perplexity", "-m", self.model, *WINDOWS, *SMALL, "--json", "r.json",
                            *words, **more)

    def fresh(self, kinds, words):
        """The result of a run over these files: {i: kind}, all others f16."""
        key = (tuple(sorted(kinds.items())), tuple(map(str, words)))
        if key not in self.known:
            for i in range(FILES.n):
                path = self.folder / "fresh" / self.path(i).name
                path.unlink(missing_ok=True)
                path.write_bytes(FILES.kinds[kinds.get(i, "f16")][i])
            made = run(*words, "--json", "-", "-q", cwd=self.folder)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.known[key] = bare(json.loads(made.stdout))
        return self.known[key]

    def fresh_perplexity(self, kinds):
        return self.fresh(kinds, ["perplexity", "-m", f"fresh/{self.model}", *WINDOWS, *SMALL])

    def result(self):
        return json.loads((self.folder / "r.json").read_text())

    def reloaded(self, text):
        return re.findall(r"(?m)^reloaded tensor '(.+)'$", text)

    def put(self, i, data, how="rename"):
        """Replace a file; its time differs from what it was."""
        path = self.path(i)
        if how == "overwrite":
            path.write_bytes(data)
        elif how == "link":
            target = self.folder / f"target-{i}-{time.monotonic_ns()}"
            target.write_bytes(data)
            path.unlink(missing_ok=True)
            path.symlink_to(target)
        else:
            new = self.folder / "new"
            new.write_bytes(data)
            new.rename(path)
        now = time.time_ns()
        os.utime(path, ns=(now, now))


class Protocol(HotSwap):
    def test_words_numbers_and_states(self):
        (self.folder / "control").write_text("exit 7\n")  # of a run before: not for this one
        s = self.perplexity()
        text = s.done()
        self.assertEqual(s.state(), "done 1 0\n")
        self.assertRegex(text, r"(?m)^Final estimate: PPL = ")
        self.assertEqual(self.result()["run"]["iteration"], 1)
        self.assertEqual(self.result()["model"]["swapped"], [])
        s.send("reload")
        self.assertNotIn("Final", s.failed())
        text = s.again("compute")
        self.assertEqual(text.count("Final estimate"), 1)
        self.assertEqual(bare(self.result()), self.fresh_perplexity({}))
        for line in ("compute 2\n", "compute 1 more\n", "compute 0\n"):  # not above the last
            (self.folder / "control").write_text(line)
            self.gone()
        (self.folder / "control").write_text("dance 9\n")  # a number is kept whatever the word
        self.gone()
        (self.folder / "control").write_text("compute 8\n")
        self.gone()
        self.assertEqual(s.state(), "done 2 2\n")
        self.ignored(s, 4)
        s.number, s.iteration = 9, 3
        (self.folder / "control").write_text("  compute\n")  # no number: always
        s.done()
        (self.folder / "control").write_text("compute -4\n")
        s.iteration = 4
        s.done()
        (self.folder / "control").write_text(" \n")  # no word: left alone
        time.sleep(0.2)
        self.assertTrue((self.folder / "control").exists())
        s.again("compute", halves=True)
        self.assertEqual(self.result()["run"]["command"], 10)
        self.assertEqual(s.exit("quit"), 0)
        self.assertNotIn("status.tmp", os.listdir(self.folder))

    def gone(self):
        deadline = time.monotonic() + HANG_S
        while (self.folder / "control").exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)

    def ignored(self, s, n):
        """So many lines say it, each after its command is gone."""
        deadline, text = time.monotonic() + HANG_S, ""
        while (text := text + s.read()).count("is ignored") < n:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)
        self.assertEqual(text.count("is ignored"), n)

    def test_swap_and_restore(self):
        """As the benchmark scripts do: the original is moved aside, and back."""
        s = self.perplexity(variables=False)
        s.done()
        for i in FILES.swappable[:3]:
            aside = self.folder / "aside.bak"
            self.path(i).rename(aside)
            self.put(i, FILES.kinds["q4"][i])
            self.assertEqual(self.reloaded(s.again()), [FILES.name(i)])
            swapped = self.result()["model"]["swapped"]
            digest = hashlib.sha256(FILES.payload("q4", i)).hexdigest()
            self.assertEqual([(t["name"], t["sha256"]) for t in swapped], [(FILES.name(i), digest)])
            self.assertEqual(bare(self.result()), self.fresh_perplexity({i: "q4"}))
            aside.rename(self.path(i))
            self.path(i).touch()
            self.assertEqual(self.reloaded(s.again()), [FILES.name(i)])
            self.assertEqual(self.result()["model"]["swapped"], [])
            self.assertEqual(bare(self.result()), self.fresh_perplexity({}))
        self.assertEqual(s.exit("stop"), 0)

    def test_kept_streams(self):
        """Whatever is kept, the bits are those of a whole run; nothing is left of it."""
        for words in (["--cache", "1"], ["--cache", "1GiB"],
                      ["--cache", "40 kB", "--cache-file", "streams"]):
            s = self.perplexity(*words, variables=len(words) < 4)
            s.done()
            for i in (FILES.swappable[-1], FILES.swappable[len(FILES.swappable) // 2]):
                for kind in ("q4", "f16"):
                    self.put(i, FILES.kinds[kind][i])
                    s.again()
                    self.assertEqual(bare(self.result()), self.fresh_perplexity({i: kind}))
            self.assertFalse((self.folder / "streams").exists())
            self.assertEqual(s.exit(), 0)

    def test_interruption(self):
        s = self.perplexity()
        s.done()
        s.process.send_signal(signal.SIGTERM)
        self.assertEqual(s.process.wait(HANG_S), 130)
        self.assertEqual(s.state(), "exiting 1 0\n")

    def test_base_is_read_again(self):
        words = ["perplexity", "-m", self.model, "--kl-divergence", "--kl-divergence-base",
                 "base.kld", *SMALL]
        s = self.session(*words, "--json", "r.json")
        text = s.done()
        self.assertRegex(text, r"(?m)^Mean    KLD: +[-0-9.]+ ±")
        whole = (self.folder / "base.kld").read_bytes()
        (self.folder / "base.kld").write_bytes(whole[:len(whole) // 2])
        text = s.again("compute")
        self.assertIn("evaluation 2 has no result: ", text)
        self.assertNotIn("KL divergence statistics", text)
        self.assertFalse((self.folder / "r.json").exists())
        made = run("perplexity", "-m", Q4, *WINDOWS, *SMALL, "--kl-divergence-base", "base.kld",
                   "--force", cwd=self.folder)
        self.assertEqual(made.returncode, 0, made.stderr)
        s.again("compute")
        expected = json.loads(run(*words, "--json", "-", "-q", cwd=self.folder).stdout)
        self.assertEqual(bare(self.result()), bare(expected))
        (self.folder / "base.kld").unlink()
        self.assertIn("has no result", s.again("compute"))
        self.assertEqual(s.exit(), 0)

    def test_two_models(self):
        """Of kld with a model as base: both are watched, and the lines say which it is."""
        (self.folder / "q4.gguf").write_bytes(Q4.read_bytes())
        words = ["-m", self.model, *WINDOWS, *SMALL]
        s = self.session("kld", "--base", "q4.gguf", *words, "--json", "r.json")
        s.done()
        i = FILES.swappable[0]
        self.put(i, FILES.kinds["q4"][i])
        self.assertIn(f"\nreloaded tensor '{FILES.name(i)}' of {self.model}\n", "\n" + s.again())
        shutil.copy(F16, self.folder / "new")
        (self.folder / "new").rename(self.folder / "q4.gguf")
        text = s.again()
        self.assertEqual(len(re.findall(r"(?m)^reloaded tensor .* of q4.gguf$", text)), FILES.n - 1)
        expected = self.fresh({i: "q4"}, ["kld", "--base", F16, "-m", f"fresh/{self.model}",
                                          *WINDOWS, *SMALL])
        self.assertEqual(bare(self.result()), expected)
        self.assertEqual(s.exit(), 0)

    def test_tasks(self):
        task = {"question": "What is it", "choices": ["a text", "a model"], "answer": 1}
        (self.folder / "t.jsonl").write_text((json.dumps(task) + "\n") * 3)
        words = ["perplexity", "--multiple-choice", "-f", "t.jsonl", *SMALL]
        s = self.session(*words, "-m", self.model, "--json", "r.json")
        s.done()
        i = FILES.swappable[0]
        self.put(i, FILES.kinds["q4"][i])
        s.again()
        self.assertEqual(bare(self.result()),
                         self.fresh({i: "q4"}, [*words, "-m", f"fresh/{self.model}"]))
        self.assertEqual(s.exit(), 0)

    def test_script(self):
        """The other way: a script replaces tensors until it replaces none."""
        i = FILES.swappable[0]
        (self.folder / "q4").write_bytes(FILES.kinds["q4"][i])
        script = (f"echo one; echo 'two %s'; if [ ! -e once ]; then touch once; mv q4 {self.path(i).name}; "
                  f"touch {self.path(i).name}; fi; exit 3")
        words = ["perplexity", "-m", self.model, *WINDOWS, *SMALL, "--json", "r.json"]
        for variables in (True, False):
            self.put(i, FILES.kinds["f16"][i])
            (self.folder / "q4").write_bytes(FILES.kinds["q4"][i])
            (self.folder / "once").unlink(missing_ok=True)
            more = {"LLAMA_HOTSWAP_ENABLED": "1", "LLAMA_PERPLEXITY_PRE_RELOAD_SCRIPT": script}
            made = run(*words, *([] if variables else ["--watch-script", script]), cwd=self.folder,
                       env={**os.environ, **(more if variables else {})})
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertEqual(made.stdout.count("Final estimate"), 2)
            self.assertEqual(made.stderr.count("main: [pre-reload] two %s\n"), 2)
            self.assertEqual(self.reloaded(made.stderr), [FILES.name(i)])
            self.assertEqual(made.stderr.count("exit code 3"), 2)
            self.assertEqual(bare(self.result()), self.fresh_perplexity({i: "q4"}))
        # Without the first variable the others mean nothing.
        del more["LLAMA_HOTSWAP_ENABLED"]
        made = run(*words, cwd=self.folder, env={**os.environ, **more})
        self.assertNotIn("pre-reload", made.stderr)

    def test_what_is_refused(self):
        words = ["perplexity", "-m", self.model, *WINDOWS]
        both = ["--watch", "control", "--watch-status", "status"]
        on = {"LLAMA_HOTSWAP_ENABLED": "", "LLAMA_HOTSWAP_CONTROL_FILE": "control"}
        for more, variables, sentence in (
                ([], on, "LLAMA_HOTSWAP_CONTROL_FILE goes with LLAMA_HOTSWAP_STATUS_FILE"),
                (["--watch", "c"], {}, "--watch goes with --watch-status only"),
                (["--watch-status", "c"], {}, "--watch-status goes with --watch only"),
                ([*both, "--watch-script", "true"], {}, "give one of --watch and --watch-script"),
                (["--cache", "1GiB"], {}, "--cache is of use only while tensors are replaced"),
                ([*both, "--cache", "1 cup"], {}, "expected a size such as 4GiB or 500MB, found"),
                ([*both, "--cache-file", "streams"], {}, "--cache-file goes with --cache only"),
                ([*both, "--cache", "1MB", "--cache-file", self.path(4).name], {}, "File exists"),
                ([*both, "--state", "s"], {}, "--state does not go with replacing tensors"),
                ([*both, "--json", "-"], {}, "--json -: each evaluation writes it anew"),
                ([*both, "--kl-divergence-base", "new"], {}, "a base is recorded once"),
                (["--watch", "control", "--watch-status", self.path(4).name], {}, "would replace"),
                (["--watch", self.path(4).name, "--watch-status", "status"], {}, "would replace"),
                (["--watch", "no/control", "--watch-status", "no/status"], {}, "no/status: "),
                (["--watch", ".", "--watch-status", "status"], {}, "cannot be removed")):
            with self.subTest(more=more):
                made = run(*words, *more, cwd=self.folder, env={**os.environ, **variables})
                self.assertEqual(made.returncode, 2, made.stderr)
                self.assertIn(sentence, made.stderr.splitlines()[-1])
        self.assertEqual(self.path(4).read_bytes(), FILES.kinds["f16"][4])


class Disturbed(HotSwap):
    LONG = ["--chunks", "60", "-b", "32"]

    def long(self):
        """A run that lasts long enough to be met in its middle."""
        return self.session("perplexity", "-m", self.model, "-f", TEXT, "-c", "32", *self.LONG,
                            *SMALL, "--json", "r.json")

    def meet(self, s, change):
        """
        Evaluate, with a change after the first results, for which the process stands still. An
        evaluation that comes too far meanwhile, on a busy machine, is made again.
        """
        while True:
            s.send("compute")
            s.iteration += 1
            deadline = time.monotonic() + HANG_S
            while b"[1]" not in self.results_of(s):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.002)
            s.process.send_signal(signal.SIGSTOP)
            early = b"[50]" not in self.results_of(s)
            if early:
                change()
            s.process.send_signal(signal.SIGCONT)
            text = s.done()
            if early:
                return text

    def results_of(self, s):
        return (self.folder / "log").read_bytes()[s.offset:]

    def test_files_that_change_while_they_are_read(self):
        s = self.long()
        s.done()
        first = bare(self.result())
        i, j = FILES.swappable[1], FILES.swappable[-1]
        changes = [lambda: os.truncate(self.path(i), 0), lambda: os.truncate(self.path(i), 3000),
                   lambda: self.put(i, FILES.kinds["q4"][i], "overwrite"),
                   lambda: self.path(i).touch()]
        for change in changes:
            text = self.meet(s, change)
            self.assertRegex(text, r"evaluation \d+ has no result: \S+ (changed while|a part of)")
            self.assertNotIn("Final estimate", text)
            self.assertFalse((self.folder / "r.json").exists())
            self.put(i, FILES.kinds["f16"][i])
            self.assertIn(FILES.name(i), self.reloaded(s.again()))
            self.assertEqual(bare(self.result()), first)
        # What does not touch the bytes does no harm: the opened file is still there.
        for change in (lambda: self.path(j).unlink(), lambda: self.put(j, FILES.kinds["q4"][j])):
            self.assertIn("Final estimate", self.meet(s, change))
            self.assertEqual(bare(self.result()), first)
        self.assertEqual(self.reloaded(s.again()), [FILES.name(j)])
        self.assertNotEqual(bare(self.result()), first)
        self.assertEqual(s.exit(), 0)

    def test_one_file_that_is_replaced_and_overwritten(self):
        """A model in one file: its keys stay what they were, whatever becomes of the file."""
        shutil.copy(F16, self.folder / "one.gguf")
        words = ["perplexity", *WINDOWS, *SMALL]
        s = self.session(*words, "-m", "one.gguf", "--json", "r.json")
        s.done()
        for path in (Q4, F16, Q4):
            shutil.copyfile(path, self.folder / "one.gguf")  # in place
            text = s.again()
            self.assertEqual(len(self.reloaded(text)), FILES.n - 1)
            expected = json.loads(run(*words, "-m", path, "--json", "-", "-q").stdout)
            self.assertEqual(bare(self.result()), bare(expected))
        os.truncate(self.folder / "one.gguf", 4096)
        self.assertIn("has no result", s.again("compute"))
        s.send("reload")
        self.assertIn("hotswap: one.gguf: ", s.failed())
        (self.folder / "one.gguf").unlink()
        s.send("reload")
        self.assertIn("cannot be opened", s.failed())
        self.assertEqual(s.exit(), 0)

    def test_more_files_than_may_be_open(self):
        made = subprocess.run(["bash", "-c", 'ulimit -Sn 24; exec "$@"', "bash", ASSAY, "perplexity",
                               "-m", self.model, *map(str, WINDOWS), *SMALL],
                              cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)


class Many(HotSwap):
    """Swaps at random, among everything that can go wrong with them."""

    def drive(self, words, seed, n_swaps):
        rng = random.Random(seed)
        cache = rng.choice([[], ["--cache", "20kB"], ["--cache", "1GiB"],
                            ["--cache", "1MB", "--cache-file", "streams"]])
        print("cache:", *cache)
        s = self.session(*words, "-m", self.model, "--json", "r.json", *cache,
                         variables=rng.random() < 0.5)
        at_path = {i: "f16" for i in range(1, FILES.n)}  # None: nothing that could be loaded
        force = dict(at_path)  # None: overwritten, so that nothing can be evaluated
        opened = dict(at_path)
        pending, overwritten, replaced, unknown = set(), set(), set(), set()
        in_force = set(at_path)  # those whose file is still the one at its path
        s.done()
        n_done = 0
        counts = {}
        while n_done < n_swaps:
            for i in rng.sample(FILES.swappable, rng.choice([1, 1, 1, 2, 5])):
                what = rng.choice(["other", "other", "other", "same", "half", "misshapen",
                                   "foreign", "vanish", "empty"])
                counts[what] = counts.get(what, 0) + 1
                how = rng.choice(["rename", "link", "overwrite"])
                if self.path(i).is_symlink() and how == "overwrite" or not self.path(i).exists():
                    how = "rename"
                kind = rng.choice(["f16", "q4"])
                if what == "other":
                    kind = "q4" if force[i] == "f16" else "f16"
                data = FILES.kinds[kind][i]
                data = {"half": data[:rng.randrange(1, len(data))], "empty": b"",
                        "misshapen": FILES.misshapen(i), "foreign": FILES.foreign(i)}.get(what, data)
                if what == "vanish":
                    self.path(i).unlink(missing_ok=True)
                else:
                    self.put(i, data, how)
                if what == "vanish" or how != "overwrite":
                    in_force.discard(i)
                elif i in in_force:
                    overwritten.add(i)
                    if i not in replaced:
                        unknown.add(i)
                at_path[i] = {"other": kind, "same": kind}.get(what, what)
                pending.add(i)
            if rng.random() < 0.1:
                if rng.random() < 0.7:  # in its middle
                    s.send("reload")
                    time.sleep(rng.random() * 0.08)
                s.process.kill() if rng.random() < 0.5 else s.process.send_signal(signal.SIGTERM)
                s.close()
                for i in at_path:
                    if at_path[i] not in ("f16", "q4"):
                        self.put(i, FILES.kinds["f16"][i])
                        at_path[i] = "f16"
                (self.folder / "control").write_text("exit 1\n")
                s.start()
                force, opened = dict(at_path), dict(at_path)
                pending, overwritten, replaced, unknown = set(), set(), set(), set()
                in_force = set(at_path)
                text = s.done()
                reloaded = []
            else:
                reloaded = sorted(i for i in pending if at_path[i] in ("f16", "q4"))
                refused = sorted(i for i in pending if at_path[i] in ("misshapen", "foreign"))
                left = {i for i in pending if at_path[i] in ("half", "empty", "vanish")}
                s.send("reload", halves=rng.random() < 0.05)
                if reloaded:
                    s.iteration += 1
                    text = s.done()
                else:
                    text = s.failed()
                for i in reloaded:
                    force[i] = at_path[i]
                    overwritten.discard(i)
                    replaced.add(i)
                    in_force.add(i)
                    n_done += 1
                self.assertEqual(self.reloaded(text), [FILES.name(i) for i in reloaded])
                self.assertEqual(re.findall(r"(?m)^hotswap: tensor '(.+)' cannot be hot-swapped: .+; "
                                            "skipping$", text), [FILES.name(i) for i in refused])
                self.assertEqual(set(re.findall(r"(?m)^hotswap: (\S+?): .*; its tensors are left", text)),
                                 {self.path(i).name for i in left})
                pending = left
                if not reloaded:
                    (self.folder / "r.json").unlink(missing_ok=True)
                    text = s.again("compute")
            if overwritten:
                self.assertIn("has no result: ", text)
                self.assertNotIn("estimate: ", text)
                self.assertNotIn("statistics", text)
                self.assertFalse((self.folder / "r.json").exists())
                continue
            found = self.result()
            self.assertEqual(found["run"]["iteration"], s.iteration)
            kinds = {i: kind for i, kind in force.items() if kind != "f16"}
            self.assertEqual(bare(found), self.fresh(kinds, [*words, "-m", f"fresh/{self.model}"]))
            model = found.get("model") or found["candidates"][0]["model"]
            # What was overwritten before it was replaced cannot be compared with what comes later.
            swapped = {t["name"] for t in model["swapped"]} - {FILES.name(i) for i in unknown}
            self.assertEqual(swapped, {FILES.name(i) for i in force if force[i] != opened[i]}
                             - {FILES.name(i) for i in unknown})
        self.assertEqual(s.exit(), 0)
        return counts

    def test_perplexity(self):
        self.drive(["perplexity", *WINDOWS, *SMALL], SEED, 200 if SLOW else 30)

    def test_divergence(self):
        self.drive(["perplexity", "--kl-divergence", "--kl-divergence-base", "base.kld", *SMALL],
                   SEED + 1, 200 if SLOW else 30)


unittest.main(argv=sys.argv[:1])
