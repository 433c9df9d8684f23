"""What each architecture does in its own way, beside what forward.py has of all."""
import math

from forward import (Model, dot, gelu, layer_norm, plus, rms, rows, sigmoid, squared_relu)
from recurrent import delta_net, mamba2


class Llama(Model):
    differs = True


class Qwen2(Model):
    halves, window_by_authors = True, False


class Qwen2moe(Qwen2):
    renormalise = False


class Qwen3(Qwen2):
    qk_norm = "head"


class Mistral3(Model):
    window_by_authors, compat_betas = False, True

    def yarn_magnitude(self, s):
        by = self.k.get("rope.scaling.yarn_log_multiplier", 0.0)
        return (1 + 0.1 * math.log(s)) / (1 + 0.1 * by * math.log(s))

    def query_factor(self, i, p):
        n = self.k.get("rope.scaling.original_context_length", self.k["context_length"])
        return 1 + self.k.get("attention.temperature_scale", 0.0) * math.log(1 + p // n)


class Gemma2(Model):
    halves, window_by_authors = True, False
    post_attn, post_ffn, activation = "post_attention_norm", "post_ffw_norm", staticmethod(gelu)
    period, default_window, default_cap, whole_width = 2, 4096, 50.0, 46
    final_cap = 30.0

    def __init__(self, *more):
        super().__init__(*more)
        self.score_cap = self.k.get("attn_logit_softcapping", self.default_cap)

    def embedding_scale(self):
        return math.sqrt(self.width)

    def score_scale(self, i):
        if self.n_layers == self.whole_width:
            return 1 / math.sqrt(self.width // self.n_heads(i)[0])
        return super().score_scale(i)

    def rope(self, i):
        if not self.slides(i) or not self.sliding_window():
            return self.make_rope()
        return self.make_rope(base=self.sliding_base(), kind=self.sliding_kind())

    def sliding_base(self):
        return self.k.get("rope.freq_base_swa", self.k.get("rope.freq_base", 10000.0))

    def sliding_kind(self):
        return None


class Gemma3(Gemma2):
    qk_norm, period, default_window, default_cap, whole_width = "head", 6, 0, 0.0, 62
    final_cap = 0.0

    def sliding_base(self):
        return self.k.get("rope.freq_base_swa", 10000.0)

    def sliding_kind(self):
        return "none"


class Gemma4(Gemma3):
    whole_width = None

    def head_size(self, i):
        size = super().head_size(i)
        return self.k.get("attention.key_length_swa", size) if self.slides(i) else size

    value_size = head_size

    def score_scale(self, i):
        return 1.0

    def rope(self, i):
        if self.slides(i):
            n = self.k.get("rope.dimension_count_swa", self.head_size(i))
            return self.make_rope(n, self.sliding_base(), "none", [1.0] * (n // 2))
        return self.make_rope(self.k.get("rope.dimension_count", self.head_size(i)))

    def kept_by(self, i):
        own = self.n_layers - self.k.get("attention.shared_kv_layers", 0)
        return i if i < own else max(j for j in range(own) if self.slides(j) == self.slides(i))

    def heads(self, i, h):
        size = self.head_size(i)

        def cut(c):
            return [rows(row, size) for row in self.product(f"blk.{i}.attn_{c}", h)]
        q = self.turn(i, self.head_norm(i, "q", cut("q")))
        if self.kept_by(i) != i:
            return q, *self.kept[self.kept_by(i)]
        k = cut("k")
        v = cut("v") if f"blk.{i}.attn_v.weight" in self.values else k
        v = [[rms(head, self.eps) for head in row] for row in v]
        self.kept[i] = self.turn(i, self.head_norm(i, "k", k)), v
        return q, *self.kept[i]

    def embed(self, tokens):
        self.kept, x = {}, super().embed(tokens)
        n = self.k.get("embedding_length_per_layer_input", 0)
        self.inputs = []
        if n:
            weight = self.values["per_layer_proj_norm.weight"]
            model = self.product("per_layer_model_proj", x)
            for t, c in zip(tokens, model):
                e = [v * math.sqrt(n) for v in self.matrix("per_layer_token_embd.weight")[t]]
                c = [v for row in rows([v / math.sqrt(self.width) for v in c], n)
                     for v in rms(row, self.eps, weight)]
                self.inputs.append(rows([(a + b) / math.sqrt(2) for a, b in zip(c, e)], n))
        return x

    def feed_forward(self, i, h):
        """h: not normed yet, as the router takes it so."""
        blk = f"blk.{i}."
        y = self.dense(i, self.norm(blk + "ffn_norm", h))
        if blk + "ffn_gate_inp.weight" in self.values:
            scale = self.values.get(blk + "ffn_gate_inp.scale", [1.0] * self.width)
            routed = [[v * s / math.sqrt(self.width) for v, s in zip(rms(row, self.eps), scale)]
                      for row in h]
            logits = [[dot(w, row) for w in self.matrix(blk + "ffn_gate_inp.weight")] for row in routed]
            m = self.experts(i, self.norm(blk + "pre_ffw_norm_2", h), logits)
            y = plus(self.norm(blk + "post_ffw_norm_1", y), self.norm(blk + "post_ffw_norm_2", m))
        return y

    ffn_norm = None

    def layer(self, i, x):
        x, blk = super().layer(i, x), f"blk.{i}."
        if self.inputs:
            gate = self.product(blk + "inp_gate", x)
            inner = [[gelu(a) * b for a, b in zip(row, u[i])] for row, u in zip(gate, self.inputs)]
            x = plus(x, self.norm(blk + "post_norm", self.product(blk + "proj", inner)))
        scale = self.values.get(blk + "layer_output_scale.weight", [1.0])[0]
        return [[scale * v for v in row] for row in x]


class GptOss(Model):
    differs = True
    halves, window_by_authors, ffn_norm, gating = True, False, "post_attention_norm", 3
    renormalise = False
    period, default_window = 2, 0

    def rounds_yarn(self):
        return self.compat

    def gated(self, gate, up):
        gate, up = [min(a, 7.0) for a in gate], [max(-7.0, min(u, 7.0)) for u in up]
        return [a * sigmoid(1.702 * a) * (u + 1) for a, u in zip(gate, up)]


class Phi3(Model):
    differs = True
    halves, up = True, "fused"


class Glm4(Model):
    post_attn, post_ffn, up, window_by_authors = "post_attention_norm", "post_ffw_norm", "fused", False

    def __init__(self, *more):
        super().__init__(*more)
        self.halves = "rope.dimension_sections" in self.k


class Glm4moe(Qwen3):
    ffn_norm, gating, renormalise, scales_weights = "post_attention_norm", 2, False, True


class Deepseek2(Model):
    """Files that do not say the gating are V2's, or with biases in the selection the first ones of
    GLM 4.7 Flash, which are sigmoids; llama.cpp takes a softmax for all of this size."""
    differs = True
    renormalise, scales_weights, window_by_authors = False, True, False

    def head_size(self, i):
        return self.k.get("attention.key_length_mla") or super().head_size(i)

    def value_size(self, i):
        return self.k.get("attention.value_length_mla") or super().value_size(i)

    def yarn_magnitude(self, s):
        return 1.0

    def score_scale(self, i):
        scale = super().score_scale(i)
        if self.k.get("rope.scaling.type") == "yarn":
            by = self.k.get("rope.scaling.yarn_log_multiplier", 0.0)
            scale *= (1 + by * math.log(self.k.get("rope.scaling.factor") or 1.0)) ** 2
        return scale

    def query_factor(self, i, p):
        original = self.k.get("rope.scaling.original_context_length", self.k["context_length"])
        n = self.k.get("attention.temperature_length", original)
        return 1 + self.k.get("attention.temperature_scale", 0.0) * math.log(1 + p // n)

    @property
    def gating(self):
        biased = any(name.endswith("exp_probs_b.bias") for name in self.values)
        return 2 if biased and not self.compat else 1

    def counted_of_group(self, gating):
        return 1 if gating == 1 and not self.compat else 2  # V2's rule, V3's

    def compressed(self, i):
        return f"blk.{i}.attn_kv_b.weight" not in self.values

    def held(self, i, what, x):
        return x if what != "indexer" and self.compressed(0) else super().held(i, what, x)

    def rank(self, i):
        return self.k["attention.kv_lora_rank"]

    def shared_keys(self, i, x):
        """The part of keys that is turned, before it is."""
        return x

    def heads(self, i, h):
        blk, dk, dv = f"blk.{i}.attn_", self.head_size(i), self.value_size(i)
        rank, n = self.rank(i), self.n_heads(i)[0]
        nope = dk - self.k["rope.dimension_count"]
        if self.k.get("attention.q_lora_rank"):
            q = self.product(blk + "q_b", self.norm(blk + "q_a_norm", self.product(blk + "q_a", h)))
        else:
            q = self.product(blk + "q", h)
        z = self.product(blk + "kv_a_mqa", h)
        c = self.norm(blk + "kv_a_norm", [row[:rank] for row in z])
        rope = self.rope_of(i)
        q = [[head[:nope] + rope(head[nope:], p) for head in rows(row, dk)] for p, row in enumerate(q)]
        turned = [rope(row, p) for p, row in enumerate(self.shared_keys(i, [row[rank:] for row in z]))]
        if self.compressed(i):      # a row of the cache is both
            c, turned = map(list, zip(*super().held(i, "k", list(zip(c, turned)))))
            down = [list(zip(*m)) for m in rows(self.matrix(blk + "k_b.weight"), rank)]
            k = [[[dot(column, row) for column in m] for m in down] for row in c]
            v = [rows(row, dv) for row in self.product(blk + "v_b", c)]
        else:
            both = [rows(row, nope + dv) for row in self.product(blk + "kv_b", c)]
            k = [[head[:nope] for head in row] for row in both]
            v = [[head[nope:] for head in row] for row in both]
        assert len(k[0]) == len(v[0]) == n
        return q, [[head + r for head in row] for row, r in zip(k, turned)], v


class MinimaxM2(Qwen3):
    qk_norm = "whole"


class Llama4(Model):
    window_by_authors = False

    def turns(self, i):
        return (i + 1) % 4 != 0 or self.k.get("attention.sliding_window") == 0

    def rope(self, i):
        return self.make_rope() if self.turns(i) else None

    def turn(self, i, x):
        x = super().turn(i, x)
        if not self.turns(i) or self.k.get("expert_count") == 128:
            return x
        return [[rms(head, self.eps) for head in row] for row in x]

    def first_seen(self, i, p):
        whole = not self.turns(i) or self.k.get("attention.sliding_window") == 0
        return 0 if whole else p // 8192 * 8192

    def query_factor(self, i, p):
        return 1.0 if self.turns(i) else 1 + 0.1 * math.log(1 + (p + 1) // 8192)

    def experts(self, i, h, logits):
        out = []
        for p, (row, g) in enumerate(zip(h, logits)):
            total = [0.0] * len(row)
            for e in self.ranked(g, self.k["expert_used_count"], range(len(g)), p):
                w = sigmoid(g[e])
                total = plus([total], [self.one_expert(i, e, [w * v for v in row])])[0]
            out.append(total)
        return out


class Olmo2(Model):
    halves, qk_norm, window_by_authors, period = True, "whole", False, 4
    attn_norm, post_attn, ffn_norm, post_ffn = None, "post_attention_norm", None, "post_ffw_norm"

    def rope(self, i):
        if not self.sliding_window() or not self.slides(i):
            return self.make_rope()
        return self.make_rope(base=self.k.get("rope.freq_base_swa"), kind="none", magnitude=1.0)


class Granite(Model):
    window_by_authors = False

    def embedding_scale(self):
        return self.k.get("embedding_scale") or 1.0

    def residual_scale(self):
        return self.k.get("residual_scale") or 1.0

    def head_scale(self):
        return 1 / self.k.get("logit_scale", 1.0)

    def score_scale(self, i):
        return self.k.get("attention.scale") or super().score_scale(i)

    def rope(self, i):
        return self.make_rope() if self.k.get("rope.scaling.finetuned", True) else None

    def expert_width(self, i):
        return self.per_layer("feed_forward_length", i)


class Smollm3(Model):
    window_by_authors = False

    def rope(self, i):
        return None if (i + 1) % 4 == 0 else self.make_rope()


class CommandR(Model):
    eps_key, normalise = "attention.layer_norm_epsilon", staticmethod(layer_norm)
    parallel, window_by_authors = True, False

    def head_scale(self):
        return self.k.get("logit_scale") or 1.0

    def sliding_window(self):
        return 0

    def head_norm(self, i, c, x):
        name = f"blk.{i}.attn_{c}_norm.weight"
        if name not in self.values:
            return x
        return [[layer_norm(head, self.eps, w) for head, w in zip(row, self.matrix(name))] for row in x]


class Cohere2(CommandR):
    period = 4

    def sliding_window(self):
        return self.k["attention.sliding_window"]

    def rope(self, i):
        return self.make_rope() if self.slides(i) else None


class Starcoder2(Model):
    differs = True
    eps_key, normalise = "attention.layer_norm_epsilon", staticmethod(layer_norm)
    halves, up, activation, default_window = True, "plain", staticmethod(gelu), 4096


class Qwen3next(Qwen3):
    differs = True
    ffn_norm, interleaved = "post_attention_norm", False

    def recurrent(self, i):
        listed = self.k.get("attention.recurrent_layers")
        return listed[i] if listed else (i + 1) % self.k.get("full_attention_interval", 4) != 0

    def mix(self, i, h):
        return (delta_net(self, i, h, self.interleaved) if self.recurrent(i)
                else self.attention(i, h))

    def attention(self, i, h):
        q, k, v = self.qkv(i, h)
        d = self.head_size(i)
        both = [rows(row, 2 * d) for row in q]
        q, k = [[head[:d] for head in row] for row in both], [rows(row, d) for row in k]
        q, k = self.turn(i, self.head_norm(i, "q", q)), self.turn(i, self.head_norm(i, "k", k))
        o = self.attend(i, q, k, [rows(row, self.value_size(i)) for row in v])
        gates = [[g for head in row for g in head[d:]] for row in both]
        o = [[x * sigmoid(g) for x, g in zip(*pair)] for pair in zip(o, gates)]
        return self.product(f"blk.{i}.attn_output", o)


class Qwen35(Qwen3next):
    interleaved = True


class NemotronH(Model):
    differs = True
    up, activation, gating, renormalise, scales_weights = "plain", staticmethod(squared_relu), 2, False, True
    window_by_authors = False

    def __init__(self, keys, *more, **named):
        if keys["general.architecture"] + "." + self.eps_key not in keys:
            self.eps_key = "attention.layer_norm_epsilon"
        super().__init__(keys, *more, **named)

    def rope(self, i):
        return None

    def layer(self, i, x):
        h = self.norm(f"blk.{i}.attn_norm", x)
        if self.per_layer("feed_forward_length", i, self.per_layer("expert_feed_forward_length", i)):
            part = self.feed_forward
        else:
            part = self.attention if self.n_heads(i)[1] else self.mamba
        return plus(x, part(i, h))

    def mamba(self, i, h):
        return mamba2(self, i, h, 0.0 if self.compat else 0.001)

    def experts(self, i, h, logits):
        down, up = (f"blk.{i}.ffn_latent_" + name for name in ("down", "up"))
        if down + ".weight" not in self.values:
            return super().experts(i, h, logits)
        return self.product(up, super().experts(i, self.product(down, h), logits))


ARCHITECTURES = {
    "llama": Llama, "qwen2": Qwen2, "qwen3": Qwen3, "mistral3": Mistral3, "qwen3moe": Qwen3,
    "gemma3": Gemma3, "gemma2": Gemma2, "gpt-oss": GptOss, "phi3": Phi3, "glm4moe": Glm4moe,
    "qwen35": Qwen35, "qwen35moe": Qwen35, "qwen3next": Qwen3next, "gemma4": Gemma4,
    "deepseek2": Deepseek2, "minimax-m2": MinimaxM2, "llama4": Llama4, "olmo2": Olmo2,
    "granite": Granite, "granitemoe": Granite, "smollm3": Smollm3, "glm4": Glm4, "cohere2": Cohere2,
    "command-r": CommandR, "qwen2moe": Qwen2moe, "starcoder2": Starcoder2, "nemotron_h": NemotronH,
    "nemotron_h_moe": NemotronH}

