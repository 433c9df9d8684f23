#!/usr/bin/env python3
"""Run the command lines of a case file and compare what they print and return.

usage: run_cases.py ASSAY SOURCE_DIR BUILD_DIR CASES...

A case begins with `== name`; the lines that follow say:
  run COMMAND     a shell command line; `assay` is the binary under test, $DATA the folder of the
                  bundled models, $MADE that of the models made by the build, $DOCS docs/;
                  several are run one after the other, the last one's exit code counts;
                  `same A B` is cmp, and fails where the files are empty
  exit N          expected exit code (default 0)
  out REGEX       must be found in standard output (^ and $ match at lines)
  err REGEX       must be found in standard error
  no-out REGEX    must not be found in standard output
  no-err REGEX    must not be found in standard error
  silent          nothing on standard output (silent-stderr: on standard error)
  one-line        exactly one line on standard error
Each case runs in an empty folder of its own, without any LLAMA_ARG_* or ASSAY_*
variable, and without a configuration of llama.cpp's.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TIMEOUT_S = 300
SAME = 'same() { test -s "$1" && cmp "$1" "$2"; }'


class Case:
    def __init__(self, name):
        self.name, self.commands, self.exit_code, self.checks = name, [], 0, []
        self.transcript = ""


def read_cases(path):
    cases = []
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if line.startswith("== "):
            cases.append(Case(line[3:]))
            continue
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if not cases:
            sys.exit(f"{path}:{number}: a line before the first case")
        case = cases[-1]
        if word == "run":
            case.commands.append(rest)
        elif word == "exit":
            case.exit_code = int(rest)
        elif word in {"out", "err", "no-out", "no-err", "silent", "silent-stderr", "one-line"}:
            case.checks.append((word, rest))
        else:
            sys.exit(f"{path}:{number}: unknown line '{line}'")
    for case in cases:
        if not case.commands or not case.checks:
            sys.exit(f"{path}: case '{case.name}' runs nothing or checks nothing")
    return cases


def environment(assay, source, build):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LLAMA_ARG_", "ASSAY_"))}
    env["PATH"] = f"{assay.parent}:{env.get('PATH', '')}"
    env["DATA"] = str(source / "data")
    env["DOCS"] = str(source / "docs")
    env["MADE"] = str(build / "tests" / "cli" / "made")
    env["XDG_CONFIG_HOME"] = str(build / "none")  # where llama.cpp has a configuration
    env["LC_ALL"] = "C"
    return env


def failures(case, env):
    with tempfile.TemporaryDirectory(prefix="assay-cli-") as folder:
        script = "\n".join([SAME, *case.commands])
        try:
            result = subprocess.run(["bash", "-c", script], cwd=folder, env=env,
                                    capture_output=True, timeout=TIMEOUT_S,
                                    stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            yield f"still running after {TIMEOUT_S} s"
            return
    out = result.stdout.decode("utf-8", "replace")
    err = result.stderr.decode("utf-8", "replace")
    if result.returncode != case.exit_code:
        yield f"exit code {result.returncode}, expected {case.exit_code}"
    for word, pattern in case.checks:
        text = out if word.endswith("out") or word == "silent" else err
        found = re.search(pattern, text, re.MULTILINE) is not None
        if word in {"out", "err"} and not found:
            yield f"nothing matches {word} {pattern}"
        if word in {"no-out", "no-err"} and found:
            yield f"something matches {word} {pattern}"
        if word == "silent" and out:
            yield "standard output is not empty"
        if word == "silent-stderr" and err:
            yield "standard error is not empty"
        if word == "one-line" and err.count("\n") != 1:
            yield f"{err.count(chr(10))} lines on standard error, expected one"
    case.transcript = f"stdout: {out[:1500]}\nstderr: {err[:1500]}\n"


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    assay, source, build = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    env = environment(assay, source, build)
    total = failed = 0
    for path in sys.argv[4:]:
        for case in read_cases(path):
            total += 1
            problems = list(failures(case, env))
            if problems:
                failed += 1
                print(f"FAILED {pathlib.Path(path).name}: {case.name}")
                print("\n".join(f"  {c}" for c in case.commands))
                print("\n".join(f"  {p}" for p in problems))
                print(case.transcript)
    print(f"{total - failed} of {total} cases passed")
    sys.exit(1 if failed or not total else 0)


if __name__ == "__main__":
    main()
