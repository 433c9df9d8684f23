#!/usr/bin/env python3
"""Whole runs of assay beside those of other programs, by the clock: what an answer costs.

usage: whole_runs.py perplexity --text TEXT --assay ASSAY [--peer NAME=PROGRAM]... MODEL...
                     [--contexts 512,4096] [--tokens 8192] [--precisions high,fast]
       whole_runs.py kld --base BASE --text TEXT --assay ASSAY [--peer NAME=PROGRAM]... MODEL...
                     [--contexts 512] [--windows 64] [--precisions high]
both:                [--rounds 5] [-t 2] [--scratch DIR]

perplexity: of each model and each n_ctx, as many windows as --tokens fill.
kld: how far the models are from BASE. assay answers in one run; llama-perplexity, which a peer is,
writes the base's logits to a file in --scratch first, and reads them in a run for each model: its
time is the sum, its memory the largest, `disk` the file's size.

Programs take turns, --rounds times. Printed in Markdown: medians of seconds from start to end, loading
included, and of processor seconds; the most memory that was resident (MiB; pages of a mapped model
count); how many times assay's --precision of the row is faster, as the median of the rounds.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time


class Cost:
    """What one or more processes took."""

    def __init__(self, seconds=0.0, cpu=0.0, memory=0.0, disk=0.0):
        self.seconds, self.cpu, self.memory, self.disk = seconds, cpu, memory, disk

    def __add__(self, other):
        return Cost(self.seconds + other.seconds, self.cpu + other.cpu,
                    max(self.memory, other.memory), max(self.disk, other.disk))


def run(command):
    """The cost of a process, and what it said."""
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], stdout=said, stderr=said,
                                   stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    if process.returncode:
        sys.exit(f"whole_runs.py: {' '.join(map(str, command))}: exit code {process.returncode}\n{text[-2000:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024), text


def version_of(program):
    """What a peer says of its version, or what is known of it without."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"version: *(.*)", said.stdout + said.stderr)
    return found.group(1) if found else "version unknown"


def words(args, model, n_ctx, n_windows):
    return ["-m", model, "-f", args.text, "-c", n_ctx, "--chunks", n_windows, "-t", args.threads]


def one_perplexity(command):
    def measure():
        cost, text = run(command)
        return cost, re.search(r"Final estimate: PPL.* = *([0-9.]+)", text).group(1)
    return measure


def peer_kld(args, program, n_ctx):
    """llama-perplexity's way: the base's logits on disk, then each model beside them."""
    def measure():
        file = pathlib.Path(args.scratch) / "base-logits"
        batch = ["-b", max(n_ctx, 2048), "-ub", 512]
        cost, _ = run([program, *words(args, args.base, n_ctx, args.windows), *batch,
                       "--kl-divergence-base", file])
        cost.disk = file.stat().st_size / 2**20
        answers = []
        for model in args.models:
            # It takes the tokens from the file, too.
            more, text = run([program, "-m", model, "-c", n_ctx, "-t", args.threads, *batch,
                              "--chunks", args.windows, "--kl-divergence-base", file, "--kl-divergence"])
            cost += more
            answers.append(re.search(r"Mean +KLD: *([0-9.]+)", text).group(1))
        file.unlink()
        return cost, ", ".join(answers)
    return measure


def own_kld(args, precision, n_ctx):
    def measure():
        command = [args.assay, "kld", "--base", args.base, "-f", args.text, "-c", n_ctx, "--chunks",
                   args.windows, "-t", args.threads, "--precision", precision, "-q"]
        command += [word for model in args.models for word in ("-m", model)]
        cost, text = run(command)
        many = re.findall(r"^\S+ +[0-9.]+ +[0-9.]+ +([0-9.e-]+) ±", text, re.M)
        return cost, ", ".join(many or re.findall(r"Mean +KLD: *([0-9.]+)", text))
    return measure


def take_turns(programs, rounds):
    """{name: ([Cost of each round], answer)} of {name: what measures it}."""
    results = {name: ([], None) for name in programs}
    for _ in range(rounds):
        for name, measure in programs.items():
            cost, answer = measure()
            results[name] = (results[name][0] + [cost], answer)
    return results


def print_rows(title, results, own):
    middle = {name: {what: statistics.median(getattr(c, what) for c in costs)
                     for what in ("seconds", "cpu", "memory", "disk")}
              for name, (costs, _) in results.items()}
    for name, (costs, answer) in results.items():
        ratios = [statistics.median(a.seconds / b.seconds for a, b in zip(costs, results[p][0])) for p in own]
        m = middle[name]
        print("|", " | ".join([title, name, f"{m['seconds']:.2f}", f"{m['cpu']:.2f}", f"{m['memory']:.0f}",
                               f"{m['disk']:.0f}" if m["disk"] else "-", *(f"{r:.2f}" for r in ratios),
                               str(answer)]), "|", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=("perplexity", "kld"))
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--text", required=True)
    parser.add_argument("--assay", required=True)
    parser.add_argument("--base")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--contexts", default="512")
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--windows", type=int, default=64)
    parser.add_argument("--precisions", default="high")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-t", "--threads", default="2")
    parser.add_argument("--scratch", default="/tmp")
    args = parser.parse_args()
    peers = dict(peer.split("=", 1) for peer in args.peer)
    own = args.precisions.split(",")
    processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    print(f"{processor.group(1) if processor else 'unknown processor'}, {args.threads} threads, medians of "
          f"{args.rounds} rounds; {'; '.join(f'{n}: {version_of(p)}' for n, p in peers.items())}\n")
    heads = ["model", "program", "s", "processor s", "MiB", "disk MiB", *(f"{p} is" for p in own),
             "PPL" if args.what == "perplexity" else "mean KLD"]
    print("|", " | ".join(heads), "|\n|", " | ".join(["---"] * 2 + ["---:"] * (len(heads) - 2)), "|")
    for n_ctx in map(int, args.contexts.split(",")):
        if args.what == "kld":
            programs = {p: own_kld(args, p, n_ctx) for p in own}
            programs |= {name: peer_kld(args, program, n_ctx) for name, program in peers.items()}
            title = f"{len(args.models)} of {args.windows} x {n_ctx}"
            print_rows(title, take_turns(programs, args.rounds), own)
            continue
        for model in args.models:
            run_of = words(args, model, n_ctx, max(1, args.tokens // n_ctx))
            programs = {p: one_perplexity([args.assay, "perplexity", *run_of, "--precision", p]) for p in own}
            programs |= {name: one_perplexity([program, *run_of, "-b", max(n_ctx, 2048), "-ub", "512"])
                         for name, program in peers.items()}
            print_rows(f"{model.name}, n_ctx {n_ctx}", take_turns(programs, args.rounds), own)


if __name__ == "__main__":
    main()
