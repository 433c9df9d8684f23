#!/usr/bin/env python3
"""Run the command lines of `commands` and record what they print, return and write, or compare it
with what was recorded.

usage: golden.py record|compare ASSAY SOURCE_DIR BUILD_DIR [CASE...]

A case begins with `== name`. Each line that follows is a shell command line, run by a bash of its
own in the case's folder, which is empty at first. The variables are those of tests/cli/run_cases.py
and $F16, $Q4 (the bundled models), $TEXT, $TASKS; without -t a command has one thread, because
as many run at a time as there are processors. `expected/NAME.txt` has for each line: the exit
code, standard output, standard error (all of it if the command failed, else its notes), and the
files that are new or changed. A line that begins with `@ ` prepares what others need, and is told
of only if it fails. With names of cases only these are run.

What depends on the machine or the moment is replaced:
  folders                   $SOURCE, $FOLDER
  timings                   "# s", "# tokens/s"
  memory                    "memory: #"
  `run` of JSON documents   left out but for RUN_KEPT
  parts in `version`        commit, compiler, build, isa, libraries: "#"
  version in journals       "#"
  numbers                   12 significant digits
Long texts are cut after some lines and have a SHA-256, that of the text with the replacements. So
have binary files, and of a journal there are the settings, too. What was told before in a case is
not told again, and of a file that changes only what changed.
"""
import concurrent.futures
import difflib
import hashlib
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
sys.dont_write_bytecode = True
from run_cases import environment  # noqa: E402

EXPECTED = HERE / "expected"
TIMEOUT_S = 300
N_DIGITS = 12
LONG_BYTES = 14000  # help and results are told in full
LONG_TABLE_BYTES = 2000
N_LINES_OF_LONG = 12
N_COLUMNS = 260  # of JSON
SHORT_BYTES = 300  # told again, although it was there before
# Of `run`: what was asked for, and how much of it a journal had.
RUN_KEPT = {"model_file", "model_files", "base_file", "text_file", "recorded_file", "state_file",
            "n_resumed", "n_inputs", "asked_batch_tokens", "asked_threads", "asked_isa"}
REPLACED = [
    (r"\b\d+\.\d s\b", "# s"),
    (r"\b\d+\.\d tokens/s", "# tokens/s"),
    (r"(?m)memory: at most .*$", "memory: #"),
    (r'"assay":\t"[^"]*"', '"assay":\t"#"'),
    (r"(?m)^((?:commit|compiler|build|isa|pcre2|cjson|openssl|openblas) +)\S.*$", r"\1#"),
]


def read_cases(path):
    """{name: command lines}"""
    cases, lines = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("== "):
            if line[3:] in cases or not re.fullmatch(r"[a-z0-9-]+", line[3:]):
                sys.exit(f"{path}: two cases, or no plain name: '{line[3:]}'")
            lines = cases[line[3:]] = []
        elif line.strip() and not line.startswith("#"):
            lines.append(line)
    return cases


def rounded(match):
    digits = re.sub(r"[eE].*|\D", "", match[0]).lstrip("0")
    return match[0] if len(digits) <= N_DIGITS else f"{float(match[0]):.{N_DIGITS}g}"


def kept_of_run(match):
    return "".join(line for line in match[0].splitlines(True)
                   if not (name := re.match(r'\t\t+"?(\w+|\})', line)) or name[1] in RUN_KEPT)


def normal(text, folders):
    for folder, name in folders:
        text = text.replace(folder, name)
    text = re.sub(r'(?ms)^\t"run":\t\{$.*?^\t\}', kept_of_run, text)
    for pattern, replacement in REPLACED:
        text = re.sub(pattern, replacement, text)
    text = re.sub(r"\d+\.\d+(?:[eE][-+]?\d+)?", rounded, text)
    return narrow(text) if text.startswith("{\n") else text


def narrow(text):
    """Objects of a few numbers take a line each."""
    def line(match):
        inner = re.sub(r"\s+", " ", match[1])
        return "{ " + inner + " }" if len(inner) < N_COLUMNS else match[0]
    text = re.sub(r'(?<!"run":\t)\{\n\t+("[^{}\[\]]*?)\n\t+\}', line, text)
    return text.replace("}, {", "},\n\t\t{")


def told(data):
    return f"{len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}\n"


def journal(data, folders):
    """The settings, and the numbers without the checksums between them (docs/state.md)."""
    n_head = 16 + struct.unpack_from("<I", data, 12)[0]
    at, numbers, n_records = n_head + 64, b"", 0
    while at + 16 <= len(data):
        n = 16 + 8 * struct.unpack_from("<Q", data, at + 8)[0]
        numbers += data[at:at + n]
        at += n + 64
        n_records += 1
    whole = "" if at == len(data) else ", the last one not whole"
    settings = normal(data[16:n_head].decode().rstrip("\n"), folders)
    return f"{settings}\njournal: {n_records} records{whole}; {told(numbers)}"


def shown(data, is_file, folders):
    if data.startswith(b"ASSAYJNL"):
        return journal(data, folders)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "binary: " + told(data)
    if "\0" in text:
        return "binary: " + told(data)
    text = normal(text, folders)
    is_table = is_file and "\t" in text and not text.startswith("{")
    if len(text) > (LONG_TABLE_BYTES if is_table else LONG_BYTES):
        lines = text.splitlines(keepends=True)
        head = "".join(lines[:N_LINES_OF_LONG])
        text = f"{head}[... {len(lines)} lines, {told(text.encode()).rstrip()}]\n"
    return text if text.endswith("\n") or not text else text + "\n[no newline at the end]\n"


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def changed(before, text):
    """Only what is different, where a command changes a file or writes it again."""
    lines = difflib.unified_diff(before.splitlines(True), text.splitlines(True), n=0)
    return "[changed]\n" + "".join(line for line in lines if not line.startswith(("---", "+++")))


class Transcript:
    """What the lines of a case do, as text."""

    def __init__(self, lines, env, source):
        self.parts, self.first, self.latest = [], {}, {}
        with tempfile.TemporaryDirectory(prefix="assay-golden-") as name:
            self.folder = pathlib.Path(name).resolve()
            self.folders = [(str(self.folder), "$FOLDER"), (str(source), "$SOURCE")]
            self.files = {}
            for number, line in enumerate(lines, 1):
                self.run(number, line, env)
        self.text = "".join(self.parts)

    def run(self, number, line, env):
        prepares = line.startswith("@ ")
        self.parts.append(f"{line}\n" if prepares else f"$ {line}\n")
        try:
            result = subprocess.run(["bash", "-c", line.removeprefix("@ ")], cwd=self.folder,
                                    env=env, capture_output=True, timeout=TIMEOUT_S,
                                    stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            self.parts.append(f"still running after {TIMEOUT_S} s\n")
            return
        before, self.files = self.files, files_in(self.folder)
        if prepares and result.returncode == 0:
            return
        err = result.stderr
        if result.returncode == 0:
            err = b"".join(l for l in err.splitlines(True) if l.startswith(b"assay: note: "))
        self.parts.append(f"--- exit {result.returncode}\n")
        for name, data in (("stdout", result.stdout), ("stderr", err)):
            if data:
                self.tell(number, name, data, False)
        for name, data in self.files.items():
            if before.get(name) != data:
                self.tell(number, f"file {name}", data, True)
        self.parts += [f"--- removed {name}\n" for name in before if name not in self.files]

    def tell(self, number, name, data, is_file):
        text = shown(data, is_file, self.folders)
        before, self.latest[name] = self.latest.get(name, ""), text
        self.parts.append(f"--- {name}\n")
        if len(text) > SHORT_BYTES and text in self.first:
            self.parts.append(f"[the same as {self.first[text]}]\n")
            return
        self.first.setdefault(text, f"{name} of command {number}")
        was_told = is_file and before and text != before
        self.parts.append(changed(before, text) if was_told else text)


def differences(name, found):
    path = EXPECTED / f"{name}.txt"
    expected = path.read_text() if path.exists() else ""
    return "".join(difflib.unified_diff(expected.splitlines(True), found.splitlines(True),
                                        f"expected/{name}.txt", f"found/{name}.txt"))


def main():
    if len(sys.argv) < 5 or sys.argv[1] not in ("record", "compare"):
        sys.exit(__doc__)
    assay, source, build = (pathlib.Path(a).resolve() for a in sys.argv[2:5])
    env = environment(assay, source, build)
    env |= {"F16": f"{env['DATA']}/tiny.F16.gguf", "Q4": f"{env['DATA']}/tiny.Q4_K_M.gguf",
            "TEXT": str(source / "tests/golden/text.txt"),
            "TASKS": str(source / "tests/data/tasks"), "LLAMA_ARG_THREADS": "1"}
    all_cases = read_cases(HERE / "commands")
    if unknown := set(sys.argv[5:]) - set(all_cases):
        sys.exit(f"there is no case {', '.join(sorted(unknown))}")
    cases = {name: all_cases[name] for name in sys.argv[5:]} or all_cases
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        found = dict(zip(cases, workers.map(lambda lines: Transcript(lines, env, source).text,
                                            cases.values())))
    stale = [path for path in EXPECTED.glob("*.txt") if path.stem not in all_cases]
    if sys.argv[1] == "record":
        EXPECTED.mkdir(exist_ok=True)
        for name, text in found.items():
            (EXPECTED / f"{name}.txt").write_text(text)
        for path in stale:
            path.unlink()
        print(f"{len(found)} cases recorded")
        return
    failed = 0
    for name, text in found.items():
        diff = differences(name, text)
        failed += diff != ""
        print(diff, end="")
    for path in stale:
        print(f"expected/{path.name}: there is no such case")
    print(f"{len(found) - failed} of {len(found)} cases are as recorded")
    sys.exit(1 if failed or stale else 0)


if __name__ == "__main__":
    main()
