#!/usr/bin/env python3
"""Which instructions of the compiled kernels the tests came to.

usage: coverage.py BUILD [--missing KERNEL] [--least PERCENT]
BUILD      a build's tests/ptx: the PTX, and in coverage/ what the tests left
--missing  the instructions of a kernel that nothing explains, instead of the table
--least    exit with 1 if some kernel has less, of what can be reached
What no thread can come to (dead.py), and what unreached.txt allows, does not count. Exits with 1
too if a test came to what is dead, or if a row of unreached.txt is about nothing.
"""
import argparse
import pathlib
import re
import sys

import dead


def read_hits(folder):
    """{kernel: {line: whether a warp came to it}} over all tests."""
    missed, reached, kernels = set(), set(), {}
    for path in folder.iterdir():  # millions of lines
        for line in path.read_text().splitlines():
            if line.endswith("\t0"):
                missed.add(line)
            else:
                reached.add(line.rpartition("\t")[0])
    for key in sorted({line.removesuffix("\t0") for line in missed} | reached):
        name, number = key.split("\t")
        kernels.setdefault(name, {})[int(number)] = key in reached
    return kernels


def read_allowed():
    """[(kernel, how many at most, where)]"""
    path = pathlib.Path(__file__).with_name("unreached.txt")
    rows = [line.split("  ") for line in path.read_text().splitlines()
            if line and not line.startswith("#")]
    return [(re.compile(kernel), int(most), re.compile(where)) for kernel, most, where, _ in rows]


class Program:
    """A file of PTX, with the line of the source for each of its lines."""

    def __init__(self, path):
        self.text = path.read_text().split("\n")
        files = {m[1]: m[2] for m in re.finditer(r'\.file\s+(\d+) "(.*?)"', "\n".join(self.text))}
        self.sources, self.where, at = {}, [], ""
        for line in self.text:
            loc = re.match(r"\s*\.loc\s+(\d+) (\d+)", line)
            at = self.source(files[loc[1]], int(loc[2])) if loc else at
            self.where.append(at)
        self.kernels = {name: (first, end, n) for name, first, end, n in self.find_kernels()}

    def source(self, path, number):
        """`file:number: text` of a line of the source; PTX names some lines 0."""
        if path not in self.sources:
            file = pathlib.Path(path)
            text = file.read_text(errors="replace") if file.exists() else ""
            self.sources[path] = text.split("\n")
        lines = self.sources[path]
        text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        return f"{path.rsplit('/', 1)[-1]}:{number}: {text}"

    def find_kernels(self):
        """(name, first line, end, threads of a block)"""
        name, first, n_threads = None, 0, 0
        for i, line in enumerate(self.text):
            entry = re.search(r"\.entry \S*?(?:run_(\w+?)E\d+kern_|decodeIL9gguf_type(\d+))", line)
            threads = re.match(r"\.maxntid (\d+)", line)
            if entry:
                name, first = entry[1] or f"DECODE {entry[2]}", i
            elif threads:
                n_threads = int(threads[1])
            elif line.startswith("}") and name:
                yield name, first, i, n_threads
                name = None

    def blocks(self, lines):
        """{line: number of its run of instructions without a branch or a label}"""
        found, block = {}, 0
        for i in range(min(lines) - 1, max(lines)):
            block += self.text[i].startswith("$")
            found[i + 1] = block
            block += "bra" in self.text[i] and bool(re.search(r"\bbra\b", self.text[i]))
        return found


def judge(name, hits, program, allowed):
    """(reached, dead, allowed, lines that are missing), and what is wrong."""
    first, end, n_threads = program.kernels[name]
    missing = {line for line, is_reached in hits.items() if not is_reached}
    never = {line + 1 for line in dead.Kernel(program.text, first, end, n_threads).dead_lines()} \
        if len(missing) > 0.01 * len(hits) else set()  # the others take seconds
    wrong = [f"{name}: line {line} is dead, and was reached" for line in never if hits[line]]
    missing -= never
    block_of, spared = program.blocks(hits), set()
    for row, (kernel, most, where) in enumerate(allowed):
        if not missing or not kernel.fullmatch(name):
            continue
        blocks = {block_of[line] for line in missing
                  if where.search(program.where[line - 1]) or where.search(program.text[line - 1])}
        found = {line for line in missing if block_of[line] in blocks}
        if found:
            read_rows.add(row)
        if len(found) > most:
            wrong.append(f"{name}: {len(found)} instructions at {where.pattern} were not reached, "
                         f"of {most} that may be missing")
        spared |= found
    return (len(hits) - len(missing) - len(never), len(never), len(spared), missing - spared), wrong


read_rows = set()  # of unreached.txt, that were about something


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--missing")
    parser.add_argument("--least", type=float, default=0)
    options = parser.parse_args()
    programs = [Program(options.build / name) for name in ("kernels.ptx", "decode.ptx")]
    allowed, faults, sums = read_allowed(), [], [0, 0, 0, 0]
    for name, hits in read_hits(options.build / "coverage").items():
        if options.missing not in (None, name):
            continue
        program = next(p for p in programs if name in p.kernels)
        (reached, never, spared, missing), wrong = judge(name, hits, program, allowed)
        share = 100 * reached / (reached + len(missing))
        sums = [a + b for a, b in zip(sums, (reached, never, spared, len(missing)))]
        faults += wrong
        if share < options.least:
            faults.append(f"{name}: {share:.1f} % is less than {options.least} %")
        if not options.missing:
            print(f"{name:11} {reached:6} reached, {never:4} dead, {spared:4} allowed, "
                  f"{len(missing):4} missing: {share:5.1f} %")
        for line in sorted(missing) if options.missing else []:
            print(f"{line}: {program.text[line - 1].strip()[:60]:60}  {program.where[line - 1]}")
    reached, never, spared, missing = sums
    print(f"all: {reached} reached, {never} dead, {spared} allowed, {missing} missing: "
          f"{100 * reached / (reached + missing):.1f} %")
    if not options.missing:
        faults += [f"unreached.txt: {a[0].pattern}, {a[2].pattern}: nothing is missing there"
                   for i, a in enumerate(allowed) if i not in read_rows]
    print("\n".join(faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
