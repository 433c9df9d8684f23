#!/usr/bin/env python3
"""Numbers that are both in a document and in the code must be equal.

usage: doc_numbers.py SOURCE_DIR

A row of the table is (document, expression, source, expression). Each expression has one group,
which holds a number: digits, a word, a C expression of digits and << * +, or digits with KiB, MiB,
GiB, Mi in front of what follows. One without a group stands for how often it matches. White space
in a file counts as one blank, and the quotes between two parts of a C string are left out. Where an
expression is not found, correct the row: the sentence or the constant was changed.
"""
import pathlib
import re
import sys

WORDS = {word: n for n, word in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen".split())}
UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "Mi": 2**20}

CUDA, ARCH, SPEED = "docs/cuda.md", "docs/architecture.md", "bench/NOTES.md"
BASE, STATE, HELP = "docs/base-file.md", "docs/state.md", "cli/options/common.c"
SERVER = "docs/server-check.md"
K = "kernels/cuda/kernels/"
LAYOUT, CHOICE = "eval/reference/compact_layout.c", "eval/run/batch_size.c"
TILE = "model/forward/forward.h", r"MODEL_TILE_TOKENS = (\d+)"
BACKEND, RECORD = "kernels/cuda/backend.c", "kernels/cuda/record.c"

TABLE = [
    # The CUDA backend: products.
    (CUDA, r"panels of rows, of up to (\d+ MiB)", BACKEND, r"PANEL_SIZE = ([^,]+),"),
    (CUDA, r"magnitude is in \[2\^(\d+)", K + "half.h", r"KERN_HALF_TARGET = (\d+)"),
    (CUDA, r"once per shape, for (\d+) tokens", BACKEND, r"PRODUCT_TOKENS = (\d+)"),
    (CUDA, r"its first (\w+) that do with a workspace", "kernels/cuda/device/device.h",
     r"KERN_CUDA_MAX_ALGORITHMS = (\d+)"),
    (CUDA, r"is timed (\d+) times", "kernels/cuda/product_trial.c", r"RUNS = (\d+)"),
    (CUDA, r"zeros to a multiple of (\d+) and", BACKEND, r"PRODUCT_STEP = (\d+)"),
    (CUDA, r"product of the shape is padded to (\d+)\.", BACKEND, r"PRODUCT_TOKENS = (\d+)"),
    # Attention.
    (CUDA, r"a block of queries, (\d+) keys at a time", "kernels/types.h",
     r"KERN_KEY_BLOCK = (\d+)"),
    (CUDA, r"a block of queries, \d+ keys at a time or (\d+)", K + "flash/load.h",
     r"KERN_FLASH_KEYS = (\d+)"),
    (CUDA, r"for heads of up to (\d+) elements", K + "flash/load.h",
     r"KERN_FLASH_MAX_DIMS = (\d+)"),
    (CUDA, r"queries of a block \| (\d+) \|", K + "attention.h",
     r"KERN_ATTENTION_QUERIES = (\d+)"),
    (CUDA, r"queries of a block \| \d+ \| \d+, (\d+) to a warp", K + "mma.h",
     r"KERN_MMA_ROWS = (\d+)"),
    (CUDA, r"some heads at a time, in up to (\d+ MiB)", BACKEND, r"PARTS_BYTES = ([^,]+),"),
    # Scores and recording.
    (CUDA, r"A tile of (\d+) vocabulary rows", "kernels/cuda/walk.h",
     r"KERN_CUDA_WALK_VOCAB = (\d+)"),
    (CUDA, r"vocabulary rows times (\d+) hidden rows", "kernels/cuda/walk.h",
     r"KERN_CUDA_WALK_ROWS = (\d+)"),
    (CUDA, r"blocks of (\d+) vocabulary rows and", "kernels/numerics/lanes.h",
     r"KERN_SCORE_BLOCK = (\d+)"),
    (CUDA, r"A slab of up to (\d+) rows", RECORD, r"SLAB_ROWS = (\d+)"),
    # Memory and copies.
    (CUDA, r"page-locked buffers of (\d+ MiB)", "kernels/cuda/device/device.c",
     r"PINNED_BYTES = ([^,]+),"),
    (CUDA, r"page-locked buffers of \d+ MiB, (\w+) for each stream",
     "kernels/cuda/device/device.c", r"N_PINNED = (\d+)"),
    (CUDA, r"Copies of up to (\d+ KiB)", "kernels/cuda/device/device.c", r"SMALL_BYTES = ([^,]+),"),
    (CUDA, r"have (\d+) buffers of their own", "kernels/cuda/device/device.c", r"N_SMALL = (\d+)"),
    (CUDA, r"with a workspace of (\d+ MiB)", "kernels/cuda/device/cublas.h",
     r"KERN_CUBLAS_WORKSPACE = ([^}]+) }"),
    (CUDA, r"Up to (\w+) threads fill", "kernels/cuda/device/staging.h",
     r"KERN_CUDA_STAGING_THREADS = (\d+)"),
    (CUDA, r"pass through (\d+) slots", BACKEND, r"N_SLOTS = (\d+)"),
    (CUDA, r"pass through \d+ slots of (\d+ MiB)", BACKEND, r"PANEL_SIZE = ([^,]+),"),
    (CUDA, r"so the next (\w+) are uploaded", "kernels/cuda/weights/cache.c",
     r"LOOK_AHEAD = (\d+)"),
    (CUDA, r"A batch is (\w+) tiles of", BACKEND, r"BATCH_TILES = (\d+)"),
    (CUDA, r"tiles stay at (\d+) tokens", BACKEND, r"PRODUCT_TOKENS = (\d+)"),
    (CUDA, r"by default (\d+) seconds", "bench/gpu.sh", r"budget=\$\{BUDGET:-(\d+)\}"),
    # Architecture, performance, the forward pass.
    ("docs/forward.md", r"A tile has (\d+) tokens", *TILE),
    # These reckon with it.
    (ARCH, r"token of a tile, (\d+) by default", *TILE),
    (SPEED, r"decoded once for up to (\d+) tokens", *TILE),
    (SPEED, r"decoded once per tile of (\d+) tokens", *TILE),
    (SPEED, r"It takes (\d+) keys at a time", "kernels/types.h", r"KERN_KEY_BLOCK = (\d+)"),
    (SPEED, r"Batches last (\w+) seconds", CHOICE, r"batch_seconds = (\d+)"),
    (SPEED, r"Slabs of 256 and 1024 columns instead of (\d+)", "kernels/cpu/gemm/product.c",
     r"SLAB_FLOAT32 = (\d+)"),
    # Options and other documents.
    (HELP, r"as many as take about (\w+) seconds", CHOICE, r"batch_seconds = (\d+)"),
    ("eval/run/batch_size.h", r"as should take (\w+) seconds", CHOICE, r"batch_seconds = (\d+)"),
    ("eval/run/batch_size.h", r"within (\d+ MiB) and", CHOICE, r"MAX_X_BYTES = ([^,]+),"),
    ("eval/run/batch_size.h", r"MiB and (\d+) tokens", CHOICE, r"MAX_TOKENS = (\d+)"),
    ("cli/perplexity/perplexity_options.c", r"\(default: (\d+); with --protocol fixed",
     "cli/input/windows.h", r"CLI_DEFAULT_CONTEXT = (\d+)"),
    ("cli/perplexity/perplexity_options.c", r"with --protocol fixed: (\d+)\)", "cli/perplexity/perplexity_evaluator.c",
     r"DEFAULT_CONTEXT_FIXED = (\d+)"),
    ("cli/kld/kld_command.c", r"\(default: (\d+), or the base file's\)", "cli/input/windows.h",
     r"CLI_DEFAULT_CONTEXT = (\d+)"),
    ("cli/perplexity/perplexity_options.c", r"\(default: (\d+); 0: all\)", "cli/choice/choice_evaluator.c",
     r"DEFAULT_HELLASWAG_TASKS = (\d+)"),
    ("cli/results/compare.c", r"bootstrap over windows \(default: (\d+)\)",
     "cli/results/compare.c", r"DEFAULT_RESAMPLES = (\d+)"),
    ("docs/json.md", r"of the first (\d+ KiB) of each tensor", "gguf/about/identity.h",
     r"GGUF_MODEL_ID_PREFIX = (\d+)"),
    ("docs/json.md", r"of the first (\d+) bytes of each chunk's rows",
     "eval/reference/logits_file.h", r"EVAL_LOGITS_ID_PREFIX = (\d+)"),
    ("scripts/test.sh", r"each fuzzer for (\d+) second", "scripts/test.sh", r"fuzz\.sh (\d+)"),
    ("scripts/check-all.sh", r"each fuzzer for (\d+) seconds", "scripts/check-all.sh",
     r"fuzz\.sh (\d+)"),
    (STATE, r"Without `-b` that is about (\w+) seconds", CHOICE, r"batch_seconds = (\d+)"),
    (STATE, r"bytes of the settings, at most (\d+ MiB)", "eval/run/journal.c",
     r"MAX_SETTINGS = (\d+ << \d+)"),
    ("README.md", r"(\d+) architectures\]\(docs/models.md\), each", "model/arch/list.h", r"X\(\w+\)"),
    (SERVER, r"`--requests` \((\d+)\) goes", "cli/check/server/options.c", r"REQUESTS = (\d+)"),
    (SERVER, r"`--requests` \((\d+), \d+ at least", "cli/kld/server/bounds.h",
     r"CLI_BOUNDS_REQUESTS = (\d+)"),
    (SERVER, r"no result \| fewer than (\d+) lists", "clients/probe/verdict.h",
     r"PROBE_LEAST_LISTS = (\d+)"),
    (SERVER, r"same multiple of (\d+) count", "clients/probe/verdict.h", r"PROBE_STRETCH = (\d+)"),
    ("docs/trace.md", r"evaluated (\d+) more times", "cli/trace/trace_command.c",
     r"DEFAULT_PASSES = (\d+)"),
    (BASE, r"\| header \| (\d+) \|", "eval/reference/compact_layout.h",
     r"EVAL_COMPACT_HEADER_BYTES = (\d+)"),
    (BASE, r"\| checks \| (\d+) `n_windows`", "eval/reference/compact_layout.h",
     r"EVAL_COMPACT_CHECK_BYTES = (\d+)"),
    (BASE, r"hidden state; 1 to 2\^(\d+)", LAYOUT, r"MOST_WIDTH = 1 << (\d+)"),
    (BASE, r"rows of the head; 1 to 2\^(\d+)", LAYOUT, r"MOST_VOCAB = 1 << (\d+)"),
    (BASE, r"`n_description`: at most 2\^(\d+)", LAYOUT, r"MOST_DESCRIPTION = 1 << (\d+)"),
    (BASE, r"`n_path`: .{,40}1 to 2\^(\d+)", LAYOUT, r"MOST_PATH = 1 << (\d+)"),
    (BASE, r"magnitude of the row to \[2\^(\d+)", "eval/reference/compact_rows.c",
     r"TOP_EXPONENT = (\d+)"),
]


def number(text):
    """The value of what a group holds."""
    text = text.strip()
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    match = re.fullmatch(r"([\d\s<*+()]+?)\s*([KMG]iB|Mi|)", text)
    if not match:
        raise ValueError(f"{text!r} is not a number")
    return eval(match.group(1), {"__builtins__": {}}) * UNITS[match.group(2)]


def find(root, path, expression):
    text = re.sub(r'"\s*\n\s*"', "", (root / path).read_text())
    text = re.sub(r"\s+", " ", re.sub(r"\n\s*\* ", " ", text))
    match = re.search(expression, text)
    if not match:
        raise ValueError(f"nothing matches {expression!r}")
    return number(match.group(1)) if match.groups() else len(re.findall(expression, text))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    failures = []
    for document, said, source, meant in TABLE:
        values = []
        for path, expression in ((document, said), (source, meant)):
            try:
                values.append(find(root, path, expression))
            except (OSError, ValueError) as error:
                failures.append(f"{path}: {error}")
        if len(values) == 2 and values[0] != values[1]:
            failures.append(f"{document} says {values[0]} ({said}), {source} has {values[1]}")
    print("\n".join(failures) if failures else f"{len(TABLE)} numbers agree")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
