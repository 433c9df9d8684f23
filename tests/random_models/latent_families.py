"""Random models of the architectures in latent.py."""
from families import SHARES
from sparse_families import Deepseek32
from streams_families import Mixers


class Gated(Deepseek32):
    """Only newer files, of whose YaRN no key says more."""
    needed, freqs, gatings, gating_share = SHARES, 0.2, (2, 1), 0.5
    by_head = False

    def yarn_keys(self):
        pass

    def groups(self):
        self.selection_bias = True

    def attention(self, i):
        super().attention(i)
        self.projection(f"blk.{i}.attn_gate", self.width, self.n_heads[i] * (1 if self.by_head else self.dv))


class HyV4(Mixers, Gated):
    n_layers_of, nextn = (2, 5), False

    def more_keys(self):
        rng, n = self.rng, self.n_layers
        self.streams, self.own = rng.choice([2, 3, 4]), [False] * n
        self.number("hyper_connection.count", self.streams)
        self.number("hyper_connection.epsilon", 10 ** rng.uniform(-3, -1))
        self.number("hyper_connection.magnitude", rng.uniform(0.5, 3))
        if self.may(0.8):
            self.indexer_keys(rng.choice([1, 2, 3, 8]), 6)
            self.own = [i == 0 or self.may() for i in range(n)]
            self.flags("attention.indexer.types", self.own)
        else:
            self.spare = 0.0
        if self.may(0.8):
            self.limits("exp", n)

    def n_weights(self):
        return 2 * self.streams

    def has_indexer(self, i):
        return self.own[i]

    def ends(self):
        super().ends()
        self.mixer("output_hc", self.streams)

    def attention(self, i):
        super().attention(i)
        self.vector(f"blk.{i}.attn_sinks.weight", self.n_heads[i], 0, 1)


class Dots3note(Gated):
    n_layers_of, gating_share, by_head, spare = (2, 5), 1.0, True, 0.0
    geometry = "dk", "dv", "nope", "rank"

    def sizes(self):
        rng = self.rng
        self.slid = [i > 0 and self.may() for i in range(self.n_layers)] + [True] * self.n_next
        super().sizes()
        full = [getattr(self, name) for name in self.geometry]
        nope, rank, dv = rng.choice([2, 4, 8, 32]), rng.choice(self.ranks), rng.choice([4, 6, 8])
        self.geometries = full, [nope + self.n_rot, dv, nope, rank]
        self.n_heads = [2 if slid else self.n_heads[0] for slid in self.slid]
        for name, value in (("kv_lora_rank", rank), ("key_length", rank + self.n_rot), ("value_length", rank),
                            ("key_length_mla", nope + self.n_rot), ("value_length_mla", dv)):
            self.number(f"attention.{name}_swa", value)
        self.number("attention.sliding_window", rng.choice([1, 2, 3, 5]))
        self.flags("attention.sliding_window_pattern", self.slid[:self.n_layers])

    def more_keys(self):
        super().more_keys()
        self.number("rope.freq_base_swa", 10 ** self.rng.uniform(0.7, 2))
        self.flags("attention.indexer.types", [not slid for slid in self.slid[:self.n_layers]])

    def has_indexer(self, i):
        return not self.slid[i]

    def attention(self, i):
        for name, value in zip(self.geometry, self.geometries[self.slid[i]]):
            setattr(self, name, value)
        super().attention(i)
        self.norm(f"blk.{i}.attn_k_norm", self.n_rot)


FAMILIES = {"hy_v4": HyV4, "dots3note": Dots3note}
