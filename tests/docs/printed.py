#!/usr/bin/env python3
"""The output that pages show is what the program prints.

usage: printed.py marks SOURCE_DIR     each block of output has a mark
       printed.py list SOURCE_DIR      where each block is, its mark, and its first command
       printed.py run KIND ASSAY SOURCE_DIR BUILD_DIR [PAGE...]       run the blocks of a kind, and compare
       printed.py write KIND ASSAY SOURCE_DIR BUILD_DIR [PAGE...]     put what they print in their place

A block between ``` and ``` is output, unless a language follows the first ``` (sh, python, diff, text).
The comment above it is its mark:

  <!-- run: tiny -->     is run by ctest, with the files of KINDS; so is `shared`, where these models are
  <!-- run: numpy -->    ... where a Python has numpy and libassay.so was built: with this Python
  <!-- run: real -->     is run by scripts/check-all.sh real-models
  <!-- made: by what, on what, 28 November 2026 -->      cannot be repeated here

`$ COMMAND` in a block is run, and what follows is what it prints. A mark of several lines has commands
in front of those, which are not shown; where the block has none, the last of these prints it. With `run:
tiny, above` that is the block before, of sh or python. The blocks of a page run one after the other in
one shell and one folder, with links to the files of KINDS.

Standard output is compared as it is, but for REPLACED; lines of standard error may be left out. A line
`...` stands for any lines, and at the end of a line for any rest. A command that fails must show it.
"""
import concurrent.futures
import contextlib
import difflib
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tempfile

TIMEOUT_S = {"tiny": 300, "numpy": 300, "shared": 300, "real": 3600}
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
MARK = re.compile(r"(?:run: (?P<kind>\w+)(?P<above>, above)?\s*?(?P<before>\n.*)?|made: (?P<made>.+?))\s*", re.S)
FENCE = re.compile(r"(?m)(?:^[ ]*<!--[ ](?P<mark>(?:run|made): (?:(?!-->)[\s\S])*)-->\n\n?)?"
                   r"^(?P<indent>[ ]*)```(?P<language>\w*)\n(?P<text>(?:.*\n)*?)(?P=indent)```$")
REPLACED = [
    (r"\b\d[\d.]* (?:s|ms|min|h|hours|minutes|seconds|tokens/s)\b", "#"),
    (r"memory: .*", "memory: #"),
    (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?|\b\d\d:\d\d:\d\d\b", "#"),
    (r"\b\d+\.\d+\.\d+\b(?:-\w+)?|\b[0-9a-f]{12}\b", "#"),
]
KINDS = tuple(TIMEOUT_S)
OUT, MARKER = "...", "\x1e"
MOST_LINES = 40  # of a difference


def files_of(kind, source):
    """{name of a link: what it leads to} of the files of a kind; {} where they are not there."""
    shared = source.parent / "shared"
    models = pathlib.Path(os.environ.get("ASSAY_MODELS") or source.parent / "models")
    bundled = [source / "data", *(source / "data").iterdir(), source / "tests" / "data" / "tasks"]
    links = {path.name: path for path in bundled}
    if kind == "shared":
        links |= {path.name: path for path in (shared / "models").glob("*.gguf")}
        links["wiki.test.raw"] = shared / "text" / "wiki2-test.txt"
        return links if links["wiki.test.raw"].exists() else {}
    if kind == "real":
        return links | found if (found := {path.name: path for path in models.glob("*.gguf")}) else {}
    return links


def python_for(kind, source, build):
    """Variables of the environment; None where a kind needs a Python that is not there."""
    env = {"PYTHONPATH": str(source / "python")}
    if kind != "numpy":
        return env
    sys.path.insert(0, str(source / "tests" / "python"))
    from numpys import python_with_numpy
    library, python = build / "libassay.so", python_with_numpy()
    return env | {"ASSAY_LIBRARY": str(library), "python3": python} if python and library.exists() else None


class Block:
    """A block of a page, the commands that make it, and what it says that each of them prints."""

    def __init__(self, match, before):
        self.language, self.indent = match["language"], match["indent"]
        self.start, self.end = match.span("text")
        self.lines = [line.removeprefix(self.indent).rstrip() for line in match["text"].splitlines()]
        self.mark = MARK.fullmatch(match["mark"] or "")
        self.mark_at, self.before = match.start("mark"), before
        self.kind = self.mark["kind"] if self.mark else None

    def steps(self):
        """(command, lines that it is said to print; None: whatever it prints) in their order."""
        hidden = [line.strip() for line in (self.mark["before"] or "").splitlines() if line.strip()]
        if self.mark["above"]:
            hidden.append(self.before.as_command())
        steps = [(command, None) for command in hidden]
        if not any(line.startswith("$ ") for line in self.lines):
            return steps[:-1] + [(steps[-1][0], self.lines)] if steps else []
        for line in self.lines:
            if line.startswith("$ "):
                steps.append((line[2:], []))
            elif steps and steps[-1][1] is not None:
                inside = steps[-1][0].endswith("\\") and not steps[-1][1]
                if inside:
                    steps[-1] = (f"{steps[-1][0]}\n{line}", [])
                else:
                    steps[-1][1].append(line)
        return steps

    def as_command(self):
        text = "\n".join(self.lines)
        return text if self.language == "sh" else f"${{python3:-python3}} - <<'END OF BLOCK'\n{text}\nEND OF BLOCK"


def blocks(page):
    found = []
    for match in FENCE.finditer(page):
        found.append(Block(match, found[-1] if found else None))
    return found


def problem(block):
    """What is wrong with the mark of a block; or None."""
    if block.mark_at < 0:
        return None if block.language else ("output without a mark; a block that is none needs a language: "
                                            "```sh, ```text")
    if not block.mark:
        return "the mark is neither `run: KIND` nor `made: BY WHAT, DATE`"
    if block.mark["made"]:
        dated = re.search(rf", \d?\d (?:{MONTHS}) 20\d\d$", block.mark["made"])
        return None if dated else "the mark does not end with a date: `made: BY WHAT, 28 November 2026`"
    if block.kind not in KINDS:
        return f"run: {block.kind}: there are {', '.join(KINDS)}"
    if block.mark["above"] and not block.before:
        return "no block is above it"
    return None if block.steps() else "nothing is run: there is no `$ ` line, and the mark has no command"


def problems(page):
    """(line, what is wrong) of the marks of a page."""
    items = blocks(page)
    at = {block.mark_at for block in items}
    found = [(block.start, what) for block in items if (what := problem(block))]
    found += [(match.start(), "a mark that is above no block")
              for match in re.finditer(r"<!-- (?=(?:run|made): )", page) if match.end() not in at]
    return [(page.count("\n", 0, start), what) for start, what in sorted(found)]


def normal(line, folder=None):
    if folder:
        line = line.replace(f"{folder}/", "")
    for pattern, replacement in REPLACED:
        line = re.sub(rf" *(?:{pattern})", f" {replacement}", line)
    return line.rstrip()


def pattern_of(lines):
    parts = []
    for line in lines:
        if line.strip() == OUT:
            parts.append(r"(?:.*\n)*?")
        elif line.endswith(OUT):
            parts.append(re.escape(line.removesuffix(OUT)) + r".*\n")
        else:
            parts.append(re.escape(line) + r"\n")
    return "".join(parts)


def begins(line, lines):
    """Whether one of the lines is this one, or begins as it does up to its `...`."""
    if line.strip() != OUT and line.endswith(OUT):
        return any(other.startswith(line.removesuffix(OUT)) for other in lines)
    return line in lines


def trimmed(lines):
    """Without empty lines at either end."""
    text = "\n".join(lines).strip("\n")
    return text.split("\n") if text else []


class Printed:
    """What a command did."""

    def __init__(self, code, out, err, folder):
        self.code = code
        self.out, self.err = ([normal(line, folder) for line in text.splitlines()] for text in (out, err))
        self.raw = {normal(line, folder): line.replace(f"{folder}/", "").rstrip()
                    for line in (out + err).splitlines()}

    def difference(self, shown):
        """A diff, or "" where a page may show these lines."""
        lines = [normal(line) for line in shown]
        if self.code and not lines:
            return f"exit code {self.code}:\n" + "\n".join(self.err[-3:]) + "\n"
        lines = trimmed(line for line in lines if begins(line, self.out) or not begins(line, self.err))
        out = trimmed(self.out)
        if re.fullmatch(pattern_of(lines), "".join(line + "\n" for line in out)):
            return ""
        diff = list(difflib.unified_diff(lines, out, "shown", "printed", n=1, lineterm=""))
        more = [f"and {len(diff) - MOST_LINES} lines more"] if len(diff) > MOST_LINES else []
        return "".join(line + "\n" for line in diff[:MOST_LINES] + more)

    def as_shown(self, shown):
        """What a page is to show in place of these lines: as many, with the same left out."""
        shown = trimmed(shown)
        frame = {skeleton(line) for line in shown}
        err = [line for line in self.err if skeleton(line) in frame and line not in self.out]
        lines = err + trimmed(self.out)
        if OUT not in [line.strip() for line in shown]:
            return [self.raw.get(line, line) for line in lines]
        parts, at = [[]], 0
        for line in shown:
            if line.strip() == OUT:
                parts.append([])
            else:
                parts[-1].append(line)
        for i, part in enumerate(parts):
            if part and i == len(parts) - 1:
                at = max(at, len(lines) - len(part))
            elif part and i:
                at = next((k for k in range(at, len(lines)) if skeleton(lines[k]) == skeleton(part[0])), at)
            parts[i] = [self.raw.get(line, line) for line in lines[at:at + len(part)]]
            at += len(part)
        return [line for i, part in enumerate(parts) for line in ([OUT] if i else []) + part]


def skeleton(line):
    """A line without its numbers and their room."""
    return re.sub(r"[-+ ]*[\d.]+(?:e[-+]?\d+)?|\s+", " ", line).strip()


def shell(kind, commands, folder, env):
    """What each of the commands did, in one shell, which may leave servers behind: they end with it."""
    script = "".join(f"{command}\ncode=$?; printf '\\n{MARKER}%d\\n' $code; printf '\\n{MARKER}\\n' >&2; (exit $code)\n"
                     for command in commands)
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        process = subprocess.Popen(["bash", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, start_new_session=True)
        try:
            process.wait(TIMEOUT_S[kind])
        except subprocess.TimeoutExpired:
            print(f"still running after {TIMEOUT_S[kind]} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        out.seek(0), err.seek(0)
        outs = re.split(rf"\n{MARKER}(\d+)\n", out.read())
        errs = err.read().split(f"\n{MARKER}\n")
    return [Printed(int(code), text, errs[i] if i < len(errs) else "", folder)
            for i, (text, code) in enumerate(zip(outs[::2], outs[1::2]))]


def run_page(page, kind, files, env):
    """[(block, command, lines shown or None, what it printed)]; what it printed: None where it did not end."""
    steps = [(block, *step) for block in blocks(page) if block.kind == kind for step in block.steps()]
    with tempfile.TemporaryDirectory(prefix="assay-docs-") as name:
        folder = pathlib.Path(name).resolve()
        for link, target in files.items():
            (folder / link).symlink_to(target)
        printed = shell(kind, [command for _, command, _ in steps], folder, env)
    printed += [None] * (len(steps) - len(printed))
    return [(*step, result) for step, result in zip(steps, printed)]


def compare(page, done):
    """Sentences on what differs."""
    for block, command, shown, printed in done:
        where = f"line {page.count(chr(10), 0, block.start)}: $ {command}\n"
        if printed is None:
            yield where + "did not end\n"
        elif shown is None:
            if printed.code:
                yield where + f"exit code {printed.code}:\n" + "\n".join(printed.err[-3:]) + "\n"
        elif difference := printed.difference(shown):
            yield where + difference


def rewritten(page, done):
    for block in reversed(blocks(page)):
        steps = [step for step in done if step[0].start == block.start]
        if not steps:
            continue
        lines = []
        for _, command, shown, printed in steps:
            if shown is None:
                continue
            if f"$ {command}".split("\n")[0] in block.lines:
                lines += f"$ {command}".split("\n")
            blank = [""] if shown and not shown[-1] else []
            lines += (printed.as_shown(shown) if printed.difference(shown) else trimmed(shown)) + blank
        text = "".join((block.indent + line).rstrip() + "\n" for line in lines)
        page = page[:block.start] + text + page[block.end:]
    return page


def pages_of(source):
    return [source / "README.md", *sorted((source / "docs").glob("*.md"))]


def check_marks(source):
    findings = [f"{path.relative_to(source)}:{line}: {what}" for path in pages_of(source)
                for line, what in problems(path.read_text())]
    print("\n".join(findings) if findings else "every block of output is marked")
    return 1 if findings else 0


def list_blocks(source):
    for path in pages_of(source):
        page = path.read_text()
        for block in blocks(page):
            if block.mark:
                command = next((line for line in block.lines if line.startswith("$ ")), "")
                print(path.relative_to(source), page.count("\n", 0, block.start),
                      block.kind or "made: " + block.mark["made"], command, sep="\t")
    return 0


def main():
    words = sys.argv[1:]
    if len(words) == 2 and words[0] in ("marks", "list"):
        return {"marks": check_marks, "list": list_blocks}[words[0]](pathlib.Path(words[1]).resolve())
    if len(words) < 5 or words[0] not in ("run", "write") or words[1] not in KINDS:
        sys.exit(__doc__)
    kind = words[1]
    assay, source, build = (pathlib.Path(word).resolve() for word in words[2:5])
    files, python = files_of(kind, source), python_for(kind, source, build)
    if not files or not python:
        print(f"skipped: the models, or the Python, of `run: {kind}` are not there")
        return 77
    sys.path.insert(0, str(source / "tests" / "cli"))
    from run_cases import environment
    env = environment(assay, source, build) | python
    env.pop("COLUMNS", None)
    if kind != "real":
        env["LLAMA_ARG_THREADS"] = "1"
    if platform.machine() == "x86_64":
        env["ASSAY_ISA"] = "avx512"
    paths = [pathlib.Path(word).resolve() for word in words[5:]] or pages_of(source)
    pages = {path: path.read_text() for path in paths}
    pages = {path: page for path, page in pages.items() if any(block.kind == kind for block in blocks(page))}
    workers = 1 if kind == "real" else len(os.sched_getaffinity(0))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        results = dict(zip(pages, pool.map(lambda page: run_page(page, kind, files, env), pages.values())))
    failed = 0
    for path, done in results.items():
        if words[0] == "write":
            path.write_text(rewritten(pages[path], done))
        else:
            for finding in compare(pages[path], done):
                failed += 1
                print(f"{path.relative_to(source)}: {finding}")
    n = sum(len(done) for done in results.values())
    print(f"{n} commands of {len(results)} pages, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
