"""Gemma 3n: streams that each layer predicts and corrects, its formulas and random models of it."""
import math

from authors import Gemma3, Gemma4
from families import Gemma4 as Gemma4Family
from family import Family
from formats import f32
from forward import dot, gelu, plus, rms, rows
from gguf_make import ARRAY, F32


class Gemma3n(Gemma4):
    """x is a list of streams for each token."""
    differs, period, final_cap = True, 5, 30.0
    head_size = Gemma3.head_size
    value_size = Gemma3.value_size
    rope = Gemma3.rope

    def __init__(self, *more):
        super().__init__(*more)
        n = self.n_layers
        if self.compat or "attention.shared_kv_layers" not in self.k:
            self.k["attention.shared_kv_layers"] = max(0, n - 20)
        if self.compat or "activation_sparsity_scale" not in self.k:
            self.k["activation_sparsity_scale"] = [f32(1.6448533535)] * 10 + [-math.inf] * n
        self.k.setdefault("embedding_length_per_layer_input", 256)
        self.n_streams = self.k.get("altup.num_inputs", 4)
        assert self.k.get("altup.active_idx", 0) == 0 and self.k["attention.sliding_window"] > 0

    # Both ends

    def products(self, name, x):
        """Of one row: of each stream but the first, of the length of `to`."""
        squares = rows(self.matrix(name), self.width)
        assert len(squares) == self.n_streams - 1
        return [[dot(row, v) for row in m] for m, v in zip(squares, x)]

    def stretched(self, x, to):
        least = 0 if self.compat else 1e-5 * self.width
        by = math.sqrt(dot(to, to) / max(dot(x, x), least))
        return [by * v for v in x]

    def embed(self, tokens):
        out, n = [], self.n_streams - 1
        for x in super().embed(tokens):
            out.append([x] + [self.stretched(y, x) for y in self.products("altup_proj.weight", [x] * n)])
        return out

    def norm(self, name, x):
        if name == "output_norm":
            x = [self.contracted(streams) for streams in x]
        return super().norm(name, x)

    def contracted(self, x):
        others = self.products("altup_unembd_proj.weight", x[1:])
        parts = x[:1] + [self.stretched(y, x[0]) for y in others]
        return [sum(column) / self.n_streams for column in zip(*parts)]

    # A layer

    def weighed(self, i, name, y):
        blk = f"blk.{i}.altup_"
        weight = self.values[blk + "router_norm.weight"]
        routed = [[v / self.width for v in rms(row, self.eps, weight)] for row in y]
        modal = [[math.tanh(v) for v in row] for row in self.product(blk + "router", routed)]
        return self.product(blk + name, modal)

    def gated(self, gate, up):
        s, n = self.k["activation_sparsity_scale"][self.at], len(gate)
        if s > -math.inf:
            mean = sum(gate) / n
            by = max(1, n - 1) if self.compat else n
            cut = mean + s * math.sqrt(sum((g - mean) ** 2 for g in gate) / by)
            gate = [max(0.0, g - cut) for g in gate]
        return super().gated(gate, up)

    def branches(self, i, a):
        blk = f"blk.{i}."
        h = self.norm(blk + "attn_norm", a)
        low = self.product(blk + "laurel_r", self.product(blk + "laurel_l", h))
        low = plus(h, self.norm(blk + "laurel_post_norm", low))
        o = plus(a, self.norm(blk + "post_attention_norm", self.attention(i, h)))
        o = [[(v + w) / math.sqrt(2) for v, w in zip(*pair)] for pair in zip(o, low)]
        self.at = i
        y = self.dense(i, self.norm(blk + "ffn_norm", o))
        return plus(o, self.norm(blk + "post_ffw_norm", y))

    def layer(self, i, x):
        blk, n = f"blk.{i}.", self.n_streams
        c = self.weighed(i, "predict_coef", [row[0] for row in x])
        x = [[[v + dot(w[u * n:u * n + n], column) for v, column in zip(row[u], zip(*row))]
              for u in range(n)] for row, w in zip(x, c)]
        o = self.branches(i, [row[0] for row in x])
        c = self.weighed(i, "correct_coef", o)
        x = [[[v + (b - a) * (1 + w[u]) for v, a, b in zip(row[u], row[0], made)]
              for u in range(n)] for row, made, w in zip(x, o, c)]
        gain = self.values[blk + "altup_correct_scale.weight"]
        gate = self.product(blk + "inp_gate", [[v * g for v, g in zip(row[0], gain)] for row in x])
        inner = [[gelu(a) * b for a, b in zip(row, u[i])] for row, u in zip(gate, self.inputs)]
        y = self.norm(blk + "post_norm", self.product(blk + "proj", inner))
        return [row[:1] + [plus([s], [made])[0] for s in row[1:]] for row, made in zip(x, y)]


class Gemma3nFamily(Gemma4Family):
    """Where a threshold leaves little of a row, the norm after it makes much of what float32 lost."""
    freqs, inner, eps_powers = 0.0, (64, 96), (-2.5, -1.5)

    def shape(self):
        self.mixed = False
        Family.shape(self)

    def sizes(self):
        rng, n = self.rng, self.n_layers
        listed = self.may(0.8)
        self.slid = [self.may(0.6) if listed else i % 5 < 4 for i in range(n)]
        if listed:
            self.slid[:2] = rng.choice([[True, False], [False, True]])
            self.flags("attention.sliding_window_pattern", self.slid)
        own = next(i for i in range(n, 0, -1) if {*self.slid[i:]} <= {*self.slid[:i]} and self.may()
                   or i == n)
        self.n_shared = n - rng.randint(own, n)
        self.kv = [rng.choice([1, 2])] * n
        self.n_heads = [self.kv[0] * rng.choice([1, 2])] * n
        self.dk = self.dv = rng.choice([4, 8, 12, 16])
        self.size = [self.dk] * 2
        self.number("attention.key_length", self.dk)
        self.number("attention.value_length", self.dv)
        self.number("attention.sliding_window", rng.choice([1, 2, 3, 5]))
        self.number("attention.shared_kv_layers", self.n_shared)
        self.per_input = rng.choice([4, 8, 32])
        self.number("embedding_length_per_layer_input", self.per_input)
        self.n_streams = rng.choice([4, 4, 3, 2])
        self.number("altup.num_inputs", self.n_streams, 1 if self.n_streams != 4 else 0.5)
        self.number("altup.active_idx", 0, 0.5)
        scales = [rng.choice([-math.inf, f32(1.6448533535), f32(rng.uniform(-1, 1.5))])
                  for _ in range(n)]
        self.key(self.arch + ".activation_sparsity_scale", ARRAY, scales, F32)

    def rope(self):
        self.n_rot = self.dk
        self.number("rope.freq_base", 10 ** self.rng.uniform(0.7, 3))
        self.number("rope.freq_base_swa", 10 ** self.rng.uniform(0.7, 3), 0.8)

    def ends(self):
        super().ends()
        for name in ("altup_proj", "altup_unembd_proj"):
            self.tensor(name, self.width, self.width, 1 / math.sqrt(self.width), self.n_streams - 1)

    def block(self, i):
        Family.block(self, i)
        blk, width, s = f"blk.{i}.", self.width, self.n_streams
        self.projection(blk + "inp_gate", width, self.per_input)
        self.projection(blk + "proj", self.per_input, width)
        for name in ("post_norm", "altup_router_norm", "laurel_post_norm", "altup_correct_scale"):
            self.norm(blk + name)
        self.tensor(blk + "altup_router", width, s, 3 * math.sqrt(width))
        self.tensor(blk + "altup_predict_coef", s, s * s, 0.3)
        self.tensor(blk + "altup_correct_coef", s, s, 0.3)
        rank = self.rng.choice([8, 16, 32])
        self.projection(blk + "laurel_l", width, rank)
        self.projection(blk + "laurel_r", rank, width)

    attention = Family.attention
    feed_forward = Family.feed_forward
