"""What architectures do in their own way that have gates of attention's result, limits of their
activation or values of another size than keys; and those whose activation only they have."""
import math

from authors import Granite, Qwen3
from forward import Model, gelu, rms, sigmoid, silu, softplus
from recombined import FullLayersStill, HyV3, OwnMagnitude


class HeadGate(Model):
    """A gate for each head's result, or for each element of it."""
    gate = staticmethod(sigmoid)

    def attention(self, i, h):
        name, out = f"blk.{i}.attn_gate", self.attend(i, *self.heads(i, h))
        if name + ".weight" in self.values:
            gates = self.product(name, h)
            each = len(out[0]) // len(gates[0])
            out = [[x * self.gate(g[j // each]) for j, x in enumerate(row)] for row, g in zip(out, gates)]
        return self.product(f"blk.{i}.attn_output", out)

    mix = attention


class OwnBase:
    """Layers that slide have a base and rotated elements of their own, and no scaling."""
    sliding_base = None

    def rope(self, i):
        if not self.sliding_window() or not self.slides(i):
            return self.full_rope()
        n = self.k.get("rope.dimension_count_swa") or self.k.get("rope.dimension_count", self.head_size(i))
        base = self.k.get("rope.freq_base_swa") or self.sliding_base
        return self.make_rope(n, base, "none", [1.0] * (n // 2), 1.0)

    def full_rope(self):
        return self.make_rope()


class Afmoe(HeadGate, FullLayersStill, HyV3):
    differs = True
    post_attn, post_ffn = "post_attention_norm", "post_ffw_norm"

    def embedding_scale(self):
        return math.sqrt(self.width)

    def rope(self, i):
        if self.compat:
            return self.make_rope() if i % 4 != 3 else None
        return super().rope(i)


class FirstFull:
    """The first of a period's layers sees all."""

    def slides(self, i):
        pattern = self.k.get("attention.sliding_window_pattern", 4)
        if isinstance(pattern, list):
            return pattern[i]
        return pattern == 0 or i % pattern != 0


class Laguna(HeadGate, FirstFull, OwnBase, OwnMagnitude, HyV3):
    gate = staticmethod(softplus)


class Mimo2(OwnBase, Model):
    halves, window_by_authors, gating, width_by_tensors, sliding_base = True, False, 2, True, 10000.0

    def attend(self, *more):
        """Of values times a scale; a cache holds them without it."""
        by = self.k.get("attention.value_scale") or 1.0
        return [[by * x for x in row] for row in super().attend(*more)]


class LimitedAfter:
    """SwiGLU within limits: of experts, and of all else."""
    limit = 0.0

    def dense(self, i, *more):
        self.limit = self.per_layer("swiglu_clamp_shexp", i, 0.0)
        return super().dense(i, *more)

    def one_expert(self, i, *more):
        self.limit = self.per_layer("swiglu_clamp_exp", i, 0.0)
        return super().one_expert(i, *more)

    def gated(self, gate, up):
        c = self.limit or math.inf
        return [min(silu(a), c) * max(-c, min(u, c)) for a, u in zip(gate, up)]


class Step35(LimitedAfter, HeadGate, OwnBase, HyV3):
    sliding_base = 10000.0

    def full_rope(self):
        n = self.k.get("rope.dimension_count", self.head_size(0)) // 2
        factors = self.values.get("rope_freqs.weight")
        return self.make_rope(n, factors=factors and factors[:n // 2])


class Smallthinker(FirstFull, Model):
    differs, halves, window_by_authors = True, True, False

    @staticmethod
    def activation(z):
        return max(z, 0.0)

    def sliding_window(self):
        w = self.k.get("attention.sliding_window", 0)
        return 4096 if w and self.compat else w

    def rope(self, i):
        if not self.sliding_window():
            return self.make_rope()
        turns = i % 4 != 0 or self.n_layers == 4 if self.compat else self.slides(i)
        return self.make_rope() if turns else None

    def layer(self, i, x):
        self.router = self.product(f"blk.{i}.ffn_gate_inp", x)
        return super().layer(i, x)

    def mixture(self, i, h):
        return self.experts(i, h, self.router)


class Apertus(Model):
    halves, qk_norm, up, window_by_authors = True, "head", "plain", False

    def dense(self, i, *more):
        self.numbers = [self.per_layer("xielu." + name, i) for name in ("alpha_n", "alpha_p", "beta", "eps")]
        return super().dense(i, *more)

    def activation(self, u):
        alpha_n, alpha_p, beta, eps = self.numbers
        if u > 0:
            return softplus(alpha_p) * u * u + beta * u
        return (beta + softplus(alpha_n)) * (math.expm1(min(u, eps)) - u) + beta * u


class MuseGlimmer(HeadGate, OwnBase, Model):
    """Layers that see all keys have no positions; norms after branches have an eps of their own."""
    window_by_authors, qk_norm, period = False, "head", 4
    post_attn, post_ffn = "post_attention_norm", "post_ffw_norm"

    def full_rope(self):
        return None

    def norm(self, name, x):
        if name.endswith((self.post_attn, self.post_ffn)):
            return [rms(row, 1e-8, self.values[name + ".weight"]) for row in x]
        return super().norm(name, x)

    def embed(self, tokens):
        return [rms(row, self.eps) for row in super().embed(tokens)]

    def head_scale(self):
        return self.k["logit_scale"]


class Spark25(HeadGate, OwnBase, Model):
    differs, halves, window_by_authors = True, True, False

    def activation(self, z):
        return gelu(z) if self.compat else z * math.erfc(-z / math.sqrt(2)) / 2


class Maple(OwnBase, Qwen3):
    limit = 0.0

    def full_rope(self):
        return None

    def one_expert(self, i, *more):
        self.limit = self.per_layer("swiglu_clamp_exp", i)
        return super().one_expert(i, *more)

    def gated(self, gate, up):
        c = self.limit or math.inf
        return [silu(min(a, c)) * max(-c, min(u, c)) for a, u in zip(gate, up)]


class GraniteSwa(Granite):
    """A pattern says which layers rotate; the shared expert's up has its gate in its first half."""

    def rope(self, i):
        return self.make_rope() if self.per_layer("attention.rope_pattern", i, True) else None

    def dense(self, i, h, suffix=""):
        if not suffix:
            return super().dense(i, h)
        up = self.product(f"blk.{i}.ffn_up{suffix}", h)
        n = len(up[0]) // 2
        return self.product(f"blk.{i}.ffn_down{suffix}", [self.gated(row[:n], row[n:]) for row in up])


ARCHITECTURES = {"afmoe": Afmoe, "laguna": Laguna, "mimo2": Mimo2, "step35": Step35,
                 "smallthinker": Smallthinker, "apertus": Apertus,
                 "muse-glimmer": MuseGlimmer, "spark2_5": Spark25, "maple": Maple, "granite_swa": GraniteSwa}
