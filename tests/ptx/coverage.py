#!/usr/bin/env python3
"""Which instructions of the compiled kernels the tests came to.

usage: coverage.py BUILD [--missing KERNEL] [--least PERCENT]
BUILD      a build's tests/ptx: the PTX, and in coverage/ what the tests left
--missing  the lines of a kernel that were not reached, instead of the table
--least    exit with 1 if less of some kernel was reached
"""
import argparse
import pathlib
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
    """Returns the least percentage."""
    shares = {name: (sum(hits > 0 for hits in lines.values()), len(lines))
              for name, lines in kernels.items()}
    shares["all"] = tuple(sum(column) for column in zip(*shares.values()))
    for name, (reached, n) in shares.items():
        print(f"{name:12} {reached:6} of {n:6} {100 * reached / n:6.1f} %")
    return min(100 * reached / n for reached, n in shares.values())


def print_missing(lines, text):
    """Runs of instructions that were not reached, each with how it begins."""
    run = []
    for number in sorted(lines) + [None]:
        if number is not None and lines[number] == 0:
            run.append(number)
        elif run:
            print(f"{run[0]}..{run[-1]}: {len(run)} instructions, first {text[run[0] - 1].strip()}")
            run = []


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--missing")
    parser.add_argument("--least", type=float, default=0)
    options = parser.parse_args()
    kernels = read_hits(options.build / "coverage")
    if options.missing:
        file = "decode.ptx" if options.missing.startswith("DECODE") else "kernels.ptx"
        print_missing(kernels[options.missing], (options.build / file).read_text().splitlines())
    elif print_table(kernels) < options.least:
        sys.exit(1)


if __name__ == "__main__":
    main()
