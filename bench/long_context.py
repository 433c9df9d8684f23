#!/usr/bin/env python3
"""Errors in a long window: log-probabilities of each precision against float64.

A llama model in one window, evaluated in double precision by NumPy from the tensors that
`assay dump` decodes, and by the program with each precision. Only the scored half is compared. Keys
are taken all at once for some hundred queries, so no order of sums, and no softmax in blocks, is the
program's.

usage: long_context.py ASSAY MODEL.gguf TEXT [N_CTX [PRECISION...]]
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

QUERIES = 256  # at a time: their scores are a matrix of [QUERIES, n_ctx]


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE).stdout


def read_keys(assay, model):
    """Metadata by name, as `assay info --json` has them."""
    document = json.loads(run(assay, "info", model, "--json"))
    return {m["key"]: m.get("value") for m in document["metadata"]}


class Model:
    def __init__(self, assay, path, folder):
        self.assay, self.path, self.folder = assay, path, folder
        self.keys = read_keys(assay, path)

    def key(self, name):
        value = self.keys["llama." + name]
        return float(np.float32(value)) if isinstance(value, float) else value

    def tensor(self, name):
        out = pathlib.Path(self.folder) / "tensor.npy"
        run(self.assay, "dump", self.path, "--tensor", name, "-o", out)
        return np.load(out).astype(np.float64)


def rmsnorm(x, gain, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * gain


def rotate(x, base, n_rot):
    """Adjacent pairs of [T, heads, d]; pair i turns by position * base^(-2 i / n_rot)."""
    angles = np.arange(len(x))[:, None] * base ** (-np.arange(0, n_rot, 2) / n_rot)
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    out = x.copy()
    a, b = x[..., 0:n_rot:2], x[..., 1:n_rot:2]
    out[..., 0:n_rot:2], out[..., 1:n_rot:2] = a * cos - b * sin, a * sin + b * cos
    return out


def attend(q, k, v):
    """[T, H, d], [T, G, d], [T, G, d] -> [T, H d]; causal."""
    n, n_heads, d = q.shape
    share = n_heads // k.shape[1]
    out = np.empty_like(q)
    for head in range(n_heads):
        keys, values = k[:, head // share], v[:, head // share]
        for first in range(0, n, QUERIES):
            last = min(first + QUERIES, n)
            scores = q[first:last, head] @ keys[:last].T / np.sqrt(d)
            scores[np.arange(last)[None, :] > np.arange(first, last)[:, None]] = -np.inf
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[first:last, head] = scores @ values[:last] / scores.sum(axis=1, keepdims=True)
    return out.reshape(n, n_heads * d)


def layer(model, i, x):
    def weight(name):
        return model.tensor(f"blk.{i}.{name}.weight")

    n, eps = len(x), model.key("attention.layer_norm_rms_epsilon")
    n_heads, n_kv = model.key("attention.head_count"), model.key("attention.head_count_kv")
    base, n_rot = model.key("rope.freq_base"), model.key("rope.dimension_count")
    h = rmsnorm(x, weight("attn_norm"), eps)
    q, k, v = ((h @ weight(f"attn_{name}").T).reshape(n, heads, -1)
               for name, heads in (("q", n_heads), ("k", n_kv), ("v", n_kv)))
    x = x + attend(rotate(q, base, n_rot), rotate(k, base, n_rot), v) @ weight("attn_output").T
    h = rmsnorm(x, weight("ffn_norm"), eps)
    gate = h @ weight("ffn_gate").T
    return x + (gate / (1 + np.exp(-gate)) * (h @ weight("ffn_up").T)) @ weight("ffn_down").T


def hidden_rows(model, ids):
    x = model.tensor("token_embd.weight")[ids]
    for i in range(model.key("block_count")):
        x = layer(model, i, x)
    return rmsnorm(x, model.tensor("output_norm.weight"), model.key("attention.layer_norm_rms_epsilon"))


def read_table(path):
    """Positions, tokens and log-probabilities of --per-token."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [np.array([kind(row[name]) for row in rows])
            for name, kind in (("position", int), ("token_id", int), ("logprob", float))]


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    assay, path, text = sys.argv[1:4]
    n_ctx = int(sys.argv[4]) if len(sys.argv) > 4 else 16384
    with tempfile.TemporaryDirectory() as folder:
        model = Model(assay, path, folder)
        ids = json.loads(run(assay, "tokenize", "--ids", path, "-f", text))[:n_ctx]
        tables = {}
        for precision in sys.argv[5:] or ["exact", "high", "fast"]:
            table = pathlib.Path(folder) / "table.tsv"
            run(assay, "perplexity", "-q", "-m", path, "-f", text, "-c", n_ctx, "--chunks", 1,
                "--precision", precision, "--per-token", table)
            tables[precision] = read_table(table)
        positions, tokens, _ = next(iter(tables.values()))
        ids[0] = model.keys["tokenizer.ggml.bos_token_id"]
        assert list(tokens) == [ids[p + 1] for p in positions]
        hidden = hidden_rows(model, ids[:-1])[positions]
        head = model.tensor("output.weight").T
        truth = np.empty(len(tokens))
        for first in range(0, len(tokens), QUERIES):
            logits = hidden[first:first + QUERIES] @ head
            logits -= logits.max(axis=1, keepdims=True)
            of = tokens[first:first + QUERIES]
            truth[first:first + QUERIES] = (logits[np.arange(len(of)), of] -
                                            np.log(np.exp(logits).sum(axis=1)))
        print(f"{path}, {n_ctx} tokens in the window, {len(tokens)} scored; mean NLL {-truth.mean():.9f}")
        for precision, (_, _, logprobs) in tables.items():
            error = logprobs - truth
            print(f"{precision:6} largest {np.abs(error).max():.2e}, root of the mean square "
                  f"{np.sqrt(np.mean(error ** 2)):.2e}, of the mean {abs(error.mean()):.2e}")


if __name__ == "__main__":
    main()
