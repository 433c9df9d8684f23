#!/usr/bin/env python3
"""Which instructions of the compiled kernels the tests came to.

usage: coverage.py FOLDER PTX_FOLDER [--missing KERNEL]
FOLDER      has what the tests wrote with ASSAY_PTX_COVERAGE=FOLDER/name
PTX_FOLDER  has kernels.ptx and decode.ptx
--missing   the lines of a kernel that were not reached, instead of the table
"""
import pathlib
import re
import sys


def read_hits(folder):
    """{kernel: {line: how often a warp came to it}} over all tests."""
    kernels = {}
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            name, number, hits = line.split("\t")
            lines = kernels.setdefault(name, {})
            lines[int(number)] = lines.get(int(number), 0) + int(hits)
    return kernels


def print_table(kernels):
    total = reached = 0
    for name, lines in kernels.items():
        n = sum(hits > 0 for hits in lines.values())
        print(f"{name:16} {n:6} of {len(lines):6} {100 * n / len(lines):6.1f} %")
        total += len(lines)
        reached += n
    print(f"{'all':16} {reached:6} of {total:6} {100 * reached / total:6.1f} %")


def print_missing(lines, text):
    """Runs of instructions that were not reached, each with how it begins."""
    numbers = sorted(lines)
    run = []
    for number in numbers + [None]:
        if number is not None and lines[number] == 0:
            run.append(number)
        elif run:
            print(f"{run[0]}..{run[-1]}: {len(run)} instructions, first {text[run[0] - 1].strip()}")
            run = []


def main():
    if len(sys.argv) not in (3, 5):
        sys.exit(__doc__)
    kernels = read_hits(pathlib.Path(sys.argv[1]))
    if len(sys.argv) == 3:
        print_table(kernels)
        return
    name = sys.argv[4]
    file = "decode.ptx" if re.match("DECODE", name) else "kernels.ptx"
    text = (pathlib.Path(sys.argv[2]) / file).read_text().splitlines()
    print_missing(kernels[name], text)


if __name__ == "__main__":
    main()
