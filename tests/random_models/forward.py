"""The forward pass in double precision, as docs/forward.md says, from keys and decoded tensors."""
import math
from operator import mul


def rows(values, n):
    return [values[i:i + n] for i in range(0, len(values), n)]


def dot(a, b):
    return sum(map(mul, a, b))


def softmax(x):
    top = max(x)
    e = [math.exp(v - top) for v in x]
    total = sum(e)
    return [v / total for v in e]


def silu(z):
    return z / (1 + math.exp(-z)) if z > -700 else 0.0


class Model:
    """keys: {name: value}; tensors: {name: Tensor}. near: how close two logits of a router may be
    before float32 may choose another expert."""

    def __init__(self, keys, tensors, near=1e-4):
        self.k = {name.removeprefix("llama."): v for name, v in keys.items()}
        self.t = {name: tensor.values() for name, tensor in tensors.items()}
        self.near = near
        self.width = self.k["embedding_length"]
        self.eps = self.k["attention.layer_norm_rms_epsilon"]
        self.head_size = self.k.get("attention.key_length",
                                    self.width // self.per_layer("attention.head_count", 0))
        self.embedding = rows(self.t["token_embd.weight"], self.width)
        self.head = rows(self.t.get("output.weight", self.t["token_embd.weight"]), self.width)
        self.frequencies, self.magnitude = self.rope()
        self.layers = [self.layer(i) for i in range(self.k["block_count"])]

    def per_layer(self, key, i, otherwise=None):
        value = self.k.get(key, otherwise)
        return value[i] if isinstance(value, list) else value

    def rope(self):
        k = self.k
        n, b = k.get("rope.dimension_count", self.head_size), k.get("rope.freq_base", 10000.0)
        s = k.get("rope.scaling.factor", k.get("rope.scale_linear", 1.0))
        kind = k.get("rope.scaling.type", "linear")
        factors = self.t.get("rope_freqs.weight", [1.0] * (n // 2))
        u = [b ** (-2 * i / n) / f for i, f in enumerate(factors)]
        magnitude = k.get("rope.scaling.attn_factor", 1.0)
        if kind == "linear":
            u = [w / s for w in u]
        if kind == "yarn":
            original = k.get("rope.scaling.original_context_length", k["context_length"])

            def pair(turns):
                return n * math.log(original / (2 * math.pi * turns)) / (2 * math.log(b))
            low = max(0, math.floor(pair(k.get("rope.scaling.yarn_beta_fast", 32.0))))
            high = min(n - 1, math.ceil(pair(k.get("rope.scaling.yarn_beta_slow", 1.0))))
            for i, w in enumerate(u):
                m = 1 - min(1, max(0, (i - low) / max(0.001, high - low)))
                u[i] = w * (m + (1 - m) / s)
            magnitude *= 1 + 0.1 * math.log(s)
        return u, magnitude

    def product(self, i, name, n_cols, first=0, n_rows=None, expert=0):
        """A function: scale * (W x) + bias, W being rows of blk.i.name."""
        t, full = self.t, f"blk.{i}.{name}"
        matrix = rows(t[full + ".weight"], n_cols)[first:][:n_rows]
        bias = t.get(full + ".bias", [0.0] * (first + len(matrix)))[first:]
        scale = t[full + ".scale"][expert] if full + ".scale" in t else 1.0
        return lambda x: [scale * dot(row, x) + b for row, b in zip(matrix, bias)]

    def layer(self, i):
        d, width = self.head_size, self.width
        n_q = self.per_layer("attention.head_count", i)
        n_kv = self.per_layer("attention.head_count_kv", i, n_q)
        ff = self.per_layer("feed_forward_length", i)
        layer = {"heads": n_q, "kv": n_kv, "experts": []}
        at = 0
        for name, n in (("q", n_q * d), ("k", n_kv * d), ("v", n_kv * d)):
            if f"blk.{i}.attn_qkv.weight" in self.t:
                layer[name] = self.product(i, "attn_qkv", width, at, n)
                at += n
            else:
                layer[name] = self.product(i, "attn_" + name, width)
        layer["o"] = self.product(i, "attn_output", n_q * d)
        layer["norms"] = [self.t[f"blk.{i}.{n}_norm.weight"] for n in ("attn", "ffn")]
        shapes = (("gate", width, ff), ("up", width, ff), ("down", ff, width))
        if not self.k.get("expert_count"):
            layer["ffn"] = [self.product(i, "ffn_" + n, cols) for n, cols, _ in shapes]
            return layer
        layer["router"] = self.product(i, "ffn_gate_inp", width)
        for e in range(self.k["expert_count"]):
            stacked = f"blk.{i}.ffn_gate_exps.weight" in self.t
            layer["experts"].append(
                [self.product(i, f"ffn_{n}_exps", c, e * r, r, e) if stacked
                 else self.product(i, f"ffn_{n}.{e}", c) for n, c, r in shapes])
        return layer

    def norm(self, x, weight):
        r = 1 / math.sqrt(dot(x, x) / len(x) + self.eps)
        return [v * r * w for v, w in zip(x, weight)]

    def heads(self, values, position=None):
        """Cut into heads; with a position rotated."""
        out = rows(values, self.head_size)
        for head in out if position is not None else []:
            for i, w in enumerate(self.frequencies):
                c, s = (self.magnitude * f(position * w) for f in (math.cos, math.sin))
                a, b = head[2 * i], head[2 * i + 1]
                head[2 * i], head[2 * i + 1] = a * c - b * s, a * s + b * c
        return out

    def attention(self, layer, x, past):
        h = self.norm(x, layer["norms"][0])
        position = len(past)
        past.append((self.heads(layer["k"](h), position), self.heads(layer["v"](h))))
        seen = past[-(self.k.get("attention.sliding_window", 0) or len(past)):]
        out = []
        for i, q in enumerate(self.heads(layer["q"](h), position)):
            g = i * layer["kv"] // layer["heads"]
            share = softmax([dot(q, k[g]) / math.sqrt(self.head_size) for k, _ in seen])
            out += [dot(share, column) for column in zip(*(v[g] for _, v in seen))]
        return layer["o"](out)

    def feed_forward(self, layer, x):
        h = self.norm(x, layer["norms"][1])

        def one(gate, up, down):
            return down([silu(a) * b for a, b in zip(gate(h), up(h))])
        if not layer["experts"]:
            return one(*layer["ffn"])
        logits = layer["router"](h)
        order = sorted(range(len(logits)), key=lambda e: -logits[e])
        n = self.k["expert_used_count"]
        if n < len(order) and logits[order[n - 1]] - logits[order[n]] < self.near:
            self.unsure = True
        total = [0.0] * self.width
        for e, share in zip(order, softmax([logits[e] for e in order[:n]])):
            total = [a + share * b for a, b in zip(total, one(*layer["experts"][e]))]
        return total

    def logits(self, window):
        """Of each position; they end where float32 may choose other experts."""
        past = [[] for _ in self.layers]
        self.unsure = False
        for token in window:
            x = self.embedding[token]
            for layer, seen in zip(self.layers, past):
                x = [a + b for a, b in zip(x, self.attention(layer, x, seen))]
                x = [a + b for a, b in zip(x, self.feed_forward(layer, x))]
            if self.unsure:
                return
            x = self.norm(x, self.t["output_norm.weight"])
            yield [dot(row, x) for row in self.head]
