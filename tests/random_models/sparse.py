"""Architectures whose queries see the keys that an indexer chooses."""
from authors import Deepseek2, GptOss, MinimaxM2
from forward import Rope, dot, layer_norm, rms, rows


class Sparse:
    """What seen() leaves of the keys: self.choices[layer][p][set], lists of keys."""

    def index_rope(self, i, halves):
        rope = self.rope_of(i)
        return Rope(rope.frequencies, rope.magnitude, halves)

    def best(self, s, n, p):
        """The places of the n best of s, of equals the first. Numbers that are nearly equal end what
        is sure; those that are 0, because no product was positive, are equal."""
        order = sorted(range(len(s)), key=lambda j: -s[j])
        if n < len(order):
            last, other = s[order[n - 1]], s[order[n]]
            if last != other and last - other < self.near * max(1.0, *map(abs, s)):
                self.sure = min(self.sure, p)
        return set(order[:n])

    def attention(self, i, h):
        self.choices[i] = self.chosen_keys(i, h)
        return super().attention(i, h)

    mix = attention

    def embed(self, tokens):
        self.choices = {}
        return super().embed(tokens)

    def seen(self, i, p, g):
        sets = self.choices[i]
        if sets is None:
            return super().seen(i, p, g)
        return [j for j in super().seen(i, p, g) if j in sets[p][g % len(sets[p])]]


class Deepseek32(Sparse, Deepseek2):
    differs, index_halves = False, True

    def query_factor(self, i, p):
        return 1.0

    def counted_of_group(self, gating):
        return 2

    def key_eps(self):
        return 1e-6

    def own_choice(self, i):
        return True

    def scored_keys(self, i, h, k):
        """The indexer's keys, and how many positions each stands for."""
        return k, 1

    def index_turn(self, rope, head, p):
        return rope(head, p)

    def chosen_keys(self, i, h):
        if not self.own_choice(i):
            return self.choices[max(self.choices)]
        blk, n = f"blk.{i}.", self.k["attention.indexer.key_length"]
        rope = self.index_rope(i, self.index_halves)
        low = self.norm(blk + "attn_q_a_norm", self.product(blk + "attn_q_a", h))
        q = self.product(blk + "indexer.attn_q_b", low)
        q = [[self.index_turn(rope, head, p) for head in rows(row, n)] for p, row in enumerate(q)]
        norm = [self.values[blk + "indexer.k_norm." + c] for c in ("weight", "bias")]
        k = self.product(blk + "indexer.attn_k", h)
        k = [self.index_turn(rope, layer_norm(row, self.key_eps(), *norm), p) for p, row in enumerate(k)]
        k, size = self.scored_keys(i, h, k)
        k = [row[0] for row in self.held(i, "indexer", [[row] for row in k])]
        weights = self.product(blk + "indexer.proj", h)
        choices = []
        for p, (heads, w) in enumerate(zip(q, weights)):
            n_seen = (p + 1) // size
            s = [sum(a * max(0.0, dot(head, key)) for a, head in zip(w, heads)) for key in k[:n_seen]]
            best = self.best(s, self.k["attention.indexer.top_k"] // size, p)
            choices.append([{j for j in range(p + 1) if j // size in best or j // size == n_seen}])
        return choices


class GlmDsa(Deepseek32):
    differs, index_halves, gating = True, False, 2

    def key_eps(self):
        return 0.0 if self.compat else 1e-6

    def own_choice(self, i):
        usual = self.k["context_length"] < 1048576 or i < 2 or i % 4 == 2
        return self.per_layer("attention.indexer.types", i, usual)


class MinimaxM3(Sparse, MinimaxM2):
    qk_norm, renormalise, scales_weights, gated = "head", False, True, GptOss.gated

    def chosen_keys(self, i, h):
        blk, n = f"blk.{i}.", self.k["attention.indexer.key_length"]
        if blk + "ffn_gate_inp.weight" not in self.values:
            return None
        rope = self.index_rope(i, self.halves)

        def normed(c):
            weight = self.values[f"{blk}indexer.{c}_norm.weight"]
            return [[rope(rms(head, self.eps, weight), p) for head in rows(row, n)]
                    for p, row in enumerate(self.product(f"{blk}indexer.{c}_proj", h))]
        q, k = normed("q"), [row[0] for row in self.held(i, "indexer", normed("k"))]
        size, local = (self.k["attention.indexer." + c] for c in ("block_size", "local_blocks"))
        choices = []
        for p, heads in enumerate(q):
            sets, n_blocks = [], p // size + 1
            for head in heads:
                s = [max(dot(head, key) for key in k[b * size:min((b + 1) * size, p + 1)])
                     for b in range(n_blocks)]
                own = list(range(max(0, n_blocks - local), n_blocks))
                others = s[:n_blocks - len(own)]
                left = self.k["attention.indexer.top_k"] - len(own)
                blocks = self.best(others, left, p) if left > 0 and others else set()
                sets.append({j for j in range(p + 1) if j // size in blocks or j // size in own})
            choices.append(sets)
        return choices


ARCHITECTURES = {"deepseek32": Deepseek32, "glm-dsa": GlmDsa, "minimax-m3": MinimaxM3}
