"""Residuals of several streams. DeepSeek V4: further keys that are made of runs of tokens, experts
that are a token's own. GLM 5.3 Flash: delta nets, and keys that are chosen by pools."""
import math

from authors_hybrid import WithoutKeys
from forward import Model, dot, plus, rms, rows, sigmoid, silu, softmax
from recurrent import kimi_delta_net
from sparse import Deepseek32


def mixed(weights, streams):
    """Sum of weight * stream."""
    return [dot(weights, column) for column in zip(*streams)]


class Streams(Model):
    """Hyper-connections: rows of x have all streams, one after the other."""

    def embed(self, tokens):
        self.tokens = tokens
        return [row * self.k["hyper_connection.count"] for row in super().embed(tokens)]

    def weights(self, name, x):
        """Of each row of x: pre, post, and [from, to]."""
        n, e = self.k["hyper_connection.count"], self.k["hyper_connection.epsilon"]
        scale, base = (self.values[f"{name}_{part}.weight"] for part in ("scale", "base"))
        for row in self.product(name + "_fn", [rms(r, self.eps) for r in x]):
            a = [v * scale[min(j // n, 2)] + b for j, (v, b) in enumerate(zip(row, base))]
            pre = [sigmoid(v) + e for v in a[:n]]
            post = [2 * sigmoid(v) for v in a[n:2 * n]]
            c = [[v + e for v in softmax(r)] for r in rows(a[2 * n:], n)]
            for turn in range(2 * self.k["hyper_connection.sinkhorn_iterations"] - 1 if c else 0):
                if turn % 2 == 0:  # columns
                    c = [list(r) for r in zip(*c)]
                c = [[v / (sum(r) + e) for v in r] for r in c]
                if turn % 2 == 0:
                    c = [list(r) for r in zip(*c)]
            yield pre, post, c

    def branch(self, name, x, f):
        streams, weights = [rows(row, self.width) for row in x], list(self.weights(name, x))
        out = f([mixed(pre, s) for s, (pre, _, _) in zip(streams, weights)])
        return [sum(([a + post[u] * b for a, b in zip(mixed([r[u] for r in c], s), y)]
                     for u in range(len(s))), [])
                for s, y, (_, post, c) in zip(streams, out, weights)]

    def layer(self, i, x):
        blk = f"blk.{i}."
        x = self.branch(blk + "hc_attn", x, lambda h: self.mix(i, self.norm(blk + "attn_norm", h)))
        return self.branch(blk + "hc_ffn", x, lambda h: self.feed_forward(i, self.norm(blk + "ffn_norm", h)))

    def joined(self, x):
        return [mixed(pre, rows(row, self.width))
                for row, (pre, _, _) in zip(x, self.weights("output_hc", x))]

    def dense(self, i, *more):
        self.limit = self.per_layer("swiglu_clamp_shexp", i, self.per_layer("swiglu_clamp_exp", i, 0.0))
        return super().dense(i, *more)

    def one_expert(self, i, *more):
        self.limit = self.per_layer("swiglu_clamp_exp", i, 0.0)
        return super().one_expert(i, *more)

    least_limit = 0.0

    def gated(self, gate, up):
        c = self.limit if self.limit > self.least_limit else math.inf
        return [silu(min(a, c)) * max(-c, min(u, c)) for a, u in zip(gate, up)]


class Deepseek4(Streams):
    gating, renormalise, scales_weights, window_by_authors = 4, False, True, False

    def yarn_magnitude(self, s):
        return 1.0

    def rope(self, i):
        if self.k["attention.compress_ratios"][i]:
            return self.make_rope(base=self.k["attention.compress_rope_freq_base"])
        n = self.k.get("rope.dimension_count", self.head_size(0))
        return self.make_rope(n, kind="none", factors=[1.0] * (n // 2), magnitude=1.0)

    def turned(self, i, head, p):
        """The end of a head."""
        n = self.k.get("rope.dimension_count", self.head_size(0))
        return head[:-n] + self.rope_of(i)(head[-n:], p)

    def further(self, i, name, h, m):
        """Keys that are made of runs of m tokens."""
        blk = f"blk.{i}.{name}_"
        u, z = self.product(blk + "kv", h), self.product(blk + "gate", h)
        z = [plus([row], [self.matrix(blk + "ape.weight")[t % m]])[0] for t, row in enumerate(z)]
        weight, keys = self.values[blk + "norm.weight"], []
        d = len(weight)
        for w in range(len(h) // m):
            run = range(w * m, w * m + m)
            terms = [(u[t][-d:], z[t][-d:]) for t in run]
            if m == 4 and w > 0:
                terms = [(u[t - m][:d], z[t - m][:d]) for t in run] + terms
            key = [dot(softmax(b), a) for a, b in zip(zip(*(t[0] for t in terms)), zip(*(t[1] for t in terms)))]
            keys.append([self.turned(i, rms(key, self.eps, weight), w * m)])
        of_index = name == "indexer_compressor"
        of_index &= self.asked is not None or (i, "indexer") in (self.rounds or {})
        return [key[0] for key in self.held(i, "indexer" if of_index else "k", keys)]

    def seen(self, i, h, low):
        """For each query the further keys that it sees, by number."""
        m, best = self.k["attention.compress_ratios"][i], self.k["attention.indexer.top_k"]
        visible = [range((p + 1) // m) for p in range(len(h))]
        if m != 4:
            return visible
        keys, out = self.further(i, "indexer_compressor", h, m), []
        queries, weights = self.product(f"blk.{i}.indexer.attn_q_b", low), self.product(f"blk.{i}.indexer.proj", h)
        if max(map(len, visible)) <= best:
            return visible
        for p, few in enumerate(visible):
            q = [self.turned(i, head, p) for head in rows(queries[p], len(keys[0]))]
            s = [sum(w * max(0.0, dot(head, keys[j])) for w, head in zip(weights[p], q)) for j in few]
            order = sorted(few, key=lambda j: -s[j])
            if len(few) > best and 0 < s[order[best - 1]] - s[order[best]] < 10 * self.near:
                self.sure = min(self.sure, p)
            out.append(sorted(order[:best]))
        return out

    def attention(self, i, h):
        blk, m, d = f"blk.{i}.attn_", self.k["attention.compress_ratios"][i], self.head_size(i)
        low = self.norm(blk + "q_a_norm", self.product(blk + "q_a", h))
        kv = self.norm(blk + "kv_a_norm", self.product(blk + "kv", h))
        kv = [row[0] for row in self.held(i, "k", [[self.turned(i, row, p)] for p, row in enumerate(kv)])]
        further = self.further(i, "attn_compressor", h, m) if m else []
        seen = self.seen(i, h, low) if m else [[]] * len(h)
        sinks, out = self.values[blk + "sinks.weight"], []
        for p, row in enumerate(self.product(blk + "q_b", low)):
            keys, o = [further[w] for w in seen[p]] + kv[self.first_seen(i, p):p + 1], []
            for n, head in enumerate(rows(row, d)):
                head = self.turned(i, rms(head, self.eps), p)
                share = softmax([dot(head, key) / math.sqrt(d) for key in keys], sinks[n:n + 1])
                o += self.turned(i, mixed(share, keys), -p)
            out.append(o)
        n, rank = self.k["attention.output_group_count"], self.k["attention.output_lora_rank"]
        parts = [self.product(blk + "output_a", [row[g * len(row) // n:(g + 1) * len(row) // n] for row in out],
                              g * rank, rank) for g in range(n)]
        return self.product(blk + "output_b", [sum(group, []) for group in zip(*parts)])

    mix = attention

    def choose(self, i, s, n, order, p):
        if i >= self.k["hash_layer_count"]:
            return super().choose(i, s, n, order, p)
        return [int(e) for e in self.matrix(f"blk.{i}.ffn_gate_tid2eid.weight")[self.tokens[p]]]


class Glm5Next(WithoutKeys, Streams, Deepseek32):
    differs, gating, least_limit = False, 2, 1e-6

    def __init__(self, *more, **named):
        super().__init__(*more, **named)
        self.k.setdefault("rope.dimension_count", 0)

    def state(self, i, h):
        return kimi_delta_net(self, i, h, compat_eps=1e-6)

    def rope_of(self, i):
        return lambda head, p: head

    def index_rope(self, i, halves):
        return self.rope_of(i)

    def score_scale(self, i):
        return 1 / math.sqrt(self.head_size(i))

    def key_eps(self):
        return self.k.get("attention.layer_norm_epsilon", 1e-6)

    def own_choice(self, i):
        return self.per_layer("attention.indexer.types", i, True)

    def scored_keys(self, i, h, k):
        m, name = self.k["attention.indexer.kpool"], f"blk.{i}.indexer_compressor_"
        ape, keys = self.matrix(name + "ape.weight"), []
        z = [plus([row], [ape[t % m]])[0] for t, row in enumerate(self.product(name + "gate", h))]
        for w in range(len(h) // m):
            run = slice(w * m, w * m + m)
            keys.append([dot(softmax(b), a) for a, b in zip(zip(*k[run]), zip(*z[run]))])
        return keys, m

    def joined(self, x):
        return [[sum(column) / len(column) for column in zip(*rows(row, self.width))] for row in x]


ARCHITECTURES = {"deepseek4": Deepseek4, "glm5next": Glm5Next, "glm5-next": Glm5Next}
