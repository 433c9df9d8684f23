#!/usr/bin/env python3
"""What is promised of every model, of random models of every architecture: two processes, also with
half of the layers each, give the bytes of one; so does a recorded base; replaced tensors give those
of a fresh start; memory stays below its bound; a cache's types, a sweep, a trace, a plan run.

usage: test_promises.py ASSAY SOURCE_DIR [SEED [ARCHITECTURE...]]
It takes some minutes, and is no test of the suite: scripts/check-all.sh runs it.
"""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
from evaluate import Evaluation  # noqa: E402
import rewrite  # noqa: E402

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
SPLIT = "--split", "layers"
UNDIVIDED = "some use the keys of others", "its 1 layers cannot be divided"  # layers that no cut divides
OWN = "run", "created", "command"  # members of a document that tell runs apart


class Trial:
    def __init__(self, assay, arch, seed, folder):
        self.rng, self.assay, self.folder = random.Random(f"{arch} {seed} promises"), assay, folder
        generated = architectures.generate(self.rng, arch)
        evaluation = Evaluation(generated, self.rng, n_windows=4)
        while evaluation.fixed:
            evaluation = Evaluation(generated, self.rng, n_windows=4)
        pairs, other = generated.pairs, rewrite.remade(generated.tensors, self.rng)
        self.base = rewrite.write(folder, pairs, generated.tensors, name="base.gguf")
        self.other = rewrite.write(folder, pairs, other, name="other.gguf")
        at = self.rng.randrange(len(other))
        mixed = generated.tensors[:at] + other[at:at + 1] + generated.tensors[at + 1:]
        self.mixed = rewrite.write(folder, pairs, mixed, name="mixed.gguf")
        self.mixed_name = other[at].name
        self.text = folder / "text"
        self.text.write_text(evaluation.text)
        self.windows = ["-f", self.text, "-c", evaluation.n - evaluation.n % 2]

    def run(self, *words, launch=(), fails=False):
        for _ in range(3):
            done = subprocess.run([*launch, self.assay, *map(str, words)], capture_output=True,
                                  text=True, cwd=self.folder)
            if not (done.returncode and "with PID 0 " in done.stderr):  # mpirun lost track of a rank
                break
        if done.returncode and not fails:
            raise ValueError(f"{' '.join(map(str, done.args))}: exit code {done.returncode}\n{done.stderr}")
        return done

    def machine(self):
        return ["-t", self.rng.randint(1, 3), "-b", self.rng.choice([1, 20, 400]), "--isa",
                self.rng.choice(["scalar", "avx2", "auto"])]

    def table(self, command, *words, launch=(), fails=False):
        """The bytes of the table of each token; None where the program refuses."""
        out, document = self.folder / "table", self.folder / f"{command}.json"
        done = self.run(command, *words, *self.machine(), "--per-token", out, "--json", document,
                        launch=launch, fails=fails)
        if done.returncode:
            self.refusal = done.stderr
            return None
        ran = json.loads(document.read_text())["run"]
        if ran["memory_peak_bytes"] > ran["memory_bound_bytes"]:
            raise ValueError(f"{words}: {ran['memory_peak_bytes']} bytes resident, at most "
                             f"{ran['memory_bound_bytes']} were announced")
        return out.read_bytes()

    def same(self, what, found, expected):
        if found != expected:
            raise ValueError(f"{what}: another table")

    def split(self, what, expected, command, *words):
        found = self.table(command, *words, *SPLIT, launch=MPIRUN, fails=True)
        if found is None and not any(why in self.refusal for why in UNDIVIDED):
            raise ValueError(f"{what}: {self.refusal}")
        if found is not None:
            self.same(what, found, expected)

    def processes(self):
        for model in (self.base, self.other):
            words = ["-m", model, *self.windows]
            alone = self.table("perplexity", *words)
            self.same("other threads and batches", self.table("perplexity", *words), alone)
            self.same("ranks", self.table("perplexity", *words, launch=MPIRUN), alone)
            self.split("split layers", alone, "perplexity", *words)
            rounded = [*words, "-ctk", "q8_0", "-ctv", "q8_0"]
            alone = self.table("perplexity", *rounded, fails=True)
            if alone is None:  # heads that are no multiple of a block
                if "of 32, the block of Q8_0" not in self.refusal:
                    raise ValueError(self.refusal)
                rounded = [*words, "-ctk", "f16", "-ctv", "f16"]
                alone = self.table("perplexity", *rounded)
            self.same("a cache's types", self.table("perplexity", *rounded), alone)
            self.split("a cache's types in split layers", alone, "perplexity", *rounded)
            self.run("plan", "perplexity", *words)
            self.run("info", model, "--tensors")
            if "nan" in self.run("trace", "-m", model, "-f", self.text, "-c", 8).stdout.lower():
                raise ValueError("a trace has a NaN")

    def references(self):
        words = ["-m", self.other, "--base", self.base, *self.windows]
        live = self.table("kld", *words)
        self.same("kld of ranks", self.table("kld", *words, launch=MPIRUN), live)
        self.split("kld of split layers", live, "kld", *words)
        self.run("record", "-m", self.base, *self.windows, "-o", "recorded")
        self.same("a recorded base", self.table("kld", "-m", self.other, "--base", "recorded"), live)
        sweeps = []
        for launch in ((), MPIRUN):
            document = self.folder / "sweep.json"
            self.run("sweep", "--base", self.base, "--from", self.other, *self.windows, *self.machine(),
                     "--json", document, launch=launch)
            sweeps.append({key: value for key, value in json.loads(document.read_text()).items()
                           if key not in OWN})
        if sweeps[0] != sweeps[1]:
            raise ValueError(f"a sweep of ranks: {sweeps}")

    def swaps(self):
        """A tensor, all of them, and back; the watching program is told by the file."""
        order = [self.base, self.mixed, self.other, self.base]
        fresh = [self.table("perplexity", "-m", model, *self.windows) for model in order]
        model, step = self.folder / "watched.gguf", self.folder / "step"
        shutil.copy(order[0], model)
        moves = "".join(f"{i}) cp {to} next.gguf; sleep 0.05; mv next.gguf {model};;"
                        for i, to in enumerate(order) if i > 0)
        step.write_text(f"n=$(($(cat n 2>/dev/null) + 1)); echo $n > n; cp watched.table watched.$n;"
                        f"case $n in {moves} esac")
        self.run("perplexity", "-m", model, *self.windows, *self.machine(), "--per-token",
                 "watched.table", "--watch-script", f"sh {step}")
        for i, expected in enumerate(fresh):
            found = (self.folder / f"watched.{i + 1}")
            self.same(f"swap {i} ({self.mixed_name})", found.exists() and found.read_bytes(), expected)


def main():
    if not shutil.which(MPIRUN[0]):
        print("mpirun is not installed")
        return 77
    seed, failed = int((sys.argv[3:4] or ["1"])[0]), 0
    chosen = sys.argv[4:] or architectures.FAMILIES
    for arch in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                trial = Trial(str(pathlib.Path(sys.argv[1]).resolve()), arch, seed, pathlib.Path(folder))
                trial.processes()
                trial.references()
                trial.swaps()
            except ValueError as why:
                print(f"{arch}, seed {seed}: {why}", flush=True)
                failed += 1
    print(f"{len(chosen)} architectures, {failed} failed")
    return failed > 0


sys.exit(main())
