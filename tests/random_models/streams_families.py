"""Random models of the architectures in streams.py."""
import struct

from families import SHARES, GptOss
from hybrid_families import KimiLinear
from family import Family
from formats import Tensor, f32
from gguf_make import ARRAY, F32, U32


class Mixers:
    """What streams are mixed with."""

    def mixer_keys(self):
        self.streams = self.rng.choice([2, 3, 4])
        self.number("hyper_connection.count", self.streams)
        self.number("hyper_connection.sinkhorn_iterations", self.rng.choice([1, 3, 5]))
        self.number("hyper_connection.epsilon", 10 ** self.rng.uniform(-6, -2))

    def numbers(self, name, values, kind):
        self.key(f"{self.arch}.{name}", ARRAY, values, kind)

    def limits(self, name, n):
        limits = [self.rng.choice([0.0, f32(self.rng.uniform(0.02, 0.3))]) for _ in range(n)]
        self.numbers(f"swiglu_clamp_{name}", limits, F32)

    def mixer(self, name, n):
        parts = min(n // self.streams, 3)
        self.tensor(name + "_fn", self.streams * self.width, n, 0.3)
        self.vector(name + "_scale.weight", parts, 1, 0.3)
        self.vector(name + "_base.weight", n, 0, 1)

    def n_weights(self):
        return (2 + self.streams) * self.streams

    def block(self, i):
        for part in ("attn", "ffn"):
            self.mixer(f"blk.{i}.hc_{part}", self.n_weights())
        super().block(i)


class Deepseek4(Mixers, Family):
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

    def more_keys(self):
        rng, n = self.rng, self.n_layers
        self.runs = [rng.choice([0, 4, 4, 128]) for _ in range(n)]
        self.q_rank, self.n_groups, self.rank = rng.choice([8, 16]), rng.choice([1, 2]), rng.choice([4, 8])
        self.index_heads, self.index_size = rng.choice([1, 3]), rng.choice([8, 16])
        self.by_token = rng.randint(0, n)
        self.number("attention.sliding_window", rng.choice([1, 2, 3, 5]))
        self.numbers("attention.compress_ratios", self.runs, U32)
        self.number("attention.compress_rope_freq_base", 10 ** rng.uniform(0.7, 3))
        self.number("attention.q_lora_rank", self.q_rank)
        self.number("attention.output_group_count", self.n_groups)
        self.number("attention.output_lora_rank", self.rank)
        self.number("attention.indexer.head_count", self.index_heads)
        self.number("attention.indexer.key_length", self.index_size)
        self.number("attention.indexer.top_k", rng.choice([1, 2, 3]))
        self.mixer_keys()
        self.number("hash_layer_count", self.by_token)
        self.limits("exp", n)
        if self.may(0.8):
            self.limits("shexp", n)

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


class Glm5Next(Mixers, KimiLinear):
    """Mainline's name of GLM 5.3 Flash."""
    n_layers_of, nextn, old_share, q_ranks, n_rots = (2, 4), True, 0.0, (8, 12, 32), (0,)
    gating_share, weights_norm, scalings, bounds = 0.5, True, [""], 0.7
    needed = *SHARES, "swiglu_clamp_exp", "swiglu_clamp_shexp"

    def sizes(self):
        super().sizes()
        n = self.n_layers + self.n_next
        self.n_heads = [self.n_heads[0]] * n
        self.kv = [int(i == 1 or self.may()) for i in range(n)]

    def rope(self):
        self.number("rope.dimension_count", 0, 0.7)

    def more_keys(self):
        rng, n = self.rng, self.n_layers + self.n_next
        self.state, self.taps = rng.choice([4, 8, 12]), rng.choice([2, 4])
        self.number("kda.head_dim", self.state)
        self.number("ssm.conv_kernel", self.taps)
        self.number("kda.gate_lower_bound", -rng.uniform(0.5, 5), self.bounds)
        self.mixer_keys()
        self.index_heads, self.index_size = rng.choice([1, 2, 3, 8]), rng.choice([2, 6, 8])
        self.pool = rng.choice([1, 2, 3, 4])
        self.number("attention.indexer.head_count", self.index_heads)
        self.number("attention.indexer.key_length", self.index_size)
        self.number("attention.indexer.kpool", self.pool)
        self.number("attention.indexer.top_k", self.pool * rng.randint(1, 3))
        self.number("attention.layer_norm_epsilon", 10 ** rng.uniform(-6, -2), 0.7)
        for name in ("exp", "shexp"):
            self.limits(name, n)
        self.own = [True] * n
        self.choice_keys()

    def choice_keys(self):
        self.number("attention.indexer.kpool_select_tail", True, 0.7)
        if self.may(0.7):
            first = self.kv.index(1)
            self.own = [i == first or i >= self.n_layers or self.may() for i in range(len(self.kv))]
            self.flags("attention.indexer.types", self.own[:self.n_layers])

    def attention(self, i):
        super().attention(i)
        if not self.kv[i] or not self.own[i] and not self.may(self.spare):
            return
        blk, n = f"blk.{i}.indexer", self.index_size
        self.projection(blk + ".attn_q_b", self.q_rank, self.index_heads * n, bias=0)
        self.projection(blk + ".attn_k", self.width, n, bias=0)
        self.norm(blk + ".k_norm", n)
        self.vector(blk + ".k_norm.bias", n, 0, 0.3)
        self.projection(blk + ".proj", self.width, self.index_heads, bias=0)
        self.projection(blk + "_compressor_gate", self.width, n, bias=0)
        self.tensor(blk + "_compressor_ape", n, self.pool, 0.5)


class Glm5nextOfForks(Glm5Next):
    gating_share, bounds = 1.0, 1.0
    needed = *Glm5Next.needed, "kda.gate_lower_bound", "expert_gating_func"

    def choice_keys(self):
        pass


FAMILIES = {"deepseek4": Deepseek4, "glm5next": Glm5nextOfForks, "glm5-next": Glm5Next}
