"""Random valid models of each architecture, with every optional key and tensor now and then."""
from family import Family
from formats import Tensor, f32
from generate import Generated
from gguf_make import U32
from hybrids import Hybrid, NemotronH, NemotronHmoe, Qwen3next, Qwen35moe

SHARES = "expert_weights_norm", "expert_weights_scale"


class Qwen2(Family):
    bias = {"q": 0.8, "k": 0.8, "v": 0.8, "output": 0.2, "ffn": 0.0}

    def ends(self):
        super().ends()
        if self.tensors[-1].name == "output.weight" and self.alike("output.bias", 0.3):
            self.vector("output.bias", self.n_vocab, 0, 1)


class Qwen3(Family):
    qk_norm = "head"


class Qwen3moe(Qwen3):
    mixed, tied = True, "never"


class Qwen2moe(Family):
    bias, tied, mixed = Qwen2.bias | {c: 1.0 for c in "qkv"}, "never", True
    shared, shared_gate = "expert_shared_feed_forward_length", True


class Mistral3(Family):
    bias, scalings = Family.bias | {"ffn": 0.2}, ["", "yarn", "yarn"]
    needed = "rope.scaling.yarn_log_multiplier", "rope.scaling.original_context_length"

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
    bias = {"q": 1.0, "k": 1.0, "v": 1.0, "output": 1.0, "ffn": 0.0}
    router_bias, expert_biases, gatings, gating_share = 1.0, 1.0, (3, 1, 2), 0.3
    scalings, needed = ["yarn", "yarn", "yarn", ""], ("rope.scaling.original_context_length",)

    def more_keys(self):
        self.slide()


class Phi3(Family):
    fused, up, scalings = 0.8, "fused", ["", "longrope", "longrope", "yarn"]

    def more_keys(self):
        self.number("attention.sliding_window", self.rng.choice([0, 2, 3, 5]), 0.6)


class Glm4(Family):
    norms = "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"
    tied, up, nextn, bias, partial = "never", "fused", True, Qwen2.bias, 1.0

    def more_keys(self):
        if self.may(0.4):
            self.sections()


class Glm4moe(Family):
    norms, nextn, mixed, dense_first = ("attn_norm", "post_attention_norm"), True, True, True
    bias, qk_norm, qk_share, shared = Qwen2.bias, "head", 0.7, "expert_shared_count"
    gatings, gating_share, scales_weights, weights_norm = (2, 1), 0.7, True, True
    tied, always_biased, partial, needed = "never", True, 1.0, SHARES
    more_keys = Glm4.more_keys

    def groups(self):
        self.selection_bias = self.alike("exp_probs_b", 0.8)
        self.always_biased |= (self.arch + ".expert_gating_func", U32, 2, None) in self.pairs
        if self.n_experts % 2 == 0 and self.n_experts > 2 and self.may(0.3):
            n = self.n_experts // 2
            self.number("expert_group_count", n)
            self.number("expert_group_used_count", max(1, min(n, (self.n_used + 1) // 2)))


class Deepseek2(Glm4moe):
    norms, qk_norm, n_layers_of, gate_up = ("attn_norm", "ffn_norm"), "", (2, 3), True
    gatings, gating_share, partial, freqs = (2, 1), 0.7, 1.0, 0.0
    scalings, separate_sizes = ["", "yarn", "yarn", "linear"], False
    needed = *SHARES, *Mistral3.needed
    old_share, q_ranks, ranks, n_rots = 0.4, (0, 8, 12, 32), (8, 12, 32), (2, 4, 8)
    tied, always_biased = "", False

    def sizes(self):
        rng = self.rng
        self.n_rot, self.dv = rng.choice(self.n_rots), rng.choice([4, 6, 8])
        self.nope, self.rank = rng.choice([2, 4, 8, 32]), rng.choice(self.ranks)
        self.dk, self.q_rank = self.nope + self.n_rot, rng.choice(self.q_ranks)
        self.old = self.may(self.old_share)
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
    tied, always_biased, partial = "never", True, 1.0
    qk_norm, mixed, gatings, gating_share = "whole", True, (2, 1), 1.0

    def expert_width_key(self):
        self.number("expert_feed_forward_length", self.expert_width, 0.5)

    def shape(self):
        super().shape()
        self.pairs = [p for p in self.pairs if not p[0].endswith(".feed_forward_length")]
        self.number("feed_forward_length", self.expert_width)

    def groups(self):
        pass

    selection_bias = False


class Llama4(Family):
    tied = "never"
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
    needed = GptOss.needed

    def more_keys(self):
        if self.may(0.7):
            self.slide()


class Granite(Family):
    bias = Family.bias | {"ffn": 0.2}
    needed = "embedding_scale", "residual_scale", "attention.scale", "logit_scale"

    def more_keys(self):
        rng = self.rng
        self.number("embedding_scale", rng.uniform(0.5, 4), 0.8)
        self.number("residual_scale", rng.choice([0.0, rng.uniform(0.2, 1.5)]), 0.8)
        self.number("attention.scale", rng.choice([0.0, rng.uniform(0.05, 1)]), 0.8)
        self.number("logit_scale", rng.uniform(0.5, 4))
        self.number("rope.scaling.finetuned", self.has_factors() or self.may(0.6), 0.5)


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
        self.number("logit_scale", self.rng.choice([0.0, self.rng.uniform(0.2, 2)]))

    def attention(self, i):
        super().attention(i)
        if self.alike("qk_norm", 0.4):
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
    bias = dict.fromkeys(("q", "k", "v", "output", "ffn"), 1.0)

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
        kept = max(1, n // 4)
        factors = [f32(rng.uniform(0.5, 2)) for _ in range(kept)] + [f32(1e30)] * (n - kept)
        self.tensors.append(Tensor.of("rope_freqs.weight", factors))

    def more_keys(self):
        self.number("final_logit_softcapping", self.rng.choice([0.0, self.rng.uniform(2, 15)]))

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
        self.vector(blk + "layer_output_scale.weight", 1, 1, 0.3)

    def attention(self, i):
        keep = len(self.tensors)
        super().attention(i)
        absent = []
        if i >= self.n_layers - self.n_shared and not self.may(self.spare):
            absent = ["k", "v"]
        elif self.values_are_keys(i):
            absent = ["v"]
        drop = tuple(f"blk.{i}.attn_{c}{end}" for c in absent for end in (".", "_norm."))
        self.tensors[keep:] = [t for t in self.tensors[keep:] if not t.name.startswith(drop)]

    def values_are_keys(self, i):
        return not self.slid[i] and not self.alike("attn_v", 0.6)

    fused = 0.0
    bias = Family.bias | {"q": 0.0, "k": 0.0, "v": 0.0}

    def feed_forward(self, i):
        self.dense(i, self.ff[i])
        if self.mixed:
            blk = f"blk.{i}."
            for name in ("post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"):
                self.norm(blk + name)
            self.mixture(i)
            if blk + "ffn_down_exps.scale" not in {t.name for t in self.tensors}:
                self.vector(blk + "ffn_down_exps.scale", self.n_experts, 1, 0.3)
            self.vector(blk + "ffn_gate_inp.scale", self.width, 1, 0.3)


FAMILIES = {
    "llama": Generated, "qwen2": Qwen2, "qwen3": Qwen3, "mistral3": Mistral3, "qwen3moe": Qwen3moe,
    "gemma3": Gemma3, "gemma2": Gemma2, "gpt-oss": GptOss, "phi3": Phi3, "glm4moe": Glm4moe,
    "qwen35": Hybrid, "qwen35moe": Qwen35moe, "qwen3next": Qwen3next, "gemma4": Gemma4,
    "deepseek2": Deepseek2, "minimax-m2": MinimaxM2, "llama4": Llama4, "olmo2": Olmo2,
    "granite": Granite, "granitemoe": Granitemoe, "smollm3": Smollm3, "glm4": Glm4, "cohere2": Cohere2,
    "command-r": CommandR, "qwen2moe": Qwen2moe, "starcoder2": Starcoder2, "nemotron_h": NemotronH,
    "nemotron_h_moe": NemotronHmoe}

