"""Random models of the architectures in streams.py."""
import struct

from families import SHARES, GptOss
from family import Family
from formats import Tensor, f32
from gguf_make import ARRAY, F32, U32


class Deepseek4(Family):
    tied = "never"
    mixed, shared, gatings, gating_share = True, "expert_shared_count", (4, 2, 1), 0.5
    weights_norm, scales_weights, needed = True, True, (*SHARES, *GptOss.needed)
    separate_sizes, freqs, scalings, partial, sinks = False, 0.0, ["", "yarn", "yarn", "linear"], 1.0, True

    def sizes(self):
        rng, n = self.rng, self.n_layers
        self.dk = self.dv = rng.choice([8, 12, 32])
        self.kv = [1] * n
        self.n_heads = [rng.choice([2, 4])] * n
        self.number("attention.key_length", self.dk)
        self.number("attention.value_length", self.dv, 0.6)

    def rope(self):
        self.n_rot = self.rng.choice([2, 4, 6])
        self.number("rope.dimension_count", self.n_rot)
        self.number("rope.freq_base", 10 ** self.rng.uniform(0.7, 3), 0.8)
        self.scaling(self.rng.choice(self.scalings))

    def numbers(self, name, values, kind):
        self.key(f"{self.arch}.{name}", ARRAY, values, kind)

    def more_keys(self):
        rng, n = self.rng, self.n_layers
        self.runs = [rng.choice([0, 4, 4, 128]) for _ in range(n)]
        self.q_rank, self.n_groups, self.rank = rng.choice([8, 16]), rng.choice([1, 2]), rng.choice([4, 8])
        self.index_heads, self.index_size = rng.choice([1, 3]), rng.choice([8, 16])
        self.streams, self.by_token = rng.choice([2, 3, 4]), rng.randint(0, n)
        self.number("attention.sliding_window", rng.choice([1, 2, 3, 5]))
        self.numbers("attention.compress_ratios", self.runs, U32)
        self.number("attention.compress_rope_freq_base", 10 ** rng.uniform(0.7, 3))
        self.number("attention.q_lora_rank", self.q_rank)
        self.number("attention.output_group_count", self.n_groups)
        self.number("attention.output_lora_rank", self.rank)
        self.number("attention.indexer.head_count", self.index_heads)
        self.number("attention.indexer.key_length", self.index_size)
        self.number("attention.indexer.top_k", rng.choice([1, 2, 3]))
        self.number("hyper_connection.count", self.streams)
        self.number("hyper_connection.sinkhorn_iterations", rng.choice([1, 3, 5]))
        self.number("hyper_connection.epsilon", 10 ** rng.uniform(-6, -2))
        self.number("hash_layer_count", self.by_token)
        for name in ("exp", "shexp"):
            limits = [rng.choice([0.0, f32(rng.uniform(0.02, 0.3))]) for _ in range(n)]
            if name == "exp" or self.may(0.8):
                self.numbers(f"swiglu_clamp_{name}", limits, F32)

    def mixer(self, name, n):
        parts = 3 if n > self.streams else 1
        self.tensor(name + "_fn", self.streams * self.width, n, 0.3)
        self.vector(name + "_scale.weight", parts, 1, 0.3)
        self.vector(name + "_base.weight", n, 0, 1)

    def ends(self):
        super().ends()
        self.mixer("output_hc", self.streams)

    def compressor(self, name, m, d):
        wide = 2 * d if m == 4 else d
        self.projection(name + "_kv", self.width, wide, bias=0)
        self.projection(name + "_gate", self.width, wide, bias=0)
        self.tensor(name + "_ape", wide, m, 0.5)
        self.norm(name + "_norm", d)

    def attention(self, i):
        blk, n, m = f"blk.{i}.", self.n_heads[i] * self.dk, self.runs[i]
        for part in ("attn", "ffn"):
            self.mixer(f"{blk}hc_{part}", (2 + self.streams) * self.streams)
        self.projection(blk + "attn_q_a", self.width, self.q_rank, bias=0)
        self.norm(blk + "attn_q_a_norm", self.q_rank)
        self.projection(blk + "attn_q_b", self.q_rank, n, bias=0)
        self.projection(blk + "attn_kv", self.width, self.dk, bias=0)
        self.norm(blk + "attn_kv_a_norm", self.dk)
        self.vector(blk + "attn_sinks.weight", self.n_heads[i], 0, 1)
        self.tensor(blk + "attn_output_a", n // self.n_groups, self.n_groups * self.rank, 0.3)
        self.projection(blk + "attn_output_b", self.n_groups * self.rank, self.width, bias=0)
        if m:
            self.compressor(blk + "attn_compressor", m, self.dk)
        if m == 4:
            self.compressor(blk + "indexer_compressor", m, self.index_size)
            self.projection(blk + "indexer.attn_q_b", self.q_rank, self.index_heads * self.index_size, bias=0)
            self.projection(blk + "indexer.proj", self.width, self.index_heads, bias=0)

    def mixture(self, i, width=0):
        self.selection_bias = i >= self.by_token
        super().mixture(i, width)
        if i < self.by_token:
            ids = [e for _ in range(self.n_vocab) for e in self.rng.sample(range(self.n_experts), self.n_used)]
            self.tensors.append(Tensor(f"blk.{i}.ffn_gate_tid2eid.weight", "I32", [self.n_used, self.n_vocab],
                                       struct.pack(f"<{len(ids)}i", *ids)))


FAMILIES = {"deepseek4": Deepseek4}
