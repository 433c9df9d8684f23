#!/usr/bin/env python3
"""Bring the lists of options in docs/drop-in.md up to date with tests/cli/peer-options.tsv, and the
reasons with what the program says.

usage: make-drop-in.py ASSAY docs/drop-in.md            rewrite what stands between the two marks
       make-drop-in.py --check ASSAY docs/drop-in.md    only compare; exit code 1 where they differ
"""
import pathlib
import subprocess
import sys

BEGIN, END = "<!-- begin lists -->", "<!-- end lists -->"
TABLE = pathlib.Path(__file__).parent.parent / "tests" / "cli" / "peer-options.tsv"


def rows(outcome):
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    head = lines[0].split("\t")
    table = [dict(zip(head, line.split("\t"), strict=True)) for line in lines[1:]]
    return [row for row in table if row["outcome"] == outcome]


def code(words):
    return ", ".join(f"`{word}`" for word in words.split()) if words != "-" else ""


def says(assay, row):
    """What the program answers, without its name and that of the option."""
    words = [row["spellings"].split()[0], *(row["example"].split() if row["values"] != "0" else [])]
    run = subprocess.run([assay, "perplexity", *words], capture_output=True, text=True, check=False)
    text = (run.stdout or run.stderr.removeprefix("assay: ").partition(": ")[2]).strip()
    return {"-h": "the help", "--version": "the version"}.get(words[0], text)


def lists(assay):
    yield from ("", "### Honoured", "")
    yield ", ".join(code(row["spellings"]) for row in rows("same")) + "."
    yield ""
    names = " ".join(row["variables"] for row in rows("same") if row["variables"] != "-")
    yield f"Variables: {code(names)}."
    yield from ("", "### Refused", "", "| option | accepted | why others are refused |", "| --- | --- | --- |")
    refused = {}
    for row in rows("refused"):
        names, accepted = refused.setdefault(says(assay, row), ([], row["accepted"]))
        names.append(row["spellings"] + (f" {row['variables']}" if row["variables"] != "-" else ""))
    for reason, (names, accepted) in refused.items():
        yield f"| {code(' '.join(names))} | {code(accepted)} | {reason} |"
    yield from ("", "### Answered, with exit code 0", "", "| option | answer |", "| --- | --- |")
    for row in rows("answered"):
        yield f"| {code(row['spellings'])} | {says(assay, row)} |"
    yield from ("", "### Ignored", "")
    for program, title in (("both", "Both programs have"), ("llama.cpp", "llama.cpp alone has"),
                           ("ik_llama.cpp", "ik_llama.cpp alone has"), ("older", "Older versions had")):
        names = " ".join(row["spellings"] for row in rows("ignored") if row["program"] == program)
        yield from (f"{title}: {code(names)}.", "")


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    path = pathlib.Path(arguments[1])
    page = path.read_text()
    before, _, rest = page.partition(BEGIN + "\n")
    _, _, after = rest.partition(END)
    new = "\n".join([before + BEGIN, *lists(arguments[0]), END]) + after
    if "--check" not in sys.argv:
        path.write_text(new)
    elif new != page:
        sys.exit(f"{path} does not have the options; run scripts/make-drop-in.py")


if __name__ == "__main__":
    main()
