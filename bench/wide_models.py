#!/usr/bin/env python3
"""Write the models of second_opinion.py as wide as those of bench_model, with weights in Q8_0.

usage: wide_models.py FOLDER [NAME...]

FOLDER/NAME.gguf: a width of 2048, heads of 128, 8 experts of which 3 are used, the layers that the
small models have; windows of 4096, indexers that choose 2048 keys. The weights are random, so what
they predict means nothing. `bench_model --files A.gguf,B.gguf` times them beside one another.

Needs the packages torch and transformers 5. Nothing is downloaded.
"""
import importlib.util
import pathlib
import sys

import second_opinion as opinion

Q8_0 = 8
# What a field of a configuration becomes, by the number that a small model has there.
WIDE = {
    "hidden_size": {96: 2048}, "num_attention_heads": {4: 16}, "num_key_value_heads": {4: 16, 2: 4},
    "head_dim": {20: 128, 24: 128, 32: 128}, "sliding_window": {24: 4096},
    "num_attention_heads_per_layer": {4: 16, 6: 24}, "num_sliding_attention_heads": {6: 24},
    "intermediate_size": {104: 5632, 40: 704}, "moe_intermediate_size": {40: 704},
    "dense_intermediate_size": {104: 5632}, "prefix_dense_intermediate_size": {104: 5632},
    "shared_intermediate_size": {56: 1408, 40: 704}, "shared_expert_intermediate_size": {56: 704},
    "share_expert_dim": {56: 704}, "q_lora_rank": {40: 768}, "kv_lora_rank": {32: 512},
    "qk_nope_head_dim": {12: 128}, "qk_rope_head_dim": {16: 64}, "v_head_dim": {20: 128},
    "linear_head_dim": {16: 128}, "linear_num_heads": {4: 16}, "mamba_n_heads": {6: 64},
    "mamba_d_head": {32: 64, 16: 64}, "mamba_d_ssm": {96: 4096}, "mamba_d_state": {12: 128},
    "index_head_dim": {32: 128}, "index_n_heads": {4: 32, 2: 4}, "index_topk": {40: 2048, 12: 512},
    "index_block_size": {16: 128}, "index_topk_blocks": {4: 16}, "rotary_dim": {16: 64},
    "o_groups": {2: 8}, "o_lora_rank": {20: 256}, "laurel_rank": {16: 64},
    "hc_lowrank": {20: 320}, "indexer_head_dim": {32: 128}, "indexer_n_heads": {4: 16},
    "indexer_budget": {40: 2048}, "ngram_vocab_size_base": {500: 20000},
    "linear_key_head_dim": {16: 128}, "linear_value_head_dim": {16: 128},
    "linear_num_key_heads": {2: 8}, "linear_num_value_heads": {6: 24},
    "hidden_size_per_layer_input": {20: 256}, "max_position_embeddings": {4096: 16384},
}


def widened(config):
    def of(field, v):
        if isinstance(v, list):
            return [of(field, x) for x in v]
        return v if isinstance(v, (str, dict)) else WIDE.get(field, {}).get(v, v)
    return {field: of(field, v) for field, v in config.items()}


def widen(family):
    small = family.config
    family.config = lambda: widened(small())


def q8_0(numpy, rows):
    """Blocks of 32: a scale in half precision, then the integers."""
    blocks = rows.reshape(-1, 32)
    scale = (abs(blocks).max(1, keepdims=True) / 127).astype(numpy.float16)
    whole = numpy.rint(blocks / numpy.maximum(scale.astype(numpy.float32), 1e-8))
    return numpy.hstack([scale.view(numpy.int8), whole.astype(numpy.int8)]).tobytes()


def entry(numpy, name, t):
    shape = list(reversed(t.shape))
    values = t.numpy()
    matrix = len(shape) > 1 and shape[0] % 32 == 0 and shape[1] >= 64 and values.dtype.kind == "f"
    if matrix and "norm" not in name and "_inp." not in name:
        return name, Q8_0, shape, q8_0(numpy, values)
    return name, 0 if values.dtype.kind == "f" else opinion.I32, shape, values.tobytes()


def write(torch, numpy, family, path):
    widen(family)
    _, model = opinion.build(torch, family, 1)
    with torch.no_grad():
        state = {k: opinion.as_stored(torch, v) for k, v in model.state_dict().items()}
        keys, tensors = family.file(torch, model, state)
    keys |= opinion.vocabulary()
    path.write_bytes(opinion.g.gguf([opinion.pair(k, v) for k, v in keys.items()],
                                    [entry(numpy, k, t.contiguous()) for k, t in tensors.items()]))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not all(importlib.util.find_spec(p) for p in ("torch", "transformers")):
        print(f"missing packages: see the head of {__file__}", file=sys.stderr)
        return 2
    import numpy
    import torch
    from second_opinion_autumn import FAMILIES
    torch.single = torch.float32
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(exist_ok=True)
    for family in FAMILIES:
        if not names or family.name in names:
            write(torch, numpy, family, folder / f"{family.name}.gguf")
    return 0


if __name__ == "__main__":
    sys.exit(main())
