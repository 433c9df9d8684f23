#!/usr/bin/env python3
"""Change the compiled kernels, one instruction at a time, and ask that a test fails.

usage: mutate.py BUILD [--kind KIND]... [--kernel NAME]... [--sample N] [--seconds N] [--jobs N]
                 [--results FILE] [--table]
BUILD      a build's tests/ptx: the programs and the PTX
--kind     barrier  a barrier is left out
           bound    a comparison takes one more, or one less: of integers that are not constants,
                    or of a thread's number, where a branch depends on it
           wait     nothing waits for copies to shared memory
           mma      two of the registers of a matrix are exchanged in a product
--kernel   as in kernels/cuda/kernels/list.h; all of kernels.ptx are the default
--sample   so many of each kind and kernel, evenly spread, rather than all; and without the scenes
           that are slow
--results  what became of each is added to this file; what it has of this PTX is not run again
--table    run nothing; the file's results as a table of what found how many, in Markdown
A kernel's changes are given to one run of a test, which tries them scene by scene (mutants.h); what
it does not find, to the kernel's next test. Those of instructions that no scene comes to are not
counted. survivors.txt has the changes that no test can find, with reasons. Exits with 1 if another
one survives.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import coverage

# The test that has a kernel's results compared; what it does not find, the next one is given.
TESTS = {
    "cuda": ["NORM", "ROPE", "GATE", "SCALE", "COPY_ROWS", "ROUND", "ATTENTION"],
    "cuda_experts": ["GATHER", "SCATTER", "ROUTE"],
    "cuda_attention": ["PARTS", "FLASH2_64", "FLASH2_128", "FLASH2_256",
                       "FLASH3_64", "FLASH3_128", "FLASH3_128_ONE", "FLASH3_256"],
    "cuda_choose": ["CHOOSE_SCORES", "CHOOSE", "ATTENTION", "FLASH2_64", "FLASH2_128", "FLASH2_256",
                    "FLASH3_64", "FLASH3_128", "FLASH3_128_ONE", "FLASH3_256"],
    "mixing": ["MIX", "STREAM_WEIGHTS", "COMPRESS", "SPARSIFY", "STRETCH", "MATCH"],
    "shares": ["SOFTMAX"],
    "cuda_recurrent": ["CONVOLVE", "TAPS", "RECUR", "RECUR_STEPS"],
    "cuda_alone": ["FILL", "DIGEST", "CAP", "TARGET", "TAKE", "LOWEST"],
    "cuda_gated": ["POWERS", "GATE_SPLIT"],
    "cuda_waiting": ["NORM_SPLIT", "ROTATED"],
    "cuda_linear": ["SPLIT", "FINISH", "EXACT"],
    "cuda_integers": ["PACK", "INTEGERS_32", "INTEGERS_32_MIN", "INTEGERS_16", "INTEGERS_WIDE_32",
                      "INTEGERS_WIDE_32_MIN", "INTEGERS_WIDE_16", "INTEGERS_WIDE_16_MIN",
                      "INTEGERS_LONG_32", "INTEGERS_LONG_32_MIN", "INTEGERS_LONG_16"],
    "cuda_score": ["FOLD", "PAIR", "JS", "CODES"],
}
KINDS = ["barrier", "bound", "mma", "wait"]
NOT_FOUND = ["unreached", "survived, never different", "survived"]
OTHER = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}


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


def wait(text, i, _kernel):
    if re.match(r"\s*cp\.async\.wait", text[i]):
        yield ""


def mma(text, i, _kernel):
    match = re.match(r"(\s*mma\S+ \{.*?\}, \{)(.*?)(\}, \{)(.*?)(\}, .*)", text[i])
    if not match:
        return
    a, b = match.group(2).split(", "), match.group(4).split(", ")
    head, between, tail = match.group(1), match.group(3), match.group(5)
    if len(b) > 1:
        yield head + ", ".join(a) + between + ", ".join(reversed(b)) + tail
    for k, other in ((0, 1), (0, 2), (1, 3))[: 3 if len(a) > 2 else 1]:
        swapped = list(a)
        swapped[k], swapped[other] = swapped[other], swapped[k]
        yield head + ", ".join(swapped) + between + ", ".join(b) + tail


def mutants_of(text, options):
    """(kernel, kind, number, line, changed line)"""
    wanted = options.kernel or [kernel for kernels in TESTS.values() for kernel in kernels]
    for kernel in kernels_of(text):
        name, first, end = kernel
        for kind in options.kind or KINDS:
            if name not in wanted:
                continue
            found = []
            for i in range(first, end):
                found += [(name, kind, i, new) for new in globals()[kind](text, i, kernel)]
            numbered = [(m[0], m[1], n, m[2], m[3]) for n, m in enumerate(found)]
            step = max(1, len(numbered) / options.sample) if options.sample else 1
            yield from [numbered[int(k * step)] for k in range(int(len(numbered) / step))]


def run(test, mutants, options):
    """What became of each of one kernel's mutants in a test, as mutants.h has it."""
    with tempfile.TemporaryDirectory() as folder:
        changes, results = pathlib.Path(folder, "changes"), pathlib.Path(folder, "results")
        changes.write_text("".join(f"{m[0]}\t{m[3] + 1}\t{m[4].strip()}\n" for m in mutants))
        slow = {} if options.sample else {"ASSAY_PTX_ALL": "1"}
        subprocess.run([options.build / f"test_ptx_{test}"], stdout=subprocess.DEVNULL, check=True,
                       env=dict(os.environ, ASSAY_TEST_SEED="1", CMOCKA_TEST_ABORT="1", **slow,
                                ASSAY_PTX_CHANGES=changes, ASSAY_PTX_RESULTS=results))
        found = dict(line.split("\t", 1) for line in results.read_text().splitlines())
    return [re.sub(r"^ptx: (.*?, thread \d+: )?| at 0x\w+", "", found[str(i)])
            for i in range(len(mutants))]


def run_tests(mutants, options):
    """The same in all of the kernel's tests: the most that any of them says of it."""
    found = ["unreached"] * len(mutants)
    for test in [test for test, kernels in TESTS.items() if mutants and mutants[0][0] in kernels]:
        left = [i for i, what in enumerate(found) if what in NOT_FOUND]
        if left:
            for i, what in zip(left, run(test, [mutants[i] for i in left], options)):
                found[i] = max(found[i], what, key=(NOT_FOUND + [what]).index)
    return found


def key_of(mutant, text):
    """What a mutant is, for as long as its kernel's instructions are the same."""
    kernel, kind, number, i, new = mutant
    return f"{kernel}\t{kind}\t{number}\t{text[i].strip()}\t{new.strip()}"


def read_results(path):
    """{key: what became of it}"""
    lines = path.read_text().splitlines() if path and path.exists() else []
    return dict(line.rsplit("\t", 1) for line in lines)


def sort_of(found):
    """What found a mutant, in a word or two."""
    for word in ("a race", "nobody wrote", "not waited for", "never written", "no end", "a wrong result",
                 "beyond what the", "in no allocation", "barrier", "waits for its warp"):
        if word in found:
            return word if word != "never written" else "nobody wrote"
    return "another finding"


def print_table(results):
    counts = {}
    for key, found in results.items():
        kernel, kind = key.split("\t")[:2]
        if found == "unreached":
            continue
        row = counts.setdefault((kernel, kind), {})
        what = "survived" if found.startswith("survived") else sort_of(found)
        row[what] = row.get(what, 0) + 1
    print("| kernel | change | mutants | survived | found by |\n| --- | --- | --- | --- | --- |")
    for (kernel, kind), row in sorted(counts.items()):
        by = ", ".join(f"{what} {n}" for what, n in sorted(row.items(), key=lambda x: -x[1])
                       if what != "survived")
        print(f"| {kernel} | {kind} | {sum(row.values())} | {row.get('survived', 0)} | {by} |")


class Survivors:
    """survivors.txt, and how many of each row's there were."""

    def __init__(self):
        path = pathlib.Path(__file__).with_name("survivors.txt")
        lines = [x for x in path.read_text().splitlines() if x and not x.startswith("#")]
        self.rows = [line.split("  ") for line in lines]
        self.counts = {}

    def allow(self, mutant, source):
        """Whether a row is about it, and has not been about too many of the kernel."""
        for i, (kernel, kind, most, where, _why) in enumerate(self.rows):
            if re.fullmatch(kernel, mutant[0]) and kind == mutant[1] and \
                    (where == f"number {mutant[2]}" or where in place_of(mutant, source)):
                count = self.counts[mutant[0], i] = self.counts.get((mutant[0], i), 0) + 1
                return count <= int(most)
        return False


def place_of(mutant, source):
    """The line of the source, or of the branch after it, where the compiler names none."""
    return next(where for where in source.where[mutant[3]:] if ":0: " not in where)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--kernel", action="append")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    results = read_results(options.results)
    if options.table:
        print_table(results)
        return
    source = coverage.Program(options.build / "kernels.ptx")
    text = source.text
    survivors, counts, escaped = Survivors(), {}, 0
    mutants = {}
    for mutant in mutants_of(text, options):
        mutants.setdefault(mutant[0], []).append(mutant)

    def run_kernel(of_kernel):
        left = [m for m in of_kernel if key_of(m, text) not in results]
        return [(key_of(m, text), found) for m, found in zip(left, run_tests(left, options))]

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for of_kernel, new in zip(mutants.values(), pool.map(run_kernel, mutants.values())):
            results.update(new)
            if options.results:
                with options.results.open("a") as file:
                    file.writelines(f"{key}\t{found}\n" for key, found in new)
            for mutant in of_kernel:
                kernel, kind, number, i, _new = mutant
                found = results[key_of(mutant, text)]
                if found == "unreached":
                    continue
                count = counts.setdefault((kernel, kind), [0, 0, 0])
                survived = found.startswith("survived")
                allowed = survived and survivors.allow(mutant, source)
                count[0 if not survived else 1 if allowed else 2] += 1
                escaped += survived and not allowed
                print(f"{kernel} {kind} {number}, line {i + 1}: {found}: {text[i].strip()}: "
                      f"{place_of(mutant, source)}", flush=True)
    print(f"\n{'kernel':12} {'kind':8} found allowed survived")
    for (kernel, kind), count in counts.items():
        print(f"{kernel:12} {kind:8} {count[0]:5} {count[1]:7} {count[2]:8}")
    sys.exit(1 if escaped else 0)


if __name__ == "__main__":
    main()
