#!/usr/bin/env python3
"""Where the milliseconds of small runs go, and how long reading the same files takes.

usage: startup.py ASSAY TEXT MODEL... [--before ASSAY] [--rounds N]

Each model is timed in `assay info`, a perplexity of one window of 512 tokens, and a KL divergence of one
window between the file and a copy of it. The files are read before, so that they come from the page
cache. Prints a table in Markdown, medians in milliseconds:

  before, now  the whole command, from its start to its end, of --before and of ASSAY, in turn
  reading      the files' bytes, read in pieces of 1 MiB
  models       until the models are open (with the text of a single window)
  text         reading and tokenising the rest of TEXT, all of which is tokenised for any window
  window       evaluating the window
  rest         starting the program, printing the results, giving back the memory
  opening      (models + rest) / reading; of `assay info`, now / reading
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

WINDOW_BYTES = 8192  # more than 512 tokens, fewer than two windows of a text that is tokenised alone


def run(command):
    """Milliseconds from the start of a process to its end."""
    nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    began = time.monotonic()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=nowhere)
    status = os.waitpid(pid, 0)[1]
    taken = 1000 * (time.monotonic() - began)
    if status:
        sys.exit(f"{' '.join(command)}: failed")
    return taken


def read(files):
    began = time.monotonic()
    buffer = bytearray(1 << 20)
    for name in files:
        with open(name, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return 1000 * (time.monotonic() - began)


def evaluate(command, folder):
    """Milliseconds of the whole run, until all is open, and of the evaluation."""
    document = folder / f"{command[1]}.json"
    whole = run([*command, "--chunks", "1", "--json", str(document)])
    told = json.loads(document.read_text())["run"]
    return whole, 1000 * told["seconds_to_load"], 1000 * told["seconds"]


def median(values):
    return statistics.median(values)


def measure(o, name, words, files, folder):
    """A row of the table."""
    begin = folder / "begin.txt"
    before, now, parts, short, reading = [], [], [], [], []
    for _ in range(o.rounds):
        reading.append(read(files))
        if name == "info":
            now.append(run([o.assay, *words]))
            before += [run([o.before, *words])] if o.before else []
            continue
        if o.before:
            before.append(evaluate([o.before, *words, "-f", o.text], folder)[0])
        parts.append(evaluate([o.assay, *words, "-f", o.text], folder))
        short.append(evaluate([o.assay, *words, "-f", str(begin)], folder)[1])
    row = {"before": median(before) if before else None, "reading": median(reading)}
    if name == "info":
        return row | {"now": median(now), "opening": median(now) / median(reading)}
    whole, load, window = (median(column) for column in zip(*parts))
    models, rest = median(short), whole - load - window
    return row | {"now": whole, "models": models, "text": load - models, "window": window,
                  "rest": rest, "opening": (models + rest) / median(reading)}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("assay")
    parser.add_argument("text")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--before")
    parser.add_argument("--rounds", type=int, default=5)
    o = parser.parse_args()
    columns = ["before", "now", "reading", "models", "text", "window", "rest"]
    print("| command | model | " + " | ".join(columns) + " | opening |")
    print("| --- | --- |" + " ---: |" * (len(columns) + 1))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "begin.txt").write_bytes(pathlib.Path(o.text).read_bytes()[:WINDOW_BYTES])
        for model in o.models:
            copy = str(folder / "copy.gguf")
            shutil.copyfile(model, copy)
            os.sync()
            for command, words, files in (("info", ["info", model], [model]),
                                          ("perplexity", ["perplexity", "-m", model], [model]),
                                          ("kld", ["kld", "--base", model, "-m", copy], [model, copy])):
                row = measure(o, command, words, files, folder)
                cells = ["" if row.get(c) is None else f"{row[c]:.1f}" for c in columns]
                print(f"| `{command}` | {pathlib.Path(model).name} | " + " | ".join(cells)
                      + f" | {row['opening']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
