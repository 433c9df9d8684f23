"""The small random models of second_opinion.py, and what converters make of their tensors."""
SHAPE = {"vocab_size": 257, "hidden_size": 96, "intermediate_size": 104, "num_hidden_layers": 4,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 4096,
         "pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40}
COMMON = {
    "embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp", "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
    "mlp.experts.down_proj": "ffn_down_exps.weight",
    "mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp",
    "mlp.shared_experts.down_proj": "ffn_down_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
}
FOUR_NORMS = {"post_attention_layernorm": "post_attention_norm",
              "pre_feedforward_layernorm": "ffn_norm",
              "post_feedforward_layernorm": "post_ffw_norm"}
WINDOW = 24


def rope(base, **more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": base, **more}}


def yarn(base, factor, original, **more):
    return rope(base, rope_type="yarn", factor=factor, original_max_position_embeddings=original,
                beta_fast=32.0, beta_slow=1.0, **more)


def yarn_keys(p):
    return {"rope.scaling.type": "yarn", "rope.scaling.factor": p["factor"],
            "rope.scaling.original_context_length": p["original_max_position_embeddings"]}


class Family:
    """One model. name: the row's; architecture: the file's; model: the class's in transformers.

    Norms have an eps so large that one in the wrong place shows.
    """
    name = architecture = model = ""
    note = ""
    names = {}
    norms_offset = False        # published gains are 1 + w
    permuted = False            # published halves, stored as neighbours
    experts_transposed = False  # [experts, in, out]
    spread = 1.5
    tokens = None               # of the one window, where it takes more than is usual to show
    eps = "rms_norm_eps"

    def config(self):
        return SHAPE | {"head_dim": 24, "rms_norm_eps": 0.02} | self.more()

    def more(self):
        return {}

    def keys(self, c):
        return {}

    def head_size(self, c):
        return getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads

    def kv_heads(self, c):
        return c.num_key_value_heads

    def adapt(self, torch, model):
        """Set what files say for each layer and the class says once."""

    def head(self, model, hidden):
        """The logits where the class is the text's part of a model of more; it is tied."""
        return hidden @ model.embed_tokens.weight.T

    def gain_is_offset(self, name):
        return self.norms_offset and "linear_attn.norm" not in name

    # -- tensors

    def split(self, c, name, t):
        """What is more than another name: {name in the block: tensor}, or None."""
        if name.endswith("experts.gate_up_proj"):
            gate, up = t.chunk(2, 1)
            return {"ffn_gate_exps.weight": gate, "ffn_up_exps.weight": up}
        if name.endswith("shared_expert_gate.weight"):
            return {"ffn_gate_inp_shexp.weight": t[0]}
        return None

    def tensors(self, c, state):
        out, names = {}, COMMON | self.names
        for name, t in state.items():
            if name == "lm_head.weight" and c.tie_word_embeddings:
                continue
            block, part = "", name.removeprefix("model.")
            if part.startswith("layers."):
                _, i, part = part.split(".", 2)
                block = f"blk.{i}."
            if self.gain_is_offset(name) and "norm" in part:
                t = t + 1
            if self.permuted and part.startswith(("self_attn.q_proj", "self_attn.k_proj")):
                half = self.head_size(c) // 2
                t = t.reshape(-1, 2, half, *t.shape[1:]).transpose(1, 2).reshape(t.shape)
            new = self.split(c, part, t)
            if new is None:
                stem, suffix = part, ""
                for s in (".weight", ".bias"):
                    if stem.endswith(s):
                        stem, suffix = stem.removesuffix(s), s
                new = {names[stem] + suffix: t}
            out |= {block + n: v for n, v in new.items()}
        return out

    # -- the file

    def file(self, torch, model, state):
        c = model.config
        p = c.rope_parameters if hasattr(c, "rope_parameters") else None
        size = self.head_size(c)
        keys = {"block_count": c.num_hidden_layers, "context_length": c.max_position_embeddings,
                "embedding_length": c.hidden_size, "feed_forward_length": c.intermediate_size,
                "attention.head_count": c.num_attention_heads,
                "attention.head_count_kv": self.kv_heads(c), "attention.key_length": size,
                "attention.value_length": size, "attention.layer_norm_rms_epsilon": getattr(c, self.eps)}
        if p and "rope_theta" in p:
            keys["rope.freq_base"] = float(p["rope_theta"])
            keys["rope.dimension_count"] = int(size * p.get("partial_rotary_factor", 1))
            if p["rope_type"] == "yarn":
                keys |= yarn_keys(p)
        keys |= self.keys(c)
        tensors = self.tensors(c, state) | self.further(torch, model)
        return ({"general.architecture": self.architecture}
                | {f"{self.architecture}.{k}": v for k, v in keys.items() if v is not None}, tensors)

    def further(self, torch, model):
        return {}


def expert_keys(c, width=None):
    return {"expert_count": c.num_local_experts if hasattr(c, "num_local_experts") else c.num_experts,
            "expert_used_count": c.num_experts_per_tok,
            "expert_feed_forward_length": width or c.moe_intermediate_size}


class Qwen2(Family):
    name = architecture = "qwen2"
    model, note = "Qwen2", "plain"

    def more(self):
        return rope(3000.0)


class Qwen3(Family):
    name = architecture = "qwen3"
    model, note = "Qwen3", "tied"

    def more(self):
        return {"head_dim": 20, "tie_word_embeddings": True, **rope(3000.0)}


class Qwen3Yarn(Qwen3):
    name, note = "qwen3-yarn", "YaRN"

    def more(self):
        return {"head_dim": 20, **yarn(3000.0, 4.0, 1024)}


class Gemma2(Family):
    name = architecture = "gemma2"
    model, note = "Gemma2", "both caps, windows"
    names, norms_offset = FOUR_NORMS, True

    def more(self):
        return {"head_dim": 20, "query_pre_attn_scalar": 20, "sliding_window": WINDOW,
                "attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0, **rope(3000.0)}

    def keys(self, c):
        return {"attention.sliding_window": c.sliding_window,
                "attn_logit_softcapping": c.attn_logit_softcapping,
                "final_logit_softcapping": c.final_logit_softcapping}


class Gemma3(Gemma2):
    name = architecture = "gemma3"
    model, note = "Gemma3Text", "windows, two bases, linear scaling"

    def more(self):
        full = {"rope_type": "linear", "factor": 8.0, "rope_theta": 30000.0}
        return {"head_dim": 20, "query_pre_attn_scalar": 20, "sliding_window": WINDOW,
                "num_hidden_layers": 7, "rope_parameters": {
                    "full_attention": full,
                    "sliding_attention": {"rope_type": "default", "rope_theta": 2000.0}}}

    def keys(self, c):
        full = c.rope_parameters["full_attention"]
        return {"attention.sliding_window": c.sliding_window, "rope.freq_base": full["rope_theta"],
                "rope.freq_base_swa": c.rope_parameters["sliding_attention"]["rope_theta"],
                "rope.scaling.type": "linear", "rope.scaling.factor": full["factor"]}


class GptOss(Family):
    name = architecture = "gpt-oss"
    model, note = "GptOss", "sinks, windows, YaRN unrounded"
    experts_transposed = True
    names = {"self_attn.sinks": "attn_sinks.weight", "mlp.router": "ffn_gate_inp",
             "post_attention_layernorm": "post_attention_norm",
             "mlp.experts.down_proj_bias": "ffn_down_exps.bias"}

    def more(self):
        return {"head_dim": 20, "num_local_experts": 8, "num_experts_per_tok": 3,
                "sliding_window": WINDOW, **yarn(150000.0, 32.0, 1024, truncate=False)}

    def split(self, c, name, t):
        if name == "mlp.experts.gate_up_proj":
            t = t.transpose(1, 2)
            return {"ffn_gate_exps.weight": t[:, ::2], "ffn_up_exps.weight": t[:, 1::2]}
        if name == "mlp.experts.gate_up_proj_bias":
            return {"ffn_gate_exps.bias": t[:, ::2], "ffn_up_exps.bias": t[:, 1::2]}
        if name == "mlp.experts.down_proj":
            return {"ffn_down_exps.weight": t.transpose(1, 2)}
        return None

    def keys(self, c):
        return {"attention.sliding_window": c.sliding_window, **expert_keys(c, c.intermediate_size)}


class DeepseekV3(Family):
    name = architecture = "deepseek2"
    model, note = "DeepseekV3", "V3: sigmoid, bias, groups, YaRN"
    names = {"self_attn.q_a_proj": "attn_q_a", "self_attn.q_b_proj": "attn_q_b",
             "self_attn.q_a_layernorm": "attn_q_a_norm",
             "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
             "self_attn.kv_a_layernorm": "attn_kv_a_norm"}

    def config(self):
        shape = super().config() | {"num_key_value_heads": 4}
        del shape["head_dim"]
        return shape

    def more(self):
        return {"rms_norm_eps": 1e-6, "n_routed_experts": 8, "num_experts_per_tok": 3,
                "moe_intermediate_size": 40, "n_group": 4, "topk_group": 2, "n_shared_experts": 2,
                "first_k_dense_replace": 1, "routed_scaling_factor": 2.5, "norm_topk_prob": True,
                "q_lora_rank": 40, "kv_lora_rank": 32, "qk_rope_head_dim": 16, "v_head_dim": 20,
                "qk_nope_head_dim": 12, **yarn(3000.0, 40.0, 1024, mscale=1.0, mscale_all_dim=1.0)}

    def split(self, c, name, t):
        if name == "self_attn.kv_b_proj.weight":
            t = t.reshape(c.num_attention_heads, -1, t.shape[-1])
            k, v = t[:, :c.qk_nope_head_dim], t[:, c.qk_nope_head_dim:]
            return {"attn_k_b.weight": k.transpose(1, 2), "attn_v_b.weight": v}
        return super().split(c, name, t)

    def gating(self):
        return {"expert_gating_func": 2}

    def keys(self, c):
        p, r = c.rope_parameters, c.kv_lora_rank
        size = c.qk_nope_head_dim + c.qk_rope_head_dim
        keys = {"attention.q_lora_rank": c.q_lora_rank, "attention.kv_lora_rank": r,
                "attention.key_length": r + c.qk_rope_head_dim, "attention.value_length": r,
                "attention.key_length_mla": size, "attention.value_length_mla": c.v_head_dim,
                "attention.head_count_kv": 1, "rope.dimension_count": c.qk_rope_head_dim,
                "leading_dense_block_count": c.first_k_dense_replace,
                "expert_shared_count": c.n_shared_experts,
                "expert_weights_scale": float(c.routed_scaling_factor),
                "expert_weights_norm": bool(c.norm_topk_prob), **self.gating(), **expert_keys(c)}
        if (c.n_group or 1) > 1:
            keys |= {"expert_group_count": c.n_group, "expert_group_used_count": c.topk_group}
        if p["rope_type"] == "yarn":
            keys["rope.scaling.yarn_log_multiplier"] = 0.1 * p["mscale_all_dim"]
        return keys


class DeepseekV2(DeepseekV3):
    name, model, note = "deepseek2-v2", "DeepseekV2", "V2: softmax, not renormalised, YaRN"

    def more(self):
        return super().more() | {"n_group": None, "topk_group": None, "norm_topk_prob": False,
                                 "topk_method": "greedy", "routed_scaling_factor": 16.0,
                                 **yarn(3000.0, 40.0, 1024, mscale=0.707, mscale_all_dim=0.707)}

    def gating(self):
        return {}


class Glm4MoeLite(DeepseekV3):
    name, model, note = "deepseek2-glm", "Glm4MoeLite", "GLM 4.7 Flash: no YaRN, no groups"

    def more(self):
        return super().more() | {"n_group": 1, "topk_group": 1, "rms_norm_eps": 1e-5, **rope(3000.0)}


class DeepseekLite(DeepseekV2):
    name, note = "deepseek2-lite", "V2 Lite: no q_lora, older file"

    def more(self):
        return super().more() | {"q_lora_rank": None, "routed_scaling_factor": 1.0}

    names = DeepseekV3.names | {"self_attn.kv_b_proj": "attn_kv_b"}

    def split(self, c, name, t):
        return Family.split(self, c, name, t)

    def keys(self, c):
        size = c.qk_nope_head_dim + c.qk_rope_head_dim
        return super().keys(c) | {
            "attention.key_length": size, "attention.value_length": c.v_head_dim,
            "attention.head_count_kv": c.num_attention_heads, "attention.key_length_mla": None,
            "attention.value_length_mla": None}


class DeepseekV2Groups(DeepseekV2):
    name, note = "deepseek2-v2-groups", "V2: groups by their best expert"

    def more(self):
        return super().more() | {"n_group": 4, "topk_group": 2, "topk_method": "group_limited_greedy"}


class Hybrid:
    """What Qwen 3.5 and Qwen 3 Next share."""
    norms_offset = True
    names = {"post_attention_layernorm": "post_attention_norm",
             "linear_attn.dt_bias": "ssm_dt.bias", "linear_attn.norm": "ssm_norm",
             "linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate",
             "linear_attn.in_proj_b": "ssm_beta", "linear_attn.in_proj_a": "ssm_alpha",
             "linear_attn.in_proj_ba": "ssm_ba", "linear_attn.out_proj": "ssm_out"}

    def more(self):
        return {"head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 6,
                "linear_key_head_dim": 16, "linear_value_head_dim": 16,
                **rope(3000.0, partial_rotary_factor=0.25)}

    def split(self, c, name, t):
        if name == "linear_attn.conv1d.weight":
            return {"ssm_conv1d.weight": t[:, 0]}
        if name == "linear_attn.A_log":
            return {"ssm_a": -t.exp()}
        return super().split(c, name, t)

    def keys(self, c):
        return {"full_attention_interval": 4, "ssm.state_size": c.linear_key_head_dim,
                "ssm.group_count": c.linear_num_key_heads, "ssm.conv_kernel": 4,
                "ssm.time_step_rank": c.linear_num_value_heads,
                "ssm.inner_size": c.linear_num_value_heads * c.linear_value_head_dim}


class Qwen35(Hybrid, Family):
    name = architecture = "qwen35"
    model, note = "Qwen3_5Text", "delta nets, value heads reordered"

    def split(self, c, name, t):
        """The file counts value heads the other way round: key head fastest."""
        n_k, d = c.linear_num_key_heads, c.linear_value_head_dim

        def other(v, size):
            rest = v.shape[1:]
            return v.reshape(n_k, -1, size, *rest).transpose(0, 1).reshape(-1, *rest)
        part = name.removeprefix("linear_attn.")
        if part in ("in_proj_qkv.weight", "conv1d.weight"):
            begin = 2 * n_k * c.linear_key_head_dim
            t = t.clone()
            t[begin:] = other(t[begin:].clone(), d)
        elif part == "in_proj_z.weight":
            t = other(t, d)
        elif part in ("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias"):
            t = other(t, 1)
        elif part == "out_proj.weight":
            t = other(t.T, d).T
        if part in ("in_proj_qkv.weight", "in_proj_z.weight", "in_proj_a.weight", "in_proj_b.weight",
                    "dt_bias", "out_proj.weight"):
            stem, dot, suffix = name.partition(".weight")
            return {self.names[stem] + dot + suffix: t}
        return super().split(c, name, t)

    def keys(self, c):
        return super().keys(c) | {"rope.dimension_sections": [2, 1, 1, 0]}


FAMILIES = [cls() for cls in (
    Qwen2, Qwen3, Qwen3Yarn, Gemma2, Gemma3, GptOss, DeepseekV3, Glm4MoeLite, DeepseekV2,
    DeepseekLite, DeepseekV2Groups, Qwen35)]
