"""Random valid models of each architecture, with every optional key and tensor now and then."""
import math

from formats import Tensor, f32
from generate import Generated
from gguf_make import ARRAY, BOOL, U32

SCALINGS = ["", "none", "linear", "yarn", "longrope"]


class Family(Generated):
    """What most share. Traits of an architecture are attributes: `tied` is "always", "never" or ""
    (either), a bias is the chance that the file has it."""
    n_layers_of = 2, 3
    tied = ""
    bias = {"q": 0.2, "k": 0.2, "v": 0.2, "output": 0.2, "ffn": 0.0}
    norms = "attn_norm", "ffn_norm"
    norm_bias = False
    eps = "attention.layer_norm_rms_epsilon"
    qk_norm, qk_share = "", 1.0
    up = "gated"
    mixed, mixed_share = False, 1.0     # experts
    shared, shared_gate = "", False     # the key of the shared expert's width
    gatings, gating_share, scales_weights = (1, 2, 3), 0.2, False
    weights_norm = False                # the key is read
    router_bias, expert_biases, gate_up = 0.0, 0.0, False
    dense_first = nextn = sinks = False
    window, pattern = (), ()
    scalings, partial, freqs, magnitude = SCALINGS, 0.5, 0.2, 0.3
    separate_sizes = True
    residual = 1.0

    def make(self):
        self.shape()
        self.number(self.eps, 10 ** self.rng.uniform(-6, -2))
        self.rope()
        self.more_keys()
        self.ends()
        for i in range(self.n_layers):
            self.block(i)
        for i in range(self.n_layers, self.n_layers + self.n_next):
            self.block(i)
            self.tensor(f"blk.{i}.nextn.eh_proj", 2 * self.width, self.width, 0.2)
            for name in ("enorm", "hnorm", "shared_head_norm"):
                self.norm(f"blk.{i}.nextn.{name}")

    def more_keys(self):
        pass

    def shape(self):
        rng = self.rng
        self.n_layers = rng.randint(*self.n_layers_of)
        self.n_next = rng.choice([0, 1]) if self.nextn else 0
        n = self.n_layers + self.n_next
        self.width = rng.choice([16, 24, 32, 32, 64])
        self.kv = [rng.choice([1, 2])] * n
        self.n_heads = [self.kv[0] * rng.choice([1, 2, 3])] * n
        self.ff = [rng.choice([16, 24, 32, 64])] * n
        if self.may(0.25) and self.separate_sizes:
            for i in range(1, n):
                self.kv[i] = rng.choice([1, 2])
                self.n_heads[i], self.ff[i] = self.kv[i] * rng.choice([1, 3]), rng.choice([24, 32])
        self.sizes()
        self.number("block_count", n)
        self.number("embedding_length", self.width)
        self.context = rng.choice([24, 64, 4096])
        self.number("context_length", self.context)
        self.per_layer("attention.head_count", self.n_heads)
        if self.kv != self.n_heads or self.may():
            self.per_layer("attention.head_count_kv", self.kv)
        self.per_layer("feed_forward_length", self.ff)
        if self.mixed:
            self.expert_keys()
        if self.nextn and (self.n_next or self.may()):
            self.number("nextn_predict_layers", self.n_next)

    def sizes(self):
        rng, width = self.rng, self.width
        heads = self.n_heads[0]
        if width % heads == 0 and width // heads % 2 == 0 and self.may():
            self.dk = self.dv = width // heads
            if self.may() and len(set(self.n_heads)) == 1:
                return
        else:
            self.dk = self.dv = rng.choice([4, 8, 8, 12, 16])
        if self.may(0.15):
            self.dv = rng.choice([4, 6, 8])
        self.number("attention.key_length", self.dk)
        self.number("attention.value_length", self.dv)

    def expert_keys(self):
        rng = self.rng
        self.n_experts = rng.choice([2, 4, 5, 6])
        self.n_used = rng.randint(1, self.n_experts - 1)
        self.expert_width = rng.choice([8, 16, 32])
        self.number("expert_count", self.n_experts)
        self.number("expert_used_count", self.n_used)
        self.expert_width_key()
        self.n_dense = 0
        if self.dense_first:
            self.n_dense = rng.choice([0, 1])
            self.number("leading_dense_block_count", self.n_dense, 0.5 if self.n_dense == 0 else 1)
        self.shared_width = 0
        if self.shared == "expert_shared_count":
            count = rng.choice([1, 2])
            self.shared_width = count * self.expert_width
            self.number(self.shared, count)
        elif self.shared:
            self.shared_width = rng.choice([8, 16, 32])
            self.number(self.shared, self.shared_width)
        if self.may(self.gating_share):
            self.number("expert_gating_func", rng.choice(self.gatings))
        if self.weights_norm and self.may(0.8):
            self.number("expert_weights_norm", self.may())
        if self.scales_weights:
            self.number("expert_weights_scale", rng.choice([0.0, rng.uniform(0.5, 2.5)]), 0.8)
        self.groups()

    def groups(self):
        self.selection_bias = self.may(0.3)

    def expert_width_key(self):
        self.number("expert_feed_forward_length", self.expert_width)

    def rope(self):
        rng = self.rng
        self.n_rot = self.dk
        if self.may(self.partial):
            self.n_rot = rng.randrange(2, self.dk + 1, 2)
            self.number("rope.dimension_count", self.n_rot)
        self.number("rope.freq_base", 10 ** rng.uniform(0.7, 3), 0.8)
        self.scaling(rng.choice(self.scalings))

    def factors(self, name, n):
        self.tensors.append(Tensor.of(name, [f32(self.rng.uniform(0.5, 8)) for _ in range(n)]))

    def scaling(self, kind):
        rng = self.rng
        if kind:
            self.number("rope.scaling.type", kind)
            self.number("rope.scaling.attn_factor", rng.uniform(0.7, 1.4), self.magnitude)
        if kind in ("linear", "yarn", "none") or not kind and "linear" in self.scalings and self.may(0.3):
            self.number("rope.scaling.factor", rng.uniform(1.5, 40))
        if kind == "longrope":
            self.number("rope.scaling.original_context_length", rng.choice([3, 40]))
            self.factors("rope_factors_long.weight", self.n_rot // 2)
            self.factors("rope_factors_short.weight", self.n_rot // 2)
        elif self.may(0.5 if kind == "yarn" else 0.1):
            self.number("rope.scaling.original_context_length", rng.choice([16, 32, 128, 1024]))
        if kind == "yarn":
            self.number("rope.scaling.yarn_beta_fast", rng.uniform(2, 40), 0.5)
            self.number("rope.scaling.yarn_beta_slow", rng.uniform(0.2, 2), 0.5)
            self.yarn_keys()
        if kind != "longrope" and self.may(self.freqs):
            self.factors("rope_freqs.weight", self.n_rot // 2)

    def yarn_keys(self):
        pass

    def slide(self, period=True):
        """Keys of the window: shorter than most texts."""
        rng = self.rng
        self.number("attention.sliding_window", rng.choice([1, 2, 3, 5]))
        if period and self.may():
            if self.may():
                flags = [self.may() for _ in range(self.n_layers + self.n_next)]
                self.flags("attention.sliding_window_pattern", flags)
            else:
                self.number("attention.sliding_window_pattern", rng.choice([0, 1, 2, 3]))

    def flags(self, name, values):
        self.key(f"{self.arch}.{name}", ARRAY, values, BOOL)

    def any_norm(self, name, n=0):
        self.norm(name, n)
        if self.norm_bias:
            self.vector(name + ".bias", n or self.width, 0, 0.2)

    def ends(self):
        self.tensor("token_embd", self.width, self.n_vocab, self.rng.choice([0.3, 1]))
        self.any_norm("output_norm")
        if self.tied == "never" or not self.tied and self.may():
            self.tensor("output", self.width, self.n_vocab,
                        self.rng.uniform(1, 3) / math.sqrt(self.width))

    def block(self, i):
        for name in self.norms:
            self.any_norm(f"blk.{i}.{name}")
        self.attention(i)
        self.feed_forward(i)

    def attention(self, i):
        blk, width = f"blk.{i}.attn_", self.width
        n = {"q": self.n_heads[i] * self.dk, "k": self.kv[i] * self.dk, "v": self.kv[i] * self.dv}
        if self.may(self.fused):
            self.projection(blk + "qkv", width, sum(n.values()), bias=self.bias["q"])
        else:
            for c in "qkv":
                self.projection(blk + c, width, n[c], bias=self.bias[c])
        self.projection(blk + "output", self.n_heads[i] * self.dv, width, bias=self.bias["output"])
        if self.qk_norm and self.may(self.qk_share):
            for c in "qk":
                self.norm(f"{blk}{c}_norm", self.dk if self.qk_norm == "head" else n[c])
        if self.sinks:
            self.vector(blk + "sinks.weight", self.n_heads[i], 0, 1)

    fused = 0.15

    def feed_forward(self, i):
        if self.mixed and i >= self.n_dense and self.mixes(i):
            self.mixture(i)
        else:
            self.dense(i, self.ff[i])

    def mixes(self, i):
        return True

    def dense(self, i, n, suffix=""):
        blk, bias = f"blk.{i}.ffn_", 0 if suffix else self.bias["ffn"]
        both = self.up == "fused" and not suffix
        if self.up == "gated" or self.up == "fused" and suffix:
            self.projection(blk + "gate" + suffix, self.width, n, bias=bias)
        self.projection(blk + "up" + suffix, self.width, 2 * n if both else n, bias=bias)
        self.projection(blk + "down" + suffix, n, self.width, bias=bias)

    def mixture(self, i, width=0):
        blk, n, width, e = f"blk.{i}.ffn_", self.expert_width, width or self.width, self.n_experts
        self.tensors.append(Tensor.random(self.rng, blk + "gate_inp.weight", "F32", [self.width, e],
                                          2 / math.sqrt(self.width)))
        if self.may(self.router_bias):
            self.vector(blk + "gate_inp.bias", e, 0, 0.5)
        if self.selection_bias:
            self.vector(f"blk.{i}.exp_probs_b.bias", e, 0, 0.3)
        shapes = [("up", width, n), ("down", n, width)]
        if self.gate_up and self.may():
            shapes[0] = ("gate_up", width, 2 * n)
        elif self.up != "plain":
            shapes.insert(0, ("gate", width, n))
        for name, n_cols, n_rows in shapes:
            self.expert_tensor(f"{blk}{name}_exps", n_cols, n_rows, e)
        if self.shared_width:
            self.dense(i, self.shared_width, "_shexp")
            if self.shared_gate:
                self.vector(blk + "gate_inp_shexp.weight", self.width, 0, 0.5)

    def expert_tensor(self, name, n_cols, n_rows, e):
        self.projection(name, n_cols, n_rows, e, 0)
        if self.may(self.expert_biases):
            values = [f32(self.rng.gauss(0, 0.3)) for _ in range(n_rows * e)]
            self.tensors.append(Tensor.of(name + ".bias", values, [n_rows, e]))


class Qwen2(Family):
    bias = {"q": 0.8, "k": 0.8, "v": 0.8, "output": 0.2, "ffn": 0.0}

    def ends(self):
        super().ends()
        if self.tensors[-1].name == "output.weight" and self.may(0.3):
            self.vector("output.bias", self.n_vocab, 0, 1)


class Qwen3(Family):
    qk_norm = "head"


class Qwen3moe(Qwen3):
    mixed = True


class Qwen2moe(Family):
    bias, tied, mixed = Qwen2.bias, "never", True
    shared, shared_gate = "expert_shared_feed_forward_length", True


class Mistral3(Family):
    bias, scalings = Family.bias | {"ffn": 0.2}, ["", "yarn", "yarn"]

    def shape(self):
        self.mixed = self.may(0.3)
        super().shape()

    def yarn_keys(self):
        self.number("rope.scaling.yarn_log_multiplier", self.rng.choice([0.0, 0.5, 1.0]), 0.7)

    def more_keys(self):
        if self.may(0.7):
            self.pairs = [p for p in self.pairs if "original_context" not in p[0]]
            self.number("rope.scaling.original_context_length", self.rng.choice([2, 3, 5]))
            self.number("attention.temperature_scale", self.rng.uniform(0.1, 0.5))


class Gemma2(Family):
    norms = "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"
    tied, n_layers_of, scalings, freqs, magnitude = "always", (2, 4), [""], 0.0, 0.0

    def more_keys(self):
        rng = self.rng
        if self.may(0.9):
            self.slide()
        self.number("attn_logit_softcapping", rng.uniform(0.5, 5), 0.8)
        self.number("final_logit_softcapping", rng.uniform(2, 15), 0.8)
        self.number("rope.freq_base_swa", 10 ** rng.uniform(0.7, 2), 0.3)


class Gemma3(Gemma2):
    qk_norm, tied, n_layers_of, scalings = "head", "", (2, 7), ["", "linear"]

    def more_keys(self):
        if self.may(0.8):
            self.slide()
        self.number("final_logit_softcapping", self.rng.uniform(2, 15), 0.4)
        self.number("rope.freq_base_swa", 10 ** self.rng.uniform(0.7, 2), 0.7)


class GptOss(Family):
    norms, tied, sinks, mixed, n_layers_of = ("attn_norm", "post_attention_norm"), "never", True, True, (2, 4)
    bias = {"q": 0.9, "k": 0.9, "v": 0.9, "output": 0.9, "ffn": 0.0}
    router_bias, expert_biases, gatings, gating_share = 0.9, 0.9, (3, 1, 2), 0.3
    scalings = ["yarn", "yarn", "yarn", ""]

    def more_keys(self):
        self.slide()


class Phi3(Family):
    fused, up, scalings = 0.8, "fused", ["", "longrope", "longrope", "yarn"]

    def more_keys(self):
        self.number("attention.sliding_window", self.rng.choice([0, 2, 3, 5]), 0.6)


class Glm4(Family):
    norms = "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"
    tied, up, nextn, bias = "never", "fused", True, Qwen2.bias

    def more_keys(self):
        if self.may(0.4):
            self.sections()

    def sections(self):
        n = self.n_rot // 2
        a = self.rng.randint(0, n)
        self.key(self.arch + ".rope.dimension_sections", ARRAY, [a, n - a, 0, 0], U32)


class Glm4moe(Family):
    norms, nextn, mixed, dense_first = ("attn_norm", "post_attention_norm"), True, True, True
    bias, qk_norm, qk_share, shared = Qwen2.bias, "head", 0.7, "expert_shared_count"
    gatings, gating_share, scales_weights, weights_norm = (2, 1), 0.7, True, True
    more_keys, sections = Glm4.more_keys, Glm4.sections

    def groups(self):
        self.selection_bias = self.may(0.8)
        if self.n_experts % 2 == 0 and self.n_experts > 2 and self.may(0.3):
            n = self.n_experts // 2
            self.number("expert_group_count", n)
            self.number("expert_group_used_count", max(1, min(n, (self.n_used + 1) // 2)))


class Deepseek2(Glm4moe):
    norms, qk_norm, n_layers_of, gate_up = ("attn_norm", "ffn_norm"), "", (2, 3), True
    gatings, gating_share, partial, freqs = (2, 1), 0.7, 1.0, 0.0
    scalings, separate_sizes = ["", "yarn", "yarn", "linear"], False

    def sizes(self):
        rng = self.rng
        self.n_rot, self.dv = rng.choice([2, 4, 8]), rng.choice([4, 6, 8])
        self.nope, self.rank = rng.choice([2, 4, 8, 32]), rng.choice([8, 12, 32])
        self.dk, self.q_rank = self.nope + self.n_rot, rng.choice([0, 8, 12, 32])
        self.old = self.may(0.4)
        self.kv = list(self.n_heads) if self.old else [1] * len(self.kv)
        if self.q_rank or self.may():
            self.number("attention.q_lora_rank", self.q_rank)
        self.number("attention.kv_lora_rank", self.rank)
        self.number("attention.key_length", self.dk if self.old else self.rank + self.n_rot)
        self.number("attention.value_length", self.dv if self.old else self.rank)
        if not self.old:
            self.number("attention.key_length_mla", self.dk)
            self.number("attention.value_length_mla", self.dv)

    def rope(self):
        self.number("rope.dimension_count", self.n_rot)
        self.number("rope.freq_base", 10 ** self.rng.uniform(0.7, 3), 0.8)
        self.scaling(self.rng.choice(self.scalings))

    def yarn_keys(self):
        self.number("rope.scaling.yarn_log_multiplier", self.rng.uniform(0.05, 0.15))

    def more_keys(self):
        if self.may(0.3):
            self.number("attention.temperature_scale", self.rng.uniform(0.1, 0.5))
            self.number("attention.temperature_length", self.rng.choice([2, 3, 5]))

    def attention(self, i):
        blk, width, n = f"blk.{i}.attn_", self.width, self.n_heads[i]
        if self.q_rank:
            self.projection(blk + "q_a", width, self.q_rank, bias=0)
            self.norm(blk + "q_a_norm", self.q_rank)
            self.projection(blk + "q_b", self.q_rank, n * self.dk, bias=0)
        else:
            self.projection(blk + "q", width, n * self.dk, bias=0)
        self.projection(blk + "kv_a_mqa", width, self.rank + self.n_rot, bias=0)
        self.norm(blk + "kv_a_norm", self.rank)
        if self.old:
            self.projection(blk + "kv_b", self.rank, n * (self.nope + self.dv), bias=0)
        else:
            self.tensor(blk + "k_b", self.nope, self.rank, 0.4, n)
            self.tensor(blk + "v_b", self.rank, self.dv, 0.4, n)
        self.projection(blk + "output", n * self.dv, width, bias=0)


class MinimaxM2(Family):
    qk_norm, mixed, gatings, gating_share = "whole", True, (2, 1), 1.0

    def expert_width_key(self):
        self.number("expert_feed_forward_length", self.expert_width, 0.5)

    def shape(self):
        super().shape()
        self.pairs = [p for p in self.pairs if not p[0].endswith(".feed_forward_length")]
        self.number("feed_forward_length", self.expert_width)

    def groups(self):
        self.selection_bias = self.may(0.8)


class Llama4(Family):
    n_layers_of, mixed, gating_share, freqs = (4, 5), True, 0.0, 0.6

    def expert_keys(self):
        rng = self.rng
        self.n_experts, self.n_used, self.n_dense = rng.choice([2, 4, 128]), rng.choice([1, 1, 2]), 0
        self.expert_width = self.shared_width = rng.choice([8, 16])
        self.selection_bias, self.step = False, rng.choice([0, 1, 2])
        self.number("expert_count", self.n_experts)
        self.number("expert_used_count", self.n_used)
        self.number("expert_feed_forward_length", self.expert_width)
        self.number("interleave_moe_layer_step", self.step)
        if self.may(0.25):
            self.number("attention.sliding_window", 0)

    def mixes(self, i):
        return self.step and (i + 1) % self.step == 0


class Olmo2(Family):
    norms, tied, qk_norm, n_layers_of = ("post_attention_norm", "post_ffw_norm"), "never", "whole", (2, 5)
    scalings, freqs, magnitude = ["", "yarn", "yarn"], 0.0, 0.0

    def more_keys(self):
        if self.may(0.7):
            self.slide()


class Granite(Family):
    bias = Family.bias | {"ffn": 0.2}

    def more_keys(self):
        rng = self.rng
        self.number("embedding_scale", rng.uniform(0.5, 4), 0.8)
        self.number("residual_scale", rng.choice([0.0, rng.uniform(0.2, 1.5)]), 0.8)
        self.number("attention.scale", rng.choice([0.0, rng.uniform(0.05, 1)]), 0.8)
        self.number("logit_scale", rng.uniform(0.5, 4))
        self.number("rope.scaling.finetuned", self.may(0.6), 0.5)


class Granitemoe(Granite):
    mixed, bias, separate_sizes = True, Family.bias, False

    def shape(self):
        self.shared = "expert_shared_feed_forward_length" if self.may() else ""
        super().shape()

    def expert_width_key(self):
        self.expert_width = self.ff[0]


class Smollm3(Family):
    n_layers_of = 4, 5


class CommandR(Family):
    norms, tied, eps = ("attn_norm",), "always", "attention.layer_norm_epsilon"

    def more_keys(self):
        self.number("logit_scale", self.rng.choice([0.0, self.rng.uniform(0.2, 2)]), 0.9)

    def attention(self, i):
        super().attention(i)
        if self.may(0.4):
            for c, n in (("q", self.n_heads[i]), ("k", self.kv[i])):
                values = [f32(self.rng.gauss(1, 0.3)) for _ in range(n * self.dk)]
                self.tensors.append(Tensor.of(f"blk.{i}.attn_{c}_norm.weight", values, [self.dk, n]))


class Cohere2(CommandR):
    n_layers_of, attention = (2, 5), Family.attention

    def more_keys(self):
        super().more_keys()
        self.slide()


class Starcoder2(Family):
    norm_bias, up, eps = True, "plain", "attention.layer_norm_epsilon"
    bias = {"q": 0.9, "k": 0.9, "v": 0.9, "output": 0.9, "ffn": 0.9}

    def more_keys(self):
        self.number("attention.sliding_window", self.rng.choice([2, 3, 5]), 0.4)


class Gemma4(Gemma2):
    tied, n_layers_of, scalings, qk_norm, gate_up = "", (3, 6), [""], "head", True

    def shape(self):
        self.mixed = self.may(0.4)
        super().shape()

    def sizes(self):
        rng, n = self.rng, self.n_layers
        self.slid = [self.may(0.6) for _ in range(n)]
        self.slid[:2] = rng.choice([[True, False], [False, True]])
        self.n_shared = rng.choice([0, 0, rng.randint(1, n - 2)])
        if self.n_shared and self.may():
            self.slid[n - self.n_shared - 2:n - self.n_shared] = [True, False]
        kv = [rng.choice([1, 2]) for _ in "fs"]
        self.size = [rng.choice([4, 8, 12, 16]) for _ in "fs"]
        self.kv = [kv[s] for s in self.slid]
        self.n_heads = [max(kv) * rng.choice([1, 2])] * n
        if min(kv) != max(kv) and self.n_heads[0] % 2:
            self.n_heads = [2 * max(kv)] * n
        self.ff = [self.ff[0] * (1 + (i >= n - self.n_shared)) for i in range(n)]
        for suffix, size in zip(("", "_swa"), self.size):
            self.number("attention.key_length" + suffix, size)
            self.number("attention.value_length" + suffix, size)
        self.flags("attention.sliding_window_pattern", self.slid)
        self.number("attention.sliding_window", rng.choice([1, 2, 3, 5]))
        if self.n_shared or self.may():
            self.number("attention.shared_kv_layers", self.n_shared)
        self.per_input = rng.choice([0, 4, 8, 32])
        if self.per_input or self.may():
            self.number("embedding_length_per_layer_input", self.per_input)

    def groups(self):
        self.selection_bias = False

    def rope(self):
        rng, rot = self.rng, list(self.size)
        for s, suffix in enumerate(("", "_swa")):
            if self.may():
                rot[s] = rng.randrange(2, self.size[s] + 1, 2) if self.may(0.3) else rot[s]
                self.number("rope.dimension_count" + suffix, rot[s])
        self.number("rope.freq_base", 10 ** rng.uniform(0.7, 3))
        self.number("rope.freq_base_swa", 10 ** rng.uniform(0.7, 3), 0.8)
        n = rot[0] // 2
        if self.may(0.8):
            kept = max(1, n // 4)
            factors = [f32(rng.uniform(0.5, 2)) for _ in range(kept)] + [f32(1e30)] * (n - kept)
            self.tensors.append(Tensor.of("rope_freqs.weight", factors))

    def more_keys(self):
        self.number("final_logit_softcapping", self.rng.uniform(2, 15), 0.5)

    def ends(self):
        super().ends()
        if self.per_input:
            n = self.n_layers * self.per_input
            self.tensor("per_layer_token_embd", n, self.n_vocab, 1, run=self.per_input)
            self.tensor("per_layer_model_proj", self.width, n, 1)
            self.norm("per_layer_proj_norm", self.per_input)

    def block(self, i):
        self.dk = self.dv = self.size[self.slid[i]]
        blk = f"blk.{i}."
        super().block(i)
        if self.per_input:
            self.tensor(blk + "inp_gate", self.width, self.per_input, 0.3)
            self.tensor(blk + "proj", self.per_input, self.width, 0.3)
            self.norm(blk + "post_norm")
        if self.may(0.7):
            self.vector(blk + "layer_output_scale.weight", 1, 1, 0.3)

    def attention(self, i):
        keep = len(self.tensors)
        super().attention(i)
        absent = []
        if i >= self.n_layers - self.n_shared and self.may():
            absent = ["k", "v"]
        elif self.may(0.2):
            absent = ["v"]
        drop = tuple(f"blk.{i}.attn_{c}{end}" for c in absent for end in (".", "_norm."))
        self.tensors[keep:] = [t for t in self.tensors[keep:] if not t.name.startswith(drop)]

    fused = 0.0
    bias = Family.bias | {"q": 0.0, "k": 0.0, "v": 0.0}

    def feed_forward(self, i):
        self.dense(i, self.ff[i])
        if self.mixed:
            blk = f"blk.{i}."
            for name in ("post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"):
                self.norm(blk + name)
            self.mixture(i)
            self.vector(blk + "ffn_gate_inp.scale", self.width, 1, 0.3)


class Hybrid(Family):
    """Delta nets and attention with gates."""
    norms, n_layers_of, nextn, qk_norm = ("attn_norm", "post_attention_norm"), (3, 5), True, "head"
    partial, fused, separate_sizes, gate_up = 0.8, 0.0, False, False
    shared_gate = True

    def more_keys(self):
        rng = self.rng
        self.state, self.n_k = rng.choice([4, 8, 16]), rng.choice([1, 2])
        self.n_v = self.n_k * rng.choice([1, 2, 3])
        for name, n in (("conv_kernel", 4), ("inner_size", self.n_v * self.state),
                        ("state_size", self.state), ("time_step_rank", self.n_v),
                        ("group_count", self.n_k)):
            self.number("ssm." + name, n)
        interval, n = rng.choice([2, 3, 4]), self.n_layers + self.n_next
        self.recurrent = [(i + 1) % interval != 0 for i in range(n)]
        if self.may(0.3):
            self.recurrent = [self.may() for _ in range(n)]
            self.flags("attention.recurrent_layers", self.recurrent)
        else:
            self.number("full_attention_interval", interval, 0.5 if interval == 4 else 1)
        if self.arch.startswith("qwen35") and self.may(0.7):
            Glm4.sections(self)

    def attention(self, i):
        blk, width, d = f"blk.{i}.", self.width, self.state
        if self.recurrent[i] and i < self.n_layers:
            key, value = self.n_k * d, self.n_v * d
            self.inputs(blk, key, value)
            small = self.rng.choice([1, 1, 0.01])     # q and k so small that the divisor's form shows
            kernel = [f32(self.rng.gauss(0, 0.5) * (small if c < 2 * key else 1))
                      for c in range(2 * key + value) for _ in range(4)]
            self.tensors.append(Tensor.of(blk + "ssm_conv1d.weight", kernel, [4, 2 * key + value]))
            self.vector(blk + "ssm_dt.bias", self.n_v, 0, 1)
            self.tensors.append(Tensor.of(blk + "ssm_a", [
                f32(-math.exp(self.rng.uniform(-3, 0.5))) for _ in range(self.n_v)]))
            self.norm(blk + "ssm_norm", d)
            self.projection(blk + "ssm_out", value, width, bias=0)
            return
        self.projection(blk + "attn_q", width, 2 * self.n_heads[i] * self.dk, bias=self.bias["q"])
        self.projection(blk + "attn_k", width, self.kv[i] * self.dk, bias=self.bias["k"])
        self.projection(blk + "attn_v", width, self.kv[i] * self.dv, bias=self.bias["v"])
        self.projection(blk + "attn_output", self.n_heads[i] * self.dv, width, bias=self.bias["output"])
        for c in "qk":
            self.norm(f"{blk}attn_{c}_norm", self.dk)

    def inputs(self, blk, key, value):
        self.projection(blk + "attn_qkv", self.width, 2 * key + value, bias=0)
        self.projection(blk + "attn_gate", self.width, value, bias=0)
        for name in ("ssm_beta", "ssm_alpha"):
            self.projection(blk + name, self.width, self.n_v, bias=0)

    def sizes(self):
        self.dk = self.dv = self.rng.choice([4, 8, 12, 16])
        self.number("attention.key_length", self.dk)
        self.number("attention.value_length", self.dv)


class Qwen35moe(Hybrid):
    mixed, shared = True, "expert_shared_feed_forward_length"


class Qwen3next(Qwen35moe):
    gate_up = True

    def inputs(self, blk, key, value):
        self.projection(blk + "attn_qkv", self.width, 2 * key + value, bias=0)
        self.projection(blk + "attn_gate", self.width, value, bias=0)
        self.projection(blk + "ssm_ba", self.width, 2 * self.n_v, bias=0)


class NemotronH(Family):
    norms, n_layers_of, up, separate_sizes = ("attn_norm",), (3, 6), "plain", False
    bias = Family.bias | {"ffn": 0.2}

    def sizes(self):
        rng, n = self.rng, self.n_layers
        self.kinds = [rng.choice("maf") for _ in range(n)]
        self.kinds[0], self.kinds[1:3] = "m", rng.sample("af", 2)
        self.kv = [self.kv[0] * (kind == "a") for kind in self.kinds]
        self.ff = [self.ff[0] * (kind == "f") for kind in self.kinds]
        self.dk = self.dv = rng.choice([4, 8, 12])
        self.number("attention.key_length", self.dk)
        self.number("attention.value_length", self.dv)

    def rope(self):
        self.number("rope.freq_base", 10000.0, 0.3)

    def more_keys(self):
        rng = self.rng
        self.n_groups = rng.choice([1, 2])
        self.n_ssm = self.n_groups * rng.choice([1, 2])
        self.inner, self.state = self.n_ssm * rng.choice([4, 8]), rng.choice([4, 8])
        for name, n in (("conv_kernel", 4), ("inner_size", self.inner), ("state_size", self.state),
                        ("time_step_rank", self.n_ssm), ("group_count", self.n_groups)):
            self.number("ssm." + name, n)

    def block(self, i):
        self.any_norm(f"blk.{i}.attn_norm")
        {"m": self.mamba, "a": self.attention, "f": self.feed_forward}[self.kinds[i]](i)

    def mamba(self, i):
        blk, rng, n = f"blk.{i}.ssm_", self.rng, self.n_ssm
        mixed = self.inner + 2 * self.n_groups * self.state
        self.projection(blk + "in", self.width, self.inner + mixed + n, bias=0)
        kernel = [f32(rng.gauss(0, 0.5)) for _ in range(4 * mixed)]
        self.tensors.append(Tensor.of(blk + "conv1d.weight", kernel, [4, mixed]))
        self.vector(blk + "conv1d.bias", mixed, 0, 0.3)
        slow = self.may(0.4)                          # steps below the authors' least one
        self.vector(blk + "dt.bias", n, -9 if slow else 0, 0.5)
        self.tensors.append(Tensor.of(blk + "a", [f32(-math.exp(rng.uniform(-2, 2))) for _ in range(n)],
                                      [1, n]))
        self.tensors.append(Tensor.of(blk + "d", [f32(rng.gauss(0, 0.001 if slow else 1))
                                                  for _ in range(n)], [1, n]))
        per = self.inner // self.n_groups
        norm = [f32(rng.gauss(1, 0.2)) for _ in range(self.inner)]
        self.tensors.append(Tensor.of(blk + "norm.weight", norm, [per, self.n_groups]))
        self.projection(blk + "out", self.inner, self.width, bias=0)


class NemotronHmoe(NemotronH):
    mixed, shared, scales_weights = True, "expert_shared_feed_forward_length", True
    weights_norm = True
    gatings, gating_share = (2, 1), 0.3

    def groups(self):
        self.selection_bias = self.may(0.8)

    def sizes(self):
        super().sizes()
        self.latent = self.rng.choice([0, 8, 16])

    def mixture(self, i):
        super().mixture(i, self.latent)
        if self.latent:
            self.tensor(f"blk.{i}.ffn_latent_down", self.width, self.latent, 0.3)
            self.tensor(f"blk.{i}.ffn_latent_up", self.latent, self.width, 0.3)


FAMILIES = {
    "llama": Generated, "qwen2": Qwen2, "qwen3": Qwen3, "mistral3": Mistral3, "qwen3moe": Qwen3moe,
    "gemma3": Gemma3, "gemma2": Gemma2, "gpt-oss": GptOss, "phi3": Phi3, "glm4moe": Glm4moe,
    "qwen35": Hybrid, "qwen35moe": Qwen35moe, "qwen3next": Qwen3next, "gemma4": Gemma4,
    "deepseek2": Deepseek2, "minimax-m2": MinimaxM2, "llama4": Llama4, "olmo2": Olmo2,
    "granite": Granite, "granitemoe": Granitemoe, "smollm3": Smollm3, "glm4": Glm4, "cohere2": Cohere2,
    "command-r": CommandR, "qwen2moe": Qwen2moe, "starcoder2": Starcoder2, "nemotron_h": NemotronH,
    "nemotron_h_moe": NemotronHmoe}


def generate(rng, arch):
    return type(arch, (FAMILIES[arch],), {"arch": arch})(rng)
