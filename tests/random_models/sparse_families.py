"""Random models of the architectures in sparse.py: most choose fewer keys than a text has."""
from families import SHARES, Deepseek2, MinimaxM2
from family import Family


class Indexed:
    def indexer_keys(self, heads, most):
        rng = self.rng
        self.index_heads = heads
        self.index_size = self.n_rot + rng.choice([0, 2, 4])
        self.number("attention.indexer.head_count", heads)
        self.number("attention.indexer.key_length", self.index_size)
        self.number("attention.indexer.top_k", rng.randint(1, most))


class Deepseek32(Indexed, Deepseek2):
    old_share, q_ranks, gating_share, tied, always_biased = 0.0, (8, 12, 32), 1.0, "never", True

    def groups(self):
        super().groups()
        if not self.pairs[-1][0].endswith("expert_group_used_count"):
            self.number("expert_group_count", self.rng.choice([0, 1]))

    def more_keys(self):
        self.indexer_keys(self.rng.choice([1, 2, 3, 8]), 6)

    def has_indexer(self, i):
        return True

    def attention(self, i):
        super().attention(i)
        if not self.has_indexer(i) and not self.may(self.spare):  # that nothing uses
            return
        blk, n = f"blk.{i}.indexer.", self.index_size
        self.projection(blk + "attn_q_b", self.q_rank, self.index_heads * n, bias=0)
        self.projection(blk + "attn_k", self.width, n, bias=0)
        self.norm(blk + "k_norm", n)
        self.vector(blk + "k_norm.bias", n, 0, 0.3)
        self.projection(blk + "proj", self.width, self.index_heads, bias=0)


class GlmDsa(Deepseek32):
    n_layers_of, gating_share = (2, 5), 0.5

    def more_keys(self):
        super().more_keys()
        usual = [i < 2 or i % 4 == 2 for i in range(self.n_layers)]
        if self.may(0.7):
            self.own = [i == 0 or self.may() for i in range(self.n_layers)]
            self.flags("attention.indexer.types", self.own)
        elif self.may():
            self.own = usual
            self.pairs = [p for p in self.pairs if not p[0].endswith(".context_length")]
            self.number("context_length", self.rng.choice([1048576, 2000000]))
        else:
            self.own = [True] * self.n_layers

    def has_indexer(self, i):
        return i >= self.n_layers or self.own[i]


class MinimaxM3(Indexed, MinimaxM2):
    qk_norm, dense_first, separate_sizes, shared = "head", True, False, "expert_shared_count"
    scales_weights, weights_norm, needed = True, True, SHARES
    shape, expert_width_key = Family.shape, Family.expert_width_key

    def more_keys(self):
        self.indexer_keys(self.kv[0], 3)
        self.number("attention.indexer.block_size", self.rng.choice([1, 2, 3, 5]))
        self.number("attention.indexer.local_blocks", self.rng.choice([0, 1, 1]))

    def attention(self, i):
        super().attention(i)
        if i < self.n_dense:
            return
        blk, n = f"blk.{i}.indexer.", self.index_size
        self.projection(blk + "q_proj", self.width, self.index_heads * n, bias=0)
        self.projection(blk + "k_proj", self.width, n, bias=0)
        self.norm(blk + "q_norm", n)
        self.norm(blk + "k_norm", n)


FAMILIES = {"deepseek32": Deepseek32, "glm-dsa": GlmDsa, "minimax-m3": MinimaxM3}
