#!/usr/bin/env python3
"""Bring the commands and options in the manual page up to date with the program's own help.

usage: make-man.py ASSAY docs/assay.1           rewrite what stands between the two marks
       make-man.py --check ASSAY docs/assay.1   only compare; exit code 1 where they differ
"""
import pathlib
import re
import subprocess
import sys

BEGIN, END = '.\\" begin options', '.\\" end options'


def roff(text, everywhere=False):
    """Escape; a dash is a minus sign in options, a hyphen in prose."""
    text = text.replace("\\", "\\e")
    if everywhere:
        return text.replace("-", "\\-")
    return re.sub(r"(?<![\w-])-{1,2}[a-z][-a-z]*", lambda m: m.group().replace("-", "\\-"), text)


def run_help(assay, *words):
    return subprocess.run([assay, "help", *words], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def tag(left):
    """`-c, --ctx-size N` with names in bold and the value in italics."""
    names, value = re.fullmatch(r"((?:-[\w-]+, )*-[\w-]+)(?: (.+))?", left).groups()
    shown = ", ".join(f"\\fB{roff(n, True)}\\fR" for n in names.split(", "))
    return f"{shown} \\fI{roff(value, True)}\\fR" if value else shown


def command_section(assay, name):
    usage, *lines = run_help(assay, name)
    yield f".SS {roff(usage.removeprefix('usage: '), True)}"
    option = None
    for line in lines + [""]:
        starts = line.startswith("  -")
        if option and (starts or not line.startswith("   ")):
            yield from (".TP", tag(option[0]), roff(option[1]))
            option = None
        if starts:
            left, _, right = line.strip().partition("  ")
            option = [left, right.strip()]
            if left == "-h, --help":
                option = None
        elif option:
            option[1] = f"{option[1]} {line.strip()}".strip()
        elif line:
            yield from (".PP", roff(line)) if previous == "" else (roff(line),)
        previous = line


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    assay, path = arguments[0], pathlib.Path(arguments[1])
    commands = [line.split()[0] for line in run_help(assay) if line.startswith("  ")]
    commands.remove("help")
    made = [line for name in commands for line in command_section(assay, name)]

    page = path.read_text()
    before, _, rest = page.partition(BEGIN + "\n")
    old, _, after = rest.partition(END + "\n")
    new = "\n".join(made) + "\n"
    if "--check" in sys.argv:
        if old != new:
            sys.exit(f"{path} differs from the program's help; run: "
                     f"python3 scripts/make-man.py {assay} {path}")
        return
    path.write_text(f"{before}{BEGIN}\n{new}{END}\n{after}")


if __name__ == "__main__":
    main()
