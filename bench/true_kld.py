#!/usr/bin/env python3
"""What a KL divergence truly is, and what llama-perplexity prints: the table of the README.

usage: true_kld.py ASSAY LLAMA_BIN MODELS TEXT [--base tiny.F16] [--precision exact]
                   [--truth FILE] [--figures FILE]

ASSAY: the program. LLAMA_BIN: a folder with llama-perplexity and llama-quantize. MODELS: a folder
of GGUF files. Every model is compared with the base over 16 windows of 256 tokens of TEXT, four
times:
- by llama-perplexity, as people run it;
- by llama-perplexity with both models' weights written out in float32 first, so that it rounds no
  activations; what is left is its base file's 16 bits;
- by assay kld, with --precision exact unless told otherwise;
- where --truth names a file of float64 results (lines "MODEL<tab>kld VALUE ..."), by that.
Prints a Markdown table, the smallest divergence first. --figures: also writes every figure that
llama-perplexity printed with weights in float32, as tests/data/kld-float32.tsv holds them.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SHAPE = ["-c", "256"]
EXACT = ["-fa", "off", "-ctk", "f32", "-ctv", "f32"]
NUMBER = r"-?\d+\.\d+"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("assay", "llama_bin", "models", "text"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--base", default="tiny.F16")
    parser.add_argument("--precision", default="exact")
    parser.add_argument("--truth", type=pathlib.Path)
    parser.add_argument("--figures", type=pathlib.Path)
    return parser.parse_args()


class Llama:
    """llama-perplexity, told to compare; it now and then ends without its summary."""

    def __init__(self, options, folder):
        self.o, self.folder = options, folder

    def perplexity(self, model, *words):
        for _ in range(20):
            done = subprocess.run(
                [self.o.llama_bin / "llama-perplexity", "-m", model, "-f", self.o.text, "-b", "256",
                 *SHAPE, *words], capture_output=True, text=True)
            if "--kl-divergence" not in words or "Same top p:" in done.stdout:
                return done.stdout
        sys.exit(f"{model}: no summary in twenty runs:\n{done.stderr[-1000:]}")

    def in_float32(self, model):
        out = self.folder / "float32.gguf"
        subprocess.run([self.o.llama_bin / "llama-quantize", "--allow-requantize", model, out,
                        "F32"], check=True, capture_output=True)
        return out

    def record(self, model, name, *words):
        base = self.folder / name
        self.perplexity(model, "--chunks", "16", "--kl-divergence-base", base, *words)
        return base

    def compare(self, model, base, *words):
        return self.perplexity(model, "--kl-divergence-base", base, "--kl-divergence", *words)


def figures(printed):
    """{label: value, and label with ± behind it: uncertainty} of the last three blocks."""
    found = {}
    for line in printed.split("====== Perplexity statistics")[1].splitlines():
        match = re.match(rf"([^:]+:)\s*({NUMBER})%?(?: ± +({NUMBER}))?", line)
        if match:
            found[match[1]] = match[2]
            if match[3]:
                found[match[1] + "±"] = match[3]
    return found


def truths(path):
    lines = path.read_text().splitlines() if path else []
    return {line.split("\t")[0]: float(re.search(r"kld (\S+)", line)[1]) for line in lines}


def shown(value):
    """Six decimals as llama-perplexity has, one more for what is small."""
    return f"{value:.7f}" if value < 1e-4 else f"{value:.6f}"


def main():
    o = arguments()
    truth = truths(o.truth)
    models = sorted(p for p in o.models.glob(o.base.split(".")[0] + ".*.gguf") if p.stem != o.base)
    base = o.models / (o.base + ".gguf")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        llama = Llama(o, folder)
        result = folder / "r.json"
        subprocess.run([o.assay, "kld", "-q", *(w for m in models for w in ("-m", m)), "--base",
                        base, "-f", o.text, *SHAPE, "--chunks", "16", "--precision", o.precision,
                        "--json", result],
                       check=True, capture_output=True)
        ours = {m.stem: c["kld"]["mean"]
                for m, c in zip(models, json.loads(result.read_text())["candidates"])}
        as_it_is = llama.record(base, "base.kld")
        exact = llama.record(llama.in_float32(base), "base32.kld", *EXACT)
        rows, every = [], {}
        for m in models:
            print(m.stem, file=sys.stderr)
            printed = figures(llama.compare(m, as_it_is))
            every[m.stem] = figures(llama.compare(llama.in_float32(m), exact, *EXACT))
            rows.append((ours[m.stem], m.stem.split(".")[1], printed["Mean    KLD:"],
                         every[m.stem]["Mean    KLD:"], truth.get(m.stem)))
    print("| | llama-perplexity | the same, weights in float32 | `assay kld` | float64 |\n"
          "| --- | ---: | ---: | ---: | ---: |")
    for own, name, printed, in32, true in sorted(rows):
        print(f"| {name} | {printed} | {in32} | {shown(own)} | {shown(true) if true else ''} |")
    if o.figures:
        labels = list(next(iter(every.values())))
        lines = ["\t".join(["model", *labels])]
        lines += ["\t".join([name, *(f[label] for label in labels)]) for name, f in every.items()]
        o.figures.write_text("\n".join(lines) + "\n")


main()
