#!/usr/bin/env python3
"""A model of which most is a table that hashes of tokens name rows of: once as it is, and once with
gaps of nothing between the rows of different hashes, in a file that is large and takes little of a
disk; and such a published folder, whose table lies in three files. The program gives the same scores,
and its memory does not grow with the table.

usage: test_table.py ASSAY SOURCE_DIR [BYTES]
       (default: a table of 2^31 bytes)
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
import folders  # noqa: E402
import folders_by_table  # noqa: E402
import rewrite  # noqa: E402

TABLE, OFFSETS = "per_layer_token_embd.weight", "qwen4exp.ple.head_offsets"
PAGE, MEMORY = 4096, 64 << 20  # MEMORY: what the two runs may differ by


def probes(begin, n_bytes, all_bytes):
    """Where the program looks whether a download has left a gap (gguf/about/zeros.c)."""
    n = 1 + n_bytes // max(all_bytes // 1024, 1 << 20)
    return [begin + (n_bytes - 256) // n * k + (n_bytes - 256) // n // 2 for k in range(n)]


def stretched(folder, generated, n_bytes):
    """The model in a file whose table has so many bytes, most of them in holes of the file."""
    tensors = {t.name: t for t in generated.tensors}
    table, rest = tensors.pop(TABLE), list(tensors.values())
    keys = {name: value for name, _, value, _ in generated.pairs}
    sizes, firsts = keys["qwen4exp.ple.head_vocab_sizes"], keys[OFFSETS]
    row = len(table.data) // table.ne[1]
    n_rows = n_bytes // row
    moved = [h * (n_rows - table.ne[1]) // (len(sizes) - 1) + firsts[h] for h in range(len(sizes))]
    pairs = [(name, kind, moved if name == OFFSETS else value, element)
             for name, kind, value, element in generated.pairs]
    hollow = type(table)(TABLE, table.kind, [table.ne[0], n_rows], b"")
    path = rewrite.write(folder, pairs, [*rest, hollow], name="large.gguf")
    begin = path.stat().st_size
    os.truncate(path, begin + n_rows * row)
    with open(path, "r+b") as file:
        for place in probes(begin, n_rows * row, sum(len(t.data) for t in rest) + n_rows * row):
            file.seek(place)
            file.write(b"\1" * 256)
        for to, first, size in zip(moved, firsts, sizes):
            file.seek(begin + to * row)
            file.write(table.data[first * row:(first + size) * row])
    return path


def stretched_folder(folder, model, n_bytes):
    """A published folder likewise."""
    at = "model.language_model.layers.0.ple.ple_embedding."
    parts = [name for name in sorted(model.stored) if name.startswith(at + "ngram_embedding.shard_")]
    old = b"".join(model.stored[name][2] for name in parts)
    width = model.stored[parts[0]][1][1]
    row, each = 2 * width, n_bytes // (2 * width) // len(parts)
    rows, n_rows = folders.rows_of(old, len(old) // row), each * len(parts)
    sizes, firsts = model.keys["ple.head_vocab_sizes"], model.keys["ple.head_offsets"]
    moved = [h * (n_rows - len(rows)) // (len(sizes) - 1) + first for h, first in enumerate(firsts)]
    model.stored[at + "ngram_heads_offsets"] = ("I64", [len(moved)], struct.pack(f"<{len(moved)}q", *moved))
    for name in parts:
        del model.stored[name]
    model.write(folder, 1)
    files = dict.fromkeys(model.stored, "model.safetensors")
    begins = []
    for name in parts:
        files[name] = f"{name}.safetensors"
        header = folders.safetensors_header({name: ("BF16", [each, width], row * each)})
        begins.append(len(header))
        (folder / files[name]).write_bytes(header)
        os.truncate(folder / files[name], len(header) + row * each)
        with open(folder / files[name], "r+b") as file:
            for place in [*probes(len(header), row * each, row * n_rows), len(header) + row * each - 256]:
                file.seek(place)
                file.write(b"\1" * 256)
    for to, first, size in zip(moved, firsts, sizes):
        for i in range(size):
            part, at = divmod(to + i, each)
            with open(folder / files[parts[part]], "r+b") as file:
                file.seek(begins[part] + at * row)
                file.write(rows[first + i])
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))


def memory(*words):
    """The most that a run of the program takes, in bytes."""
    started = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise SystemExit(f"exit code {started.returncode}: {words}")
    return used.ru_maxrss * 1024


def compare(folder, small, large, tokens):
    """How much more memory runs take with the large table; tokens: words of runs that need a vocabulary."""
    evaluate = ["-q", "-f", folder / "text", "-c", "16", "-t", "2", *tokens]
    runs = (["perplexity", *evaluate, "--precision", "exact", "--per-token", folder / "table", "-m"],
            ["imatrix", *evaluate, "-o", folder / "sums.gguf", "--force", "-m"],
            ["plan", "perplexity", *evaluate, "-m"], ["info"])
    larger = 0
    for words in runs:
        found, tables = [], set()
        for model in (small, large):
            found.append(memory(sys.argv[1], *words, model))
            tables.add((folder / "table").read_text())
        if len(tables) > 1:
            raise SystemExit("other scores")
        larger = max(larger, found[1] - found[0])
        print(f"{words[0]}: {found[1]} bytes of memory, with a small table {found[0]}")
    return larger


def main():
    n_bytes = int((sys.argv[3:] + [str(1 << 31)])[0])
    for seed in range(100):
        generated = architectures.generate(random.Random(f"table {seed}"), "qwen4exp")
        if generated.ngram_layer is not None and generated.most > 2:
            break
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text").write_text(generated.text(70)[0])
        small = rewrite.write(folder, generated.pairs, generated.tensors)
        large = stretched(folder, generated, n_bytes)
        on_disk = large.stat().st_blocks * 512
        if on_disk > n_bytes // 16:
            raise SystemExit(f"the folder's file system has no holes: {on_disk} bytes on disk")
        print(f"a table of {n_bytes} bytes, {on_disk} on disk")
        larger = compare(folder, small, large, [])
        large.unlink()
        model = folders.Folder(random.Random("table"), folders_by_table.qwen4exp)
        (folder / "text").write_text(model.vocabulary.text(70)[0])
        tokens = rewrite.write(folder, model.gguf_pairs(), model.tensors, name="tokens.gguf")
        model.write(folder / "small", 2)
        stretched_folder(folder / "large", model, n_bytes)
        larger = max(larger, compare(folder, folder / "small", folder / "large", ["--tokenizer", tokens]))
        return larger > MEMORY


sys.exit(main())
