"""Random models of the architectures in gated.py."""
from families import Granite, GptOss
from family import Family
from formats import f32
from gguf_make import ARRAY, F32
from recombined_families import HyV3, Sigmoid


class HeadGate(Family):
    def attention(self, i):
        super().attention(i)
        n = self.n_heads[i] * (self.dv if self.may() else 1)
        self.projection(f"blk.{i}.attn_gate", self.width, n)


class Afmoe(HeadGate, Sigmoid):
    norms = "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"
    n_layers_of, scalings = (2, 5), ["", "linear"]

    def more_keys(self):
        self.slide()


class OwnBase(Family):
    slid, slid_share = (), 1.0

    def more_keys(self):
        rng, slides = self.rng, self.may(self.slid_share)
        self.number("rope.freq_base_swa", 10 ** rng.uniform(0.7, 2), 0.7)
        if slides:
            self.slide()
            self.number("rope.dimension_count_swa", rng.randrange(2, self.dk + 1, 2), 0.6)

    def slide(self):
        self.number("attention.sliding_window", self.rng.choice([1, 2, 3, 5]))
        self.slid = [i > 0 and self.may() for i in range(self.n_layers + self.n_next)]
        self.flags("attention.sliding_window_pattern", self.slid)


class Laguna(HeadGate, OwnBase, Sigmoid):
    n_layers_of, scalings, shared = (2, 5), ["", "yarn", "yarn"], "expert_shared_feed_forward_length"
    slide, slid_share, partial = Family.slide, 0.8, 1.0
    needed = *Sigmoid.needed, *GptOss.needed, "rope.freq_base_swa", "rope.dimension_count_swa"

    def yarn_keys(self):
        self.number("rope.scaling.yarn_attn_factor", self.rng.uniform(0.7, 1.4), 0.5)


class Mimo2(OwnBase):
    mixed, dense_first, partial = True, True, 1.0
    gatings, gating_share, n_layers_of, scalings, freqs, fused = (2,), 0.5, (2, 4), [""], 0.0, 0.4
    tied, always_biased = "never", True

    def sizes(self):
        self.dk, self.dv = self.rng.choice([8, 12, 16]), self.rng.choice([4, 6, 8])
        self.number("attention.key_length", self.dk)
        self.number("attention.value_length", self.dv)

    def more_keys(self):
        super().more_keys()
        self.number("attention.value_scale", self.rng.choice([0.0, self.rng.uniform(0.3, 2)]), 0.8)

    def attention(self, i):
        self.sinks = self.slid and self.slid[i] or self.alike("sinks", 0.4)
        super().attention(i)


class Step35(HeadGate, OwnBase, HyV3):
    n_layers_of, scalings, tied = (2, 4), ["", "linear", "yarn"], "never"
    freqs, shared = 0.5, "expert_shared_feed_forward_length"

    def sizes(self):
        self.dk, self.dv = self.rng.choice([4, 8, 12, 16]), self.rng.choice([4, 6, 8])
        self.number("attention.key_length", self.dk)
        self.number("attention.value_length", self.dv)

    def rope(self):
        self.n_rot = self.dk
        if self.may():
            self.n_rot = self.rng.randrange(4, self.dk + 1, 4)
            self.number("rope.dimension_count", self.n_rot)
        self.number("rope.freq_base", 10 ** self.rng.uniform(0.7, 3), 0.8)
        self.scaling(self.rng.choice(self.scalings))

    def more_keys(self):
        super().more_keys()
        for name in ("exp", "shexp"):
            limits = [self.rng.choice([0.0, f32(self.rng.uniform(0.02, 0.3))])
                      for _ in range(self.n_layers + self.n_next)]
            self.key(f"{self.arch}.swiglu_clamp_{name}", ARRAY, limits, F32)


class Smallthinker(Family):
    mixed, gatings, gating_share, n_layers_of, freqs = True, (1, 2, 3), 1.0, (2, 5), 0.0

    def more_keys(self):
        if self.may(0.8):
            self.slide()


class Apertus(Family):
    qk_norm, up, freqs, scalings, tied = "head", "plain", 0.6, ["", "linear"], "never"
    bias = Family.bias | {"ffn": 0.2}

    def more_keys(self):
        rng = self.rng
        for name, low, high in (("alpha_n", -1, 2), ("alpha_p", -1, 1), ("beta", 0.2, 0.6), ("eps", -0.5, 0)):
            values = [f32(rng.uniform(low, high)) for _ in range(self.n_layers)]
            if self.may(0.8):
                self.key("xielu." + name, ARRAY, values, F32)
            else:
                self.key("xielu." + name, F32, values[0])


class Listed(Family):
    """Keys of windows, with an array of the layers that slide."""
    needed, slid, freqs, n_layers_of, scalings = ("attention.sliding_window_pattern",), (), 0.0, (2, 4), [""]

    def more_keys(self):
        self.number("attention.sliding_window", self.rng.choice([1, 2, 3, 5]))
        self.slid = [self.may(0.6) for _ in range(self.n_layers)]
        self.flags("attention.sliding_window_pattern", self.slid)


class MuseGlimmer(HeadGate):
    norms, qk_norm, tied = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"), "head", "never"
    freqs, n_layers_of, scalings, eps_powers, needed = 0.0, (2, 5), [""], (-4, -2), ("logit_scale",)

    def more_keys(self):
        self.slide()
        self.number("rope.freq_base_swa", 10 ** self.rng.uniform(0.7, 2), 0.5)
        self.number("logit_scale", self.rng.uniform(0.3, 2))
        self.number("final_logit_softcapping", self.rng.uniform(2, 15), 0.7)


class Spark25(HeadGate, OwnBase):
    freqs, n_layers_of, scalings, fused, partial = 0.0, (2, 4), [""], 0.7, 0.8


class Maple(Listed):
    qk_norm, mixed, tied, partial = "head", True, "never", 0.8

    def more_keys(self):
        super().more_keys()
        self.number("rope.freq_base_swa", 10 ** self.rng.uniform(0.7, 2), 0.5)
        limits = [f32(self.rng.choice([0.0, self.rng.uniform(0.02, 0.3)])) for _ in range(self.n_layers)]
        if self.may(0.8):
            self.key("maple.swiglu_clamp_exp", ARRAY, limits, F32)
        else:
            self.key("maple.swiglu_clamp_exp", F32, limits[0])


class GraniteSwa(Listed):
    """Dense, or with experts as wide as a dense feed-forward."""
    sinks, separate_sizes, gate_up, partial = True, False, True, 0.5
    bias, needed, freqs = Granite.bias, (*Granite.needed, *Listed.needed), 0.3
    scalings = ["", "linear", "longrope"]

    def shape(self):
        self.mixed = self.may(0.6)
        self.shared = "expert_shared_feed_forward_length" if self.may(0.7) else ""
        super().shape()

    def expert_width_key(self):
        self.expert_width = self.ff[0]
        self.number("expert_feed_forward_length", self.expert_width, 0.5)

    def more_keys(self):
        Granite.more_keys(self)
        super().more_keys()
        if self.may(0.8):
            self.flags("attention.rope_pattern", [self.may(0.7) for _ in range(self.n_layers)])

    def dense(self, i, n, suffix=""):
        if not suffix:
            super().dense(i, n)
            return
        self.projection(f"blk.{i}.ffn_up{suffix}", self.width, 2 * n, bias=0)
        self.projection(f"blk.{i}.ffn_down{suffix}", n, self.width, bias=0)


FAMILIES = {"afmoe": Afmoe, "laguna": Laguna, "mimo2": Mimo2, "step35": Step35,
            "smallthinker": Smallthinker, "apertus": Apertus,
            "muse-glimmer": MuseGlimmer, "spark2_5": Spark25, "maple": Maple, "granite_swa": GraniteSwa}
