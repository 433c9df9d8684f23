#!/usr/bin/env python3
"""Hold the log-probabilities of all tokens, to the last digit written, against bits.tsv, for each
model of it that is there, in each precision: any processor, compiler and library must give these.

usage: bits.py compare|record EVERY SOURCE_DIR PROGRAM...

PROGRAM... is a command: `build/dev/assay`, or `qemu-aarch64 -L FOLDER build/aarch64/assay`. Models
are the rows of bits.tsv: those of data/ of SOURCE_DIR, and one in EVERY (0: none) of the others,
which lie in ../shared. A row has the first 16 digits of the SHA-256 of what --per-token writes, or
"refused" where the program ends with 2. `record` fills all rows anew; a new model is a line with
its name.
"""
import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TABLE, TEXT = HERE / "bits.tsv", HERE / "text.txt"
PRECISIONS = ("exact", "high", "fast")
N_DIGITS, TIMEOUT_S = 16, 600


def digest(command, model, precision):
    """What the table has of a model in a precision."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "tokens"
        ran = subprocess.run([*command, "perplexity", "-m", model, "-f", TEXT, "-c", "64", "--chunks", "2",
                              "-t", "1", "--precision", precision, "--per-token", out],
                             capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S)
        if ran.returncode == 2:
            return "refused"
        if ran.returncode != 0:
            return f"exit code {ran.returncode}: {ran.stderr.strip()[-200:]}"
        return hashlib.sha256(out.read_bytes()).hexdigest()[:N_DIGITS]


def without_amx(command):
    """AMX has other sums: its machines compute with AVX-512 here."""
    said = subprocess.run([*command, "version"], capture_output=True, text=True, check=True).stdout
    isa = next(line.split()[1] for line in said.splitlines() if line.startswith("isa "))
    return [*command, "--isa", "avx512"] if isa == "amx" else command


def models(source, every, names):
    """{name in the table: file}. A folder that is not beside the checkout is left out."""
    shared = source / ".." / "shared"
    others = [name for name in names if not name.startswith("data/") and (shared / name).parent.is_dir()]
    found = {name: source / name for name in names if name.startswith("data/")}
    found |= {name: shared / name for name in (others[::every] if every else [])}
    absent = [name for name in found if not found[name].exists()]
    if absent:
        sys.exit(f"{found[absent[0]]} is named in {TABLE.name}, and is not there")
    return found


def main():
    words = sys.argv[1:]
    if len(words) < 4 or words[0] not in ("compare", "record") or not words[1].isdigit():
        sys.exit(__doc__)
    rows = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    there = models(pathlib.Path(words[2]), int(words[1]), [row[0] for row in rows])
    command = without_amx(words[3:])
    runs = [(name, precision) for name in there for precision in PRECISIONS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda run: digest(command, there[run[0]], run[1]), runs))
    if words[0] == "record":
        now = {row[0]: row for row in zip(there, *(iter(found),) * len(PRECISIONS))}
        rows = [("model", *PRECISIONS), *(now.get(row[0], row) for row in rows)]
        TABLE.write_text("\n".join(map("\t".join, rows)) + "\n")
        return
    expected = {(row[0], precision): row[1 + i] for row in rows for i, precision in enumerate(PRECISIONS)}
    different = 0
    for run, is_now in zip(runs, found):
        if is_now != expected.get(run):
            different += 1
            print(f"{run[0]}, {run[1]}: {is_now}, expected {expected.get(run, 'a row of bits.tsv')}")
    print(f"{len(there)} models in {', '.join(PRECISIONS)}: {len(runs) - different} as recorded, "
          f"{different} different")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
