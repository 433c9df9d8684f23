#!/usr/bin/env python3
"""What a kernel moves and does for one unit of its work, counted by the interpreter of tests/ptx.

usage: gpu_counts.py BUILD OUTPUT.json          count, and ask ptxas for the registers
       gpu_counts.py BUILD --check KNOWN.json   count, and compare: within a tenth?
BUILD  a build folder with nvcc; its program tests/ptx/ptx_costs runs the kernels on the host

OUTPUT.json (bench/gpu_counts.json) is what bench/gpu_model.py reckons with, so that it needs no
nvcc. Count again when a kernel changes; a test says so (`ctest -R ptx_counts`).
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent

# tests/ptx/costs.c: what a scene computes, as units of the kernel's work.
TOKENS, SCORED, WIDTH, VOCAB, CONTEXT = 16, 32, 4096, 4096, 512
TYPES = {"0": "F32", "1": "F16", "8": "Q8_0", "12": "Q4_K", "14": "Q6_K", "23": "IQ4_XS"}
PAIRS = 2 * 64 * 64 * sum(range(1, CONTEXT // 64 + 1))  # of queries and keys, in squares of 64
UNITS = {
    ("linear fast", "SPLIT"): ("split fast", "element", SCORED * WIDTH),
    ("linear high", "SPLIT"): ("split high", "element", SCORED * WIDTH),
    ("finish", "FINISH"): ("finish", "output", SCORED * 4096),
    ("gated fast", "GATE_SPLIT"): ("gate split fast", "element", SCORED * WIDTH),
    ("gated high", "GATE_SPLIT"): ("gate split high", "element", SCORED * WIDTH),
    ("waiting fast", "NORM_SPLIT"): ("norm split fast", "element", SCORED * WIDTH),
    ("waiting high", "NORM_SPLIT"): ("norm split high", "element", SCORED * WIDTH),
    ("rotated", "ROTATED"): ("finish rope", "element", SCORED * WIDTH),
    ("exact", "EXACT"): ("exact", "multiply-add", 128 * 128 * 2048),
    ("rows", "NORM"): ("norm", "element", TOKENS * WIDTH),
    ("rows", "ROPE"): ("rope", "element", TOKENS * WIDTH),
    ("rows", "GATE"): ("gate", "element", TOKENS * WIDTH),
    ("score", "FOLD"): ("fold", "logit", SCORED * VOCAB),
    ("pair", "PAIR"): ("pair", "logit", SCORED * VOCAB),
    ("pair", "JS"): ("js", "logit", SCORED * VOCAB),
    ("record", "CODES"): ("codes", "logit", SCORED * VOCAB),
    ("record", "LOWEST"): ("lowest", "logit", SCORED * VOCAB),
    ("target", "TARGET"): ("target", "column", SCORED * 2048),
    ("attention", "FLASH2_64"): ("attention fast 64", "pair", PAIRS),
    ("attention", "FLASH2_128"): ("attention fast 128", "pair", PAIRS),
    ("attention", "FLASH3_64"): ("attention high 64", "pair", PAIRS),
    ("attention", "FLASH3_128"): ("attention high 128", "pair", PAIRS),
    ("little shared memory", "FLASH3_128_ONE"): ("attention high 128 in 99 KiB", "pair", PAIRS),
    ("attention", "ATTENTION 64"): ("attention exact 64", "pair", PAIRS),
    ("attention", "ATTENTION 128"): ("attention exact 128", "pair", PAIRS),
    ("linear int16", "PACK"): ("pack", "element", 128 * 1024),
    ("linear int16", "INTEGERS_32"): ("integers 32", "multiply-add", 128 * 128 * 1024),
    ("linear int16", "INTEGERS_LONG_32"): ("integers long 32", "multiply-add", 128 * 128 * 1024),
    ("linear int16", "INTEGERS_LONG_16"): ("integers long 16", "multiply-add", 128 * 128 * 1024),
    ("linear int16", "INTEGERS_WIDE_32_MIN"): ("integers wide 32 min", "multiply-add",
                                               128 * 128 * 1024),
}
for precision in ("fast", "high"):  # keys and values of a head
    for size in (64, 128):
        UNITS["attention", f"PARTS {precision} {size}"] = (f"parts {precision} {size}", "element",
                                                           2 * CONTEXT * size)
for number, name in TYPES.items():
    for precision in ("fast", "high", "exact"):
        UNITS[f"linear {precision}", f"DECODE {number}"] = (f"decode {name} {precision}", "element",
                                                            TOKENS * WIDTH)
    UNITS["linear int16", f"DECODE {number}"] = (f"decode {name} int16", "element", 128 * 1024)

# The pipe of an instruction of PTX, by its name: the first that matches. A move is none: ptxas
# leaves few of them. What PTX has as one instruction and a device as many counts as the number.
CLASSES = [(re.compile(pattern), pipe, count) for pattern, pipe, count in (
    (r"mov\.|cvta|ld\.param", None, 0),
    (r"mma\..*m16n8k32.*\.s8", "mma bytes", 2), # of 16 columns
    (r"mma\..*\.s8", "mma bytes", 1),
    (r"mma\.", "mma", 1),
    (r"(ld|st|atom|red|ldmatrix|cp)\b", "memory", 1),
    (r"shfl", "shuffle", 1),
    (r"(bra|ret|exit|bar)", "control", 1),
    (r"div\.rn\.f64|rcp\.rn\.f64|sqrt\.rn\.f64", "fp64", 20),
    (r"div\.rn\.f32|rcp\.rn\.f32|sqrt\.rn\.f32", "fp32", 10),
    (r"(div|rem)\.[us]64", "integer", 60),
    (r"(div|rem)\.[us]32", "integer", 20),
    (r"cvt.*f64", "convert64", 1),
    (r"cvt\.[us](64|32)\.[us](64|32)", "integer", 1),
    (r"cvt", "convert", 1),
    (r"setp.*f64|(min|max)\.f64|(add|sub|mul|fma)\.(rn\.)?f64", "fp64", 1),
    (r"(add|sub|mul|fma|neg|abs)\.(rn\.)?f32", "fp32", 1),
    (r"mul\.(lo|wide)\.[us](64|32)|mad", "integer", 2),
    (r"(add|sub|min|max|setp\.\w+|selp|and|or|xor|shl|shr)\.[usb]64", "integer", 2),
    (r"", "integer", 1),
)]


def pipe_of(text):
    """(pipe, how many) of a line of PTX."""
    name = re.sub(r"^\s*(\{\s*)?(@!?%\w+\s+)?", "", text)
    return next((pipe, count) for pattern, pipe, count in CLASSES if pattern.match(name))


def per_unit(row, text, n_units):
    counts = {}
    for line, hits in row["lines"]:
        pipe, count = pipe_of(text[line - 1])
        if pipe:
            counts[pipe] = counts.get(pipe, 0) + hits * count
            counts["issued"] = counts.get("issued", 0) + hits * count
    for key in ("read_sectors", "written_sectors", "read_once", "written_once", "shared_cycles",
                "shared_accesses", "local_bytes", "blocks"):
        counts[key] = row[key]
    return {key: float(f"{value / n_units:.4g}") for key, value in sorted(counts.items()) if value}


def count(build):
    """{name: {"kernel", "unit", "per_unit", "threads", "shared_bytes"}}"""
    folder = build / "tests/ptx"
    with tempfile.TemporaryDirectory() as scratch:
        output = pathlib.Path(scratch) / "costs.jsonl"
        subprocess.run([folder / "ptx_costs", output], check=True)
        rows = [json.loads(line) for line in output.read_text().splitlines()]
    text = {name: (folder / f"{name}.ptx").read_text().splitlines() for name in ("kernels", "decode")}
    kernels, sizes = {}, iter((64, 128))
    parts = iter(("fast 64", "fast 128", "high 64", "high 128", "in 99 KiB"))
    for row in rows:
        kernel = row["kernel"]
        if kernel == "ATTENTION":
            kernel = f"{kernel} {next(sizes)}"
        elif kernel == "PARTS":
            kernel = f"{kernel} {next(parts)}"
        unit = UNITS.get((row["scene"], kernel))
        if not unit or unit[0] in kernels:  # the first scene of each
            continue
        lines = text["decode" if kernel.startswith("DECODE") else "kernels"]
        kernels[unit[0]] = {"kernel": row["kernel"], "unit": unit[1],
                            "per_unit": per_unit(row, lines, unit[2]), "threads": row["threads"],
                            "shared_bytes": row["shared_size"]}
    return kernels


def registers(build, architecture):
    """
    {kernel: (registers of a thread, bytes that it spills)}, from ptxas, of the PTX for 8.0. What
    else differs by the device is how many blocks must be resident: KERN_BY_SHARED in list.h.
    """
    text = (build / "tests/ptx/kernels.ptx").read_text()
    rows = re.findall(r"ROW\((\w+),[^)]*KERN_BY_SHARED\((\d), (\d), (\d)\)",
                      (SOURCE / "kernels/cuda/kernels/list.h").read_text())
    column = {"90": 1, "80": 2, "89": 3}[architecture]
    for row in rows:
        text = re.sub(rf"(run_{row[0]}E\d+kern_(?:(?!\.entry).)*?\.minnctapersm )\d+",
                      rf"\g<1>{row[column]}", text, flags=re.DOTALL)
    with tempfile.TemporaryDirectory() as scratch:
        program = pathlib.Path(scratch) / "kernels.ptx"
        program.write_text(text)
        command = ["ptxas", "-v", f"-arch=sm_{architecture}", "-o", "/dev/null", program]
        log = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    found, name = {}, None
    for line in log.splitlines():
        name = (re.search(r"entry function '\w*?\d+run_(\w+?)E\d+kern_", line) or [0, name])[1]
        spilled = re.search(r"(\d+) bytes spill stores", line)
        spills = int(spilled[1]) if spilled else spills if name else 0
        used = re.search(r"Used (\d+) registers", line)
        if used:
            found[name] = (int(used[1]), spills)
    return found


def check(kernels, known):
    """The first count that is more than a tenth off."""
    if kernels.keys() != known.keys():
        return f"kernels {sorted(kernels.keys() ^ known.keys())}"
    for name, kernel in kernels.items():
        old, new = known[name]["per_unit"], kernel["per_unit"]
        for key in old.keys() | new.keys():
            a, b = old.get(key, 0), new.get(key, 0)
            if abs(a - b) > 0.1 * max(a, b):
                return f"{name}: {key} {a} in the file, {b} now"
    return None


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    kernels = count(pathlib.Path(sys.argv[1]))
    if sys.argv[2] == "--check":
        known = json.loads(pathlib.Path(sys.argv[3]).read_text())["kernels"]
        difference = check(kernels, known)
        sys.exit(difference and f"{difference}: python3 bench/gpu_counts.py {sys.argv[1]} {sys.argv[3]}")
    for architecture in ("80", "89", "90"):
        used = registers(pathlib.Path(sys.argv[1]), architecture)
        for kernel in kernels.values():
            if kernel["kernel"] not in used:  # decoding
                continue
            kernel.setdefault("registers", {})[architecture], spills = used[kernel["kernel"]]
            if spills:
                kernel.setdefault("spilled_bytes", {})[architecture] = spills
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(kernel)}" for name, kernel in kernels.items())
    pathlib.Path(sys.argv[2]).write_text(
        '{"what": "by bench/gpu_counts.py: of each kernel, per unit of its work, instructions of '
        'warps, sectors of 32 bytes, cycles of shared memory", "kernels": {\n' + rows + "\n}}\n")


if __name__ == "__main__":
    main()
