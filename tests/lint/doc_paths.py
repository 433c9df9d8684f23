#!/usr/bin/env python3
"""Paths that documents and comments name must exist.

usage: doc_paths.py SOURCE_DIR

What is read: *.md, and the comments of C, C headers, CUDA files and CMake's files. A name is
    folder/...       that begins with a folder of the tree: from the root, from the folder of the
                     file that names it, or from one above that; .c may be left out
    any/file.c       any other name that ends as sources do: the end of some path
    `any/`           in a document, between backticks: the same
    ../any           from the folder of the file that names it
    [text](path)     in a document: from the document's folder; with #anchor, that heading, too
docs/README.md has a link to each page beside it. {a,b} stands for each of them; *, <name> and NAME for anything, but something must be there.
"""
import fnmatch
import functools
import os
import pathlib
import re
import sys

from rooms import Rooms

FOLDERS = (*sorted({layer.split("/")[0] for layer in Rooms(sys.argv[1] if len(sys.argv) > 1 else ".").stands_on}),
           "tests", "bench", "cmake", "data", "docs", "examples", "include", "python", "scripts")
SOURCES = (".c", ".h", ".cu", ".py", ".sh", ".cmake")
# What is named, and is not of this tree: of exllamav3, lm-evaluation-harness, Bochs, the tests'
# library, an installed program, the evaluator of docs/how-to-add.md.
ELSEWHERE = {"model_diff.py", "qbench.py", "model_comparator.py", "cpu/icache.h", "cmocka.h",
             "lib/assay/", "../lib/assay",
             "share/doc/assay/assay_mpi.c", "entropy/entropy_evaluator.c", "cli/entropy/entropy_evaluator.c",
             "cli/entropy/README.md", "tests/cli/entropy.cases", "FOLDER/NAME.c"}
PART = r"(?:[\w.*-]|<\w+>|\{[\w,.]+\})+"
NAME = re.compile(rf"(?<![\w./<>*{{}}$~-])(?:(?:{PART}/)+(?:{PART})?|{PART}\.\w+)")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?[^)]*\)")
C_COMMENT = r'"(?:\\.|[^"\\\n])*"|(?P<comment>/\*.*?\*/|//[^\n]*)'
CMAKE_COMMENT = r'"(?:\\.|[^"\\])*"|(?P<comment>#[^\n]*)'


def read(path):
    """A document; of another file its comments, each in its line."""
    text = path.read_text()
    if path.suffix == ".md":
        return text
    kept, end = [], 0
    pattern = C_COMMENT if path.suffix in (".c", ".h", ".cu") else CMAKE_COMMENT
    for match in re.finditer(pattern, text, re.S):
        if match["comment"]:
            kept += ["\n" * text.count("\n", end, match.start()), match["comment"]]
            end = match.end()
    return "".join(kept)


def expand(name):
    braces = re.search(r"\{([^}]*)\}", name)
    if not braces:
        return [re.sub(r"<\w+>|NAME", "*", name)]
    return [whole for word in braces[1].split(",")
            for whole in expand(name[:braces.start()] + word + name[braces.end():])]


def names_in(line, folder, is_document):
    """(name, folders that it may begin in; "*": any) of all that is to be there."""
    above = (folder, *folder.parents)
    for match in LINK.finditer(line) if is_document else []:
        if match[1] and "://" not in match[1]:
            yield match[1], above[:1]
    for match in NAME.finditer(line):
        name = match[0].rstrip(".")
        quoted = line[:match.start()].endswith("`") and line[match.end():].startswith("`")
        if name.startswith("../"):
            yield name, above[:1]
        elif name.startswith(tuple(top + "/" for top in FOLDERS)):
            yield name, above
        elif name.endswith(SOURCES) or (is_document and quoted and re.search("^(?!build/).*/$", name)):
            yield name, ("*",)


@functools.cache
def anchors(path):
    """What a link to a heading of a document can name."""
    found, text = {}, re.sub(r"(?ms)^ *```.*?^ *```$", "", path.read_text())
    for heading in re.findall(r"(?m)^#+ +(.*?) *$", text):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {name + (f"-{i}" if i else "") for name, n in found.items() for i in range(n + 1)}


def broken_anchors(path, text):
    """(line, link) whose heading is not there."""
    for number, line in enumerate(text.splitlines(), 1):
        for name, anchor in LINK.findall(line):
            target = path.parent / name if name else path
            if anchor and "://" not in name and target.suffix == ".md" and target.exists():
                if anchor not in anchors(target.resolve()):
                    yield number, f"{name}#{anchor}"


def unlisted(root):
    """Pages that the list of pages lacks."""
    index = root / "docs" / "README.md"
    listed = {name for name, _ in LINK.findall(index.read_text())}
    return [page.name for page in sorted((root / "docs").glob("*.md")) if page != index and page.name not in listed]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    tree = [path for path in root.iterdir() if path.is_file() or path.name in FOLDERS]
    tree += [path for folder in FOLDERS for path in (root / folder).rglob("*")]
    tree = ["/" + str(path.relative_to(root)) for path in tree]

    whole = set(tree)
    ends = {path[at + 1:] for path in tree for at in range(1, len(path)) if path[at] == "/"}

    @functools.cache
    def exists(name, folders):
        paths = [os.path.normpath(f"/{folder}/{name}") for folder in folders]
        paths += [path + ".c" for path in paths]
        if "*" in name:
            return any(map(re.compile("|".join(map(fnmatch.translate, paths))).match, tree))
        return any(path.removeprefix("/*/") in ends if folders == ("*",) else path in whole for path in paths)

    findings = []
    for path in sorted(tree):
        if path.endswith((".md", ".c", ".h", ".cu", ".cmake", "/CMakeLists.txt")):
            text = read(root / path[1:])
            for number, line in enumerate(text.splitlines(), 1):
                for name, folders in names_in(line, pathlib.Path(path[1:]).parent, ".md" in path):
                    if name not in ELSEWHERE and not all(exists(n, folders) for n in expand(name)):
                        findings.append(f"{path[1:]}:{number}: there is no {name}")
            if path.endswith(".md"):
                findings += [f"{path[1:]}:{number}: there is no heading {link}"
                             for number, link in broken_anchors(root / path[1:], text)]
    findings += [f"docs/README.md: has no link to {name}" for name in unlisted(root)]
    print("\n".join(findings) if findings else "every path is there")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
