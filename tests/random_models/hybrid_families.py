"""Random models of the architectures in authors_hybrid.py."""
import math

from families import SHARES, Deepseek2, Granite
from family import Family
from formats import Tensor, f32
from gguf_make import ARRAY, F32
from hybrids import NemotronH


class Lfm2(Family):
    """Short convolutions and attention."""
    qk_norm, tied, n_layers_of, scalings, separate_sizes = "head", "always", (2, 3), ["", "linear"], False

    def sizes(self):
        super().sizes()
        self.kv = [n * (i == 1 or self.may()) for i, n in enumerate(self.kv)]

    def more_keys(self):
        self.taps = self.rng.choice([1, 2, 3, 4])
        self.number("shortconv.l_cache", self.taps)
        if self.may(0.4):
            self.slide(period=False)

    def ends(self):
        super().ends()
        self.tensors[-1].name = "token_embd_norm.weight"

    def attention(self, i):
        if self.kv[i]:
            super().attention(i)
            return
        blk, width = f"blk.{i}.shortconv.", self.width
        self.projection(blk + "in_proj", width, 3 * width)
        kernel = [f32(self.rng.gauss(0, 0.7)) for _ in range(self.taps * width)]
        self.tensors.append(Tensor.of(blk + "conv.weight", kernel, [self.taps, width]))
        self.projection(blk + "out_proj", width, width)


class Lfm2moe(Lfm2):
    mixed = dense_first = True
    gatings, gating_share, n_layers_of, always_biased = (2, 1), 0.3, (2, 4), True

    def groups(self):
        self.selection_bias = True
        if self.may():   # shares so small that the divisor's form shows
            self.router = 16.0


class GraniteHybrid(NemotronH):
    """Mamba-2 and attention, each followed by a feed-forward."""
    norms, up, n_layers_of = ("attn_norm", "ffn_norm"), "gated", (2, 3)
    scalings = ["", "linear"]
    rope, block, needed = Family.rope, Family.block, (*Granite.needed, "rope.scaling.finetuned")

    def shape(self):
        self.mixed = self.may(0.7)
        self.shared = "expert_shared_feed_forward_length" if self.may() else ""
        super().shape()

    def sizes(self):
        Family.sizes(self)
        self.kv = [n * (i == 1 or self.may(0.3)) for i, n in enumerate(self.kv)]

    def expert_width_key(self):
        self.number("expert_feed_forward_length", self.expert_width, 0.5)

    def more_keys(self):
        super().more_keys()
        Granite.more_keys(self)
        if self.may(0.2):  # Bamba's have none of them
            self.pairs = [p for p in self.pairs if not p[0].endswith(Granite.needed)]

    def attention(self, i):
        (super().attention if self.kv[i] else self.mamba)(i)


class FalconH1(NemotronH):
    """Attention and Mamba-2 side by side."""
    norms, up, n_layers_of, ssm_norm, freqs = ("attn_norm", "ffn_norm"), "gated", (2, 3), 0.5, 0.0
    scalings = ["", "linear"]
    rope, sizes = Family.rope, Family.sizes

    def block(self, i):
        Family.block(self, i)
        self.mamba(i)
        for t in self.tensors:
            if t.name == f"blk.{i}.ffn_norm.weight" and self.may(0.8):
                t.name = f"blk.{i}.ffn_norm"


class KimiLinear(Deepseek2):
    """Delta nets whose channels decay apart, and latent attention without positions."""
    n_layers_of, gate_up, weights_norm, nextn = (2, 3), True, False, False
    tied, always_biased = "never", True
    scalings, needed, sign = ["", "linear"], ("expert_weights_scale",), -1

    def sizes(self):
        super().sizes()
        self.n_heads = [min(self.n_heads[0], 3)] * self.n_layers
        self.kv = [(self.n_heads[0] if self.old else 1) * (i == 1) for i in range(self.n_layers)]

    def more_keys(self):
        self.state, self.taps = self.rng.choice([4, 8, 12]), self.rng.choice([2, 4])
        self.number("kda.head_dim", self.state)
        self.number("ssm.conv_kernel", self.taps)
        self.number("expert_weights_norm", True, 0.3)

    def gates(self, name, n):
        self.projection(name + "_a", self.width, self.state, bias=0)
        self.projection(name + "_b", self.state, n, bias=0)

    def attention(self, i):
        if self.kv[i]:
            super().attention(i)
            return
        rng, blk, width, d, n = self.rng, f"blk.{i}.", self.width, self.state, self.n_heads[i]
        small = rng.choice([1, 1, 0.01])          # q and k so small that the divisor's form shows
        form = rng.choice([[], [1], [1]])         # axes of 1, as converters write them
        for c in "qkv":
            self.projection(f"{blk}attn_{c}", width, n * d, bias=0)
            kernel = [f32(rng.gauss(0, 0.5) * (1 if c == "v" else small))
                      for _ in range(n * d * self.taps)]
            self.tensors.append(Tensor.of(f"{blk}ssm_conv1d_{c}.weight", kernel,
                                          [self.taps, *form, n * d, *form]))
        for name in ("ssm_f", "ssm_g"):
            self.gates(blk + name, n * d)
        self.projection(blk + "ssm_beta", width, n, bias=0)
        self.vector(blk + "ssm_dt.bias", n * d, 0, 1)
        rates = [f32(self.sign * math.exp(rng.uniform(-3, 0.5))) for _ in range(n)]
        self.tensors.append(Tensor.of(blk + "ssm_a", rates, [1, n, *form, *form]))
        self.norm(blk + "ssm_norm", d)
        self.projection(blk + "attn_output", n * d, width, bias=0)


class BailingMoe3(KimiLinear):
    """Decays with a least one, gates of heads, experts in groups within limits."""
    weights_norm, sign, gatings, gating_share = True, 1, (2,), 0.7
    needed = *SHARES, "kda.gate_lower_bound", "expert_group_count"

    def more_keys(self):
        super().more_keys()
        self.pairs = [p for p in self.pairs if not p[0].endswith("expert_weights_norm")]
        self.number("expert_weights_norm", self.may(0.7))
        self.number("kda.gate_lower_bound", -self.rng.uniform(0.5, 6))
        self.number("kda.safe_gate", True, 0.5)
        if self.may(0.3):
            self.sections()
        for name in ("exp", "shexp"):
            limits = [self.rng.choice([0.0, f32(self.rng.uniform(0.02, 0.3))]) for _ in range(self.n_layers)]
            if self.may(0.8):
                self.key(f"bailingmoe3.swiglu_clamp_{name}", ARRAY, limits, F32)

    def groups(self):
        super().groups()
        if not any(p[0].endswith("expert_group_count") for p in self.pairs):
            self.number("expert_group_count", 1)

    def gates(self, name, n):
        self.projection(name + "_a", self.width, n, bias=0)

    def attention(self, i):
        super().attention(i)
        if self.kv[i]:
            self.projection(f"blk.{i}.attn_gate", self.width, self.n_heads[i], bias=0)


class KimiK3(KimiLinear):
    """Mixtures of earlier residuals, SiTU, experts on narrower rows."""
    weights_norm, n_layers_of, gate_up, eps_powers = True, (2, 5), False, (-3, -2)
    narrow_of = 0, 8, 8, 16
    needed = (*SHARES, "attn_res.block_size", "activation.situ_beta", "activation.situ_linear_beta",
              "expert_latent_length")

    def more_keys(self):
        super().more_keys()
        rng = self.rng
        self.pairs = [p for p in self.pairs if not p[0].endswith("expert_weights_norm")]
        self.number("expert_weights_norm", self.may(0.7))
        if self.may(0.7):
            self.number("kda.gate_lower_bound", -rng.uniform(0.5, 6))
        self.every = rng.choice([0, 1, 2, 2, 3])
        self.number("attn_res.block_size", self.every)
        self.number("activation.situ_beta", rng.uniform(0.5, 5))
        self.number("activation.situ_linear_beta", rng.choice([-1.0, 0.0, rng.uniform(0.5, 5), rng.uniform(0.5, 5)]))
        self.narrow = rng.choice(self.narrow_of)
        self.number("expert_latent_length", self.narrow)

    def gates(self, name, n):
        if name.endswith("ssm_g"):
            self.projection(name, self.width, n, bias=0)
        else:
            super().gates(name, n)

    def ends(self):
        super().ends()
        if self.every:
            self.vector("output_res_score.weight", self.width, 0, 0.2)

    def attention(self, i):
        super().attention(i)
        if self.kv[i] and self.alike("attn_gate", 0.8):
            self.projection(f"blk.{i}.attn_gate", self.width, self.n_heads[i] * self.dv, bias=0)
        for name in ("attn", "ffn") if self.every else ():
            self.vector(f"blk.{i}.{name}_res_score.weight", self.width, 0, 0.2)

    def mixture(self, i):
        super().mixture(i, self.narrow)
        if not self.narrow:
            return
        blk = f"blk.{i}.ffn_routed_"
        self.projection(blk + "down", self.width, self.narrow, bias=0)
        if self.alike("ffn_routed_norm", 0.8):
            self.norm(blk + "norm", self.narrow)
        self.projection(blk + "up", self.narrow, self.width, bias=0)


FAMILIES = {"lfm2": Lfm2, "lfm2moe": Lfm2moe, "granitehybrid": GraniteHybrid, "falcon-h1": FalconH1,
            "kimi-linear": KimiLinear, "bailingmoe3": BailingMoe3,
            "kimi-k3": KimiK3}
