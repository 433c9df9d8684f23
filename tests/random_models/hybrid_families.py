"""Random models of the architectures in authors_hybrid.py."""
from families import Granite
from family import Family
from formats import Tensor, f32
from hybrids import NemotronH


class Lfm2(Family):
    """Short convolutions and attention."""
    qk_norm, tied, n_layers_of, scalings, separate_sizes = "head", "always", (2, 3), ["", "linear"], False

    def sizes(self):
        super().sizes()
        self.kv = [n * (i == 1 or self.may()) for i, n in enumerate(self.kv)]

    def more_keys(self):
        self.taps = self.rng.choice([1, 2, 3, 4])
        self.number("shortconv.l_cache", self.taps)
        if self.may(0.4):
            self.slide(period=False)

    def ends(self):
        super().ends()
        self.tensors[-1].name = "token_embd_norm.weight"

    def attention(self, i):
        if self.kv[i]:
            super().attention(i)
            return
        blk, width = f"blk.{i}.shortconv.", self.width
        self.projection(blk + "in_proj", width, 3 * width)
        kernel = [f32(self.rng.gauss(0, 0.7)) for _ in range(self.taps * width)]
        self.tensors.append(Tensor.of(blk + "conv.weight", kernel, [self.taps, width]))
        self.projection(blk + "out_proj", width, width)


class Lfm2moe(Lfm2):
    mixed = dense_first = True
    gatings, gating_share, n_layers_of = (2, 1), 0.3, (2, 4)

    def groups(self):
        self.selection_bias = self.may(0.8)
        if self.selection_bias and self.may():   # shares so small that the divisor's form shows
            self.router = 16.0


class GraniteHybrid(NemotronH):
    """Mamba-2 and attention, each followed by a feed-forward."""
    norms, up, n_layers_of = ("attn_norm", "ffn_norm"), "gated", (2, 3)
    scalings = ["", "linear"]
    rope, block = Family.rope, Family.block

    def shape(self):
        self.mixed = self.may(0.7)
        self.shared = "expert_shared_feed_forward_length" if self.may() else ""
        super().shape()

    def sizes(self):
        Family.sizes(self)
        self.kv = [n * (i == 1 or self.may(0.3)) for i, n in enumerate(self.kv)]

    def expert_width_key(self):
        self.number("expert_feed_forward_length", self.expert_width, 0.5)

    def more_keys(self):
        super().more_keys()
        Granite.more_keys(self)

    def attention(self, i):
        (super().attention if self.kv[i] else self.mamba)(i)


class FalconH1(NemotronH):
    """Attention and Mamba-2 side by side."""
    norms, up, n_layers_of, ssm_norm, freqs = ("attn_norm", "ffn_norm"), "gated", (2, 3), 0.5, 0.0
    scalings = ["", "linear"]
    rope, sizes = Family.rope, Family.sizes

    def block(self, i):
        Family.block(self, i)
        self.mamba(i)
        for t in self.tensors:
            if t.name == f"blk.{i}.ffn_norm.weight" and self.may(0.8):
                t.name = f"blk.{i}.ffn_norm"


FAMILIES = {"lfm2": Lfm2, "lfm2moe": Lfm2moe, "granitehybrid": GraniteHybrid, "falcon-h1": FalconH1}
