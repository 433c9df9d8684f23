#!/usr/bin/env python3
"""What bench/gpu.sh writes down: rows of JSON lines, comparisons of documents, the last table.

usage: gpu_report.py find PATTERN                       a file of CUDA's, wherever it is installed
       gpu_report.py same A.json B.json                 documents equal but for `run`?
       gpu_report.py near A.json B.json                 estimates within 2e-4 of each other?
       gpu_report.py run RUN.json NAME                  a row about a run of assay
       gpu_report.py peer LOG NAME BEGUN ENDED N_INPUTS a row about a run of llama-perplexity
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

import gpu_model


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
    document = documents(path)[0]
    keep = ("seconds_to_load", "seconds", "seconds_forward", "seconds_head", "n_inputs",
            "tokens_per_second", "memory_peak_bytes", "phases")
    row = {"name": name, **{key: document["run"].get(key) for key in keep}}
    windows = document.get("windows") or {}
    row.update(n_ctx=windows.get("n_tokens"), n_scored=document.get("result", {}).get("n_tokens"))
    print(json.dumps(row))


def stamp(log, pattern):
    """Seconds from the peer's start to the line, as it stamps them (minutes.seconds.ms.us)."""
    match = re.search(r"^(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) .*" + pattern, log, re.MULTILINE)
    if not match:
        return None
    minutes, seconds, milliseconds, microseconds = map(int, match.groups())
    return 60 * minutes + seconds + 1e-3 * milliseconds + 1e-6 * microseconds


def peer(log, name, begun, ended, n_inputs):
    """The evaluation, without loading and tokenising, as for assay; to the estimate or the end."""
    whole = float(ended) - float(begun)
    text = pathlib.Path(log).read_text(errors="replace")
    start, end = stamp(text, "(?:calculating|computing) .*over"), stamp(text, "Final estimate")
    seconds = (whole if end is None else end) - (start or 0)
    print(json.dumps({"name": name, "seconds": seconds, "n_inputs": int(n_inputs),
                      "tokens_per_second": int(n_inputs) / seconds, "seconds_with_load": whole,
                      "without_load": start is not None}))


OPERATIONS = ("linear", "attention", "score", "norm", "rope", "gate", "other")


def arithmetic(row):
    """Operations of the products and of attention in a run that evaluates one model; None of a
    shape that the model of times does not have."""
    shape = gpu_model.SHAPES.get(row["name"].split()[0])
    if not shape:
        return None
    n_layers, width, n_ff, n_kv, n_vocab, _ = shape
    layer = 2 * width * (2 * width + 2 * n_kv + 3 * n_ff) + 2 * width * row["n_ctx"]
    return row["n_inputs"] * n_layers * layer + 2 * row["n_scored"] * width * n_vocab


def share_of_ceiling(row, ceiling):
    """Of `fast` runs; `high` has three products, its ceiling is a third. None for what has more."""
    words = row["name"].split()
    if not ceiling or "perplexity" not in words or words[-1] not in ("fast", "high"):
        return None
    operations = arithmetic(row)
    products = 3 if words[-1] == "high" else 1
    return operations and products * operations / ceiling / row["seconds"]


def summary(runs, kernels):
    """A line for each kind of run: medians, shares, and how it stands to the peer's better size."""
    ceiling = max((k["flops"] / k["seconds"] for k in kernels or () if k["name"] == "ceiling"),
                  default=None)
    rows = collections.defaultdict(list)
    for row in runs:
        if row.get("tokens_per_second") and row.get("seconds"):
            rows[row["name"]].append(row)
    rates = {name: statistics.median(r["tokens_per_second"] for r in group)
             for name, group in rows.items()}
    lines = []
    for name, group in rows.items():
        task, plain = " ".join(name.split()[:3]), " ".join(name.split()[:2]) + " perplexity fast"
        peers = [rate for other, rate in rates.items() if other.startswith(task + " peer")]
        shares = [share_of_ceiling(row, ceiling) for row in group]
        busy = [sum(row["phases"][p] for p in OPERATIONS) / row["seconds"]
                for row in group if row.get("phases")]
        lines.append({
            "name": name, "tokens_per_second": rates[name],
            "all": [round(row["tokens_per_second"], 1) for row in group],
            "share_of_ceiling": None if None in shares else statistics.median(shares),
            "device_in_operations": statistics.median(busy) if busy else None,
            "times_peer": rates[name] / max(peers) if peers and " peer" not in name else None,
            "of_perplexity": rates[plain] / rates[name] if plain in rates else None})
    return lines


def print_summary(lines):
    print(f"\n{'run':36} {'tokens/s':>10} {'of ceiling':>10} {'in ops':>7} {'x peer':>7} {'x time':>7}  all")
    for line in lines:
        cells = [f"{100 * line[key]:.1f} %" if line[key] is not None else "-"
                 for key in ("share_of_ceiling", "device_in_operations")]
        times, longer = (f"{line[key]:.2f}" if line[key] else "-"
                         for key in ("times_peer", "of_perplexity"))
        print(f"{line['name']:36} {line['tokens_per_second']:10.1f} {cells[0]:>10} {cells[1]:>7} "
              f"{times:>7} {longer:>7}  " + " ".join(f"{v:.1f}" for v in line["all"]))


def reckoned(card, row):
    """What gpu_model.py says of a run of perplexity; None of another, or on another card."""
    known = next((name for name in gpu_model.CARDS if name in (card or "")), None)
    shape, kind, task, precision = (row["name"].split() + [""] * 4)[:4]
    kind = kind.replace("Q4_K_M", "Q4_K")
    if not (known and task == "perplexity" and precision in ("fast", "high", "exact") and
            row.get("phases") and shape in gpu_model.SHAPES and kind in gpu_model.PACKED):
        return None
    return gpu_model.reckon(known, shape, precision, kind, row["n_inputs"], row["n_ctx"],
                            row["n_scored"])


def beside_reckoned(card, runs):
    """Of the first run of each kind, and each phase: seconds measured, and reckoned."""
    rows, seen = [], set()
    for row in runs:
        expected = None if row["name"] in seen else reckoned(card, row)
        seen.add(row["name"])
        for phase, seconds in (expected or {"phases": {}})["phases"].items():
            rows.append({"name": row["name"], "phase": phase, "measured": row["phases"].get(phase),
                         "reckoned": seconds})
    return rows


def print_beside_reckoned(rows):
    if rows:
        print(f"\n{'run':36} {'phase':10} {'measured s':>11} {'reckoned s':>11}   (gpu_model.py)")
    for row in rows:
        measured = "-" if row["measured"] is None else f"{row['measured']:.4f}"
        print(f"{row['name']:36} {row['phase']:10} {measured:>11} {row['reckoned']:11.4f}")


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write(result, output):
    pathlib.Path(output).write_text(json.dumps(result, indent=1) + "\n")


def document(logs, output):
    logs = pathlib.Path(logs)
    keys = ("card", "architecture", "driver", "clocks", "commit")
    result = {key: os.environ.get(key.upper()) for key in keys}
    try:
        kernels = documents(logs / "kernels.json")[0]
    except (OSError, ValueError):
        kernels = None
    runs = read_lines(logs / "runs.jsonl")
    result.update(steps=read_lines(logs / "steps.jsonl"), kernels=kernels, runs=runs)
    write(result, output)  # what was measured is kept, whatever becomes of the tables
    result.update(summary=summary(runs, kernels), reckoned=beside_reckoned(result["card"], runs))
    write(result, output)
    print_summary(result["summary"])
    print_beside_reckoned(result["reckoned"])
    for row in result["steps"]:
        if row["result"] == "FAILED":
            print(f"FAILED: {row['name']}: {row['detail']}")


if __name__ == "__main__":
    COMMANDS = {f.__name__: f for f in (find, same, near, run, peer, document)}
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
