#!/usr/bin/env python3
"""What the CUDA backend should take on a card: reckoned, not measured.

usage: gpu_model.py [--card NAME] [--shape NAME] [--precision fast|high|int16|exact] [--type Q4_K]
                    [--context 512] [--tokens 8192] [--counts FILE] [--margin] [--kernels]
       gpu_model.py --table [--counts FILE]
Without a choice all cards and shapes are printed, for `fast` and `high`. int16 is `high` with
products in 16-bit integers, as some cards have it (docs/cuda.md). --kernels prints instead,
for each kernel, the time of a thousand million units of its work and what bounds it. --margin takes
peak and memory as far below the data sheet as an H100 was measured: 798 of 989 TFLOP/s in halves,
3.0 of 3.35 TB/s. --table prints tokens per second, by the data sheet and with that margin.
--counts: another file of counts, such as that of an earlier commit.

A kernel takes as long as the slowest of what it needs, as if all else ran beside that: memory, the
second-level cache, shared memory, the instructions of each pipe. Counts are those of
bench/gpu_counts.json, which the interpreter of the compiled kernels made. Products by cuBLAS take
the card's peak, or the memory's time. Nothing is added for launches, latencies, waiting at
barriers and clocks below the nominal one; so a card takes longer. Integer instructions are those
of PTX, of which a device needs fewer: where they bind, it may take less.
"""
import argparse
import json
import math
import pathlib

COUNTS = pathlib.Path(__file__).resolve().with_name("gpu_counts.json")

# Of NVIDIA's data sheets and white papers (A100, H100, H200, Ada): multiprocessors, the clock in
# GHz at which the peak is stated, TFLOP/s of halves with float32 sums and TOP/s of bytes, both
# without sparsity, memory in GB/s and GB, shared memory of a multiprocessor in KiB, PCIe in GB/s.
# l2: bytes of a cycle. 5120 is what the A100's white paper says; for the others nothing is
# published: an assumption.
CARDS = {
    "A100": dict(architecture="80", sms=108, clock=1.41, peak=312, bytes=624, memory=2039, gb=80, shared=164,
                 l2=5120, pcie=32),
    "H100": dict(architecture="90", sms=132, clock=1.83, peak=989.4, bytes=1979, memory=3350, gb=80,
                 shared=228, l2=5120, pcie=64),
    "H200": dict(architecture="90", sms=132, clock=1.83, peak=989.4, bytes=1979, memory=4800, gb=141,
                 shared=228, l2=5120, pcie=64),
    "RTX 4090": dict(architecture="89", sms=128, clock=2.52, peak=165.2, bytes=660.6, memory=1008, gb=24,
                     shared=100, l2=2048, pcie=32),
}

# Results of a multiprocessor in a cycle: CUDA C++ Programming Guide, throughput of native
# arithmetic instructions, for compute capability 8.0, 8.9, 9.0.
PIPES = {
    "80": {"fp32": 64, "fp64": 32, "integer": 64, "convert": 64, "convert64": 16, "shuffle": 32},
    "89": {"fp32": 128, "fp64": 2, "integer": 64, "convert": 64, "convert64": 2, "shuffle": 32},
    "90": {"fp32": 128, "fp64": 64, "integer": 64, "convert": 64, "convert64": 16, "shuffle": 32},
}
MARGIN = {"peak": 798 / 989.4, "memory": 3.0 / 3.35}  # measured: 8192^3 in bfloat16, and copies
WARP, SECTOR, SCHEDULERS, MMA_FLOPS = 32, 32, 4, 2 * 16 * 8 * 16
# What these read was written just before, and fits the second-level cache.
FROM_L2 = ("fold", "pair", "js", "lowest", "codes")
# The kernel of a type's products in integers. Memory is reckoned for a whole product: bytes of a
# weight and of an activation, rows that meet the same tokens one after another.
INTEGERS = {"Q8_0": "integers 32", "IQ4_XS": "integers long 32", "Q6_K": "integers long 16",
            "Q4_K": "integers wide 32 min"}
WEIGHT_BYTES, TOKEN_BYTES, GROUP_ROWS = 1.31, 2.31, 2048
TILE, WALK, VOCAB_TILE = 4096, 2048, 4096  # tokens of a product, rows and vocabulary of a head's
PACKED = {"F16": 2.0, "Q8_0": 34 / 32, "Q6_K": 210 / 256, "Q4_K": 144 / 256, "IQ4_XS": 136 / 256}

# layers, width, feed-forward, keys and values, vocabulary, size of a head. 1b and 8b are those of
# bench/synthetic.c.
SHAPES = {"1b": (22, 2048, 5632, 256, 128256, 64), "8b": (32, 4096, 14336, 1024, 128256, 128),
          "70b": (80, 8192, 28672, 1024, 128256, 128)}


def read_counts(path=COUNTS):
    return json.loads(path.read_text())["kernels"]


def bounds(counts, card, name):
    """{what: seconds} that a thousand million units of a kernel's work need of each resource."""
    per_unit = counts[name]["per_unit"]
    cycles = 1e9 * card["sms"] * card["clock"]  # of all multiprocessors, in a second
    get = lambda *keys: sum(per_unit.get(key, 0) for key in keys)
    found = {"cache": SECTOR * get("read_sectors", "written_sectors") / (card["l2"] * card["clock"]),
             "shared memory": 1e9 * get("shared_cycles") / cycles,
             "instructions": 1e9 * get("issued") / SCHEDULERS / cycles,
             "tensor cores": MMA_FLOPS / 1e3 * (get("mma") / card["peak"] +
                                                get("mma bytes") / card["bytes"])}
    if name not in FROM_L2 and name not in INTEGERS.values():
        found["memory"] = SECTOR * get("read_once", "written_once") / card["memory"]
    for pipe, width in PIPES[card["architecture"]].items():
        found[pipe] = 1e9 * WARP * get(pipe) / width / cycles
    return found


def resident(counts, card, name):
    """Blocks that a multiprocessor has room for: threads, registers, shared memory."""
    kernel = counts[name]
    if "registers" not in kernel:
        return "-"
    registers = -(-kernel["registers"][card["architecture"]] // 8) * 8
    threads = 1536 if card["architecture"] == "89" else 2048
    return min(threads // kernel["threads"], 65536 // (registers * kernel["threads"]),
               card["shared"] * 1024 // (kernel["shared_bytes"] + 1024))


class Reckoning:
    """Seconds of what one evaluation does on a card."""

    def __init__(self, card, precision, counts, kind):
        self.card, self.precision, self.counts, self.kind = card, precision, counts, kind
        self.factor = 3 if precision == "high" else 1

    def kernel(self, name, n_units, n_blocks=None):
        """n_blocks: where a launch has few, some multiprocessors have one more than others."""
        found = bounds(self.counts, self.card, name)
        if n_blocks:
            sms = self.card["sms"]
            tail = math.ceil(n_blocks / sms) * sms / n_blocks
            found = {key: value * (1 if key in ("memory", "cache") else tail)
                     for key, value in found.items()}
        return n_units / 1e9 * max(found.values())

    def product(self, rows, columns, tokens):
        """By the library; `exact` by our own kernel."""
        if self.precision == "exact":
            return self.kernel("exact", rows * columns * tokens)
        if self.precision == "int16":
            n_bytes = (WEIGHT_BYTES * rows * columns * math.ceil(tokens / TILE) + 4 * rows * tokens +
                       TOKEN_BYTES * columns * tokens * math.ceil(rows / GROUP_ROWS))
            n_blocks = math.ceil(rows / 128) * math.ceil(tokens / 128)
            return max(self.kernel(INTEGERS[self.kind], rows * columns * tokens, n_blocks),
                       n_bytes / (1e9 * self.card["memory"]))
        depth = self.factor * columns
        n_bytes = 2 * depth * (rows * math.ceil(tokens / TILE) + tokens) + 4 * rows * tokens
        return max(2 * rows * depth * tokens / (1e12 * self.card["peak"]),
                   n_bytes / (1e9 * self.card["memory"]))

    def around(self, rows, columns, tokens, split=True, finish=True):
        """What a product needs beside itself: its tokens as halves, and its results from sums."""
        if self.precision == "exact":
            return {}
        if self.precision == "int16":
            return {"split": self.kernel("pack", columns * tokens) if split else 0}
        return {"split": self.kernel(f"split {self.precision}", columns * tokens) if split else 0,
                "finish": self.kernel("finish", rows * tokens) if finish else 0}

    def gates_together(self, ff):
        """Whether one kernel takes gate and up to the next product: a row fits shared memory."""
        return self.precision not in ("int16", "exact") and 4 * ff + 16 <= 1024 * (self.card["shared"] - 1)


    def joins(self, width):
        """
        Whether one kernel takes a norm to a product, and one a product to a rotation. Counts of
        earlier commits have no such kernels.
        """
        return (self.precision in ("fast", "high") and "finish rope" in self.counts and
                4 * width + 144 <= 1024 * (self.card["shared"] - 1))


def kept(card, precision, kind, n_weights):
    """(share of the weights that stays decoded, packed bytes that do not stay at all)"""
    room = 0.75 * 1e9 * card["gb"]
    packed = n_weights * PACKED[kind]
    decoded = n_weights * {"fast": 2, "high": 6, "int16": WEIGHT_BYTES, "exact": 4}[precision]
    return min(max(room - packed, 0) / decoded, 1), max(packed - room, 0)


def layer(r, shape, kind, tokens, context, share):
    """Seconds of each phase in a layer."""
    _, width, ff, kv, _, head = SHAPES[shape]
    apart = not r.gates_together(ff)
    joins = r.joins(width)  # norm with split, and finish with rope
    products = [(width, width, not joins, not joins), (kv, width, False, not joins),
                (kv, width, False, True), (width, width, True, True),
                (ff, width, not joins, apart), (ff, width, False, apart), (width, ff, apart, True)]
    phases = {"products": 0, "decode": 0, "split": 0, "finish": 0}
    for rows, columns, *around in products:
        phases["products"] += r.product(rows, columns, tokens)
        phases["decode"] += r.kernel(f"decode {kind} {r.precision}",
                                     rows * columns * math.ceil(tokens / TILE)) * (1 - share)
        for phase, seconds in r.around(rows, columns, tokens, *around).items():
            phases[phase] += seconds
    attention = "high" if r.precision == "int16" else r.precision
    n, n_heads = math.ceil(context / 64), tokens / context * width / head
    name, parts = f"attention {attention} {head}", f"parts {attention} {head}"
    in_parts = parts in r.counts  # not in `exact`, nor in counts of earlier commits
    pairs_of_heads = in_parts and r.counts[name]["shared_bytes"] <= 1024 * (r.card["shared"] - 1)
    if in_parts and not pairs_of_heads:
        name += " in 99 KiB"
    phases["attention"] = r.kernel(name, n_heads * 4096 * n * (n + 1) / 2,
                                   n_heads * n / (2 if pairs_of_heads else 1))
    if in_parts:
        phases["attention"] += r.kernel(parts, 2 * kv * tokens)
    phases["norm"] = 2 * r.kernel(f"norm split {r.precision}" if joins else "norm", width * tokens)
    phases["rope"] = r.kernel("finish rope" if joins else "rope", (width + kv) * tokens)
    phases["gate"] = r.kernel("gate" if apart else f"gate split {r.precision}", ff * tokens)
    return phases


def head(r, shape, kind, n_scored, share):
    """Seconds of the head, for the rows that are scored."""
    _, width, _, _, vocab, _ = SHAPES[shape]
    return {"head's product": r.product(vocab, width, n_scored),
            "head's decoding": r.kernel(f"decode {kind} {r.precision}",
                                        vocab * width * math.ceil(n_scored / WALK)) * (1 - share),
            "fold": r.kernel("fold", vocab * n_scored, min(WALK, n_scored) / 16),
            "target": r.kernel("target", width * n_scored)}


def reckon(card, shape, precision, kind="Q4_K", tokens=8192, context=512, n_scored=None,
           counts=None):
    """{"layer", "head", "upload", "seconds", "phases"}: phases as `run.phases` of a result has.
    card: a name, or what CARDS has of one."""
    card = CARDS[card] if isinstance(card, str) else card
    r = Reckoning(card, precision, counts or read_counts(), kind)
    n_layers, width, ff, kv, vocab, _ = SHAPES[shape]
    n_scored = tokens // 2 if n_scored is None else n_scored
    n_weights = n_layers * width * (2 * width + 2 * kv + 3 * ff) + vocab * width
    share, missing = kept(card, precision, kind, n_weights)
    per_layer = layer(r, shape, kind, tokens, context, share)
    of_head = head(r, shape, kind, n_scored, share)
    upload = missing / (1e9 * card["pcie"]) * math.ceil(tokens / (4 * TILE))
    of_linear = ["products", "decode", "split", "finish"]
    of_linear += ["norm"] * r.joins(width) + ["gate"] * r.gates_together(ff)  # it launches them
    phases = {"linear": n_layers * sum(per_layer[p] for p in of_linear),
              "score": sum(of_head.values())}
    for phase in ("attention", "norm", "rope", "gate"):
        phases[phase] = 0 if phase in of_linear else n_layers * per_layer[phase]
    seconds = max(sum(phases.values()), upload)
    library = n_layers * per_layer["products"] + of_head["head's product"]
    return {"layer": per_layer, "head": of_head, "upload": upload, "seconds": seconds,
            "phases": phases, "decoded_share": share, "tokens_per_second": tokens / seconds,
            "library_share": 0 if precision in ("int16", "exact") else library / seconds}


def with_margin(card):
    return {key: value * MARGIN.get(key, 1) for key, value in CARDS[card].items()}


def print_table(counts):
    """Tokens per second of 8192 tokens in windows of 512, Q4_K."""
    print("| card | shape | precision | data sheet | with the margin |\n| --- | --- | --- | --- | --- |")
    for card in ("H100", "RTX 4090", "A100"):
        for shape in ("1b", "8b"):
            for precision in ("fast", "high", "int16", "exact"):
                rates = [reckon(of, shape, precision, counts=counts)["tokens_per_second"]
                         for of in (CARDS[card], with_margin(card))]
                print(f"| {card} | {shape} | `{precision}` | " +
                      " | ".join(f"{float(f'{rate:.3g}'):.0f}" for rate in rates) + " |")


def print_kernels(card, counts):
    print(f"\n{card}: reckoned, of a thousand million units; blocks that fit a multiprocessor")
    for name, kernel in counts.items():
        found = bounds(counts, CARDS[card], name)
        most = sorted(found, key=found.get, reverse=True)[:3]
        print(f"  {name:22} {kernel['unit']:13} {resident(counts, CARDS[card], name):3}  " +
              ", ".join(f"{what} {1e3 * found[what]:.3g} ms" for what in most))


def print_reckoning(card, shape, precision, options, counts):
    found = reckon(with_margin(card) if options.margin else card, shape, precision, options.type,
                   options.tokens, options.context, counts=counts)
    cells = "  ".join(f"{phase} {1e3 * seconds:.3g}" for phase, seconds in found["layer"].items())
    print(f"\n{card}, {shape} {options.type} {precision}: reckoned {found['tokens_per_second']:.0f} "
          f"tokens/s, {found['seconds']:.3g} s for {options.tokens} tokens; "
          f"{100 * found['decoded_share']:.0f} % of the weights stay decoded; "
          f"cuBLAS {100 * found['library_share']:.0f} %")
    print(f"  a layer, ms:  {cells}  = {1e3 * sum(found['layer'].values()):.3g}")
    print("  the head, ms: " + "  ".join(f"{phase} {1e3 * seconds:.3g}"
                                         for phase, seconds in found["head"].items()))
    if found["upload"]:
        print(f"  weights over PCIe, beside all that: {found['upload']:.3g} s")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--card", choices=CARDS)
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--precision", choices=("fast", "high", "int16", "exact"))
    parser.add_argument("--type", choices=PACKED, default="Q4_K")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--counts", type=pathlib.Path, default=COUNTS)
    for flag in ("--margin", "--table", "--kernels"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    counts = read_counts(options.counts)
    if options.table:
        return print_table(counts)
    for card in [options.card] if options.card else CARDS:
        if options.kernels:
            print_kernels(card, counts)
            continue
        for shape in [options.shape] if options.shape else SHAPES:
            for precision in [options.precision] if options.precision else ("fast", "high"):
                print_reckoning(card, shape, precision, options, counts)


if __name__ == "__main__":
    main()
