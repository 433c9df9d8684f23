"""What architectures of known parts do in their own way."""
import math

from authors import Cohere2, CommandR, Deepseek2, Qwen2, Qwen3
from forward import Model, gelu, layer_norm, plus, rms, rows, softmax, squared_relu


class OwnMagnitude:
    """The key of YaRN's magnitude replaces it; llama.cpp does not read it."""

    differs = True

    def yarn_magnitude(self, s):
        own = self.k.get("rope.scaling.yarn_attn_factor")
        return own if own and not self.compat else super().yarn_magnitude(s)


class FullLayersStill:
    """Layers that see all keys have no positions."""
    period = 4

    def rope(self, i):
        return self.make_rope() if self.sliding_window() and self.slides(i) else None


class Qwen2vl(Qwen2):
    differs = True

    def __init__(self, keys, tensors, compat=False, **more):
        super().__init__(keys, tensors, compat, **more)
        if compat:
            self.eps = 0.0


class Qwen3vl(Qwen3):
    differs = True

    def scaled(self, *more):
        w, magnitude = super().scaled(*more)
        s = self.k["rope.dimension_sections"]
        s = s if isinstance(s, list) else [s] * 4
        n = sum(s[:3])
        if self.compat and n:
            w = [u if j % n < 3 * s[j % n % 3] else 0.0 for j, u in enumerate(w)]
        return w, magnitude


class Mistral4(Deepseek2):
    gating = 1

    def counted_of_group(self, gating):
        return 2


class SeedOss(Qwen2):
    ffn_norm = "post_attention_norm"


class Ernie45(Model):
    differs, window_by_authors, width_by_tensors = True, False, True

    def attention(self, i, h):
        if self.compat:
            self.values.pop(f"blk.{i}.attn_output.bias", None)
        return super().attention(i, h)

    mix = attention


class Hunyuan(Qwen3):
    width_by_tensors = True

    def heads(self, i, h):
        q, k, v = self.qkv(i, h)
        q, k = (self.turn(i, [rows(row, self.head_size(i)) for row in x]) for x in (q, k))
        return (self.head_norm(i, "q", q), self.head_norm(i, "k", k),
                [rows(row, self.value_size(i)) for row in v])

    def make_rope(self, n=None, base=None, *more):
        alpha, dk = self.k.get("rope.scaling.alpha"), self.head_size(0)
        base = base or self.k.get("rope.freq_base", 10000.0)
        return super().make_rope(n, base * alpha ** (dk / (dk - 2)) if alpha else base, *more)


class HyV3(Qwen3):
    gating, renormalise, scales_weights, width_by_tensors = 2, False, True, True

    def route(self, i, *more):
        bias = self.values.get(f"blk.{i}.exp_probs_b")
        if bias:
            self.values[f"blk.{i}.exp_probs_b.bias"] = bias
        return super().route(i, *more)


class Exaone4(FullLayersStill, Qwen3):
    differs = True
    attn_norm, post_attn, ffn_norm, post_ffn = None, "post_attention_norm", None, "post_ffw_norm"

    def sliding_window(self):
        """llama.cpp takes a model of 64 blocks for one with windows, and no other."""
        return 0 if self.compat else super().sliding_window()

    def rope(self, i):
        return super().rope(i) if self.sliding_window() else self.make_rope()


class ExaoneMoe(FullLayersStill, HyV3):
    pass


class Arcee(OwnMagnitude, Model):
    window_by_authors, up, activation = False, "plain", staticmethod(squared_relu)


class Olmoe(Qwen3):
    qk_norm, renormalise, width_by_tensors = "whole", False, True


class Mellum(OwnMagnitude, Qwen3):
    width_by_tensors = True

    def slides(self, i):
        return "attention.sliding_window_pattern" in self.k and super().slides(i)

    def rope(self, i):
        if not self.sliding_window() or not self.slides(i):
            return self.make_rope()
        base = None if self.compat else self.k.get("rope.freq_base_swa")
        n = self.k.get("rope.dimension_count", self.head_size(0))
        return self.make_rope(base=base, kind="none", factors=[1.0] * (n // 2), magnitude=1.0)


class Cohere2moe(Cohere2):
    gating, renormalise, scales_weights, width_by_tensors = 2, False, True, True

    def __init__(self, keys, tensors, *more, **named):
        rms_eps = keys.get("cohere2moe.attention.layer_norm_rms_epsilon")
        if rms_eps:
            self.eps_key, self.normalise = "attention.layer_norm_rms_epsilon", rms
        super().__init__(keys, tensors, *more, **named)

    def slides(self, i):
        pattern = self.k.get("attention.sliding_window_pattern")
        if pattern is None:
            return False
        if isinstance(pattern, list):
            return pattern[i]
        return pattern == 0 or i % pattern != 0

    def sliding_window(self):
        return self.k.get("attention.sliding_window", 0)

    def rope(self, i):
        dense = all(f"blk.{j}.ffn_gate_inp.weight" not in self.values for j in range(i + 1))
        return self.make_rope() if dense or self.sliding_window() and self.slides(i) else None

    def head_norm(self, i, c, x):
        return x

    def mixture(self, i, h):
        y = super().mixture(i, h)
        by = 0.5 if f"blk.{i}.ffn_up_shexp.weight" in self.values else 1.0
        return [[by * v for v in row] for row in y]


class Phi2(Model):
    eps_key, normalise = "attention.layer_norm_epsilon", staticmethod(layer_norm)
    halves, parallel, up, activation, window_by_authors = True, True, "plain", staticmethod(gelu), False


class Stablelm(CommandR):
    halves = True

    def layer(self, i, x):
        self.parallel = f"blk.{i}.ffn_norm.weight" not in self.values
        return super().layer(i, x)

    def head_scale(self):
        return 1.0


class Gemma(Qwen2):
    activation = staticmethod(gelu)

    def embedding_scale(self):
        return math.sqrt(self.width)


class Deepseek(Model):
    differs, renormalise, scales_weights = True, False, True

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        for key in ("expert_gating_func", "expert_weights_norm"):
            if self.compat:
                self.k.pop(key, None)


class Minicpm(Model):
    differs = True

    def embedding_scale(self):
        return self.k.get("embedding_scale") or 12.0

    def residual_scale(self):
        return self.k.get("residual_scale") or 1.4 / math.sqrt(self.n_layers)

    def head_scale(self):
        own, usual = self.k.get("logit_scale"), self.width / 256
        return 1 / own if own else usual if self.compat else 1 / usual


class Deci(Model):
    """Layers may lack attention or the feed-forward; llama.cpp leaves out attention without one."""
    differs = True

    def head_size(self, i):
        n = self.k["attention.head_count"]
        first = next(x for x in n if x) if isinstance(n, list) else n
        return self.k.get("attention.key_length", self.width // first)

    def layer(self, i, x):
        blk, (n, g) = f"blk.{i}.", self.n_heads(i)
        wide = self.per_layer("feed_forward_length", i)
        if n and (wide or not self.compat):
            h = self.norm(blk + "attn_norm", x)
            x = plus(x, self.attention(i, h) if g else self.product(blk + "attn_output", h))
        return plus(x, self.dense(i, self.norm(blk + "ffn_norm", x))) if wide else x


def rms_plus(x, eps, weight, bias):
    return [v + b for v, b in zip(rms(x, eps, weight), bias)]


class Phimoe(Model):
    differs, halves = True, True

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.normalise = rms_plus if self.compat else layer_norm
        self.k.pop("expert_gating_func", None)

    def route(self, i, g, p):
        """In turn: a softmax over the experts left that are near the best of them."""
        if self.compat:
            return super().route(i, g, p)
        left, out = list(range(len(g))), []
        for _ in range(self.k["expert_used_count"]):
            best, *_ = self.ranked(g, 1, left, p)
            below = {e: (g[best] - g[e]) / max(abs(g[e]), g[best]) for e in left}
            if any(abs(d - 0.02) < 5 * self.near for d in below.values()):
                self.sure = min(self.sure, p)
            near = [e for e in left if below[e] <= 0.02]
            out.append((best, softmax([g[e] for e in near])[near.index(best)]))
            left.remove(best)
        return out


ARCHITECTURES = {
    "qwen2vl": Qwen2vl, "qwen3vl": Qwen3vl, "qwen3vlmoe": Qwen3vl, "mistral4": Mistral4,
    "seed_oss": SeedOss, "ernie4_5": Ernie45, "ernie4_5-moe": Ernie45, "hunyuan-dense": Hunyuan,
    "hunyuan-moe": Hunyuan, "hy_v3": HyV3, "exaone4": Exaone4, "exaone-moe": ExaoneMoe, "dots1": HyV3,
    "bailingmoe2": HyV3, "arcee": Arcee, "olmoe": Olmoe, "mellum": Mellum, "cohere2moe": Cohere2moe,
    "phi2": Phi2, "stablelm": Stablelm, "gemma": Gemma, "exaone": Qwen2, "internlm2": Model,
    "deepseek": Deepseek, "minicpm": Minicpm, "deci": Deci, "phimoe": Phimoe}
