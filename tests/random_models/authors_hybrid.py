"""What architectures do in their own way of which some layers, or parts of layers, have a state."""
import math

from authors import Deepseek2, Granite, Qwen3
from forward import Model, dot, plus, rms, sigmoid
from gated import HeadGate, LimitedAfter
from recombined import Ernie45
from recurrent import kimi_delta_net, mamba2, short_convolution


class WithoutKeys:
    """Layers of 0 key/value heads have a state."""

    def mix(self, i, h):
        return self.attention(i, h) if self.n_heads(i)[1] else self.state(i, h)


class Lfm2(WithoutKeys, Qwen3):
    def state(self, i, h):
        return short_convolution(self, i, h)

    def norm(self, name, x):
        return super().norm("token_embd_norm" if name == "output_norm" else name, x)


class Lfm2moe(Lfm2):
    differs, gating = True, 2

    def divisor(self, total):
        return super().divisor(total) if self.compat else total + 1e-6


class GraniteHybrid(WithoutKeys, Granite):
    width_by_tensors, expert_width = True, Model.expert_width

    def state(self, i, h):
        return mamba2(self, i, h)


class FalconH1(Ernie45):
    halves = True

    def norm(self, name, x):
        if name in self.values:
            self.values[name + ".weight"] = self.values.pop(name)
        return super().norm(name, x)

    def mix(self, i, h):
        return plus(self.attention(i, h), mamba2(self, i, h))


class KimiLinear(WithoutKeys, Deepseek2):
    gating, renormalise = 2, True

    def __init__(self, *more, **named):
        super().__init__(*more, **named)
        self.k.pop("expert_weights_norm", None)

    def state(self, i, h):
        return kimi_delta_net(self, i, h)

    def compressed(self, i):
        return "attention.key_length_mla" in self.k

    def rope_of(self, i):
        return lambda head, p: head

    def score_scale(self, i):
        return 1 / math.sqrt(self.head_size(i))

    def query_factor(self, i, p):
        return 1.0

    def counted_of_group(self, gating):
        return 2


class BailingMoe3(WithoutKeys, LimitedAfter, HeadGate, Deepseek2):
    gating = 2

    @property
    def halves(self):
        """As llama.cpp turns pairs where there are angles of pictures."""
        return self.compat and "rope.dimension_sections" in self.k

    def state(self, i, h):
        return kimi_delta_net(self, i, h)

    def compressed(self, i):
        return "attention.key_length_mla" in self.k

    def query_factor(self, i, p):
        return 1.0

    def counted_of_group(self, gating):
        return 2


class KimiK3(HeadGate, KimiLinear):
    """A branch reads a mixture of x and of what x was where it began anew."""
    renormalise, __init__ = False, Deepseek2.__init__

    def mix(self, i, h):
        return HeadGate.attention(self, i, h) if self.n_heads(i)[1] else self.state(i, h)

    def embed(self, tokens):
        self.kept = []
        return super().embed(tokens)

    def mixture_of(self, name, x):
        rows_of, score = [*self.kept, x], self.values.get(name + ".weight")
        if len(rows_of) == 1:
            return x
        out = []
        for row in zip(*rows_of):
            e = [math.exp(dot(rms(y, self.eps), score)) for y in row]
            out.append([sum(p * v for p, v in zip(e, column)) / sum(e) for column in zip(*row)])
        return out

    def layer(self, i, x):
        every, blk = self.k["attn_res.block_size"], f"blk.{i}."
        o = self.mix(i, self.norm(blk + self.attn_norm, self.mixture_of(blk + "attn_res_score", x)))
        if every and i % every == 0:
            self.kept.append(x)
            x = o
        else:
            x = plus(x, o)
        h = self.norm(blk + self.ffn_norm, self.mixture_of(blk + "ffn_res_score", x))
        return plus(x, self.feed_forward(i, h))

    def joined(self, x):
        self.kept = [rows_[self.sure - len(x):self.sure] for rows_ in self.kept]
        return self.mixture_of("output_res_score", x)

    def gated(self, gate, up):
        b, c = self.k["activation.situ_beta"], self.k["activation.situ_linear_beta"]
        return [b * math.tanh(g / b) * sigmoid(g) * (c * math.tanh(u / c) if c > 0 else u)
                for g, u in zip(gate, up)]

    def experts(self, i, h, logits):
        blk = f"blk.{i}.ffn_routed_"
        if blk + "down.weight" not in self.values:
            return super().experts(i, h, logits)
        y = super().experts(i, self.product(blk + "down", h), logits)
        if blk + "norm.weight" in self.values:
            y = self.norm(blk + "norm", y)
        return self.product(blk + "up", y)


ARCHITECTURES = {
    "lfm2": Lfm2, "lfm2moe": Lfm2moe, "granitehybrid": GraniteHybrid, "falcon-h1": FalconH1,
    "kimi-linear": KimiLinear, "bailingmoe3": BailingMoe3,
    "kimi-k3": KimiK3}
