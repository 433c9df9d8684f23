"""What random models of most architectures share, as attributes that say where they differ."""
import math

from formats import Tensor, f32
from generate import Generated
from gguf_make import ARRAY, BOOL, U32

SCALINGS = ["", "none", "linear", "yarn", "longrope"]


class Family(Generated):
    """Traits of an architecture are attributes: `tied` is "always", "never" or ""
    (either), a bias is the chance that the file has it."""
    n_layers_of = 2, 3
    widths, inner = (16, 24, 32, 32, 64), (16, 24, 32, 64)
    tied = ""
    bias = {"q": 0.2, "k": 0.2, "v": 0.2, "output": 0.2, "ffn": 0.0}
    norms = "attn_norm", "ffn_norm"
    norm_bias = False
    eps, eps_powers = "attention.layer_norm_rms_epsilon", (-6, -2)
    qk_norm, qk_share = "", 1.0
    up = "gated"
    mixed, mixed_share = False, 1.0     # experts
    shared, shared_gate = "", False     # the key of the shared expert's width
    gatings, gating_share, scales_weights, expert_counts = (1, 2, 3), 0.2, False, (2, 4, 5, 6)
    weights_norm = False                # the key is read
    router = 2.0                        # how far its logits are apart
    router_bias, expert_biases, gate_up = 0.0, 0.0, False
    always_biased = False               # the selection of experts
    spare = 0.5                         # how often layers that use the keys of others have some
    dense_first = nextn = sinks = False  # nextn: how many such blocks there are, or none
    window, pattern = (), ()
    scalings, partial, freqs, magnitude = SCALINGS, 0.5, 0.2, 0.3
    separate_sizes = True
    residual = 1.0

    def make(self):
        self.shape()
        self.number(self.eps, 10 ** self.rng.uniform(*self.eps_powers))
        self.rope()
        self.more_keys()
        self.ends()
        for i in range(self.n_layers):
            self.block(i)
        for i in range(self.n_layers, self.n_layers + self.n_next):
            self.block(i)
            self.tensor(f"blk.{i}.nextn.eh_proj", 2 * self.width, self.width, 0.2)
            for name in ("enorm", "hnorm", "shared_head_norm"):
                self.norm(f"blk.{i}.nextn.{name}")

    def more_keys(self):
        pass

    def shape(self):
        rng = self.rng
        self.n_layers = rng.randint(*self.n_layers_of)
        self.n_next = rng.choice([0, 1]) * self.nextn if self.nextn else 0
        n = self.n_layers + self.n_next
        self.width = rng.choice(self.widths)
        self.kv = [rng.choice([1, 2])] * n
        self.n_heads = [self.kv[0] * rng.choice([1, 2, 3])] * n
        self.ff = [rng.choice(self.inner)] * n
        if self.may(0.25) and self.separate_sizes:
            for i in range(1, n):
                self.kv[i] = rng.choice([1, 2])
                self.n_heads[i], self.ff[i] = self.kv[i] * rng.choice([1, 3]), rng.choice([24, 32])
        self.sizes()
        self.number("block_count", n)
        self.number("embedding_length", self.width)
        self.context = rng.choice([24, 64, 4096])
        self.number("context_length", self.context)
        self.per_layer("attention.head_count", self.n_heads)
        if self.kv != self.n_heads or self.may():
            self.per_layer("attention.head_count_kv", self.kv)
        self.per_layer("feed_forward_length", self.ff)
        if self.mixed:
            self.expert_keys()
        if self.nextn and (self.n_next or self.may()):
            self.number("nextn_predict_layers", self.n_next)

    def sizes(self):
        rng, width = self.rng, self.width
        heads = self.n_heads[0]
        if width % heads == 0 and width // heads % 2 == 0 and self.may():
            self.dk = self.dv = width // heads
            if self.may() and len(set(self.n_heads)) == 1:
                return
        else:
            self.dk = self.dv = rng.choice([4, 8, 8, 12, 16])
        if self.may(0.15):
            self.dv = rng.choice([4, 6, 8])
        self.number("attention.key_length", self.dk)
        self.number("attention.value_length", self.dv)

    def expert_keys(self):
        rng = self.rng
        self.n_experts = rng.choice(self.expert_counts)
        self.n_used = rng.randint(1, self.n_experts - 1)
        self.expert_width = rng.choice([8, 16, 32])
        self.number("expert_count", self.n_experts)
        self.number("expert_used_count", self.n_used)
        self.expert_width_key()
        self.n_dense = 0
        if self.dense_first:
            self.n_dense = rng.choice([0, 1])
            self.number("leading_dense_block_count", self.n_dense, 0.5 if self.n_dense == 0 else 1)
        self.shared_width = 0
        if self.shared == "expert_shared_count":
            count = rng.choice([1, 2])
            self.shared_width = count * self.expert_width
            self.number(self.shared, count)
        elif self.shared:
            self.shared_width = rng.choice([8, 16, 32])
            self.number(self.shared, self.shared_width)
        if self.may(self.gating_share):
            self.number("expert_gating_func", rng.choice(self.gatings))
        if self.weights_norm:
            self.number("expert_weights_norm", self.may(), 0.8)
        if self.scales_weights:
            self.number("expert_weights_scale", rng.choice([0.0, rng.uniform(0.5, 2.5)]), 0.8)
        self.groups()

    def groups(self):
        self.selection_bias = self.alike("exp_probs_b", 0.3)

    def expert_width_key(self):
        self.number("expert_feed_forward_length", self.expert_width)

    def rope(self):
        rng = self.rng
        self.n_rot = self.dk
        if self.may(self.partial):
            self.n_rot = rng.randrange(2, self.dk + 1, 2)
            self.number("rope.dimension_count", self.n_rot)
        self.number("rope.freq_base", 10 ** rng.uniform(0.7, 3), 0.8)
        self.scaling(rng.choice(self.scalings))

    def factors(self, name, n):
        self.tensors.append(Tensor.of(name, [f32(self.rng.uniform(0.5, 8)) for _ in range(n)]))

    def has_factors(self):
        return any(t.name == "rope_freqs.weight" for t in self.tensors)

    def scaling(self, kind):
        rng = self.rng
        if kind:
            self.number("rope.scaling.type", kind)
            self.number("rope.scaling.attn_factor", rng.uniform(0.7, 1.4),
                        1 if kind == "longrope" else self.magnitude)
        bare = not kind and "linear" in self.scalings and self.may(0.3)
        if kind in ("linear", "yarn", "none") or bare:
            self.number("rope.scaling.factor", rng.uniform(1.5, 40))
        if kind == "longrope":
            self.number("rope.scaling.original_context_length", rng.choice([3, 8, 11, 40]))
            self.factors("rope_factors_long.weight", self.n_rot // 2)
            self.factors("rope_factors_short.weight", self.n_rot // 2)
        elif kind == "yarn" or not bare and self.may(0.1):
            self.number("rope.scaling.original_context_length", rng.choice([16, 32, 128, 1024]),
                        0.5 if kind == "yarn" else 1)
        if kind == "yarn":
            self.number("rope.scaling.yarn_beta_fast", rng.uniform(2, 40), 0.5)
            self.number("rope.scaling.yarn_beta_slow", rng.uniform(0.2, 2), 0.5)
            self.yarn_keys()
        if kind != "longrope" and self.alike("rope_freqs", self.freqs):
            self.factors("rope_freqs.weight", self.n_rot // 2)

    def sections(self):
        n = self.n_rot // 2
        a = self.rng.randint(0, n)
        self.key(self.arch + ".rope.dimension_sections", ARRAY, [a, n - a, 0, 0], U32)

    def yarn_keys(self):
        pass

    def slide(self, period=True):
        """Keys of the window: shorter than most texts. Where full layers have no positions and there
        are factors, the usual layers slide, so that some rotate."""
        rng = self.rng
        self.number("attention.sliding_window", rng.choice([1, 2, 3, 5]))
        needed = "attention.sliding_window_pattern" in self.needed
        if period and (needed or self.may() and not self.has_factors()):
            if self.may():
                flags = [self.may() for _ in range(self.n_layers + self.n_next)]
                self.flags("attention.sliding_window_pattern", flags)
            else:
                self.number("attention.sliding_window_pattern", rng.choice([0, 1, 2, 3]))

    def flags(self, name, values):
        self.key(f"{self.arch}.{name}", ARRAY, values, BOOL)

    def any_norm(self, name, n=0):
        self.norm(name, n)
        if self.norm_bias:
            self.vector(name + ".bias", n or self.width, 0, 0.2)

    def ends(self):
        self.tensor("token_embd", self.width, self.n_vocab, self.rng.choice([0.3, 1]))
        self.any_norm("output_norm")
        if self.tied == "never" or not self.tied and self.alike("output", 0.5):
            self.tensor("output", self.width, self.n_vocab,
                        self.rng.uniform(1, 3) / math.sqrt(self.width))

    def block(self, i):
        for name in self.norms:
            self.any_norm(f"blk.{i}.{name}")
        self.attention(i)
        self.feed_forward(i)

    def attention(self, i):
        blk, width = f"blk.{i}.attn_", self.width
        n = {"q": self.n_heads[i] * self.dk, "k": self.kv[i] * self.dk, "v": self.kv[i] * self.dv}
        if self.may(self.fused):
            self.projection(blk + "qkv", width, sum(n.values()), bias=self.bias["q"])
        else:
            for c in "qkv":
                self.projection(blk + c, width, n[c], bias=self.bias[c])
        self.projection(blk + "output", self.n_heads[i] * self.dv, width, bias=self.bias["output"])
        if self.qk_norm and self.alike("qk_norm", self.qk_share):
            for c in "qk":
                self.norm(f"{blk}{c}_norm", self.dk if self.qk_norm == "head" else n[c])
        if self.sinks:
            self.vector(blk + "sinks.weight", self.n_heads[i], 0, 1)

    fused = 0.15

    def feed_forward(self, i):
        if self.mixed and i >= self.n_dense and self.mixes(i):
            self.mixture(i)
        else:
            self.dense(i, self.ff[i])

    def mixes(self, i):
        return True

    def dense(self, i, n, suffix=""):
        blk, bias = f"blk.{i}.ffn_", 0 if suffix else self.bias["ffn"]
        both = self.up == "fused" and not suffix
        if self.up == "gated" or self.up == "fused" and suffix:
            self.projection(blk + "gate" + suffix, self.width, n, bias=bias)
        self.projection(blk + "up" + suffix, self.width, 2 * n if both else n, bias=bias)
        self.projection(blk + "down" + suffix, n, self.width, bias=bias)

    def mixture(self, i, width=0):
        blk, n, width, e = f"blk.{i}.ffn_", self.expert_width, width or self.width, self.n_experts
        self.tensors.append(Tensor.random(self.rng, blk + "gate_inp.weight", "F32", [self.width, e],
                                          self.router / math.sqrt(self.width)))
        if self.alike("ffn_gate_inp.bias", self.router_bias):
            self.vector(blk + "gate_inp.bias", e, 0, 0.5)
        if self.selection_bias or self.always_biased:
            self.vector(f"blk.{i}.exp_probs_b.bias", e, 0, 0.3)
        shapes = [("up", width, n), ("down", n, width)]
        if self.gate_up and self.may():
            shapes[0] = ("gate_up", width, 2 * n)
        elif self.up != "plain":
            shapes.insert(0, ("gate", width, n))
        for name, n_cols, n_rows in shapes:
            self.expert_tensor(f"{blk}{name}_exps", n_cols, n_rows, e)
        if self.shared_width:
            self.dense(i, self.shared_width, "_shexp")
            if self.shared_gate:
                self.vector(blk + "gate_inp_shexp.weight", self.width, 0, 0.5)

    def expert_tensor(self, name, n_cols, n_rows, e):
        self.projection(name, n_cols, n_rows, e, 0)
        if self.alike("experts.bias", self.expert_biases):
            values = [f32(self.rng.gauss(0, 0.3)) for _ in range(n_rows * e)]
            self.tensors.append(Tensor.of(name + ".bias", values, [n_rows, e]))
