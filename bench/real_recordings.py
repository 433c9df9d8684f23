#!/usr/bin/env python3
"""Right and wrong recordings of real models: docs/evidence.md says what came out.

usage: real_recordings.py ASSAY LLAMA_PERPLEXITY TEXT PLACE MODEL.gguf... [--nearest N]

llama-perplexity records two windows of each model, with and without tiled products, and assay
check holds each recording against every model of its family (what a file's name begins with, up to
the first dot), or against the N that are nearest in size. Results stay in PLACE, so that a run that
was stopped goes on; recordings do not.
"""
import argparse
import filecmp
import json
import os
import pathlib
import subprocess

parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("assay")
parser.add_argument("llama")
parser.add_argument("text")
parser.add_argument("place", type=pathlib.Path)
parser.add_argument("models", type=pathlib.Path, nargs="+")
parser.add_argument("--nearest", type=int)
arguments = parser.parse_args()
assay, llama, text, place, models = (arguments.assay, arguments.llama, arguments.text,
                                     arguments.place, arguments.models)
DOUBTED = "differs", "other rounding"


def record(model, tiled):
    """What llama-perplexity records of a model."""
    out = place / f"{model.stem}.{tiled}.kld"
    if not out.exists():
        part = place / f"part.{model.stem}"
        subprocess.run([llama, "-m", model, "-f", text, "-c", "512", "--chunks", "2", "-t", "1",
                        "--kl-divergence-base", part], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env=os.environ | {"GGML_CPU_TILED_MM": str(tiled)})
        part.rename(out)
    return out


def checked(model, recorded):
    """The object `budget` of a check."""
    out = place / f"{recorded.stem}.as.{model.stem}.json"
    if not out.exists():
        right = recorded.name.startswith(model.stem + ".")
        subprocess.run([assay, "check", "-q", "-t", "1", "-m", model, "--base", recorded, "--json",
                        out, "--precision", "exact" if right else "high"], check=True,
                       stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())["budget"]


def of_family(recorded_model):
    """What is told of one file's recordings: (tiled, not tiled or None, {wrong model: budget})."""
    others = sorted((m for m in models if m != recorded_model and
                     m.name.split(".")[0] == recorded_model.name.split(".")[0]),
                    key=lambda m: abs(m.stat().st_size - recorded_model.stat().st_size))
    done = place / f"{recorded_model.stem}.nearest-{arguments.nearest}.done.json"
    if not done.exists():
        tiled, rows = record(recorded_model, 1), record(recorded_model, 0)
        same = filecmp.cmp(tiled, rows, shallow=False)
        found = [checked(recorded_model, tiled), None if same else checked(recorded_model, rows),
                 {m.name: checked(m, tiled) for m in others[:arguments.nearest]}]
        done.write_text(json.dumps(found))
        tiled.unlink()
        rows.unlink()
    return json.loads(done.read_text())


def cell(b):
    return f"{b['times']:.2f}, {100 * b['shared']:.0f} %" if b else "the same bits"


n_right = n_false = n_wrong = n_missed = 0
print("| recorded | budget | tiled: times it, shared | not tiled | the nearest wrong file |")
print("| --- | ---: | --- | --- | --- |")
for model in models:
    tiled, rows, wrong = of_family(model)
    right = [b for b in (tiled, rows) if b]
    missed = [name for name, b in wrong.items() if b["verdict"] not in DOUBTED]
    nearest = min(wrong, key=lambda name: wrong[name]["times"]) if wrong else "-"
    print(f"| {model.stem} | {tiled['kld']:.2e} | {cell(tiled)} | {cell(rows)} | {nearest}: "
          f"{cell(wrong.get(nearest))}{''.join(', not doubted: ' + m for m in missed)} |", flush=True)
    n_right += len(right)
    n_false += sum(b["verdict"] != "agrees" for b in right)
    n_wrong += len(wrong)
    n_missed += len(missed)
print(f"\n{n_right} right recordings, {n_false} of them doubted; {n_wrong} wrong ones, {n_missed} of "
      "them not")
