"""Random models of which some layers have a state."""
import math

from family import Family
from formats import Tensor, f32
from gguf_make import ARRAY, U32


class Hybrid(Family):
    """Delta nets and attention with gates."""
    norms, n_layers_of, nextn, qk_norm = ("attn_norm", "post_attention_norm"), (3, 5), True, "head"
    partial, fused, separate_sizes, gate_up, freqs = 1.0, 0.0, False, False, 0.0
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
            self.sections()

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
    mixed, tied, shared = True, "never", "expert_shared_feed_forward_length"


class Qwen3next(Qwen35moe):
    gate_up = True

    def inputs(self, blk, key, value):
        if self.may(0.4):
            self.projection(blk + "ssm_in", self.width, 2 * (key + value), bias=0)
        else:
            self.projection(blk + "attn_qkv", self.width, 2 * key + value, bias=0)
            self.projection(blk + "attn_gate", self.width, value, bias=0)
        self.projection(blk + "ssm_ba", self.width, 2 * self.n_v, bias=0)


class NemotronH(Family):
    norms, n_layers_of, up, separate_sizes = ("attn_norm",), (3, 6), "plain", False
    bias = Family.bias | {"ffn": 0.2}
    ssm_norm = 1.0

    def shape(self):
        if self.arch.startswith("nemotron") and self.may(0.4):
            self.eps = "attention.layer_norm_epsilon"
        super().shape()

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
        if self.alike("ssm_norm", self.ssm_norm):
            self.tensors.append(Tensor.of(blk + "norm.weight", norm, [per, self.n_groups]))
        self.projection(blk + "out", self.inner, self.width, bias=0)


class NemotronHmoe(NemotronH):
    mixed, shared, scales_weights = True, "expert_shared_feed_forward_length", True
    weights_norm, needed = True, ("expert_weights_norm", "expert_weights_scale")
    gatings, gating_share = (2, 1), 0.3
    tied, always_biased = "never", True

    def sizes(self):
        super().sizes()
        self.latent = self.rng.choice([0, 8, 16])

    def expert_keys(self):
        """Each layer its own width and number of experts now and then."""
        super().expert_keys()
        self.widths_of = [n and self.expert_width for n in self.ff]
        if self.may():
            self.widths_of = [n and self.rng.choice([8, 16, 24]) for n in self.ff]
            used = [n and self.rng.randint(1, self.n_experts - 1) for n in self.ff]
            self.arrays = {"expert_feed_forward_length": self.widths_of, "expert_used_count": used}
            for name, values in self.arrays.items():
                self.pairs = [p for p in self.pairs if p[0] != f"{self.arch}.{name}"]
                self.key(f"{self.arch}.{name}", ARRAY, values, U32)

    def feed_forward(self, i):
        self.expert_width = self.widths_of[i]
        super().feed_forward(i)

    def mixture(self, i):
        super().mixture(i, self.latent)
        if self.latent:
            self.tensor(f"blk.{i}.ffn_latent_down", self.width, self.latent, 0.3)
            self.tensor(f"blk.{i}.ffn_latent_up", self.latent, self.width, 0.3)
