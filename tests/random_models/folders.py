"""Random published folders: safetensors files with config.json, and the same models as GGUF."""
import json
import math
import struct

from formats import TYPES, Tensor, f32, random_blocks
from generate import Generated
from gguf_make import ARRAY, BOOL, F32, STRING, U32, U64

WIDTH, HEADS, KV, SIZE, FF, LAYERS, EXPERTS = 64, 8, 2, 8, 128, 2, 3


class Vocabulary(Generated):
    """Keys of the tokens alone."""

    def make(self):
        self.pairs = self.pairs[1:]


def rows_of(data, n):
    size = len(data) // n
    return [data[i * size:(i + 1) * size] for i in range(n)]


def turned(data, n_rows, heads):
    """Halves of each head's rows become neighbours."""
    rows, d = rows_of(data, n_rows), n_rows // heads
    return b"".join(rows[h * d + i // 2 + i % 2 * (d // 2)] for h in range(heads) for i in range(d))


def half(data, second):
    n = len(data) // 2
    return data[n:] if second else data[:n]


class Folder:
    """One model. stored: {name: (dtype, shape, bytes)}; tensors and pairs are GGUF's."""

    def __init__(self, rng, describe, kind="BF16"):
        self.rng, self.kind, self.stored, self.tensors = rng, kind, {}, []
        self.vocabulary = Vocabulary(rng)
        self.config, self.keys, self.others = {}, {}, {}  # others: keys of no architecture
        self.made = {}  # values of stored tensors that several are made of
        describe(self)

    def random(self, name, shape):
        """A stored tensor."""
        size = 1 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.3
        data = random_blocks(self.rng, self.kind, math.prod(shape), size)
        self.stored[name] = (self.kind, shape, data)
        return data

    def matrix(self, name, to, n_rows, n_cols, heads=0, bias=False):
        data = self.random(f"{name}.weight", [n_rows, n_cols])
        if heads:
            data = turned(data, n_rows, heads)
        self.tensors.append(Tensor(f"{to}.weight", self.kind, [n_cols, n_rows], data))
        if bias:
            data = self.random(f"{name}.bias", [n_rows])
            if heads:
                data = turned(data, n_rows, heads)
            self.tensors.append(Tensor(f"{to}.bias", self.kind, [n_rows], data).decoded())

    def vector(self, name, to, n, plus=0):
        data = self.random(name, [n])
        values = Tensor("", self.kind, [n], data).values()
        self.tensors.append(Tensor.of(to, [f32(v + plus) for v in values]))

    def experts(self, names, to, n_rows, n_cols):
        """One stored tensor each, names with {} for the number, as one stack."""
        data = b"".join(self.random(names.format(e), [n_rows, n_cols]) for e in range(EXPERTS))
        self.tensors.append(Tensor(to, self.kind, [n_cols, n_rows, EXPERTS], data))

    def stack(self, name, to, n_rows, n_cols):
        """The same in one stored tensor."""
        data = self.random(name, [EXPERTS, n_rows, n_cols])
        self.tensors.append(Tensor(to, self.kind, [n_cols, n_rows, EXPERTS], data))

    def fused(self, name, first, second, n, n_cols, n_rows):
        """Matrices of 2 n_rows rows, the first half of which is one tensor's."""
        shape = ([n] if n > 1 else []) + [2 * n_rows, n_cols]
        parts = rows_of(self.random(name, shape), n)
        ne = [n_cols, n_rows] + ([n] if n > 1 else [])
        for to, which in ((first, False), (second, True)):
            data = b"".join(half(part, which) for part in parts)
            self.tensors.append(Tensor(to, self.kind, ne, data))

    def ends(self, head=True, plus=0):
        n = self.vocabulary.n_vocab
        self.matrix("model.embed_tokens", "token_embd", n, WIDTH)
        self.vector("model.norm.weight", "output_norm.weight", WIDTH, plus)
        if head:
            self.matrix("lm_head", "output", n, WIDTH)
        else:
            self.config["tie_word_embeddings"] = True

    def common(self, name, arch, **more):
        """Members and keys that most have."""
        self.arch = arch
        self.config |= {"architectures": [name], "num_hidden_layers": LAYERS, "hidden_size": WIDTH,
                        "num_attention_heads": HEADS, "num_key_value_heads": KV, "head_dim": SIZE,
                        "intermediate_size": FF, "max_position_embeddings": 64,
                        "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 1000} | more
        self.keys |= {"block_count": LAYERS, "embedding_length": WIDTH, "context_length": 64,
                      "attention.head_count": HEADS, "attention.head_count_kv": KV,
                      "attention.key_length": SIZE, "attention.value_length": SIZE,
                      "feed_forward_length": FF, "rope.freq_base": 1000.0,
                      "attention.layer_norm_rms_epsilon": f32(1e-5)}

    def attention(self, i, turn=False, bias=False, plus=0, qk_norm=False):
        at, to = f"model.layers.{i}.self_attn.", f"blk.{i}.attn_"
        self.matrix(at + "q_proj", to + "q", HEADS * SIZE, WIDTH, HEADS * turn, bias)
        self.matrix(at + "k_proj", to + "k", KV * SIZE, WIDTH, KV * turn, bias)
        self.matrix(at + "v_proj", to + "v", KV * SIZE, WIDTH, bias=bias)
        self.matrix(at + "o_proj", to + "output", WIDTH, HEADS * SIZE)
        for c in "qk" * qk_norm:
            self.vector(f"{at}{c}_norm.weight", f"{to}{c}_norm.weight", SIZE, plus)

    def norms(self, i, names, plus=0):
        for name, to in names.items():
            self.vector(f"model.layers.{i}.{name}.weight", f"blk.{i}.{to}.weight", WIDTH, plus)

    def dense(self, i):
        at, to = f"model.layers.{i}.mlp.", f"blk.{i}.ffn_"
        for name, n_rows, n_cols in (("gate", FF, WIDTH), ("up", FF, WIDTH), ("down", WIDTH, FF)):
            self.matrix(f"{at}{name}_proj", to + name, n_rows, n_cols)

    def gguf_pairs(self):
        kinds = {bool: BOOL, float: F32, str: STRING, int: U32}
        out = [("general.architecture", STRING, self.arch, None), *self.vocabulary.pairs]
        keys = {f"{self.arch}.{name}": value for name, value in self.keys.items()} | self.others
        for name, value in keys.items():
            kind = ARRAY if isinstance(value, list) else kinds[type(value)]
            element = kinds[type(value[0])] if kind == ARRAY else None
            out.append((name, kind, value, U64 if element == U32 and max(value) >= 2**32 else element))
        return out

    def write(self, path, n_files):
        """n_files 1: model.safetensors; more: with an index."""
        path.mkdir()
        (path / "config.json").write_text(json.dumps(self.config))
        names = sorted(self.stored)
        self.rng.shuffle(names)
        weight_map = {}
        for i in range(n_files):
            mine = names[i::n_files]
            name = f"model-{i + 1:05}-of-{n_files:05}.safetensors" if n_files > 1 else "model.safetensors"
            weight_map |= dict.fromkeys(mine, name)
            (path / name).write_bytes(safetensors({n: self.stored[n] for n in mine}))
        if n_files > 1:
            index = {"metadata": {}, "weight_map": weight_map}
            (path / "model.safetensors.index.json").write_text(json.dumps(index))


def safetensors_header(tensors):
    """tensors: {name: (dtype, shape, number of bytes)}."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, n_bytes) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + n_bytes]}
        at += n_bytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def safetensors(tensors):
    sizes = {name: (dtype, shape, len(data)) for name, (dtype, shape, data) in tensors.items()}
    return safetensors_header(sizes) + b"".join(t[2] for t in tensors.values())


TWO = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
FOUR = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
        "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}


def llama(m):
    m.common("LlamaForCausalLM", "llama", attention_bias=True, rope_scaling={
        "rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
        "original_max_position_embeddings": 64})
    m.ends(head=False)
    factors = []
    for i in range(SIZE // 2):
        wave = f32(f32(2 * math.pi) / f32(1 / f32(f32(1000) ** (2 * i / SIZE))))
        smooth = (64 / wave - 1) / 3
        factors.append(1.0 if wave < 16 else 8.0 if wave > 64 else f32(1 / ((1 - smooth) / 8 + smooth)))
    m.tensors.append(Tensor.of("rope_freqs.weight", factors))
    for i in range(LAYERS):
        m.norms(i, TWO)
        m.attention(i, turn=True, bias=True)
        m.dense(i)


def mixtral(m):
    m.common("MixtralForCausalLM", "llama", num_local_experts=EXPERTS, num_experts_per_tok=2,
             sliding_window=None)
    m.keys |= {"expert_count": EXPERTS, "expert_used_count": 2}
    m.ends()
    for i in range(LAYERS):
        m.norms(i, TWO)
        m.attention(i, turn=True)
        at = f"model.layers.{i}.block_sparse_moe."
        m.matrix(at + "gate", f"blk.{i}.ffn_gate_inp", EXPERTS, WIDTH)
        for name, to, n_rows, n_cols in (("w1", "gate", FF, WIDTH), ("w2", "down", WIDTH, FF),
                                         ("w3", "up", FF, WIDTH)):
            m.experts(f"{at}experts.{{}}.{name}.weight", f"blk.{i}.ffn_{to}_exps.weight", n_rows, n_cols)


def qwen3(m):
    m.common("Qwen3ForCausalLM", "qwen3")
    m.ends()
    for i in range(LAYERS):
        m.norms(i, TWO)
        m.attention(i, qk_norm=True)
        m.dense(i)


def qwen2moe(m):
    """The experts as transformers 5 keeps them in memory."""
    m.common("Qwen2MoeForCausalLM", "qwen2moe", num_experts=EXPERTS, num_experts_per_tok=2,
             moe_intermediate_size=64, shared_expert_intermediate_size=24, norm_topk_prob=False)
    m.keys |= {"expert_count": EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": 64,
               "expert_shared_feed_forward_length": 24}
    m.ends()
    for i in range(LAYERS):
        m.norms(i, TWO)
        m.attention(i, bias=True)
        at, to = f"model.layers.{i}.mlp.", f"blk.{i}.ffn_"
        m.matrix(at + "gate", to + "gate_inp", EXPERTS, WIDTH)
        m.fused(at + "experts.gate_up_proj", to + "gate_exps.weight", to + "up_exps.weight", EXPERTS, WIDTH, 64)
        m.stack(at + "experts.down_proj", to + "down_exps.weight", WIDTH, 64)
        for name, n_rows, n_cols in (("gate", 24, WIDTH), ("up", 24, WIDTH), ("down", WIDTH, 24)):
            m.matrix(f"{at}shared_expert.{name}_proj", f"{to}{name}_shexp", n_rows, n_cols)
        data = m.random(at + "shared_expert_gate.weight", [1, WIDTH])
        m.tensors.append(Tensor(to + "gate_inp_shexp.weight", m.kind, [WIDTH], data).decoded())


def gemma3(m):
    m.common("Gemma3ForConditionalGeneration", "gemma3", rope_local_base_freq=10.0,
             sliding_window=3, layer_types=["full_attention", "sliding_attention"],
             query_pre_attn_scalar=SIZE)
    del m.config["hidden_act"]
    m.config = {"architectures": m.config.pop("architectures"), "vision_config": {},
                "text_config": m.config | {"hidden_activation": "gelu_pytorch_tanh"}}
    m.keys |= {"rope.freq_base_swa": 10.0, "attention.sliding_window": 3,
               "attention.sliding_window_pattern": [False, True]}
    m.ends(head=False, plus=1)
    for i in range(LAYERS):
        m.norms(i, FOUR, plus=1)
        m.attention(i, plus=1, qk_norm=True)
        m.dense(i)
    m.stored = {"language_model." + name: t for name, t in m.stored.items()}
    m.stored["vision_tower.patch_embedding.weight"] = ("F32", [1, 1, 1, 1, 2], bytes(8))


def phi3(m):
    lists = {"short_factor": [1.5, 2.0, 1.25, 1.0], "long_factor": [4.0, 2.5, 3.0, 1.0]}
    m.common("Phi3ForCausalLM", "phi3", original_max_position_embeddings=16, sliding_window=None,
             rope_scaling={"type": "longrope"} | lists)
    m.keys |= {"rope.scaling.original_context_length": 16,
               "rope.scaling.attn_factor": f32(math.sqrt(1 + math.log(4) / math.log(16)))}
    m.ends()
    for name, values in lists.items():
        m.tensors.append(Tensor.of(f"rope_factors_{name.split('_')[0]}.weight", values))
    for i in range(LAYERS):
        m.norms(i, TWO)
        m.matrix(f"model.layers.{i}.self_attn.qkv_proj", f"blk.{i}.attn_qkv", (HEADS + 2 * KV) * SIZE, WIDTH)
        m.matrix(f"model.layers.{i}.self_attn.o_proj", f"blk.{i}.attn_output", WIDTH, HEADS * SIZE)
        m.matrix(f"model.layers.{i}.mlp.gate_up_proj", f"blk.{i}.ffn_up", 2 * FF, WIDTH)
        m.matrix(f"model.layers.{i}.mlp.down_proj", f"blk.{i}.ffn_down", WIDTH, FF)


def granitemoe(m):
    m.common("GraniteMoeSharedForCausalLM", "granitemoe", num_local_experts=EXPERTS,
             num_experts_per_tok=2, shared_intermediate_size=16, attention_multiplier=0.2,
             embedding_multiplier=3, residual_multiplier=0.5, logits_scaling=2)
    m.keys |= {"expert_count": EXPERTS, "expert_used_count": 2, "expert_shared_feed_forward_length": 16,
               "attention.scale": f32(0.2), "embedding_scale": 3.0, "residual_scale": 0.5, "logit_scale": 2.0}
    m.ends(head=False)
    for i in range(LAYERS):
        m.norms(i, TWO)
        m.attention(i, turn=True)
        at, to = f"model.layers.{i}.", f"blk.{i}.ffn_"
        m.matrix(at + "block_sparse_moe.router.layer", to + "gate_inp", EXPERTS, WIDTH)
        m.fused(at + "block_sparse_moe.input_linear.weight", to + "gate_exps.weight", to + "up_exps.weight",
                EXPERTS, WIDTH, FF)
        m.stack(at + "block_sparse_moe.output_linear.weight", to + "down_exps.weight", WIDTH, FF)
        m.fused(at + "shared_mlp.input_linear.weight", to + "gate_shexp.weight", to + "up_shexp.weight",
                1, WIDTH, 16)
        m.matrix(at + "shared_mlp.output_linear", to + "down_shexp", WIDTH, 16)


def columns(data, n_rows, n_cols, turn):
    """Even (turn 0) or odd columns of each row."""
    return b"".join(b"".join(rows_of(row, n_cols)[turn::2]) for row in rows_of(data, n_rows))


def transposed(data, n, n_rows, n_cols):
    """n matrices [n_rows, n_cols] as [n_cols, n_rows]."""
    return b"".join(b"".join(rows_of(m, n_rows * n_cols)[c::n_cols]) for m in rows_of(data, n) for c in range(n_cols))


def gpt_oss(m):
    """Gate and up take turns in columns; each matrix of an expert is stored transposed."""
    m.common("GptOssForCausalLM", "gpt-oss", num_local_experts=EXPERTS, num_experts_per_tok=2, sliding_window=3,
             swiglu_limit=7.0, layer_types=["sliding_attention", "full_attention"], rope_scaling={
                 "rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "truncate": False})
    m.keys |= {"expert_count": EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": FF,
               "attention.sliding_window": 3, "attention.sliding_window_pattern": [True, False],
               "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}
    m.ends()
    for i in range(LAYERS):
        m.norms(i, TWO | {"post_attention_layernorm": "post_attention_norm"})
        m.attention(i, bias=True)
        at, to = f"model.layers.{i}.", f"blk.{i}."
        data = m.random(at + "self_attn.o_proj.bias", [WIDTH])
        m.tensors.append(Tensor(to + "attn_output.bias", m.kind, [WIDTH], data).decoded())
        m.vector(at + "self_attn.sinks", to + "attn_sinks.weight", HEADS)
        m.matrix(at + "mlp.router", to + "ffn_gate_inp", EXPERTS, WIDTH, bias=True)
        at, to = at + "mlp.experts.", to + "ffn_"
        both = m.random(at + "gate_up_proj", [EXPERTS, WIDTH, 2 * FF])
        biases = m.random(at + "gate_up_proj_bias", [EXPERTS, 2 * FF])
        for turn, name in enumerate(("gate", "up")):
            mine = columns(both, EXPERTS * WIDTH, 2 * FF, turn)
            m.tensors.append(Tensor(f"{to}{name}_exps.weight", m.kind, [WIDTH, FF, EXPERTS],
                                    transposed(mine, EXPERTS, WIDTH, FF)))
            m.tensors.append(Tensor(f"{to}{name}_exps.bias", m.kind, [FF, EXPERTS],
                                    columns(biases, EXPERTS, 2 * FF, turn)).decoded())
        data = m.random(at + "down_proj", [EXPERTS, FF, WIDTH])
        m.tensors.append(Tensor(to + "down_exps.weight", m.kind, [FF, WIDTH, EXPERTS],
                                transposed(data, EXPERTS, FF, WIDTH)))
        data = m.random(at + "down_proj_bias", [EXPERTS, WIDTH])
        m.tensors.append(Tensor(to + "down_exps.bias", m.kind, [WIDTH, EXPERTS], data).decoded())


NET = 2, 8, 4  # heads of a delta net, their size, taps


def qwen35(m):
    qwen35_common(m, "Qwen3_5ForCausalLM", "qwen35")
    m.ends(plus=1)
    for i in range(LAYERS):
        m.norms(i, TWO | {"post_attention_layernorm": "post_attention_norm"}, plus=1)
        m.dense(i)
    qwen35_mixers(m)
    m.random("mtp.fc.weight", [WIDTH, 2 * WIDTH])  # predicts another token


def qwen35_common(m, name, arch, **more):
    """A delta net and a layer of attention; as many value heads as key heads, so that none moves."""
    n, d, taps = NET
    m.common(name, arch, linear_num_key_heads=n, linear_num_value_heads=n,
             linear_key_head_dim=d, linear_value_head_dim=d, linear_conv_kernel_dim=taps,
             layer_types=["linear_attention", "full_attention"], rope_parameters={
                 "rope_type": "default", "rope_theta": 1000, "partial_rotary_factor": 0.5}, **more)
    m.keys |= {"ssm.conv_kernel": taps, "ssm.state_size": d, "ssm.group_count": n, "ssm.time_step_rank": n,
               "ssm.inner_size": n * d, "attention.recurrent_layers": [True, False],
               "rope.dimension_count": SIZE // 2}


def qwen35_mixers(m):
    n, d, taps = NET
    at, to = "model.layers.0.linear_attn.", "blk.0."
    for name, tensor, n_rows in (("in_proj_qkv", "attn_qkv", 3 * n * d), ("in_proj_z", "attn_gate", n * d),
                                 ("in_proj_b", "ssm_beta", n), ("in_proj_a", "ssm_alpha", n)):
        m.matrix(at + name, to + tensor, n_rows, WIDTH)
    data = m.random(at + "conv1d.weight", [3 * n * d, 1, taps])
    m.tensors.append(Tensor(to + "ssm_conv1d.weight", m.kind, [taps, 3 * n * d], data))
    data = m.random(at + "A_log", [n])
    values = Tensor("", m.kind, [n], data).values()
    m.tensors.append(Tensor.of(to + "ssm_a", [f32(-math.exp(v)) for v in values]))
    m.vector(at + "dt_bias", to + "ssm_dt.bias", n)
    m.vector(at + "norm.weight", to + "ssm_norm.weight", d)
    m.matrix(at + "out_proj", to + "ssm_out", WIDTH, n * d)
    at, to = "model.layers.1.self_attn.", "blk.1.attn_"
    for name, tensor, n_rows, n_cols in (("q_proj", "q", 2 * HEADS * SIZE, WIDTH), ("k_proj", "k", KV * SIZE, WIDTH),
                                         ("v_proj", "v", KV * SIZE, WIDTH), ("o_proj", "output", WIDTH, HEADS * SIZE)):
        m.matrix(at + name, to + tensor, n_rows, n_cols)
    for c in "qk":
        m.vector(f"{at}{c}_norm.weight", f"{to}{c}_norm.weight", SIZE, 1)


def gemma4(m):
    """Heads of two sizes, keys of an earlier layer, members that only defaults have."""
    m.common("Gemma4ForConditionalGeneration", "gemma4", global_head_dim=2 * SIZE, sliding_window=3,
             hidden_size_per_layer_input=0, num_hidden_layers=3, layer_types=[
                 "full_attention", "sliding_attention", "full_attention"], num_kv_shared_layers=1,
             use_double_wide_mlp=True, final_logit_softcapping=3.0)
    del m.config["hidden_act"], m.config["rope_theta"]
    m.config = {"architectures": m.config.pop("architectures"), "text_config": m.config}
    m.keys |= {"block_count": 3, "attention.key_length": 2 * SIZE, "attention.value_length": 2 * SIZE,
               "attention.key_length_swa": SIZE, "attention.value_length_swa": SIZE, "rope.freq_base": 1e6,
               "rope.freq_base_swa": 1e4, "attention.sliding_window": 3, "attention.shared_kv_layers": 1, "final_logit_softcapping": 3.0,
               "attention.sliding_window_pattern": [False, True, False], "feed_forward_length": 2 * FF}
    m.ends(head=False)
    m.tensors.append(Tensor.of("rope_freqs.weight", [1.0] * (SIZE // 4) + [f32(1e30)] * (SIZE - SIZE // 4)))
    for i in range(3):
        m.norms(i, FOUR)
        size = SIZE if i == 1 else 2 * SIZE
        at, to = f"model.layers.{i}.self_attn.", f"blk.{i}.attn_"
        for c, n in (("q", HEADS), ("k", KV), ("v", KV)):
            m.matrix(f"{at}{c}_proj", to + c, n * size, WIDTH)
        m.matrix(at + "o_proj", to + "output", WIDTH, HEADS * size)
        for c in "qk":
            m.vector(f"{at}{c}_norm.weight", f"{to}{c}_norm.weight", size)
        width = 2 * FF if i == 2 else FF
        for name, n_rows, n_cols in (("gate", width, WIDTH), ("up", width, WIDTH), ("down", WIDTH, width)):
            m.matrix(f"model.layers.{i}.mlp.{name}_proj", f"blk.{i}.ffn_{name}", n_rows, n_cols)
        m.vector(f"model.layers.{i}.layer_scalar", f"blk.{i}.layer_output_scale.weight", 1)
    m.keys["feed_forward_length"] = [FF, FF, 2 * FF]


def deepseek3(m):
    """Saved again by transformers: head_dim is that of what rotates, scoring_func is gone."""
    plain, rot, value, rank = 8, 4, 8, 32
    m.common("DeepseekV3ForCausalLM", "deepseek2", head_dim=rot, qk_nope_head_dim=plain, qk_rope_head_dim=rot,
             v_head_dim=value, kv_lora_rank=rank, q_lora_rank=None, n_routed_experts=EXPERTS, n_group=1,
             num_experts_per_tok=2, moe_intermediate_size=32, n_shared_experts=1, norm_topk_prob=True,
             first_k_dense_replace=1, routed_scaling_factor=1.5, rope_parameters={
                 "rope_type": "yarn", "rope_theta": 1000, "factor": 4, "beta_fast": 8, "mscale": 1,
                 "mscale_all_dim": 1, "original_max_position_embeddings": 16})
    m.keys |= {"attention.key_length": plain + rot, "attention.value_length": value, "expert_gating_func": 2,
               "attention.head_count_kv": HEADS, "attention.kv_lora_rank": rank, "rope.dimension_count": rot,
               "expert_count": EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": 32,
               "expert_shared_count": 1, "expert_weights_norm": True, "expert_weights_scale": 1.5,
               "leading_dense_block_count": 1, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
               "rope.scaling.original_context_length": 16, "rope.scaling.yarn_beta_fast": 8.0,
               "rope.scaling.yarn_log_multiplier": f32(0.1)}
    m.ends()
    for i in range(LAYERS):
        m.norms(i, TWO)
        at, to = f"model.layers.{i}.self_attn.", f"blk.{i}.attn_"
        m.matrix(at + "q_proj", to + "q", HEADS * (plain + rot), WIDTH)
        m.matrix(at + "kv_a_proj_with_mqa", to + "kv_a_mqa", rank + rot, WIDTH)
        m.vector(at + "kv_a_layernorm.weight", to + "kv_a_norm.weight", rank)
        m.matrix(at + "kv_b_proj", to + "kv_b", HEADS * (plain + value), rank)
        m.matrix(at + "o_proj", to + "output", WIDTH, HEADS * value)
        if i == 0:
            m.dense(i)
            continue
        at, to = f"model.layers.{i}.mlp.", f"blk.{i}.ffn_"
        m.matrix(at + "gate", to + "gate_inp", EXPERTS, WIDTH)
        m.vector(at + "gate.e_score_correction_bias", f"blk.{i}.exp_probs_b.bias", EXPERTS)
        for name, n_rows, n_cols in (("gate", 32, WIDTH), ("up", 32, WIDTH), ("down", WIDTH, 32)):
            m.experts(f"{at}experts.{{}}.{name}_proj.weight", f"{to}{name}_exps.weight", n_rows, n_cols)
            m.matrix(f"{at}shared_experts.{name}_proj", f"{to}{name}_shexp", n_rows, n_cols)
    m.random(f"model.layers.{LAYERS}.eh_proj.weight", [WIDTH, 2 * WIDTH])  # predicts another token


ALL = (llama, mixtral, qwen3, qwen2moe, gemma3, phi3, granitemoe, deepseek3, gpt_oss, qwen35, gemma4)
assert set(TYPES) >= {"F32", "F16", "BF16"}
