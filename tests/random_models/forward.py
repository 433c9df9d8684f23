"""The forward pass in double precision, from keys and decoded tensors: what all architectures
share, which is a llama. authors.py has what each of the others does in its own way."""
import math
import struct
from operator import mul


def rows(values, n):
    return [values[i:i + n] for i in range(0, len(values), n)]


def dot(a, b):
    return sum(map(mul, a, b))


def plus(a, b, by=1.0):
    """a + by * b, of lists of rows."""
    return [[x + by * y for x, y in zip(p, q)] for p, q in zip(a, b)]


def softmax(x, further=()):
    """The shares of x; those of the further logits are dropped."""
    top = max([*x, *further])
    e = [math.exp(v - top) for v in x]
    total = sum(e) + sum(math.exp(v - top) for v in further)
    return [v / total for v in e]


def e5m2(x):
    """The nearest float of 8 bits with 2 of mantissa, at most the largest."""
    step = math.ldexp(1.0, max(math.frexp(x)[1] - 1, -14) - 2)
    return max(-57344.0, min(57344.0, round(x / step) * step))


def e4m3(x, scale):
    """scale times the nearest float of 8 bits with 3 of mantissa of x / scale, at most the largest."""
    x /= scale
    step = math.ldexp(1.0, max(math.frexp(x)[1] - 1, -6) - 3)
    return scale * max(-448.0, min(448.0, round(x / step) * step))


def mxfp8(head):
    """Blocks of 32 of these with a power of two, of the largest one."""
    out = []
    for block in rows(head, 32):
        scale = math.ldexp(1.0, max(math.frexp(max(map(abs, block)))[1] - 9, -127))
        out += [e4m3(x, scale) for x in block]
    return out


def ds_mla(part, rank):
    """A compressed row in runs of 128 with a float32 scale, of the largest one; what is turned in bf16."""
    if len(part) != rank:
        return [bf16(x) for x in part]
    out = []
    for run in rows(part, 128):
        scale = max(f32(max(map(abs, run)) / 448), 2.0 ** -126)
        out += [e4m3(x, scale) for x in run]
    return out


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bf16(x):
    """The nearest number of 8 significant bits, halves to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    return struct.unpack("<f", struct.pack("<I", bits + 0x7fff + (bits >> 16 & 1) & 0xffff0000))[0]


def sigmoid(z):
    return 1 / (1 + math.exp(-z)) if z > -700 else 0.0


def silu(z):
    return z * sigmoid(z)


def gelu(z):
    return 0.5 * z * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z ** 3)))


def squared_relu(z):
    return max(z, 0.0) ** 2


def softplus(z):
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


def rms(x, eps, weight=None):
    r = 1 / math.sqrt(dot(x, x) / len(x) + eps)
    return [v * r * w for v, w in zip(x, weight or [1.0] * len(x))]


def layer_norm(x, eps, weight, bias=None):
    mean = sum(x) / len(x)
    r = 1 / math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + eps)
    return [(v - mean) * r * w + b for v, w, b in zip(x, weight, bias or [0.0] * len(x))]


class Rope:
    def __init__(self, frequencies, magnitude, halves):
        n = len(frequencies)
        self.pairs = [(i, i + n) if halves else (2 * i, 2 * i + 1) for i in range(n)]
        self.frequencies, self.magnitude = frequencies, magnitude

    def __call__(self, head, position):
        out = list(head)
        for (i, j), w in zip(self.pairs, self.frequencies):
            c, s = (self.magnitude * f(position * w) for f in (math.cos, math.sin))
            out[i], out[j] = head[i] * c - head[j] * s, head[i] * s + head[j] * c
        return out


class Model:
    """keys: {name: value}; tensors: {name: Tensor}. compat: llama.cpp's form where it has one of its
    own. near: how close two scores of a router may be before float32 may choose another expert."""
    halves = False
    attn_norm, post_attn, ffn_norm, post_ffn = "attn_norm", None, "ffn_norm", None
    eps_key, normalise = "attention.layer_norm_rms_epsilon", staticmethod(rms)
    activation, up = staticmethod(silu), "gated"
    qk_norm = None                  # "head": per head; "whole": all of q, all of k
    period, default_window = 0, 0   # of n layers n - 1 slide; 0: all
    window_by_authors = True        # llama.cpp ignores it
    gating, renormalise, scales_weights = 1, True, False
    width_by_tensors = False        # of experts, without a key
    magnitude_by_yarn = True
    score_cap = final_cap = 0.0
    parallel = False
    rounded = None                  # what a cache holds of a number of keys and values
    rounds = None                   # or of one of (layer, "k", "v" or "indexer")
    asked = None                    # of each that was asked for, whether it is whole blocks of 32
    watches_ties = False            # a number that float32 may round elsewhere ends what is sure
    attend_from = 0                 # rows of attention before it are zeros: for tests of long texts
    compat_betas = False            # llama.cpp reads YaRN's betas
    differs = False                 # llama.cpp's form from the authors'

    def __init__(self, keys, tensors, compat=False, near=2e-5):
        self.arch = keys["general.architecture"]
        self.k = {name.removeprefix(self.arch + "."): v for name, v in keys.items()}
        self.values = {name: tensor.values() for name, tensor in tensors.items()}
        self.columns = {name: tensor.ne[0] for name, tensor in tensors.items()}
        self.matrices = {}
        self.compat, self.near = compat, near
        self.differs |= not self.compat_betas and any("yarn_beta" in key for key in keys)
        self.width, self.eps = self.k["embedding_length"], self.k[self.eps_key]
        self.n_layers = self.k["block_count"] - self.k.get("nextn_predict_layers", 0)
        self.ropes = {}

    def per_layer(self, key, i, otherwise=None):
        value = self.k.get(key, otherwise)
        return value[i] if isinstance(value, list) else value

    def matrix(self, name):
        if name not in self.matrices:
            self.matrices[name] = rows(self.values[name], self.columns[name])
        return self.matrices[name]

    def product(self, name, x, first=0, n_rows=None, expert=0):
        """scale * (W x) + bias of each row of x, W being rows of a matrix."""
        end = None if n_rows is None else first + n_rows
        w = self.matrix(name + ".weight")[first:end]
        bias = self.values.get(name + ".bias", [0.0] * (first + len(w)))[first:end]
        scale = self.values.get(name + ".scale", [1.0] * (expert + 1))[expert]
        return [[scale * dot(row, h) + b for row, b in zip(w, bias)] for h in x]

    def norm(self, name, x):
        more = [self.values[name + ".bias"]] if name + ".bias" in self.values else []
        weight = self.values[name + ".weight"]
        return [self.normalise(row, self.eps, weight, *more) for row in x]

    # RoPE

    def scaled(self, n, base, kind, factors):
        """Frequencies and what cos and sin are multiplied by."""
        k = self.k
        s = k.get("rope.scaling.factor", k.get("rope.scale_linear", 1.0)) or 1.0
        original = k.get("rope.scaling.original_context_length", k["context_length"])
        if "rope_factors_long.weight" in self.values:
            which = "long" if self.length > original else "short"
            factors = self.values[f"rope_factors_{which}.weight"]
        w = [base ** (-2 * i / n) / f for i, f in enumerate(factors or [1.0] * (n // 2))]
        if kind == "linear":
            w = [u / s for u in w]
        if kind != "yarn":
            return w, 1.0
        low, high = self.yarn_range(n, base, original)
        for i, u in enumerate(w):
            r = min(1, max(0, (i - low) / max(0.001, high - low)))
            w[i] = u * (1 - r + r / s)
        return w, self.yarn_magnitude(s)

    def yarn_range(self, n, base, original):
        def pair(name, otherwise):
            keys = {} if self.compat and not self.compat_betas else self.k
            turns = keys.get("rope.scaling.yarn_beta_" + name, otherwise)
            return n * math.log(original / (2 * math.pi * turns)) / (2 * math.log(base))
        low, high = pair("fast", 32.0), pair("slow", 1.0)
        if self.rounds_yarn():
            low, high = math.floor(low), math.ceil(high)
        return max(0, low), min(n - 1, high)

    def rounds_yarn(self):
        return True

    def yarn_magnitude(self, s):
        return 1 + 0.1 * math.log(s) if s > 1 else 1.0

    def make_rope(self, n=None, base=None, kind=None, factors=None, magnitude=None):
        k = self.k
        n = n or k.get("rope.dimension_count", self.head_size(0))
        base = base or k.get("rope.freq_base", 10000.0)
        kind = kind or k.get("rope.scaling.type", "linear")
        factors = factors or self.values.get("rope_freqs.weight")
        w, by = self.scaled(n, base, kind, factors)
        return Rope(w, magnitude or by * k.get("rope.scaling.attn_factor", 1.0), self.halves)

    def rope(self, i):
        """Of layer i, None without."""
        return self.make_rope()

    # Attention

    def head_size(self, i):
        return self.k.get("attention.key_length", self.width // self.per_layer("attention.head_count", 0))

    def value_size(self, i):
        return self.k.get("attention.value_length", self.head_size(i))

    def n_heads(self, i):
        n = self.per_layer("attention.head_count", i)
        return n, self.per_layer("attention.head_count_kv", i, n)

    def slides(self, i):
        pattern = self.k.get("attention.sliding_window_pattern", self.period)
        if isinstance(pattern, list):
            return pattern[i]
        return pattern == 0 or i % pattern < pattern - 1

    def sliding_window(self):
        if self.window_by_authors and self.compat:
            return 0
        return self.k.get("attention.sliding_window", self.default_window)

    def first_seen(self, i, p):
        """The first key that the query at p sees."""
        w = self.sliding_window()
        return max(0, p - w + 1) if w and self.slides(i) else 0

    def seen(self, i, p, g):
        """The keys that the query at p sees of key head g, ascending."""
        return range(self.first_seen(i, p), p + 1)

    def score_scale(self, i):
        return 1 / math.sqrt(self.head_size(i))

    def query_factor(self, i, p):
        return 1.0

    def qkv(self, i, h):
        """Rows of q, k and v, not yet cut into heads."""
        (n, g), dk, dv = self.n_heads(i), self.head_size(i), self.value_size(i)
        if f"blk.{i}.attn_qkv.weight" not in self.values:
            return [self.product(f"blk.{i}.attn_{c}", h) for c in "qkv"]
        cuts = (0, n * dk), (n * dk, g * dk), ((n + g) * dk, g * dv)
        return [self.product(f"blk.{i}.attn_qkv", h, *cut) for cut in cuts]

    def head_norm(self, i, c, x):
        """The norm of q or k, of [T][heads][dk]."""
        name = f"blk.{i}.attn_{c}_norm.weight"
        if not self.qk_norm or name not in self.values:
            return x
        weight = self.values[name]
        if self.qk_norm == "head":
            return [[rms(head, self.eps, weight) for head in row] for row in x]
        n = len(x[0][0])
        return [rows(rms(sum(row, []), self.eps, weight), n) for row in x]

    def turn(self, i, x):
        rope = self.rope_of(i)
        return [[rope(head, p) for head in row] for p, row in enumerate(x)] if rope else x

    def rope_of(self, i):
        if i not in self.ropes:
            self.ropes[i] = self.rope(i)
        return self.ropes[i]

    def heads(self, i, h):
        """q, k, v as attention has them."""
        dk, dv = self.head_size(i), self.value_size(i)
        q, k, v = self.qkv(i, h)
        q, k = ([rows(row, dk) for row in x] for x in (q, k))
        q, k = self.turn(i, self.head_norm(i, "q", q)), self.turn(i, self.head_norm(i, "k", k))
        return q, k, [rows(row, dv) for row in v]

    def kept_by(self, i):
        """The layer whose keys and values layer i uses."""
        return i

    def held(self, i, what, x):
        """Heads of keys ("k"), values ("v") or an indexer's keys as a cache of layer i holds them."""
        if self.asked is not None:
            self.asked.setdefault((i, what), True)
            self.asked[i, what] &= all(len(head) % 32 == 0 for row in x for head in row)
        rounded = self.rounded if what != "indexer" else None
        if self.rounds is not None:
            rounded = self.rounds.get((i, what))
        if not rounded:
            return x
        for p, row in enumerate(x if self.watches_ties else []):
            for head in row:
                off = 2e-7 * max(map(abs, head))  # some roundings of float32
                if rounded([z - off for z in head]) != rounded([z + off for z in head]):
                    self.sure = min(self.sure, p)
        return [[rounded(head) for head in row] for row in x]

    def attend(self, i, q, k, v):
        k, v = (self.held(self.kept_by(i), what, x) for what, x in (("k", k), ("v", v)))
        scale, cap = self.score_scale(i), self.score_cap
        sinks = self.values.get(f"blk.{i}.attn_sinks.weight")
        out = [[0.0] * (len(q[0]) * len(v[0][0])) for _ in q[:self.attend_from]]
        for p, row in list(enumerate(q))[self.attend_from:]:
            factor, o = scale * self.query_factor(i, p), []
            for n, head in enumerate(row):
                g = n * len(k[p]) // len(row)
                seen = self.seen(i, p, g)
                s = [factor * dot(head, k[j][g]) for j in seen]
                if cap:
                    s = [cap * math.tanh(x / cap) for x in s]
                share = softmax(s, sinks[n:n + 1] if sinks else ())
                o += [dot(share, column) for column in zip(*(v[j][g] for j in seen))]
            out.append(o)
        return out

    def attention(self, i, h):
        return self.product(f"blk.{i}.attn_output", self.attend(i, *self.heads(i, h)))

    mix = attention

    # Feed-forward

    def gated(self, gate, up):
        return [self.activation(a) * b for a, b in zip(gate, up)]

    def dense(self, i, h, suffix=""):
        blk = f"blk.{i}.ffn_"
        up = self.product(blk + "up" + suffix, h)
        if self.up == "plain":
            inner = [[self.activation(x) for x in row] for row in up]
        elif self.up == "fused" and not suffix:
            inner = [self.gated(row[:len(row) // 2], row[len(row) // 2:]) for row in up]
        else:
            inner = [self.gated(*pair) for pair in zip(self.product(blk + "gate" + suffix, h), up)]
        return self.product(blk + "down" + suffix, inner)

    def one_expert(self, i, e, h):
        """Of one row."""
        blk, own = f"blk.{i}.ffn_", f"blk.{i}.ffn_up.{e}.weight" in self.values

        def part(name, n, x, first=0, of=None):
            if own:
                return self.product(f"{blk}{name}.{e}", [x])[0]
            return self.product(f"{blk}{name}_exps", [x], e * (of or n) + first, n, e)[0]
        f = self.expert_width(i)
        if self.up == "plain":
            inner = [self.activation(x) for x in part("up", f, h)]
        elif blk + "gate_up_exps.weight" in self.values:
            inner = self.gated(part("gate_up", f, h, 0, 2 * f), part("gate_up", f, h, f, 2 * f))
        else:
            inner = self.gated(part("gate", f, h), part("up", f, h))
        return part("down", len(h), inner)

    def expert_width(self, i):
        if self.width_by_tensors and "expert_feed_forward_length" not in self.k:
            return self.columns[f"blk.{i}.ffn_down_exps.weight"]
        return self.per_layer("expert_feed_forward_length", i) or self.per_layer("feed_forward_length", i)

    def route(self, i, g, p):
        """(expert, weight) of the chosen, from the logits of the row at p."""
        k, n = self.k, self.per_layer("expert_used_count", i)
        gating = k.get("expert_gating_func") or self.gating
        gate = {1: softmax, 2: lambda x: [sigmoid(z) for z in x], 3: list,
                4: lambda x: [math.sqrt(softplus(z)) for z in x]}[gating](g)
        s = plus([gate], [self.values.get(f"blk.{i}.exp_probs_b.bias", [0.0] * len(g))])[0]
        order = list(range(len(s)))
        n_groups = k.get("expert_group_count", 0)
        if n_groups > 1:
            groups = rows(order, len(s) // n_groups)
            counted = self.counted_of_group(gating)
            best = [sum(sorted((s[e] for e in group), reverse=True)[:counted]) for group in groups]
            ranked = self.ranked(best, k["expert_group_used_count"], range(n_groups), p)
            order = sorted(e for a in ranked for e in groups[a])
        chosen = self.choose(i, s, n, order, p)
        weights = [gate[e] for e in chosen]
        if gating == 3:
            weights = softmax(weights)
        if k.get("expert_weights_norm", self.renormalise):
            total = self.divisor(sum(weights))
            weights = [w / total for w in weights]
        scale = (k.get("expert_weights_scale") or 1.0) if self.scales_weights else 1.0
        return [(e, w * scale) for e, w in zip(chosen, weights)]

    def divisor(self, total):
        return max(total, 6.1e-5)

    def counted_of_group(self, gating):
        """How many of a group's best experts its score is the sum of."""
        return 2

    def choose(self, i, s, n, order, p):
        return self.ranked(s, n, order, p)

    def ranked(self, s, n, order, p):
        """The n best of those in order; of equals the first."""
        best = sorted(order, key=lambda e: -s[e])
        if n < len(best) and s[best[n - 1]] - s[best[n]] < self.near:
            self.sure = min(self.sure, p)
        return best[:n]

    def experts(self, i, h, logits):
        out = []
        for p, (row, g) in enumerate(zip(h, logits)):
            total = [0.0] * len(row)
            for e, share in self.route(i, g, p):
                total = plus([total], [self.one_expert(i, e, row)], share)[0]
            out.append(total)
        return out

    def mixture(self, i, h):
        blk = f"blk.{i}.ffn_"
        out = self.experts(i, h, self.product(blk + "gate_inp", h))
        if blk + "up_shexp.weight" in self.values:
            shared = self.dense(i, h, "_shexp")
            if blk + "gate_inp_shexp.weight" in self.values:
                gate = [dot(self.values[blk + "gate_inp_shexp.weight"], row) for row in h]
                shared = [[sigmoid(g) * x for x in row] for g, row in zip(gate, shared)]
            out = plus(out, shared)
        return out

    def feed_forward(self, i, h):
        mixed = f"blk.{i}.ffn_gate_inp.weight" in self.values
        return self.mixture(i, h) if mixed else self.dense(i, h)

    # The whole

    def residual_scale(self):
        return 1.0

    def layer(self, i, x):
        def norm(name, rows_):
            return self.norm(f"blk.{i}.{name}", rows_) if name else rows_
        by, h = self.residual_scale(), norm(self.attn_norm, x)
        mixed = norm(self.post_attn, self.mix(i, h))
        y = plus(x, mixed, by)
        h = h if self.parallel else norm(self.ffn_norm, y)
        return plus(y, norm(self.post_ffn, self.feed_forward(i, h)), by)

    def embed(self, tokens):
        scale = self.embedding_scale()
        return [[scale * v for v in self.matrix("token_embd.weight")[t]] for t in tokens]

    def joined(self, x):
        """What the output norm reads."""
        return x

    def embedding_scale(self):
        return 1.0

    def head_scale(self):
        return 1.0

    def logits(self, tokens, first=0):
        """Of each position from first on; they end where float32 may choose other experts."""
        self.sure, self.length, self.ropes = len(tokens), len(tokens), {}
        x = self.embed(tokens)
        for i in range(self.n_layers):
            x = self.layer(i, x)
        head = "output" if "output.weight" in self.values else "token_embd"
        scale, cap = self.head_scale(), self.k.get("final_logit_softcapping", self.final_cap)
        for y in self.product(head, self.norm("output_norm", self.joined(x[first:self.sure]))):
            y = [scale * v for v in y]
            yield [cap * math.tanh(v / cap) for v in y] if cap else y
