#!/usr/bin/env python3
"""Folders of packed integers made of a LLaMA in GGUF, in every form that is read, against folders of the
same numbers in float32: the table of scores in `exact`, to the byte; and each packed module against the
library compressed-tensors, where it is installed (its own unpacking, in float32).

usage: packed_folders.py ASSAY MODEL.gguf TEXT [WORDS OF assay perplexity...]

Needs numpy. A folder in float32 takes 4 bytes for each weight of the model in the temporary folder.
"""
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

TURNED = np.array([0, 2, 4, 6, 1, 3, 5, 7])  # AWQ's number of each place of a word


def run(assay, *words):
    return subprocess.run([assay, *map(str, words)], check=True, capture_output=True).stdout


class Model:
    """The weights of a LLaMA under the names of its folder."""

    def __init__(self, assay, path):
        info = json.loads(run(assay, "info", path, "--json"))
        keys = {pair["key"].removeprefix("llama."): pair.get("value") for pair in info["metadata"]}
        self.heads, self.kv = keys["attention.head_count"], keys["attention.head_count_kv"]
        self.layers = keys["block_count"]
        self.config = {
            "architectures": ["LlamaForCausalLM"], "num_hidden_layers": self.layers, "hidden_size": keys["embedding_length"],
            "num_attention_heads": self.heads, "num_key_value_heads": self.kv, "hidden_act": "silu",
            "intermediate_size": keys["feed_forward_length"], "max_position_embeddings": keys["context_length"],
            "rms_norm_eps": keys["attention.layer_norm_rms_epsilon"], "rope_theta": keys["rope.freq_base"],
            "tie_word_embeddings": True}

        def tensor(name):
            return np.load(io.BytesIO(run(assay, "dump", path, "--tensor", name, "-o", "-")))

        self.plain = {"model.embed_tokens.weight": tensor("token_embd.weight"), "model.norm.weight": tensor("output_norm.weight")}
        self.modules = {}
        for i in range(self.layers):
            at = f"model.layers.{i}."
            self.plain[at + "input_layernorm.weight"] = tensor(f"blk.{i}.attn_norm.weight")
            self.plain[at + "post_attention_layernorm.weight"] = tensor(f"blk.{i}.ffn_norm.weight")
            for own, name in (("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"),
                              ("self_attn.o_proj", "attn_output"), ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"),
                              ("mlp.down_proj", "ffn_down")):
                values = tensor(f"blk.{i}.{name}.weight")
                n = {"attn_q": self.heads, "attn_k": self.kv}.get(name)
                if n:  # neighbours become halves of each head's rows
                    rows, cols = values.shape
                    values = values.reshape(n, rows // n // 2, 2, cols).swapaxes(1, 2).reshape(rows, cols)
                self.modules[at + own] = np.ascontiguousarray(values)


def words(numbers, bits, axis, turned=False):
    """Words of 32 bits along an axis."""
    numbers = np.moveaxis(numbers, axis, -1)
    n = 32 // bits
    pad = -numbers.shape[-1] % n
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, pad)])
    parts = numbers.reshape(*numbers.shape[:-1], -1, n).astype(np.uint32)
    if turned:
        parts = parts[..., TURNED]
    packed = np.bitwise_or.reduce(parts << (np.arange(n, dtype=np.uint32) * bits), axis=-1)
    return np.ascontiguousarray(np.moveaxis(packed, -1, axis)).view(np.int32)


class Quantised:
    """Codes [rows, columns], zero points and scales [rows, groups] by rounding to the nearest."""

    def __init__(self, values, bits, group, symmetric, ordered, rng):
        rows, cols = values.shape
        group = cols if group < 0 else group
        order = rng.permutation(cols) if ordered else np.arange(cols)
        self.groups = np.empty(cols, np.int32)
        self.groups[order] = np.arange(cols) // group
        parts = values[:, order].reshape(rows, -1, group)
        top = 2**bits - 1
        if symmetric:
            scales = np.abs(parts).max(-1) / (2**(bits - 1) - 1)
            zeros = np.full(scales.shape, 2**(bits - 1), np.int32)
        else:
            low, high = np.minimum(parts.min(-1), 0), np.maximum(parts.max(-1), 0)
            scales = (high - low) / top
            zeros = np.clip(np.rint(-low / np.maximum(scales, 1e-8)), 1, top).astype(np.int32)
        self.scales = np.maximum(scales, 1e-7).astype(np.float16)
        wide, of = self.scales.astype(np.float32)[:, self.groups], zeros[:, self.groups]
        self.codes = np.clip(np.rint(values / wide) + of, 0, top).astype(np.int32)
        self.zeros, self.values = zeros, wide * (self.codes - of).astype(np.float32)


def compressed(q, bits, symmetric, ordered):
    rows, cols = q.codes.shape
    stored = {"weight_packed": words(q.codes, bits, 1), "weight_scale": q.scales,
              "weight_shape": np.array([rows, cols], np.int64)}
    if not symmetric:
        stored["weight_zero_point"] = words(q.zeros, bits, 0)
    return stored | ({"weight_g_idx": q.groups} if ordered else {})


def gptq(q, bits, less_one):
    return {"qweight": words(q.codes.T, bits, 0), "qzeros": words(q.zeros.T - less_one, bits, 1),
            "scales": np.ascontiguousarray(q.scales.T), "g_idx": q.groups}


def awq(q):
    return {"qweight": words(q.codes.T, 4, 1, True), "qzeros": words(q.zeros.T, 4, 1, True),
            "scales": np.ascontiguousarray(q.scales.T)}


def group_of(bits, group, symmetric, ordered):
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"], "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": {
            "num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "channel" if group < 0 else "group",
            "group_size": None if group < 0 else group, "actorder": "group" if ordered else None}}}}


# name: (bits, group, symmetric, ordered, quantization_config, how a module is stored)
FORMS = {}
for BITS, GROUP, SYMMETRIC, ORDERED in ((4, 32, True, False), (4, 64, False, False), (4, -1, False, False), (4, 64, True, True),
                                        (8, 64, True, False), (8, 32, False, False)):
    FORMS[f"compressed-tensors {BITS} {GROUP} {'sym' if SYMMETRIC else 'asym'}{' order' * ORDERED}"] = (
        BITS, GROUP, SYMMETRIC, ORDERED, group_of(BITS, GROUP, SYMMETRIC, ORDERED),
        lambda q, b=BITS, s=SYMMETRIC, o=ORDERED: compressed(q, b, s, o))
for BITS, GROUP, SYMMETRIC, ORDERED, V1 in ((4, 32, True, False, True), (4, 64, False, False, False), (4, 64, False, True, True),
                                            (4, -1, True, False, True), (8, 64, True, False, True)):
    FORMS[f"GPTQ {BITS} {GROUP} {'sym' if SYMMETRIC else 'asym'}{' order' * ORDERED} {'v1' if V1 else 'v2'}"] = (
        BITS, GROUP, SYMMETRIC, ORDERED, {"quant_method": "gptq", "bits": BITS, "group_size": GROUP, "sym": SYMMETRIC,
                                          "desc_act": ORDERED, "checkpoint_format": "gptq" if V1 else "gptq_v2"},
        lambda q, b=BITS, v=V1: gptq(q, b, int(v)))
for GROUP in (32, 64):
    FORMS[f"AWQ 4 {GROUP}"] = (4, GROUP, False, False, {"quant_method": "awq", "bits": 4, "group_size": GROUP,
                                                        "zero_point": True, "version": "gemm"}, awq)

DTYPES = {"float32": "F32", "float16": "F16", "int32": "I32", "int64": "I64"}


def write(path, config, tensors):
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    header, at = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": DTYPES[str(t.dtype)], "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header).encode()
    with open(path / "model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(np.ascontiguousarray(t).tobytes())


def by_library(stored, bits, group, symmetric):
    """What compressed-tensors unpacks and dequantises, in float32; None: it is not installed."""
    try:
        import torch
        from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
        from compressed_tensors.quantization import QuantizationArgs
        from compressed_tensors.quantization.lifecycle.forward import dequantize
    except ImportError:
        return None
    shape = torch.Size(stored["weight_shape"].tolist())
    scale = torch.from_numpy(stored["weight_scale"].astype(np.float32))
    zeros = None
    if not symmetric:
        zeros = unpack_from_int32(torch.from_numpy(stored["weight_zero_point"]), bits, torch.Size([shape[0], scale.shape[1]]),
                                  packed_dim=0)
    codes = unpack_from_int32(torch.from_numpy(stored["weight_packed"]), bits, shape)
    groups = stored.get("weight_g_idx", np.zeros(shape[1], np.int32))
    order = np.argsort(groups, kind="stable")  # columns of a group become neighbours, and return
    args = QuantizationArgs(num_bits=bits, type="int", symmetric=symmetric, strategy="channel" if group < 0 else "group",
                            group_size=None if group < 0 else group)
    values = dequantize(x_q=codes[:, order], scale=scale, zero_point=zeros, args=args).numpy()
    return values[:, np.argsort(order)]


def main():
    assay, path, text, *more = sys.argv[1:]
    model = Model(assay, path)
    bad = 0
    for name, (bits, group, symmetric, ordered, said, store) in FORMS.items():
        rng, stored, plain, differ, known = np.random.default_rng(1), dict(model.plain), dict(model.plain), 0, False
        for module, values in model.modules.items():
            q = Quantised(values, bits, group, symmetric, ordered, rng)
            tensors = store(q)
            stored |= {f"{module}.{own}": t for own, t in tensors.items()}
            plain[f"{module}.weight"] = q.values
            library = by_library(tensors, bits, group, symmetric) if "weight_packed" in tensors else None
            known |= library is not None
            differ += library is not None and not np.array_equal(library, q.values)
        with tempfile.TemporaryDirectory() as kept:
            kept, tables = pathlib.Path(kept), []
            write(kept / "packed", model.config | {"quantization_config": said}, stored)
            write(kept / "plain", model.config, plain)
            for folder in ("packed", "plain"):
                run(assay, "perplexity", kept / folder, "-f", text, "--tokenizer", path, "--precision", "exact",
                    "--per-token", kept / f"{folder}.table", *more)
                tables.append((kept / f"{folder}.table").read_bytes())
        same = tables[0] == tables[1]
        bad += not same or differ > 0
        print(f"{name:34} {'the same table' if same else 'ANOTHER TABLE'}"
              + (f", {differ} of {len(model.modules)} modules other than the library's" if known else ""), flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
