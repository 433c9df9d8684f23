"""Random valid models of architecture llama, and texts whose tokens are known without a tokeniser.
families.py has the other architectures."""
import math
import re
import string

from formats import TYPES, Tensor, f32
from gguf_make import ARRAY, BOOL, F32, I32, STRING, U32

PRE = ["default", "gpt-2", "llama-bpe", "smaug-bpe", "qwen2", "smollm", "tekken", "deepseek-llm"]


class Generated:
    """A llama. pairs: [key, kind, value, element kind]; tensors; letters: {character of a text: ids}."""
    arch = "llama"

    def __init__(self, rng):
        self.rng, self.pairs, self.tensors, self.letters, self.chosen = rng, [], [], {}, {}
        self.vocabulary()
        self.make()

    needed = ()  # keys that published files have, so that a file without one is refused

    def make(self):
        self.shape()
        self.rope()
        self.tensor("token_embd", self.width, self.n_vocab, self.rng.choice([0.3, 1]))
        self.norm("output_norm")
        if self.alike("output", 0.5):
            self.tensor("output", self.width, self.n_vocab, self.rng.uniform(1, 3) / math.sqrt(self.width))
        for i in range(self.n_layers):
            self.attention(i)
            self.feed_forward(i)

    def may(self, share=0.5):
        return self.rng.random() < share

    def alike(self, name, share):
        """One choice for a tensor of all layers, and for what stands beside products that go together."""
        name = re.sub(r"^blk\.\d+\.", "", name)
        name = re.sub(r"^(attn|ffn)_(q|k|v|qkv|gate|up|down|gate_up)(_exps)?\.(bias|scale)$", r"\1\3.\4", name)
        if name not in self.chosen:
            self.chosen[name] = self.may(share)
        return self.chosen[name]

    def key(self, name, kind, value, element=None):
        self.pairs.append((name, kind, value, element))

    def number(self, name, value, share=1.0):
        """A key of the architecture, unless it is left out."""
        if self.may(share) or name in self.needed:
            kind = {bool: BOOL, float: F32, str: STRING, int: U32}[type(value)]
            self.key(f"{self.arch}.{name}", kind, f32(value) if kind == F32 else value)

    def per_layer(self, name, values):
        if len(set(values)) == 1:
            self.number(name, values[0])
        else:
            self.key(f"{self.arch}.{name}", ARRAY, values, U32)

    def vocabulary(self):
        """Every character of a text is a token, or its bytes are; no two of them make one."""
        rng, spm = self.rng, self.may()
        self.spm = spm
        space = "\u2581" if spm else "\u0120"
        names = {"<unk>": 2, "<s>": 3, "</s>": 3}
        names |= {c: 1 for c in space + string.ascii_lowercase}
        if spm:
            names |= {f"<0x{b:02X}>": 6 for b in range(256)}
        else:
            names |= {"A": 1, "B": 1, "AB": 1}
        names |= {f"FILL{i}": rng.choice([1, 5]) for i in range(rng.randrange(200))}
        tokens = list(names)
        rng.shuffle(tokens)
        at = {token: i for i, token in enumerate(tokens)}
        self.n_vocab, self.bos = len(tokens), at["<s>"]
        self.letters = {c: [at[c]] for c in string.ascii_lowercase} | {" ": [at[space]]}
        if spm:
            self.letters["\u00e9"] = [at["<0xC3>"], at["<0xA9>"]]
        prefix = "tokenizer.ggml."
        self.key("general.architecture", STRING, self.arch)
        self.key(prefix + "model", STRING, "llama" if spm else "gpt2")
        self.key(prefix + "tokens", ARRAY, tokens, STRING)
        self.key(prefix + "token_type", ARRAY, [names[t] for t in tokens], I32)
        if spm:
            self.key(prefix + "scores", ARRAY, [-float(i) for i in range(len(tokens))], F32)
        else:
            self.key(prefix + "merges", ARRAY, ["A B"], STRING)
            self.key(prefix + "pre", STRING, rng.choice(PRE))
        for name, token in (("bos", "<s>"), ("eos", "</s>"), ("unknown", "<unk>")):
            self.key(f"{prefix}{name}_token_id", U32, at[token])
        self.has_bos, self.has_prefix = spm, spm
        if not spm or self.may():
            self.has_bos = self.may()
            self.key(prefix + "add_bos_token", BOOL, self.has_bos)
        if spm and self.may():
            self.has_prefix = self.may()
            self.key(prefix + "add_space_prefix", BOOL, self.has_prefix)

    def text(self, n):
        """n characters, and their ids."""
        characters = "".join(self.rng.choices(list(self.letters), k=n - 1)) + "z"
        read = " " * self.has_prefix + characters
        return characters, [i for c in read for i in self.letters[c]]

    def shape(self):
        rng = self.rng
        self.n_layers = rng.randint(1, 3)
        self.width = rng.choice([24, 32, 32, 40, 64, 64, 96, 128])
        n_kv = [rng.choice([1, 2, 3])] * self.n_layers
        heads = [n_kv[0] * rng.choice([1, 1, 2, 4])] * self.n_layers
        ff = [rng.choice([32, 56, 64, 96, 128, 256])] * self.n_layers
        divides = self.width % heads[0] == 0 and self.width // heads[0] % 2 == 0
        if divides and self.may():
            self.head_size = self.width // heads[0]
        else:
            self.head_size = rng.choice([2, 8, 14, 16, 32])
            self.number("attention.key_length", self.head_size)
        self.number("attention.value_length", self.head_size, 0.5)
        if self.may(0.3):
            for i in range(1, self.n_layers):
                n_kv[i] = rng.choice([1, 2])
                heads[i] = n_kv[i] * rng.choice([1, 3])
                ff[i] = rng.choice([32, 48, 64])
        self.heads, self.n_kv, self.ff = heads, n_kv, ff
        self.number("block_count", self.n_layers)
        self.number("embedding_length", self.width)
        self.context = rng.choice([64, 128, 4096])
        self.number("context_length", self.context)
        self.number("vocab_size", self.n_vocab, 0.5)
        self.per_layer("attention.head_count", heads)
        if n_kv != heads or self.may():
            self.per_layer("attention.head_count_kv", n_kv)
        self.per_layer("feed_forward_length", ff)
        self.number("attention.layer_norm_rms_epsilon", 10 ** rng.uniform(-6, -2))
        self.number("attention.sliding_window", rng.choice([0, 1, 3, 7]), 0.2)
        self.n_experts = rng.choice([0, 0, 1, 2, 4, 5])
        if self.n_experts:
            self.number("expert_count", self.n_experts)
            self.number("expert_used_count", rng.randint(1, self.n_experts))

    def rope(self):
        rng = self.rng
        n_rot = self.head_size
        if self.may():
            n_rot = rng.randrange(2, self.head_size + 1, 2)
            self.number("rope.dimension_count", n_rot)
        self.number("rope.freq_base", 10 ** rng.uniform(1, 6), 0.6)
        self.number("rope.scaling.attn_factor", rng.uniform(0.7, 1.4), 0.2)
        kind = rng.choice(["", "", "none", "linear", "yarn", "yarn"])
        if kind:
            self.number("rope.scaling.type", kind)
        name = rng.choice(["factor", "factor", "linear"])
        if kind or self.may(0.3):
            self.number("rope.scale_linear" if name == "linear" else "rope.scaling.factor",
                        rng.uniform(1.5, 8))
        if kind or name == "linear":
            self.number("rope.scaling.original_context_length", rng.choice([16, 32, 1024]), 0.4)
        if kind == "yarn":
            self.number("rope.scaling.yarn_beta_fast", rng.uniform(4, 40), 0.3)
            self.number("rope.scaling.yarn_beta_slow", rng.uniform(0.2, 2), 0.3)
        if self.alike("rope_freqs", 0.2):
            factors = [f32(rng.uniform(0.5, 8)) for _ in range(n_rot // 2)]
            self.tensors.append(Tensor.of("rope_freqs.weight", factors))

    def tensor(self, name, n_cols, n_rows, size, stack=None, run=0):
        """run: of how many columns whole blocks are."""
        kinds = [kind for kind, row in TYPES.items() if (run or n_cols) % row[1] == 0]
        ne = [n_cols, n_rows] + ([stack] if stack else [])
        kind = self.kind_of(name, kinds)
        self.tensors.append(Tensor.random(self.rng, name + ".weight", kind, ne, size))

    def kind_of(self, name, kinds):
        return self.rng.choice(kinds)

    def vector(self, name, n, around, spread):
        values = [f32(self.rng.gauss(around, spread)) for _ in range(n)]
        self.tensors.append(Tensor.of(name, values))

    def norm(self, name, n=0):
        self.vector(name + ".weight", n or self.width, 1, 0.2)

    def projection(self, name, n_cols, n_rows, stack=None, bias=0.2):
        self.tensor(name, n_cols, n_rows, self.rng.uniform(0.5, 1.5) / math.sqrt(n_cols), stack)
        kind = self.tensors[-1].kind
        if self.alike(name + ".bias", bias):
            self.vector(name + ".bias", n_rows, 0, 0.3)
        if self.alike("NVFP4" if kind == "NVFP4" else name + ".scale", 0.15):
            self.vector(name + ".scale", stack or 1, 1, 0.3)
            if self.may():
                self.vector(name + ".input_scale", stack or 1, 1, 0.3)

    def attention(self, i):
        blk, d = f"blk.{i}.", self.head_size
        self.norm(blk + "attn_norm")
        n_q, n_kv = self.heads[i] * d, self.n_kv[i] * d
        if self.may(0.25):
            self.projection(blk + "attn_qkv", self.width, n_q + 2 * n_kv)
        else:
            for name, n in (("attn_q", n_q), ("attn_k", n_kv), ("attn_v", n_kv)):
                self.projection(blk + name, self.width, n)
        self.projection(blk + "attn_output", n_q, self.width)

    def feed_forward(self, i):
        blk, ff = f"blk.{i}.", self.ff[i]
        self.norm(blk + "ffn_norm")
        shapes = (("ffn_gate", self.width, ff), ("ffn_up", self.width, ff), ("ffn_down", ff, self.width))
        if self.n_experts:
            self.tensor(blk + "ffn_gate_inp", self.width, self.n_experts, 1 / math.sqrt(self.width))
        apart = self.may()
        for name, n_cols, n_rows in shapes:
            if not self.n_experts:
                self.projection(blk + name, n_cols, n_rows)
            elif apart:
                for e in range(self.n_experts):
                    self.tensor(f"{blk}{name}.{e}", n_cols, n_rows, 1 / math.sqrt(n_cols))
            else:
                self.projection(f"{blk}{name}_exps", n_cols, n_rows, self.n_experts, 0)
