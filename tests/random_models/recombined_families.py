"""Random models of the architectures in recombined.py."""
from families import SHARES, CommandR, Deepseek2, GptOss, Phi3, Qwen2, Qwen2moe, Starcoder2
from family import Family


class Qwen2vl(Qwen2):
    bias = Qwen2moe.bias

    def more_keys(self):
        if self.may(0.8):
            self.sections()


class Vl(Family):
    qk_norm = "head"

    def more_keys(self):
        self.sections()
        self.number("n_deepstack_layers", 2, 0.5)


class VlMoe(Vl):
    mixed = True


class Mistral4(Deepseek2):
    gatings, gating_share, expert_counts = (1, 2), 0.3, (6, 9)

    def groups(self):
        self.selection_bias = self.may(0.8)
        if self.may(0.9):
            self.number("expert_group_count", 3)
            self.number("expert_group_used_count", -(-3 * self.n_used // self.n_experts))


class SeedOss(Qwen2):
    bias = Qwen2moe.bias
    norms = "attn_norm", "post_attention_norm"


class Ernie(Family):
    scalings, freqs = ["", "linear"], 0.0


class Mixture(Family):
    """What the mixtures below have: a first dense layer, a shared expert, a bias of the selection."""
    mixed = dense_first = True
    shared, freqs, gating_share = "expert_shared_count", 0.0, 0.0

    def groups(self):
        self.selection_bias = self.alike("exp_probs_b", 0.6)


class ErnieMoe(Mixture):
    always_biased = True
    scalings = Ernie.scalings

    def more_keys(self):
        self.number("interleave_moe_layer_step", 1, 0.5)


class Hunyuan(Family):
    qk_norm, scalings = "head", ["", "none"]

    def more_keys(self):
        self.number("rope.scaling.alpha", self.rng.uniform(0.5, 50), 0.3)


class HunyuanMoe(Mixture):
    qk_norm, scalings, dense_first, separate_sizes = "head", ["", "none"], False, False

    def expert_width_key(self):
        self.expert_width = self.ff[0]
        self.number("expert_feed_forward_length", self.expert_width, 0.5)


class Sigmoid(Mixture):
    """Experts by sigmoid, whose shares keys normalise and scale."""
    always_biased = True
    qk_norm, gatings, gating_share, scales_weights, weights_norm = "head", (2, 1), 0.7, True, True
    scalings, needed = ["", "linear", "yarn"], SHARES


class Dots1(Sigmoid):
    tied = "never"


class HyV3(Sigmoid):
    nextn = True

    def mixture(self, i, width=0):
        super().mixture(i, width)
        for t in self.tensors:
            if self.may() and t.name == f"blk.{i}.exp_probs_b.bias":
                t.name = f"blk.{i}.exp_probs_b"


class Exaone4(Family):
    norms, qk_norm = ("post_attention_norm", "post_ffw_norm"), "head"
    n_layers_of, nextn, scalings, freqs = (2, 5), True, ["", "linear"], 0.6

    def more_keys(self):
        if self.may(0.7):
            self.slide()


class ExaoneMoe(HyV3):
    n_layers_of, tied = (2, 5), "never"

    def more_keys(self):
        self.slide()


class Bailingmoe2(HyV3):
    fused, tied, selection_bias, partial = 0.8, "never", False, 1.0

    def groups(self):
        if self.n_experts % 2 == 0 and self.n_experts > 2 and self.may():
            n = self.n_experts // 2
            self.number("expert_group_count", n)
            self.number("expert_group_used_count", max(1, min(n, (self.n_used + 1) // 2)))


class Arcee(Family):
    up, scalings, needed = "plain", ["", "yarn", "yarn"], GptOss.needed

    def yarn_keys(self):
        self.number("rope.scaling.yarn_attn_factor", self.rng.uniform(0.7, 1.4), 0.5)


class Olmoe(HunyuanMoe):
    qk_norm, scalings, tied, shared = "whole", ["", "linear"], "never", ""


class Mellum(Arcee):
    qk_norm, mixed, up, freqs, gating_share, tied = "head", True, "gated", 0.0, 0.0, "never"
    needed = *GptOss.needed, "attention.sliding_window_pattern"

    def more_keys(self):
        if self.may(0.8):
            self.slide()
        self.number("rope.freq_base_swa", 10 ** self.rng.uniform(0.7, 2), 0.6)


class Cohere2moe(Sigmoid):
    norms, tied, eps, qk_norm, nextn = ("attn_norm",), "always", "attention.layer_norm_epsilon", "", True
    n_layers_of, scalings, always_biased = (2, 5), [""], False
    needed = "expert_weights_norm", "attention.sliding_window_pattern"

    def shape(self):
        if self.may(0.2):
            self.eps = "attention.layer_norm_rms_epsilon"
        super().shape()

    def groups(self):
        self.selection_bias = False

    def more_keys(self):
        CommandR.more_keys(self)
        self.slide()


class Phi2(Starcoder2):
    norms, tied, partial = ("attn_norm",), "never", 1.0

    def more_keys(self):
        pass

    def ends(self):
        super().ends()
        self.vector("output.bias", self.n_vocab, 0, 1)


class Stablelm(CommandR):
    norm_bias, tied, partial = True, "never", 1.0
    bias = Qwen2.bias

    def shape(self):
        self.norms = ("attn_norm",) if self.may(0.4) else ("attn_norm", "ffn_norm")
        super().shape()

    def more_keys(self):
        self.number("use_parallel_residual", len(self.norms) == 1)


class Gemma(Family):
    tied, scalings, freqs, magnitude = "always", [""], 0.0, 0.0


class Exaone(Family):
    scalings, freqs = ["", "linear"], 0.6


class Internlm2(Family):
    tied, fused = "never", 0.5


class Deepseek(Mixture):
    gatings, gating_share, scales_weights, weights_norm = (1, 2), 0.2, True, True

    def groups(self):
        self.selection_bias = False


class Minicpm(Family):
    """Narrow ones would multiply their logits by much, without the key."""
    widths, scalings = (64, 96), ["", "longrope", "longrope", "linear"]
    bias = Family.bias | {"ffn": 0.2}

    def more_keys(self):
        self.number("embedding_scale", self.rng.uniform(0.5, 20), 0.9)
        self.number("residual_scale", self.rng.choice([0.0, self.rng.uniform(0.2, 1.5)]), 0.9)
        self.number("logit_scale", self.rng.uniform(0.5, 4), 0.9)


class Deci(Family):
    """Some layers without attention, with a matrix in its place, without a feed-forward."""
    n_layers_of, scalings, freqs, bias = (3, 5), [""], 0.5, Family.bias | {"ffn": 0.2}

    def sizes(self):
        super().sizes()
        kept = self.rng.randrange(self.n_layers)
        for i in set(range(self.n_layers)) - {kept}:
            self.kv[i] *= self.may(0.7)
            self.n_heads[i] *= self.kv[i] > 0 or self.may()
            self.ff[i] *= self.may(0.8)

    def block(self, i):
        if self.n_heads[i]:
            self.any_norm(f"blk.{i}.attn_norm")
            self.attention(i)
        if self.ff[i]:
            self.any_norm(f"blk.{i}.ffn_norm")
            self.feed_forward(i)

    def attention(self, i):
        if self.kv[i]:
            super().attention(i)
        else:
            self.projection(f"blk.{i}.attn_output", self.width, self.width, bias=self.bias["output"])


class Phimoe(Family):
    """Many experts, so that some are near the best ones."""
    norm_bias, mixed, tied, expert_counts = True, True, "never", (3, 12, 24)
    gating_share, freqs, scalings = 0.2, 0.0, ["", "longrope", "longrope"]
    bias = dict.fromkeys(("q", "k", "v", "output"), 1.0) | {"ffn": 0.0}
    more_keys, separate_sizes = Phi3.more_keys, False

    def ends(self):
        super().ends()
        self.vector("output.bias", self.n_vocab, 0, 1)

    def expert_width_key(self):
        self.expert_width = self.ff[0]

    def groups(self):
        self.selection_bias = False


FAMILIES = {
    "qwen2vl": Qwen2vl, "qwen3vl": Vl, "qwen3vlmoe": VlMoe, "mistral4": Mistral4,
    "seed_oss": SeedOss, "ernie4_5": Ernie, "ernie4_5-moe": ErnieMoe,
    "hunyuan-dense": Hunyuan, "hunyuan-moe": HunyuanMoe, "hy_v3": HyV3,
    "exaone4": Exaone4, "exaone-moe": ExaoneMoe, "dots1": Dots1,
    "bailingmoe2": Bailingmoe2, "arcee": Arcee, "olmoe": Olmoe,
    "mellum": Mellum, "cohere2moe": Cohere2moe, "phi2": Phi2,
    "stablelm": Stablelm, "gemma": Gemma, "exaone": Exaone, "internlm2": Internlm2,
    "deepseek": Deepseek, "minicpm": Minicpm, "deci": Deci, "phimoe": Phimoe}
