#!/usr/bin/env python3
"""Of a model with experts only those that tokens choose are read from the disk.

usage: test_streaming.py ASSAY SOURCE_DIR
"""
import pathlib
import struct
import tempfile

from gguf_make import ARRAY, F32, I32, STRING, U32, gguf, pair
from page_cache import PAGE, drop, resident
from program import TEXT, run

N_EXPERTS, N_USED, WIDTH = 64, 2, 256
EXPERT = 4 * WIDTH * WIDTH  # bytes of a matrix of one expert


def model():
    """The router is zeros and cannot tell the experts apart, so it takes the first two."""
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    prefix = "qwen3moe."
    pairs = [pair("general.architecture", STRING, "qwen3moe")]
    for name, value in (("context_length", 64), ("embedding_length", WIDTH), ("block_count", 1),
                        ("attention.head_count", 4), ("attention.head_count_kv", 4),
                        ("feed_forward_length", WIDTH), ("expert_count", N_EXPERTS),
                        ("expert_used_count", N_USED), ("expert_feed_forward_length", WIDTH)):
        pairs.append(pair(prefix + name, U32, value))
    pairs += [pair(prefix + "attention.layer_norm_rms_epsilon", F32, 1e-5),
              pair("tokenizer.ggml.model", STRING, "llama"),
              pair("tokenizer.ggml.tokens", ARRAY, words, STRING),
              pair("tokenizer.ggml.scores", ARRAY, [0.0] * len(words), F32),
              pair("tokenizer.ggml.token_type", ARRAY, [2, 3, 3] + [6] * 256, I32)]
    tensors = []

    def tensor(name, *ne):
        n = 1
        for size in ne:
            n *= size
        value = 0 if name.endswith("gate_inp") else 2 ** -7
        tensors.append((name + ".weight", 0, list(ne), n * struct.pack("<f", value)))
    tensor("token_embd", WIDTH, len(words))
    tensor("output_norm", WIDTH)
    tensor("output", WIDTH, len(words))
    for name in "attn_q", "attn_k", "attn_v", "attn_output":
        tensor("blk.0." + name, WIDTH, WIDTH)
    tensor("blk.0.ffn_gate_inp", WIDTH, N_EXPERTS)
    for name in "attn_norm", "ffn_norm":
        tensor("blk.0." + name, WIDTH)
    for name in "attn_q_norm", "attn_k_norm":
        tensor("blk.0." + name, WIDTH // 4)
    for name in "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps":
        tensor("blk.0." + name, WIDTH, WIDTH, N_EXPERTS)
    return gguf(pairs, tensors)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "experts.gguf"
        path.write_bytes(model())
        drop(path)
        if sum(resident(path)) > 16:
            print("skipped: this file system keeps its pages")
            return
        done = run("perplexity", "-m", path, "-f", TEXT, "-c", "16", "--chunks", "4")
        assert done.returncode == 0, done.stderr
        pages = resident(path)
        size = N_EXPERTS * EXPERT // PAGE  # of a tensor: the last three of the file
        for last in -2 * size, -size:      # what lies before the first one is read with its neighbours
            matrix = pages[last:last + size or None]
            used, others = matrix[:N_USED * EXPERT // PAGE], matrix[N_USED * EXPERT // PAGE + 1:-1]
            assert sum(used) > 0.9 * len(used), (sum(used), len(used))
            # A page here and there is looked at, whether a download left it out.
            assert sum(others) < 0.1 * len(others), (sum(others), len(others))
        print(f"{sum(pages) * PAGE >> 10} KiB of {len(pages) * PAGE >> 10} KiB have been read")


main()
