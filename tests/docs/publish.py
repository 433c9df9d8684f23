#!/usr/bin/env python3
"""Write a LLaMA model as a folder, as if it had been published so; for the pages that show one.

usage: publish.py MODEL.gguf FOLDER          the model
       publish.py MODEL.gguf FOLDER other    one whose conversion MODEL.gguf is not: it has the rows of q and k
                                             in the folder's order, and another base of RoPE
"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

NAMES = {"token_embd": "model.embed_tokens", "output": "lm_head", "output_norm": "model.norm",
         "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj"}
HEADS = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}


def published(name):
    block, part = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.weight", name).groups()
    return f"model.layers.{block}.{NAMES[part]}.weight" if block else f"{NAMES[part]}.weight"


def halves(data, n_heads, n_rows):
    """Rows of each head that are neighbours in GGUF lie half a head apart."""
    size, d = len(data) // n_rows, n_rows // n_heads
    at = [h * d + 2 * (i % (d // 2)) + i // (d // 2) for h in range(n_heads) for i in range(d)]
    return b"".join(data[row * size:(row + 1) * size] for row in at)


def main():
    model, folder, other = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:] == ["other"]
    info = json.loads(subprocess.check_output(["assay", "info", model, "--json", "--tensors"]))
    keys = {pair["key"]: pair.get("value") for pair in info["metadata"]}
    of = {name: keys[f"llama.{key}"] for name, key in (
        ("hidden_size", "embedding_length"), ("num_hidden_layers", "block_count"),
        ("intermediate_size", "feed_forward_length"), ("num_attention_heads", "attention.head_count"),
        ("num_key_value_heads", "attention.head_count_kv"), ("rope_theta", "rope.freq_base"),
        ("rms_norm_eps", "attention.layer_norm_rms_epsilon"), ("max_position_embeddings", "context_length"))}
    header, parts, at = {}, [], 0
    with tempfile.TemporaryDirectory() as temporary:
        for tensor in info["tensors"]:
            file = pathlib.Path(temporary, "x.npy")
            subprocess.check_call(["assay", "dump", model, "--tensor", tensor["name"], "-o", file])
            data = file.read_bytes()
            file.unlink()
            data = data[10 + struct.unpack_from("<H", data, 8)[0]:]
            shape = tensor["ne"][::-1]
            heads = HEADS.get(tensor["name"].split(".")[-2])
            if heads and not other:
                data = halves(data, of[heads], shape[0])
            header[published(tensor["name"])] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(data)]}
            parts.append(data)
            at += len(data)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", **of,
              "vocab_size": keys["llama.vocab_size"], "tie_word_embeddings": "lm_head.weight" not in header}
    if other:
        config["rope_theta"] = 500000
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))
    (folder / "config.json").write_text(json.dumps(config, indent=2))


if __name__ == "__main__":
    main()
