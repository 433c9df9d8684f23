"""Qwen 3.8 Flash Next: streams with mixers of low rank in place of norms, keys that are chosen by
runs of tokens, an embedding of each token's last tokens. And random models of it."""
import math

from authors import Qwen35
from formats import Tensor, f32
from forward import dot, plus, rms, rows, sigmoid, silu
from gguf_make import ARRAY, U32, U64
from hybrids import Qwen35moe
from recurrent import convolution, delta_net
from sparse import Sparse


class Qwen4exp(Sparse, Qwen35):
    def streams(self, name, x):
        """Each stream of rows of x, normed by itself."""
        gains = rows(self.values[name + ".weight"], self.width)
        return [[rms(s, self.eps, gain) for s, gain in zip(rows(row, self.width), gains)] for row in x]

    def read(self, name, x):
        """What a branch reads, and the normed streams in one row."""
        n, y = self.k["hyper_connection.count"], self.streams(name + "_norm", x)
        flat = [sum(row, []) for row in y]
        low = [[silu(v / n) for v in row] for row in self.product(name + "_down", flat)]
        gates = [rows(row, self.width) for row in self.product(name + "_up", low)]
        means = [[sum(sigmoid(g[u][d]) * s[u][d] for u in range(n)) / n for d in range(self.width)]
                 for g, s in zip(gates, y)]
        return means, flat

    def branch(self, name, x, f):
        n = self.k["hyper_connection.count"]
        h, flat = self.read(name, x)
        shares = [[2 * sigmoid(v / n) for v in row] for row in self.product(name + "_inject", flat)]
        return [sum((plus([s], [y], by)[0] for s, by in zip(rows(row, self.width), share)), [])
                for row, y, share in zip(x, f(h), shares)]

    def embed(self, tokens):
        self.tokens = tokens
        return [row * self.k["hyper_connection.count"] for row in super().embed(tokens)]

    def table_rows(self, p):
        k = {name: self.k["ple." + name] for name in (
            "ngram_size", "heads_per_ngram", "eos_token_id", "layer_multipliers", "head_offsets", "head_vocab_sizes")}
        assert len(k["layer_multipliers"]) == k["ngram_size"]
        last = [self.tokens[p]]
        for back in range(1, k["ngram_size"]):
            ended = back > p or last[1:].count(None) or self.tokens[p - back] == k["eos_token_id"]
            last.append(None if ended else self.tokens[p - back])
        last = [k["eos_token_id"] if c is None else c for c in last]
        for head in range((k["ngram_size"] - 1) * k["heads_per_ngram"]):
            z = 0
            for c, by in zip(last[:2 + head // k["heads_per_ngram"]], k["layer_multipliers"]):
                z ^= c * by % 2**64
            yield z % k["head_vocab_sizes"][head] + k["head_offsets"][head]

    def ngrams(self, i, x):
        blk, table = f"blk.{i}.ple_", self.matrix("per_layer_token_embd.weight")
        e = [sum((table[at] for at in self.table_rows(p)), []) for p in range(len(x))]
        keys = self.streams(blk + "norm_key", self.product(blk + "key", e))
        queries, shared = self.streams(blk + "norm_query", x), []
        for k, q, v in zip(keys, queries, self.product(blk + "value", e)):
            z = [dot(*pair) / math.sqrt(self.width) for pair in zip(k, q)]
            g = [sigmoid(math.copysign(math.sqrt(max(abs(t), 1e-6)), t)) for t in z]
            shared.append([share * y for share in g for y in v])
        normed = [sum(row, []) for row in self.streams(blk + "norm_conv", shared)]
        sums = convolution(self, blk + "conv1d", normed, step=self.k["ple.ngram_size"])
        return plus(plus(x, shared), sums)

    def layer(self, i, x):
        if i in self.k.get("ple.layers", ()):
            x = self.ngrams(i, x)
        x = self.branch(f"blk.{i}.hc_attn", x, lambda h: self.mix(i, h))
        return self.branch(f"blk.{i}.hc_ffn", x, lambda h: self.feed_forward(i, h))

    def mix(self, i, h):
        return delta_net(self, i, h, True, sigmoid) if self.recurrent(i) else self.attention(i, h)

    def joined(self, x):
        return self.read("output_hc", x)[0]

    def norm(self, name, x):
        return x if name == "output_norm" else super().norm(name, x)

    def chosen_keys(self, i, h):
        blk, n = f"blk.{i}.indexer.", self.k["attention.indexer.key_length"]
        size, most = self.k["attention.compress_ratios"][i], self.k["attention.indexer.top_k"]
        assert size > 0 and most % size == 0
        rope, gains = self.index_rope(i, True), [self.values[f"{blk}{c}_norm.weight"] for c in "qk"]
        q = [[rope(rms(head, self.eps, gains[0]), p) for head in rows(row, n)]
             for p, row in enumerate(self.product(blk + "q_proj", h))]
        k = [row[0] for row in self.held(i, "indexer", [[row] for row in self.product(blk + "k_proj", h)])]
        k = [[sum(c) / size for c in zip(*run)] for run in rows(k, size) if len(run) == size]
        k = [rope(rms(key, self.eps, gains[1]), w * size) for w, key in enumerate(k)]
        choices = []
        for p, heads in enumerate(q):
            s = [sum(max(0.0, dot(head, key)) for head in heads) for key in k[:(p + 1) // size]]
            last, n_keys = {*range(len(s) * size, p + 1)}, most
            if self.compat:  # so many keys, with those of the last run
                n_keys += size - 1 - len(last)
            full = self.best(s, n_keys // size, p) if n_keys >= size else set()
            seen = {w * size + j for w in full for j in range(size)} | last
            for w in self.best(s, n_keys // size + 1, p) - full if n_keys % size else ():
                seen |= {w * size + j for j in range(n_keys % size)}
            choices.append([seen])
        return choices


class Qwen4expFamily(Qwen35moe):
    norms, nextn, tied, gate_up, n_layers_of = (), False, "", True, (2, 3)
    scalings, needed = ["", "linear"], ("rope.freq_base",)

    def numbers(self, name, values, kind):
        self.key(f"{self.arch}.{name}", ARRAY, values, kind)

    def more_keys(self):
        super().more_keys()
        rng, n = self.rng, self.n_layers
        self.sections()
        self.streams, self.rank = rng.choice([2, 3, 4]), rng.choice([8, 16, 32])
        self.number("hyper_connection.count", self.streams)
        self.number("hyper_connection.low_rank", self.rank)
        size = rng.choice([1, 2, 3, 4])
        self.index_heads, self.index_size = rng.choice([1, 2, 3]), self.n_rot + rng.choice([0, 2, 4])
        self.number("attention.indexer.head_count", self.index_heads)
        self.number("attention.indexer.key_length", self.index_size)
        sizes = [0 if own else size * rng.choice([1, 1, 2]) for own in self.recurrent]
        self.number("attention.indexer.top_k", max(size, *sizes) * rng.choice([1, 1, 2]))
        self.numbers("attention.compress_ratios", sizes, U32)
        nets = [i for i in range(n) if self.recurrent[i]]
        self.ngram_layer = rng.choice(nets) if nets and self.may(0.9) else None
        if self.ngram_layer is not None:
            self.ngram_keys()

    def ngram_keys(self):
        rng = self.rng
        pairs = [(n, g) for n in (2, 3, 4) for g in (1, 2) if self.width % ((n - 1) * g) == 0]
        self.most, per = rng.choice(pairs)
        heads = (self.most - 1) * per
        self.row, self.taps = self.width // heads, rng.choice([1, 2, 4])
        sizes = [rng.randint(3, 40) for _ in range(heads)]
        firsts = [sum(sizes[:h]) + rng.randint(0, 3) for h in range(heads)]
        self.table = max(map(sum, zip(sizes, firsts))) + rng.choice([0, 0, 5])
        self.number("ple.ngram_size", self.most)
        self.number("ple.heads_per_ngram", per)
        self.number("ple.conv_kernel", self.taps)
        self.number("ple.eos_token_id", rng.choice(rng.choice([*self.letters.values()])))
        self.number("ple.image_token_id", 3, 0.3)
        self.number("embedding_length_per_layer_input", self.row)
        self.numbers("ple.layers", [self.ngram_layer], U32)
        self.numbers("ple.layer_multipliers", [rng.getrandbits(64) | 1 for _ in range(self.most)], U64)
        self.numbers("ple.head_offsets", firsts, U64)
        self.numbers("ple.head_vocab_sizes", sizes, U64)

    def mixer(self, name, inject=True):
        width = self.streams * self.width
        self.norm(name + "_norm", width)
        self.tensor(name + "_down", width, self.rank, 1.5 / math.sqrt(width))
        self.tensor(name + "_up", self.rank, width, 1)
        if inject:
            self.tensor(name + "_inject", width, self.streams, 1.5 / math.sqrt(width))

    def ends(self):
        self.tensor("token_embd", self.width, self.n_vocab, self.rng.choice([0.3, 1]))
        self.mixer("output_hc", False)
        if self.alike("output", 0.5):
            self.tensor("output", self.width, self.n_vocab, self.rng.uniform(1, 3) / math.sqrt(self.width))
        if self.ngram_layer is not None:
            self.tensor("per_layer_token_embd", self.row, self.table, 1)

    def ngrams(self, blk):
        width = self.streams * self.width
        self.projection(blk + "key", self.width, width, bias=0)
        self.projection(blk + "value", self.width, self.width, bias=0)
        for name in ("key", "query", "conv"):
            self.norm(f"{blk}norm_{name}", width)
        kernel = [f32(self.rng.gauss(0, 0.5)) for _ in range(self.taps * width)]
        self.tensors.append(Tensor.of(blk + "conv1d.weight", kernel, [self.taps, width]))

    def attention(self, i):
        blk = f"blk.{i}."
        self.mixer(blk + "hc_attn")
        self.mixer(blk + "hc_ffn")
        if i == self.ngram_layer:
            self.ngrams(blk + "ple_")
        super().attention(i)
        if not self.recurrent[i]:
            self.projection(blk + "indexer.q_proj", self.width, self.index_heads * self.index_size, bias=0)
            self.projection(blk + "indexer.k_proj", self.width, self.index_size, bias=0)
            self.norm(blk + "indexer.q_norm", self.index_size)
            self.norm(blk + "indexer.k_norm", self.index_size)
