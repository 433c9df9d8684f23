#!/usr/bin/env python3
"""Bring what pages say of commands and options up to date with the program's help.

usage: make-commands.py ASSAY            rewrite what stands between the marks of README.md and docs/*.md
       make-commands.py --check ASSAY    only compare; exit code 1 where they differ

Marks, and what stands between them:
  <!-- begin commands --> ... <!-- end commands -->    a table of all commands, and their examples
  <!-- begin options --> ... <!-- end options -->      which options which commands have
  <!-- with --state -->perplexity and kld<!-- end -->  in a sentence: the commands that have the option
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The page that says more of a command.
PAGES = {"perplexity": "protocols.md", "record": "bases.md", "kld": "divergence.md", "best": "best.md",
         "check": "validating.md", "trace": "trace.md", "draft": "draft.md", "sweep": "sweep.md",
         "recipe": "sweep.md", "mix": "sweep.md", "imatrix": "imatrix.md", "score": "harness.md",
         "plan": "performance.md", "serve": "serve.md", "compare": "results.md", "table": "results.md",
         "merge": "cluster.md", "explain": "explain.md", "report": "results.md", "card": "results.md",
         "tokenize": "protocols.md", "info": "models.md", "dump": "formats.md", "version": "install.md"}


def help_of(assay, *words):
    env = {**os.environ, "COLUMNS": "1000"}  # the program cuts that to what it likes best
    return subprocess.run([assay, "help", *words], capture_output=True, text=True, check=True, env=env).stdout


class Command:
    def __init__(self, assay, name, summary):
        self.name, self.summary = name, summary
        text = help_of(assay, name)
        usage, _, rest = text.partition("\n\n")
        self.usage = " ".join(usage.split()).removeprefix("usage: ")
        self.options = [names.group().strip().split(", ")[0].split()[0]
                        for names in re.finditer(r"(?m)^  -{1,2}[\w-]+(?:, -{1,2}[\w-]+)*", rest)]
        self.options.remove("-h")
        _, _, shown = rest.partition("\nExamples\n")
        pattern = re.compile(r"^  (assay .*)\n((?:      .*\n?)+)", re.M)
        self.examples = [(command, " ".join(what.split())) for command, what in pattern.findall(shown)]


def joined(words):
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def cell(text):
    return text.replace("|", r"\|")


def command_table(commands):
    yield from ("| command | what it does | more |", "| --- | --- | --- |")
    for c in commands:
        yield f"| `{cell(c.usage)}` | {cell(c.summary)} | [{PAGES[c.name].removesuffix('.md')}]({PAGES[c.name]}) |"
    yield from ("", "## Examples", "", "| command line | what it is for |", "| --- | --- |")
    yield from (f"| `{cell(line)}` | {cell(what)} |" for c in commands for line, what in c.examples)


def option_table(commands):
    """Options that the same commands have are a row."""
    by_option = {}
    for c in commands:
        for option in c.options:
            by_option.setdefault(option, []).append(c.name)
    by_commands = {}
    for option, names in by_option.items():
        by_commands.setdefault(tuple(names), []).append(option)
    yield from ("| options | commands |", "| --- | --- |")
    for names, options in sorted(by_commands.items(), key=lambda row: -len(row[0])):
        yield f"| {', '.join(f'`{option}`' for option in options)} | {', '.join(names)} |"


def rewritten(page, commands):
    tables = {"commands": command_table, "options": option_table}

    def table(match):
        return f"<!-- begin {match[1]} -->\n" + "\n".join(tables[match[1]](commands)) + f"\n<!-- end {match[1]} -->"

    def with_option(match):
        names = [c.name for c in commands if match[1] in c.options]
        if not names:
            sys.exit(f"no command has the option {match[1]}, by that spelling")
        return f"<!-- with {match[1]} -->{joined([f'`{name}`' for name in names])}<!-- end -->"

    page = re.sub(r"<!-- begin (commands|options) -->.*?<!-- end \1 -->", table, page, flags=re.S)
    return re.sub(r"<!-- with (-[\w-]+) -->.*?<!-- end -->", with_option, page, flags=re.S)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    assay = arguments[0]
    rows = [line.split(maxsplit=1) for line in help_of(assay).splitlines() if line.startswith("  ")]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        commands = list(pool.map(lambda row: Command(assay, *row), [row for row in rows if row[0] != "help"]))
    stale = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        page = path.read_text()
        new = rewritten(page, commands)
        if new != page:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(new)
    if stale and "--check" in sys.argv:
        sys.exit(f"{', '.join(stale)}: not what the program has; run scripts/make-commands.py build/dev/assay")


if __name__ == "__main__":
    main()
