#!/usr/bin/env python3
"""How a perplexity scales with threads: a simulation of one run from costs that are measured here
with one thread, checked against the run with two. bench/NOTES.md has a table that it made.

usage: threads.py ASSAY BENCH_POOL TEXT MODEL... [options]

  --threads N,N     numbers of threads to simulate                     (default: 1,2,8,16,32,64)
  --rounds N        runs with one thread and with two, in turn; the fastest count (default: 3)
  --windows N       windows of 512 tokens, evaluated in one batch      (default: 8)
  --socket-gbs X    GB/s that all threads get from memory at most      (default: 200, an assumption)

The model: every operation is a loop over tasks, cut as kernels/cpu/ cuts it for that many threads.
Tasks are claimed in order; the loop takes until the last thread ends, or until its bytes have come
from memory, whichever is longer, and what bench_pool says of beginning and ending it. A task takes
its share of what its phase took with one thread; decoding is paid again for every range of tokens
that a weight is cut into. Bytes: weights once in each tile of tokens, and everything that operations
read and write, as if no cache held any of it, but never more than one thread can have moved in the
time that it took. By how much cores that compute beside each other slow each other down is measured
with two runs at once, and taken for any number. Not in it: clocks that fall further, caches that
more cores share, and memory of another node.
"""
import argparse
import heapq
import json
import math
import multiprocessing
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import types

WINDOW = 512
LINE_S = 0.1e-6  # of one more thread that claims and leaves while it spins: an assumption
SPIN_S = 20e-6   # that threads wait before they sleep

# How work is cut, from where it is: constants by file.
ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {"kernels/cpu/gemm/gemm.c": ("ROUNDS", "ENOUGH_ROWS", "ENOUGH_PANELS"),
           "kernels/cpu/gemm/product.c": ("SLAB_INT16",),
           "kernels/cpu/score/score.c": ("CHUNK_ROWS", "LOGITS_FLOATS"),
           "kernels/cpu/rows.c": ("EMBED_ROWS", "ROWS", "ELEMENTS"),
           "kernels/cpu/attention/attention.c": ("SHARING", "THREAD_TASKS"),
           "kernels/cpu/kernels.h": ("KERN_PANEL",),
           "kernels/numerics/lanes.h": ("KERN_LANES", "KERN_SCORE_BLOCK"),
           "model/forward/forward.h": ("MODEL_TILE_TOKENS",)}
K = types.SimpleNamespace(**{
    name: eval(re.search(rf"\b{name} = ([\d <]+)", (ROOT / path).read_text())[1])
    for path, names in SOURCES.items() for name in names})
ROW_GRAIN = 12  # of products in 16-bit integers: kernels/cpu/gemm/product.c


def div_up(a, b):
    return -(-a // b)


def cut(rows, n_panels, n_threads, most_rows):
    """(tasks, ranges of panels) of a product."""
    rounds = K.ROUNDS
    while rounds > 1 and rows // (n_threads * rounds) < K.ENOUGH_ROWS:
        rounds -= 1
    if rounds * n_threads * most_rows < rows:
        rounds = div_up(rows, n_threads * most_rows)
    n_rows, own = div_up(rows, n_threads * rounds), n_panels
    if n_rows < K.ENOUGH_ROWS and n_panels >= 2 * K.ENOUGH_PANELS:
        n_rows = min(K.ENOUGH_ROWS, rows, most_rows)
        ranges = div_up(K.ROUNDS * n_threads, div_up(rows, n_rows))
        ranges = min(ranges, n_panels // K.ENOUGH_PANELS)
        own = div_up(n_panels, ranges)
        n_rows = min(n_rows, div_up(rows * ranges, n_threads))
    n_rows = div_up(n_rows, ROW_GRAIN) * ROW_GRAIN
    ranges = div_up(n_panels, own)
    return div_up(rows, n_rows) * ranges, ranges


class Loop:
    """Tasks (relative sizes, or a number of equal ones), seconds of one thread for all, bytes."""

    def __init__(self, seconds, tasks, n_bytes=0, n=1):
        self.seconds, self.tasks, self.bytes, self.n = seconds, tasks, n_bytes, n


def until_end(loop, n_threads):
    if isinstance(loop.tasks, int):
        return loop.seconds * div_up(loop.tasks, n_threads) / loop.tasks
    total, free = sum(loop.tasks), [0.0] * n_threads
    for size in loop.tasks:
        heapq.heappush(free, heapq.heappop(free) + size)
    return loop.seconds * max(free) / total


def loops_of_run(shape, cost, n_windows, n_threads, most_rows):
    """The loops of a batch of windows: each tile passes through each layer, then comes the head."""
    tokens = n_windows * WINDOW
    n_tiles, tile = div_up(tokens, K.MODEL_TILE_TOKENS), min(K.MODEL_TILE_TOKENS, tokens)
    panels, layers, loops = div_up(tile, K.KERN_PANEL), shape["layers"], []
    times = layers * n_tiles
    for rows, cols, n_bytes in shape["products"]:
        tasks, ranges = cut(rows, panels, n_threads, most_rows)
        loops.append(Loop(rows * cols * (cost["mac"] * tile + cost["decode"] * ranges), tasks,
                          n_bytes + tile * (2 * cols + 4 * rows), times))
    for cols in shape["packed"]:
        loops.append(Loop(cost["pack"] * cols * tile, panels, tile * cols * 6, times))
    plain = [("norm", width, rows) for width, rows in shape["norms"]]
    plain += [("rope", shape["q"], 1), ("rope", shape["kv"], 1), ("gate", shape["ff"], 1)]
    for name, width, rows in plain:
        n = width * rows * tile
        loops.append(Loop(cost[name] * n, div_up(rows * tile, max(K.ROWS, K.ELEMENTS // width)),
                          (12 if name == "gate" else 8) * n, times))
    least = div_up(K.SHARING, shape["group"])
    blocks = tile // K.KERN_PANEL
    shared = max(least, blocks * shape["kv_heads"] // (K.THREAD_TASKS * n_threads))
    parts = [size for i in range(div_up(WINDOW // K.KERN_PANEL, shared), 0, -1) for size in
             [i - 0.5] * (tile // WINDOW * shape["kv_heads"])]
    loops.append(Loop(cost["attention"], parts, 8 * tile * (shape["q"] + shape["kv"]), times))
    loops.append(Loop(cost["other"], div_up(tokens, K.EMBED_ROWS), 4 * tokens * shape["width"], 1))

    scored = n_windows * (WINDOW // 2 - 1)
    rows, cols, n_bytes = shape["head"]
    chunk = min(K.CHUNK_ROWS, scored)
    panels = div_up(chunk, K.KERN_PANEL)
    block = K.KERN_SCORE_BLOCK
    vocab = max(K.LOGITS_FLOATS // (panels * K.KERN_PANEL), 8 * block) // block * block
    vocab = min(vocab, rows)
    tasks, ranges = cut(vocab, panels, n_threads, most_rows)
    times = scored / chunk * rows / vocab
    loops.append(Loop(vocab * cols * (cost["head_mac"] * chunk + cost["decode"] * ranges), tasks,
                      n_bytes * vocab / rows + 4 * vocab * chunk, times))
    loops.append(Loop(cost["fold"] * vocab * chunk, div_up(chunk, K.KERN_LANES),
                      4 * vocab * chunk, times))
    loops.append(Loop(cost["pack"] * cols * chunk, panels, 6 * cols * chunk, scored / chunk))
    return loops


def simulate(shape, cost, pool, memory, o, n_threads):
    """Seconds, what they are lost to, and GB/s from memory."""
    loops = loops_of_run(shape, cost, o.windows, n_threads, cost["most_rows"])
    lost = dict.fromkeys(("busy", "ends", "waking", "finer cuts", "memory"), 0.0)
    seconds = work = n_bytes = 0.0
    busy = cost["busy"] if n_threads > 1 else 1
    gbs = min(memory[0] if n_threads == 1 else memory[1] / 2 * n_threads, o.socket_gbs)
    for loop in loops:
        end, even = busy * until_end(loop, n_threads), loop.seconds / n_threads
        n_now = min(loop.bytes, loop.seconds * memory[0] * 1e9)
        moved, wait = n_now / gbs / 1e9, 0.0
        if n_threads > 1:
            idle = end - busy * even
            wait = pool["sleeping"] + pool["wake"] * (n_threads - 2) if idle > SPIN_S else \
                pool["spinning"] + LINE_S * (n_threads - 2)
        lost["busy"] += loop.n * (busy - 1) * even
        lost["ends"] += loop.n * (end - busy * even)
        lost["waking"] += loop.n * wait
        lost["memory"] += loop.n * max(0.0, moved - end)
        seconds += loop.n * (max(end, moved) + wait)
        work += loop.n * loop.seconds
        n_bytes += loop.n * n_now
    lost["finer cuts"] = (work - cost["work"]) / n_threads
    return seconds, lost, n_bytes / seconds / 1e9


def shape_of(assay, model):
    told = json.loads(subprocess.run([assay, "info", "--json", "--tensors", model], check=True,
                                     stdout=subprocess.PIPE).stdout)
    h = told["hyperparameters"]
    shape = {"layers": h["n_layers"], "width": h["n_embd"], "ff": h["n_ff"],
             "kv_heads": h["n_kv_heads"], "group": h["n_heads"] // h["n_kv_heads"],
             "q": h["n_heads"] * h["head_size"], "kv": h["n_kv_heads"] * h["head_size"],
             "products": [], "norms": []}
    by_name = {t["name"]: t for t in told["tensors"]}
    for name, t in by_name.items():
        part = re.fullmatch(r"blk\.0\.(.*)\.weight", name)
        if part and len(t["ne"]) == 2:  # the bytes of all layers, whose types may differ
            n_bytes = sum(other["n_bytes"] for key, other in by_name.items()
                          if key.endswith("." + part[1] + ".weight")) / h["n_layers"]
            shape["products"].append((t["ne"][1], t["ne"][0], n_bytes))
        elif part and len(t["ne"]) > 2:
            sys.exit(f"{model}: has experts, which are not simulated")
        elif part and "norm" in part[1]:
            heads = {"attn_q_norm": h["n_heads"], "attn_k_norm": h["n_kv_heads"]}.get(part[1], 1)
            shape["norms"].append((t["ne"][0], heads))
    shape["packed"] = [h["n_embd"], shape["q"], h["n_embd"], h["n_ff"]]
    head = by_name.get("output.weight", by_name["token_embd.weight"])
    shape["head"] = (head["ne"][1], head["ne"][0], head["n_bytes"])
    return shape


def costs(shape, phases, o):
    """Seconds of one thread for a unit of each phase."""
    tokens, layers = o.windows * WINDOW, shape["layers"]
    tiles, scored = div_up(tokens, K.MODEL_TILE_TOKENS), o.windows * (WINDOW // 2 - 1)
    tile = min(K.MODEL_TILE_TOKENS, tokens)
    head = shape["head"][0] * shape["head"][1]
    chunks = scored / min(K.CHUNK_ROWS, scored)
    weights = layers * sum(rows * cols for rows, cols, _ in shape["products"])
    packed = layers * tokens * sum(shape["packed"]), scored * shape["head"][1]
    cost = {"decode": phases["decode"] / (tiles * weights + chunks * head),
            "pack": phases["pack"] / sum(packed),
            "fold": phases["fold"] / (scored * shape["head"][0]),
            "other": phases["other"], "attention": phases["attention"] / (tiles * layers),
            "norm": phases["norm"] / (tokens * layers * sum(w * r for w, r in shape["norms"])),
            "rope": phases["rope"] / (tokens * layers * (shape["q"] + shape["kv"])),
            "gate": phases["gate"] / (tokens * layers * shape["ff"])}
    cost["mac"] = (phases["linear"] - cost["decode"] * tiles * weights - cost["pack"] * packed[0]) \
        / (weights * tokens)
    cost["head_mac"] = (phases["score"] - phases["fold"] - cost["decode"] * chunks * head
                        - cost["pack"] * packed[1]) / (head * scored)
    l2 = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
    row_floats = K.SLAB_INT16 // 2 + 3 * K.SLAB_INT16 // 32
    cost["most_rows"] = int(l2.rstrip("K")) * 1024 // 2 // 4 // row_floats
    cost["work"] = sum(l.n * l.seconds for l in loops_of_run(shape, cost, o.windows, 1, cost["most_rows"]))
    return cost


def command(o, model, n_threads):
    return [o.assay, "perplexity", "-m", model, "-f", o.text, "--chunks", str(o.windows),
            "-b", str(o.windows * WINDOW), "-t", str(n_threads), "--force", "--json"]


def evaluate(o, model, n_threads, n_at_once=1):
    """Seconds of a run, the mean of several at once, and its phases."""
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{i}.json" for i in range(n_at_once)]
        for run in [subprocess.Popen([*command(o, model, n_threads), name], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL) for name in names]:
            if run.wait():
                sys.exit(f"{model}: failed with {n_threads} threads")
        told = [json.loads(pathlib.Path(name).read_text())["run"] for name in names]
    return statistics.mean(run["seconds"] for run in told), told[0]["phases"]


def memory_bound(o, model, n_threads):
    """MB that the program says it may take, before it evaluates."""
    with subprocess.Popen([*command(o, model, n_threads), "/dev/null"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as run:
        for line in run.stderr:
            found = re.search(r"memory: at most ([\d.]+) MB", line)
            if found:
                run.kill()
                return float(found[1])
    sys.exit(f"{model}: nothing is said of memory")


def read_memory(_):
    """GB/s of one process that looks for a byte which is not there."""
    data, best = bytearray(1 << 29), 0.0
    for _ in range(4):
        began = time.monotonic()
        data.find(1)
        best = max(best, len(data) / (time.monotonic() - began) / 1e9)
    return best


def bandwidth():
    """(GB/s of one core, of two)"""
    with multiprocessing.Pool(2) as pool:
        return read_memory(0), sum(pool.map(read_memory, range(2), chunksize=1))


def pool_costs(program):
    """Seconds of bench_pool's columns: with two threads, and of one more that is woken."""
    lines = subprocess.run([program, "2", "64"], check=True, stdout=subprocess.PIPE, text=True).stdout
    two, many = [[float(x) * 1e-6 for x in line.split()[1:]] for line in lines.splitlines()[-2:]]
    return {"spinning": two[0], "sleeping": two[1], "wake": max(0.0, (many[2] - two[2]) / 62)}


def processor():
    names = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{len(names)} processors, {names[0]}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("assay", "bench_pool", "text"):
        parser.add_argument(name)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", default="1,2,8,16,32,64")
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--socket-gbs", type=float, default=200)
    o = parser.parse_args()
    pool, memory = pool_costs(o.bench_pool), bandwidth()
    print(f"{processor()}; memory: {memory[0]:.1f} GB/s with one thread, {memory[1]:.1f} with two; a "
          f"loop: {1e6 * pool['spinning']:.1f} us spinning, {1e6 * pool['sleeping']:.1f} sleeping, "
          f"{1e6 * pool['wake']:.2f} for each further thread\n")
    print("| model | threads | seconds | measured | speed-up | busy cores | ends of loops | waking "
          "| finer cuts | memory | GB/s | memory bound, MB |\n| --- |" + " ---: |" * 11)
    for model in o.models:
        shape, alone, both, two = shape_of(o.assay, model), [], [], []
        for _ in range(o.rounds):
            alone.append(evaluate(o, model, 1))
            both.append(evaluate(o, model, 1, 2)[0])
            two.append(evaluate(o, model, 2)[0])
        best = min(alone, key=lambda run: run[0])
        measured, phases = {1: best[0], 2: min(two)}, best[1]
        cost, one = costs(shape, phases, o), None
        cost["busy"] = min(both) / measured[1]
        for n in (int(word) for word in o.threads.split(",")):
            seconds, lost, gbs = simulate(shape, cost, pool, memory, o, n)
            one = one or seconds
            shares = " | ".join(f"{abs(100 * part / seconds):.0f} %" for part in lost.values())
            print(f"| {pathlib.Path(model).stem} | {n} | {seconds:.3f} | "
                  + (f"{measured[n]:.3f}" if n in measured else "")
                  + f" | {one / seconds:.1f} | {shares} | {gbs:.0f} "
                  f"| {memory_bound(o, model, n):.0f} |", flush=True)


if __name__ == "__main__":
    main()
