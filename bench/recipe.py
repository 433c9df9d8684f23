#!/usr/bin/env python3
"""Is the additive model of recipes true? And is an optimal recipe better than a uniform type?

usage: recipe.py ASSAY MODELS TEXT [--base tiny.F16] [--from TYPE,TYPE,...] [--sweep FILE]
                 [--check-sweep] [--recipes 32] [--chunks 8] [--seed 1] [--keep FOLDER]

ASSAY: the program. MODELS: a folder with BASE.gguf and tiny.TYPE.gguf. All divergences are from the
base, over windows of 256 tokens of TEXT, with --precision exact.
1. assay sweep, or --sweep FILE: its document. --check-sweep: for each of its figures a file in which
   those tensors alone are replaced (assay mix), measured by assay kld; they must be the same.
2. Random recipes: tensors and types drawn at random, mixed, measured, compared with the sum of
   what the sweep has of them.
3. For each TYPE, the best recipe of at most its bits per weight (assay recipe --bpw), mixed and
   measured beside the file of that type, on these windows and on as many behind them.
Prints Markdown; docs/sweep.md has a run of it. Exit code 1 where a recipe is worse than the best
file of its size or smaller, or a figure of the sweep is wrong; 77 where there are no such models.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

TYPES = "IQ1_M,IQ2_XS,Q2_K_S,IQ3_XXS,IQ3_S,Q3_K_S,IQ4_XS,Q4_K_S,Q5_K_S,Q6_K,Q8_0"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("assay", "models", "text"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--base", default="tiny.F16")
    parser.add_argument("--from", default=TYPES, dest="types")
    parser.add_argument("--sweep", type=pathlib.Path)
    parser.add_argument("--check-sweep", action="store_true")
    parser.add_argument("--recipes", type=int, default=32)
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    return parser.parse_args()


class Bench:
    def __init__(self, o, folder):
        self.o, self.folder = o, folder
        self.base = o.models / f"{o.base}.gguf"
        self.types = o.types.split(",")
        self.files = [self.base] + [o.models / f"tiny.{t}.gguf" for t in self.types]
        self.info = [json.loads(self.run("info", "--tensors", "--json", f)) for f in self.files]
        self.tensors = [{t["name"]: t for t in i["tensors"]} for i in self.info]

    def run(self, *words):
        done = subprocess.run([self.o.assay, *words], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def identity(self, f):
        return {"file": str(self.files[f]), "id": self.info[f]["model_id"]}

    def mix(self, name, choice):
        """A file: tensors by name to the number of the file that they come from."""
        recipe = {"schema": "assay-recipe", "schema_version": 1,
                  "files": [self.identity(f) for f in range(len(self.files))],
                  "tensors": [{"name": n, "type": self.tensors[f][n]["type"], "file": f}
                              for n, f in choice.items()]}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(recipe))
        return self.mix_file(path)

    def mix_file(self, recipe):
        out = recipe.with_suffix(".gguf")
        self.run("mix", recipe, "-o", out, "--force", "-q")
        return out

    def measure(self, models, first=0):
        """Mean divergences of models from the base, and their errors; 40 models in one pass."""
        figures = []
        for i in range(0, len(models), 40):
            words = [w for m in models[i:i + 40] for w in ("-m", m)]
            text = self.run("kld", "-q", "--base", self.base, "-f", self.o.text, "-c", "256",
                            "--chunk-from", str(first), "--chunks", str(self.o.chunks),
                            "--precision", "exact", "--json", "-", *words)
            figures += [{"mean": c["kld"]["mean"], "se": c["kld"]["mean_error"],
                         "lot_se": c["kld"]["mean_lot_error"]}
                        for c in json.loads(text)["candidates"]]
        return figures

    def sweep(self, path):
        words = [w for f in self.files[1:] for w in ("--from", f)]
        self.run("sweep", "-q", "--base", self.base, *words, "-f", self.o.text, "-c", "256",
                 "--chunks", str(self.o.chunks), "--precision", "exact", "--json", path)


def check_sweep(bench, sweep):
    """Each figure of the sweep by a file of its own. Returns how many are not the same."""
    swaps = [(g, c) for g in sweep["groups"] for c in g["choices"]]
    models = [bench.mix(f"swap.{i}", {t: c["candidate"] + 1 for t in g["tensors"]})
              for i, (g, c) in enumerate(swaps)]
    n_wrong = sum(c["kld"] != figure for (_, c), figure in zip(swaps, bench.measure(models)))
    for model in models:
        model.unlink()
    print(f"{n_wrong} of {len(swaps)} figures of the sweep are not those of a whole run.\n")
    return n_wrong


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0.0] * len(values)
    for rank, i in enumerate(order):
        out[i] = float(rank)
    return out


def correlation(x, y):
    mx, my = sum(x) / len(x), sum(y) / len(y)
    xy = sum((a - mx) * (b - my) for a, b in zip(x, y))
    return xy / (sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y)) ** 0.5


def draw(rng, sweep):
    """A recipe: types near a size of its own, some tensors anything."""
    n_files = len(sweep["candidates"])
    centre, spread = rng.uniform(0, n_files), rng.uniform(0.5, n_files)
    choice = {}
    for group in sweep["groups"]:
        files = [0] + [c["candidate"] + 1 for c in group["choices"]]
        near = sorted(files, key=lambda f: abs((f or n_files + 1) - rng.gauss(centre, spread)))
        choice[group["name"]] = near[0]
    return choice


def predicted(sweep, choice):
    kld = {(g["name"], c["candidate"] + 1): c["kld"]["mean"]
           for g in sweep["groups"] for c in g["choices"]}
    return sum(kld.get((n, f), 0) for n, f in choice.items())


def random_recipes(bench, sweep):
    rng = random.Random(bench.o.seed)
    choices = [draw(rng, sweep) for _ in range(bench.o.recipes)]
    tensors = {g["name"]: g["tensors"] for g in sweep["groups"]}
    models = [bench.mix(f"random.{i}", {t: f for n, f in c.items() for t in tensors[n]})
              for i, c in enumerate(choices)]
    sizes = [json.loads(bench.run("info", "--json", m))["total"] for m in models]
    measured = bench.measure(models)
    rows = []
    for choice, size, m in zip(choices, sizes, measured):
        p = predicted(sweep, choice)
        rows.append((size["bits_per_weight"], p, m["mean"], m["se"], p / m["mean"] - 1))
    print("| bpw | predicted | measured | off by |\n| ---: | ---: | ---: | ---: |")
    for bpw, p, m, se, off in sorted(rows):
        print(f"| {bpw:.3f} | {p:.6f} | {m:.6f} ± {se:.6f} | {100 * off:+.1f} % |")
    off = sorted(abs(r[4]) for r in rows)
    rank = correlation(ranks([r[1] for r in rows]), ranks([r[2] for r in rows]))
    print(f"\n{len(rows)} recipes: rank correlation {rank:.4f}; off by {100 * off[len(off) // 2]:.1f} "
          f"% in the median, {100 * off[-1]:.1f} % at most.\n")


def optimal_recipes(bench, path):
    """Beside each uniform file the best recipe of its bits per weight. Returns how many are worse."""
    rows, models = [], []
    for f in range(1, len(bench.files)):
        bpw = bench.info[f]["total"]["bits_per_weight"]
        recipe = bench.folder / f"best.{bench.types[f - 1]}.json"
        bench.run("recipe", path, "--bpw", repr(bpw), "--json", recipe)
        rows.append((bpw, bench.types[f - 1], json.loads(recipe.read_text())["predicted"]))
        models += [bench.files[f], bench.mix_file(recipe)]
    both = zip(bench.measure(models), bench.measure(models, bench.o.chunks))
    there = [(here["mean"], behind["mean"]) for here, behind in both]
    rows = sorted((*row, *there[2 * i:2 * i + 2]) for i, row in enumerate(rows))
    print("| bpw | file | its KLD | recipe: bpw | predicted | measured | of the file's "
          "| on other windows |\n| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    n_worse, best = 0, float("inf")
    for bpw, name, p, uniform, recipe in rows:
        best = min(best, uniform[0])
        n_worse += recipe[0] > best
        print(f"| {bpw:.3f} | {name} | {uniform[0]:.6f} | {p['bits_per_weight']:.3f} "
              f"| {p['kld']['mean']:.6f} | {recipe[0]:.6f} "
              f"| {100 * recipe[0] / uniform[0]:.1f} % | {100 * recipe[1] / uniform[1]:.1f} % |")
    print(f"\n{n_worse} of {len(rows)} recipes are worse than the best file of their size.\n")
    return n_worse


def main():
    o = arguments()
    if not o.models.exists():
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        folder = o.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        bench = Bench(o, folder)
        path = o.sweep or folder / "sweep.json"
        if not o.sweep:
            bench.sweep(path)
        sweep = json.loads(path.read_text())
        if [c["id"] for c in sweep["candidates"]] != [i["model_id"] for i in bench.info[1:]]:
            sys.exit(f"{path}: is of other models than --from")
        n_wrong = check_sweep(bench, sweep) if o.check_sweep else 0
        random_recipes(bench, sweep)
        sys.exit(1 if optimal_recipes(bench, path) + n_wrong else 0)


if __name__ == "__main__":
    main()
