#!/usr/bin/env python3
"""What `assay plan` says of a run beside what the run takes: processor time, and time on the clock.

usage: plan.py ASSAY MAKE_MODEL TEXT [--seconds N] [--only REGEX]

Models are synthetic, of the shapes of bench/synthetic.h with fewer layers, and the bundled ones; they
differ in type, precision, threads, windows and command. Prints a table in Markdown. On a machine that
has something else to do only the processor time can be compared: the clock of the plan is that of its
trial, and others come and go.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
MODELS = {
    "1b-2": ["--shape", "1b", "--layers", "2", "--type", "Q4_K_M"],
    "1b-2-f16": ["--shape", "1b", "--layers", "2", "--type", "F16"],
    "1b-2-iq": ["--shape", "1b", "--layers", "2", "--type", "IQ3_S"],
    "8b-1": ["--shape", "8b", "--layers", "1", "--type", "Q4_K_M"],
    "gemma-tiny": ["--arch", "gemma3", "--shape", "tiny", "--vocab", "64000", "--type", "Q8_0"],
    "moe-tiny": ["--arch", "qwen3moe", "--shape", "tiny", "--experts", "16", "--type", "Q4_K"],
}
# Name; words, in which {NAME} is a model.
CASES = [
    ("trained, F16, windows of 512", "perplexity -m {tiny.F16} -c 512 --chunks 200"),
    ("trained, F16, windows of 2048", "perplexity -m {tiny.F16} -c 2048 --chunks 50"),
    ("trained, Q4_K_M, exact", "perplexity -m {tiny.Q4_K_M} -c 512 --chunks 200 --precision exact"),
    ("trained, Q4_K_M, fast, 1 thread, windows of 128",
     "perplexity -m {tiny.Q4_K_M} -c 128 --chunks 1500 --precision fast -t 1"),
    ("kld of two files, trained", "kld --base {tiny.F16} -m {tiny.Q4_K_M} -m {tiny.F16} -c 256 --chunks 160"),
    ("sweep --by role, trained",
     "sweep --base {tiny.F16} --from {tiny.Q4_K_M} -c 256 --by role --chunks 40"),
    ("record --format logits, trained", "record -m {tiny.F16} -c 512 --format logits -o {out} --chunks 200"),
    ("1b, 2 layers, Q4_K_M", "perplexity -m {1b-2} -c 512 --chunks 16"),
    ("1b, 2 layers, Q4_K_M, fast", "perplexity -m {1b-2} -c 512 --chunks 24 --precision fast"),
    ("1b, 2 layers, F16, 1 thread", "perplexity -m {1b-2-f16} -c 512 --chunks 12 -t 1"),
    ("1b, 2 layers, IQ3_S, -b 512", "perplexity -m {1b-2-iq} -c 256 --chunks 32 -b 512"),
    ("8b, 1 layer, Q4_K_M", "perplexity -m {8b-1} -c 512 --chunks 8"),
    ("Gemma 3, 64,000 tokens, Q8_0", "perplexity -m {gemma-tiny} -c 512 --chunks 80"),
    ("Qwen 3 with 16 experts, Q4_K", "perplexity -m {moe-tiny} -c 512 --chunks 100"),
]


def measure(command):
    """(seconds, processor seconds) of a process."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command}: {said.decode()}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime


def find_model(name, args, folder):
    if name == "out":
        return folder / "out"
    if (DATA / f"{name}.gguf").exists():
        return DATA / f"{name}.gguf"
    path = folder / f"{name}.gguf"
    if not path.exists():
        subprocess.run([args.make_model, *MODELS[name], "-o", path], check=True)
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assay")
    parser.add_argument("make_model")
    parser.add_argument("text")
    parser.add_argument("--seconds", default="6")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    worst = 0
    print("| run | processor time: planned | taken | ratio | clock: planned | taken | ratio |\n"
          "| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, line in CASES:
            if not re.search(args.only, name):
                continue
            words = [re.sub(r"\{(.*?)\}", lambda m: str(find_model(m[1], args, folder)), word)
                     for word in line.split()] + ["-f", args.text]
            said = subprocess.run([args.assay, "plan", "--seconds", args.seconds, "--json", "-", *words],
                                  capture_output=True, text=True, check=True)
            plan = json.loads(said.stdout)["plan"]
            clock, processor = measure([args.assay, *words])
            ratios = plan["processor_seconds"] / processor, plan["seconds_beside_others"] / clock
            worst = max(worst, *(abs(r - 1) for r in ratios[:1]))
            print(f"| {name} | {plan['processor_seconds']:.1f} s | {processor:.1f} s | {ratios[0]:.2f} "
                  f"| {plan['seconds_beside_others']:.1f} s | {clock:.1f} s | {ratios[1]:.2f} |", flush=True)
            (folder / "out").unlink(missing_ok=True)
    print(f"\nProcessor times are within {100 * worst:.0f} %.")


if __name__ == "__main__":
    main()
