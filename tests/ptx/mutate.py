#!/usr/bin/env python3
"""Change the compiled kernels, one instruction at a time, and ask that a test fails.

usage: mutate.py BUILD [--kind KIND]... [--kernel NAME]... [--sample N] [--seconds N] [--jobs N]
                 [--results FILE] [--table]
BUILD      a build's tests/ptx: the programs and the PTX
--kind     barrier  a barrier is left out
           bound    a comparison takes one more, or one less: of integers that are not constants,
                    or of a thread's number, where a branch depends on it
           mma      two of the registers of a matrix are exchanged in a product
--kernel   as in kernels/cuda/kernels/list.h; all of kernels.ptx are the default
--sample   so many of each kind and kernel, evenly spread, rather than all
--seconds  of processor time that a test may take (default 120); longer counts as found
--results  what became of each is added to this file; what it has of this PTX is not run again
--table    run nothing; the file's results as a table of what found how many, in Markdown
Only instructions that the tests come to are changed. survivors.txt has the changes that no test
can find, with reasons. Exits with 1 if another one survives.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

# The test that has a kernel's results compared.
TESTS = {
    "cuda": ["NORM", "ROPE", "GATE", "SCALE", "COPY_ROWS", "ROUND", "GATHER",
             "ATTENTION"],
    "cuda_attention": ["FLASH2_64", "FLASH2_128", "FLASH2_256",
                       "FLASH3_64", "FLASH3_128", "FLASH3_256"],
    "cuda_recurrent": ["CONVOLVE", "TAPS", "RECUR"],
    "cuda_linear": ["SPLIT", "FINISH", "EXACT", "FILL", "DIGEST"],
    "cuda_score": ["FOLD", "PAIR", "JS", "TARGET", "TAKE", "CODES", "LOWEST"],
}
KINDS = ["barrier", "bound", "mma"]
OTHER = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}


def environment(**more):
    return dict(os.environ, ASSAY_TEST_SEED="1", CMOCKA_TEST_ABORT="1", **more)


def kernels_of(text):
    """[(name, first line, end)] of a program's lines."""
    found = []
    for i, line in enumerate(text):
        match = re.search(r"\.entry \S*?run_(\w+?)E\d+kern_", line)
        if match:
            found.append([match.group(1), i, len(text)])
        elif line.startswith("}") and found:
            found[-1][2] = min(found[-1][2], i)
    return found


def barrier(text, i, _kernel):
    if re.match(r"\s*bar\.sync", text[i]):
        yield ""


def bound(text, i, kernel):
    """Loops over threads that never go round, and what unrolling compares, have constants."""
    match = re.match(r"\s*setp\.(l[te]|g[te])\.[us]\d\d\s+(%p\d+), (%\w+), (\S+);", text[i])
    if not match:
        return
    _name, first, end = kernel
    branch = re.compile(rf"\s*@!?{re.escape(match.group(2))} bra\s+(\S+);")
    targets = [m.group(1) for m in map(branch.match, text[i + 1 : min(i + 80, end)]) if m]
    if not targets:
        return
    if not match.group(4).startswith("%"):
        is_thread = any(re.match(rf"\s*mov\.u32\s+{match.group(3)}, %tid\.x;", line)
                        for line in text[first:i])
        if not is_thread or f"{targets[0]}:" in text[first:i] or \
                f".maxntid {match.group(4)}, 1, 1" in text[first:i]:
            return
    yield text[i].replace(f"setp.{match.group(1)}.", f"setp.{OTHER[match.group(1)]}.", 1)


def mma(text, i, _kernel):
    match = re.match(r"(\s*mma\S+ \{.*?\}, \{)(.*?)(\}, \{)(.*?)(\}, .*)", text[i])
    if not match:
        return
    a, b = match.group(2).split(", "), match.group(4).split(", ")
    head, between, tail = match.group(1), match.group(3), match.group(5)
    yield head + ", ".join(a) + between + ", ".join(reversed(b)) + tail
    for k, other in ((0, 1), (0, 2), (1, 3)):
        swapped = list(a)
        swapped[k], swapped[other] = swapped[other], swapped[k]
        yield head + ", ".join(swapped) + between + ", ".join(b) + tail


def reached_lines(build, test):
    """{kernel: lines that the test comes to}, from its last run, or of a run now."""
    path = build / "coverage" / f"test_ptx_{test}"
    if not path.exists():
        subprocess.run([build / f"test_ptx_{test}"], stdout=subprocess.DEVNULL, check=True,
                       env=environment(ASSAY_PTX_COVERAGE=str(path)))
    reached = {}
    for line in path.read_text().splitlines():
        kernel, number, hits = line.split("\t")
        if hits != "0":
            reached.setdefault(kernel, set()).add(int(number))
    return reached


def mutants_of(text, options):
    """(kernel, kind, number, line, changed line)"""
    test_of = {kernel: test for test, kernels in TESTS.items() for kernel in kernels}
    wanted = options.kernel or list(test_of)
    reached = {}
    for test in sorted({test_of[kernel] for kernel in wanted}):
        lines = reached_lines(options.build, test)
        reached.update({kernel: lines.get(kernel, set()) for kernel in TESTS[test]})
    for kernel in kernels_of(text):
        name, first, end = kernel
        for kind in options.kind or KINDS:
            if name not in wanted:
                continue
            found = []
            for i in range(first, end):
                if i + 1 in reached[name]:
                    found += [(name, kind, i, new) for new in globals()[kind](text, i, kernel)]
            numbered = [(m[0], m[1], n, m[2], m[3]) for n, m in enumerate(found)]
            step = max(1, len(numbered) / options.sample) if options.sample else 1
            yield from [numbered[int(k * step)] for k in range(int(len(numbered) / step))]


def run(mutant, text, options):
    """What found it, or None."""
    kernel, _kind, _number, i, new = mutant
    test = next(test for test, kernels in TESTS.items() if kernel in kernels)
    with tempfile.TemporaryDirectory() as folder:
        changed = text[:i] + [new] + text[i + 1 :]
        pathlib.Path(folder, "kernels.ptx").write_text("\n".join(changed))
        pathlib.Path(folder, "decode.ptx").symlink_to(options.build.resolve() / "decode.ptx")
        limited = ["bash", "-c", 'ulimit -t "$0"; exec "$1"', str(options.seconds)]
        result = subprocess.run(limited + [options.build / f"test_ptx_{test}"],
                                capture_output=True, text=True, errors="replace",
                                env=environment(ASSAY_PTX_DIR=folder))
    if result.returncode == 0:
        return None
    if result.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "no end"
    said = [line for line in result.stderr.splitlines() if line.startswith("ptx:")]
    if said:
        return re.sub(r"^ptx: (.*?, thread \d+: )?| at 0x\w+", "", said[0])
    return "a wrong result" if result.returncode == -6 else f"exit code {result.returncode}"


def key_of(mutant, text):
    """What a mutant is, for as long as its kernel's instructions are the same."""
    kernel, kind, number, i, new = mutant
    return f"{kernel}\t{kind}\t{number}\t{text[i].strip()}\t{new.strip()}"


def read_results(path):
    """{key: what found it, or None}"""
    lines = path.read_text().splitlines() if path and path.exists() else []
    split = [line.rsplit("\t", 1) for line in lines]
    return {key: None if found == "-" else found for key, found in split}


def sort_of(found):
    """What found a mutant, in a word or two."""
    for word in ("a race", "nobody wrote", "never written", "no end", "a wrong result",
                 "beyond what the", "in no allocation", "barrier", "waits for its warp"):
        if word in found:
            return word if word != "never written" else "nobody wrote"
    return "another finding"


def print_table(results):
    counts = {}
    for key, found in results.items():
        kernel, kind = key.split("\t")[:2]
        row = counts.setdefault((kernel, kind), {})
        what = sort_of(found) if found else "survived"
        row[what] = row.get(what, 0) + 1
    print("| kernel | change | mutants | survived | found by |\n| --- | --- | --- | --- | --- |")
    for (kernel, kind), row in sorted(counts.items()):
        by = ", ".join(f"{what} {n}" for what, n in sorted(row.items(), key=lambda x: -x[1])
                       if what != "survived")
        print(f"| {kernel} | {kind} | {sum(row.values())} | {row.get('survived', 0)} | {by} |")


def read_survivors():
    """[(kernel, kind, pattern)]"""
    path = pathlib.Path(__file__).with_name("survivors.txt")
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [tuple(line.split("  ")[:3]) for line in lines]


def is_allowed(mutant, text, survivors):
    kernel, kind, number, i, _new = mutant
    return any(re.fullmatch(k, kernel) and d == kind and
               re.fullmatch(p, f"number {number}") for k, d, p in survivors)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--kernel", action="append")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    results = read_results(options.results)
    if options.table:
        print_table(results)
        return
    text = (options.build / "kernels.ptx").read_text().split("\n")
    survivors, counts, escaped = read_survivors(), {}, 0
    mutants = list(mutants_of(text, options))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def found_by(mutant):
            key = key_of(mutant, text)
            return results[key] if key in results else run(mutant, text, options)

        for mutant, found in zip(mutants, pool.map(found_by, mutants)):
            if options.results and key_of(mutant, text) not in results:
                with options.results.open("a") as file:
                    file.write(f"{key_of(mutant, text)}\t{found or '-'}\n")
            kernel, kind, number, i, _new = mutant
            count = counts.setdefault((kernel, kind), [0, 0, 0])
            allowed = not found and is_allowed(mutant, text, survivors)
            count[0 if found else 1 if allowed else 2] += 1
            if not found and not allowed:
                escaped += 1
            print(f"{kernel} {kind} {number}, line {i + 1}: {found or 'SURVIVES'}: "
                  f"{text[i].strip()}", flush=True)
    print(f"\n{'kernel':12} {'kind':8} found allowed survived")
    for (kernel, kind), count in counts.items():
        print(f"{kernel:12} {kind:8} {count[0]:5} {count[1]:7} {count[2]:8}")
    sys.exit(1 if escaped else 0)


if __name__ == "__main__":
    main()
