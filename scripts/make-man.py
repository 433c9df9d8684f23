#!/usr/bin/env python3
"""Make the manual pages from docs/assay.1, which has the prose, and the program's help.

usage: make-man.py FOLDER ASSAY docs/assay.1    write FOLDER/assay.1, with the commands, options,
                                                variables and examples between the marks, and a page for each
                                                command, assay-NAME.1
       make-man.py --check ASSAY docs/assay.1   only say what the prose lacks; exit code 1 if it does

An option that several commands have with the same words is described once, after the commands.
Each command must have an example that takes options which it has, no example may have quotes that
roff takes for its own, and each variable that the sources name must be on the page. Between the
marks of docs/assay.1 stands what is installed where there is no Python: that `assay help` lists the
options.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = "Options that several commands have"


def roff(text, everywhere=False):
    """Escape; a dash is a minus sign in options, a hyphen in prose."""
    text = text.replace("\\", "\\e")
    if everywhere:
        return text.replace("-", "\\-")
    return re.sub(r"(?<![\w-])-{1,2}[a-z][-a-z]*", lambda m: m.group().replace("-", "\\-"), text)


def run_help(assay, *words):
    return subprocess.run([assay, "help", *words], capture_output=True, text=True, check=True,
                          env={**os.environ, "COLUMNS": "98"}).stdout.splitlines()


def tag(left):
    """`-c, --ctx-size N` with names in bold and the value in italics."""
    names, value = re.fullmatch(r"((?:-[\w-]+, )*-[\w-]+)(?: (.+))?", left).groups()
    shown = ", ".join(f"\\fB{roff(n, True)}\\fR" for n in names.split(", "))
    return f"{shown} \\fI{roff(value, True)}\\fR" if value else shown


def parse(assay, name):
    """(usage, paragraphs, [(heading, [(left, right) of an option])]) of a command's help."""
    lines = run_help(assay, name)
    usage = " ".join(line.strip() for line in lines[:lines.index("")])
    del lines[:lines.index("")]
    if "Examples" in lines:
        del lines[lines.index("Examples"):]
    paragraphs, groups = [], []
    for block in "\n".join(lines).strip("\n").split("\n\n"):
        heading, options = [], []
        for line in block.split("\n"):
            if line.startswith("  -"):
                left, _, right = line.strip().partition("  ")
                options.append([left, right.strip()])
            elif options:
                options[-1][1] = f"{options[-1][1]} {line.strip()}".strip()
            else:
                heading.append(line)
        if options:
            groups.append((" ".join(heading), [tuple(o) for o in options if "--help" not in o[0]]))
        else:
            paragraphs.append([" ".join(heading)])
    return usage, paragraphs, groups


def examples(assay, name):
    """The entries of a command's examples: each a line and what it does."""
    lines = run_help(assay, name)
    for line in lines[lines.index("Examples") + 1:] if "Examples" in lines else []:
        if line.startswith("   "):
            yield roff(line.strip())
        else:
            yield from (".TP", ".B " + roff(line.strip(), True).replace('"', "\\(dq"))


def entries(groups):
    for heading, options in groups:
        if options and heading:
            yield from (".PP", roff(heading))
        for left, right in options:
            yield from (".TP", tag(left), roff(right))


def command_section(usage, paragraphs, groups, shared):
    yield f".SS {roff(usage.removeprefix('usage: '), True)}"
    for lines in paragraphs:
        yield from (".PP", *map(roff, lines))
    yield from entries([(heading, [o for o in options if o not in shared])
                        for heading, options in groups])
    also = [roff(o[0].split(",")[0].split()[0], True)
            for _, options in groups for o in options if o in shared]
    if also:
        yield from (".PP", f"Shared options: {', '.join(also)}.")


def commands_and_options(pages):
    times = {}
    for _, _, groups in pages.values():
        for _, options in groups:
            for option in options:
                times[option] = times.get(option, 0) + 1
    shared = {option for option, n in times.items() if n > 1}
    for page in pages.values():
        yield from command_section(*page, shared)
    by_heading, left = {}, set(shared)
    for _, _, groups in pages.values():
        for heading, options in groups:
            for option in options:
                if option in left:
                    by_heading.setdefault(heading, []).append(option)
                    left.remove(option)
    yield from (f".SS {SHARED}", *entries(by_heading.items()))


def variables(pages):
    """Each variable with the option that it stands for."""
    found = {}
    for _, _, groups in pages.values():
        for _, options in groups:
            for left, right in options:
                if variable := re.search(r"\[([A-Z_]+)\]$", right):
                    found[variable[1]] = left.split(",")[0].split()[0]
    for variable, option in found.items():
        yield from (".TP", f"\\fB{variable}\\fR", f"as \\fB{roff(option, True)}\\fR")


def missing(page, pages):
    """What the parts that are written by hand lack."""
    plain = re.sub(r"\\f[BIR]", "", page.replace("\\-", "-"))
    shown = plain.partition(".SH EXAMPLES")[2]
    yield from (f"\\(dq for the quotes of {line}, which roff takes for its own"
                for line in re.findall(r'(?m)^\.B (.*".*)$', shown))
    examples = re.findall(r"(?m)^\.B (assay .*)$", shown.replace("\\(dq", '"'))
    known = {name: {word for _, options in groups for left, _ in options
                    for word in re.findall(r"(?<![\w-])--?[\w-]+", left)}
             for name, (_, _, groups) in pages.items()}
    for name in pages:
        of_command = [e for e in examples if e.split()[1] == name]
        if not of_command:
            yield f"an example of assay {name}"
        for example in of_command:
            yield from (f"{word}, which an example has, among the options of assay {name}"
                        for word in re.findall(r" (--?[a-zA-Z][\w-]*)", example)
                        # of a command that another one takes, too
                        if not any(word in known[n] for n in example.split() if n in known))
    for source in sorted((ROOT / "cli").rglob("*.c")):
        yield from (name for name in re.findall(r'(?:\.env = |getenv\()"(\w+)"', source.read_text())
                    if name not in page)


def command_page(name, usage, paragraphs, groups, examples):
    (summary,), *more = paragraphs
    yield f'.TH ASSAY-{name.upper()} 1'
    yield from (".SH NAME", f"assay-{name} \\- {roff(summary[0].lower() + summary[1:].rstrip('.'))}")
    yield from (".SH SYNOPSIS", f".B {roff(usage.removeprefix('usage: '), True)}")
    yield from (".SH DESCRIPTION", roff(summary))
    for lines in more:
        yield from (".PP", *map(roff, lines))
    yield from (".SH OPTIONS", *entries(groups), ".SH EXAMPLES")
    for example in examples:
        if example.split()[2] == name:
            yield from (".TP", example)
    yield from (".SH SEE ALSO", ".BR assay (1)")


def write_pages(folder, page, pages):
    examples = page.partition(".SH EXAMPLES\n.TP\n")[2].partition("\n.SH ")[0].split("\n.TP\n")
    for name, (usage, paragraphs, groups) in pages.items():
        text = "\n".join(command_page(name, usage, paragraphs, groups, examples)) + "\n"
        (folder / f"assay-{name}.1").write_text(text)


def replace_part(page, name, lines):
    begin, end = f'.\\" begin {name}\n', f'.\\" end {name}\n'
    if not re.search(re.escape(begin) + r"(?:(?!\.TP\n|\.S).*\n)*\.B assay help\n(?:(?!\.TP\n|\.S).*\n)*"
                     + re.escape(end), page):
        sys.exit(f"docs/assay.1: between the marks of {name} there must be a sentence that names "
                 "`assay help`, and no option: the build puts them there")
    before, _, rest = page.partition(begin)
    return before + "\n".join(lines) + "\n" + rest.partition(end)[2]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    target, assay, path = sys.argv[1:]
    names = [line.split()[0] for line in run_help(assay) if line.startswith("  ")]
    pages = {name: parse(assay, name) for name in names if name != "help"}
    page = pathlib.Path(path).read_text()
    page = replace_part(page, "options", commands_and_options(pages))
    page = replace_part(page, "environment", variables(pages))
    page = replace_part(page, "examples", [line for name in pages for line in examples(assay, name)])
    lacks = list(missing(page, pages))
    if lacks:
        sys.exit(f"{path} lacks {'; '.join(lacks)}")
    if target != "--check":
        folder = pathlib.Path(target)
        (folder / "assay.1").write_text(page)
        write_pages(folder, page, pages)


if __name__ == "__main__":
    main()
