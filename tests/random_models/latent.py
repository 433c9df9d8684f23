"""Latent attention with gates of its result: Hunyuan 4, whose residual has streams that stay apart,
and dots3 note, whose layers have heads of two sizes."""
from forward import Model, rms, sigmoid
from gated import HeadGate, OwnBase
from sparse import Deepseek32, GlmDsa
from streams import Streams


class PlainYarn:
    """YaRN's magnitude multiplies cos and sin."""
    differs, gating = False, 2
    yarn_magnitude, score_scale = Model.yarn_magnitude, Model.score_scale


class HyV4(PlainYarn, GlmDsa, Streams, HeadGate):
    def weights(self, name, x):
        n, e = self.k["hyper_connection.count"], self.k["hyper_connection.epsilon"]
        scale, base = (self.values[f"{name}_{part}.weight"] for part in ("scale", "base"))
        apart = [[float(i == j) for j in range(n)] for i in range(n)]
        for row in self.product(name + "_fn", [rms(r, self.eps) for r in x]):
            a = [sigmoid(v * scale[j // n] + b) for j, (v, b) in enumerate(zip(row, base))]
            yield [v + e for v in a[:n]], [self.k["hyper_connection.magnitude"] * v + e for v in a[n:]], apart

    def own_choice(self, i):
        return self.k["attention.indexer.types"][i]

    def key_eps(self):
        return self.eps

    def index_turn(self, rope, head, p):
        n = 2 * len(rope.frequencies)
        return head[:-n] + rope(head[-n:], p)

    def chosen_keys(self, i, h):
        return super().chosen_keys(i, h) if "attention.indexer.top_k" in self.k else None

    def dense(self, *more):
        self.limit = 0.0
        return Model.dense(self, *more)


class Dots3note(PlainYarn, OwnBase, Deepseek32, HeadGate):
    differs = True

    @property
    def index_halves(self):
        return self.compat

    def of_kind(self, i, name):
        return self.k[f"attention.{name}{'_swa' if self.slides(i) else ''}"]

    def head_size(self, i):
        return self.of_kind(i, "key_length_mla")

    def value_size(self, i):
        return self.of_kind(i, "value_length_mla")

    def rank(self, i):
        return self.of_kind(i, "kv_lora_rank")

    def shared_keys(self, i, x):
        return self.norm(f"blk.{i}.attn_k_norm", x)

    def chosen_keys(self, i, h):
        return None if self.slides(i) else super().chosen_keys(i, h)


ARCHITECTURES = {"hy_v4": HyV4, "dots3note": Dots3note}
