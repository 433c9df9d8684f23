#!/usr/bin/env python3
"""What bench/gpu.sh writes down: rows of JSON lines, comparisons of documents, the last table.

usage: gpu_report.py note NAME RESULT DETAIL SECOND     a row about a step
       gpu_report.py find PATTERN                       a file of CUDA's, wherever it is installed
       gpu_report.py same A.json B.json                 documents equal but for `run`?
       gpu_report.py near A.json B.json                 estimates within 2e-4 of each other?
       gpu_report.py run RUN.json NAME                  a row about a run of assay
       gpu_report.py peer LOG NAME BEGUN N_INPUTS       a row about a run of llama-perplexity
       gpu_report.py document LOGS OUTPUT.json          everything; prints the table
"""
import collections
import fnmatch
import json
import math
import os
import pathlib
import re
import site
import statistics
import sys
import time


def note(name, result, detail, second):
    print(json.dumps({"name": name, "result": result, "detail": detail, "second": int(second)}))


def find(pattern):
    roots = [*pathlib.Path("/usr/local").glob("cuda*"), pathlib.Path("/usr/lib/x86_64-linux-gnu")]
    for packages in (*site.getsitepackages(), site.getusersitepackages()):
        roots.append(pathlib.Path(packages) / "nvidia")
    for root in roots:
        for folder, _, files in os.walk(root):
            for file in fnmatch.filter(files, pattern):
                print(os.path.join(folder, file))
                return


def first_difference(a, b, path=""):
    """The path of something that differs, with both values; None if nothing does."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        pairs = [(f"{path}.{key}", a[key], b[key]) for key in a]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = [(f"{path}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b))]
    else:
        return None if a == b else f"{path}: {str(a)[:60]} against {str(b)[:60]}"
    for name, x, y in pairs:
        difference = first_difference(x, y, name)
        if difference:
            return difference
    return None


def documents(*paths):
    return [json.loads(pathlib.Path(path).read_text()) for path in paths]


def same(path_a, path_b):
    a, b = documents(path_a, path_b)
    for document in (a, b):
        document.pop("run")
    sys.exit(first_difference(a, b))


def near(path_a, path_b):
    """The tokens' own tolerance is the tests'; a mean that is further off is a defect."""
    values = [math.log(document["result"]["ppl"]) for document in documents(path_a, path_b)]
    if not abs(values[0] - values[1]) <= 2e-4:
        sys.exit(f"ln PPL {values[0]!r} against {values[1]!r}")


def run(path, name):
    document = documents(path)[0]["run"]
    keep = ("seconds_to_load", "seconds", "seconds_forward", "seconds_head", "n_inputs",
            "tokens_per_second", "memory_peak_bytes", "phases")
    print(json.dumps({"name": name, **{key: document.get(key) for key in keep}}))


def peer(log, name, begun, n_inputs):
    """What the peer says about loading is taken off, as it is for assay."""
    seconds = time.time() - float(begun)
    load = re.search(r"load time = +([0-9.]+) ms", pathlib.Path(log).read_text(errors="replace"))
    evaluation = seconds - (float(load.group(1)) / 1000 if load else 0)
    print(json.dumps({"name": name, "seconds": evaluation, "n_inputs": int(n_inputs),
                      "tokens_per_second": int(n_inputs) / evaluation,
                      "seconds_with_load": seconds}))


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def document(logs, output):
    logs = pathlib.Path(logs)
    keys = ("card", "architecture", "driver", "clocks", "commit")
    result = {key: os.environ.get(key.upper()) for key in keys}
    try:
        kernels = documents(logs / "kernels.json")[0]
    except (OSError, ValueError):
        kernels = None
    result.update(steps=read_lines(logs / "steps.jsonl"), kernels=kernels,
                  runs=read_lines(logs / "runs.jsonl"))
    pathlib.Path(output).write_text(json.dumps(result, indent=1) + "\n")
    rates = collections.defaultdict(list)
    for row in result["runs"]:
        rates[row["name"]].append(row["tokens_per_second"])
    print(f"\n{'run':28} {'median tokens/s':>16}  all")
    for name, values in rates.items():
        print(f"{name:28} {statistics.median(values):16.1f}  " + " ".join(f"{v:.1f}" for v in values))
    for row in result["steps"]:
        if row["result"] == "FAILED":
            print(f"FAILED: {row['name']}: {row['detail']}")


if __name__ == "__main__":
    COMMANDS = {f.__name__: f for f in (note, find, same, near, run, peer, document)}
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
