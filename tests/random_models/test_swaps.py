#!/usr/bin/env python3
"""Random models of every architecture with parts of its own, each turned into another one of its shape, tensor by tensor,
while it is open: the rows are then those of the other's file, and after the way back its own again.
TEST is test_swap, or test_cache, which compares passes that begin with kept rows.

usage: test_swaps.py TEST SOURCE_DIR [SEED [ARCHITECTURE...]]
"""
import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
import rewrite  # noqa: E402


def main():
    seed, chosen = int((sys.argv[3:4] or ["3"])[0]), sys.argv[4:] or architectures.of_own_parts()
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for arch in chosen:
            rng = random.Random(f"{arch} {seed}")
            generated = architectures.generate(rng, arch)
            other = rewrite.remade(generated.tensors, rng)
            for name, tensors in ((arch, generated.tensors), (arch + "-other", other)):
                files.append(rewrite.write(pathlib.Path(folder), generated.pairs, tensors,
                                           name=name + ".gguf"))
        done = subprocess.run([sys.argv[1], *files], capture_output=True, text=True)
    if done.returncode or done.stdout.count("\n") != len(chosen):
        sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{len(chosen)} architectures")


main()
