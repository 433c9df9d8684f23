#!/usr/bin/env python3
"""Run a program that evaluates a perplexity and print what the evaluation itself took: seconds,
processor seconds of all threads, and the perplexity. Loading and tokenising do not count: the
clock runs from the line "calculating perplexity" to the line "Final estimate", which
llama-perplexity, its forks and assay all print.

usage: time_run.py PROGRAM [ARGUMENT...]
"""
import os
import re
import subprocess
import sys
import time

BEGIN, END = b"calculating perplexity", re.compile(rb"Final estimate: PPL.* = ([0-9.]+)")


def cpu_seconds(pid):
    """Processor time of a running process, its user's and the system's."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    command = sys.argv[1:]
    if not command:
        sys.exit(__doc__)
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL)
    text, began, ended, cpu_before = b"", None, None, 0.0
    while True:
        piece = os.read(program.stdout.fileno(), 65536)
        if not piece:
            break
        text += piece
        if began is None and BEGIN in text:
            began, cpu_before = time.monotonic(), cpu_seconds(program.pid)
        if ended is None and END.search(text):
            ended = time.monotonic()
    _, status, usage = os.wait4(program.pid, 0)
    if status != 0 or began is None or ended is None:
        sys.stderr.buffer.write(text[-2000:])
        sys.exit(f"time_run.py: {' '.join(command)}: no result")
    cpu = usage.ru_utime + usage.ru_stime - cpu_before
    print(f"{ended - began:.3f} {cpu:.3f} {END.search(text).group(1).decode()}")


if __name__ == "__main__":
    main()
