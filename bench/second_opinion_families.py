"""More models of second_opinion.py."""
from second_opinion_models import (EXPERTS, FAMILIES, FOUR_NORMS, WINDOW, Family, Hybrid, Qwen35,
                                   expert_keys, rope, yarn)


class Llama(Family):
    name = architecture = "llama"
    model, note, permuted = "Llama", "llama3's factors, permuted", True

    def more(self):
        return rope(3000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                    original_max_position_embeddings=64)

    def further(self, torch, model):
        c, w = model.config, model.model.rotary_emb.inv_freq
        plain = c.rope_parameters["rope_theta"] ** -(torch.arange(len(w)) / len(w))
        return {"rope_freqs.weight": (plain / w).to(torch.single)}


class Qwen3Moe(Family):
    name = architecture = "qwen3moe"
    model, note = "Qwen3Moe", "softmax experts, renormalised"

    def more(self):
        return EXPERTS | {"head_dim": 20, "norm_topk_prob": True, **rope(3000.0)}

    def keys(self, c):
        return expert_keys(c)


class Qwen2Moe(Family):
    name = architecture = "qwen2moe"
    model, note = "Qwen2Moe", "not renormalised, gated shared expert"

    def more(self):
        return EXPERTS | {"norm_topk_prob": False, "shared_expert_intermediate_size": 56, **rope(3000.0)}

    def keys(self, c):
        return expert_keys(c) | {
            "expert_shared_feed_forward_length": c.shared_expert_intermediate_size}


class Qwen35Moe(Qwen35):
    name = architecture = "qwen35moe"
    model, note = "Qwen3_5MoeText", "delta nets, experts"

    def more(self):
        return (super().more() | EXPERTS | {"shared_expert_intermediate_size": 56})

    def keys(self, c):
        return super().keys(c) | expert_keys(c) | {
            "feed_forward_length": None,
            "expert_shared_feed_forward_length": c.shared_expert_intermediate_size}


class Qwen3Next(Hybrid, Family):
    name = architecture = "qwen3next"
    model, note = "Qwen3Next", "delta nets, experts"

    def more(self):
        return super().more() | EXPERTS | {"shared_expert_intermediate_size": 56,
                                           "norm_topk_prob": True}

    def split(self, c, name, t):
        """q, k, v and z lie together for each key head."""
        if name != "linear_attn.in_proj_qkvz.weight":
            return super().split(c, name, t)
        d, n_k = c.linear_key_head_dim, c.linear_num_key_heads
        n_v = c.linear_num_value_heads // n_k * c.linear_value_head_dim
        parts = t.reshape(n_k, -1, t.shape[-1]).split([d, d, n_v, n_v], 1)
        q, k, v, z = (p.reshape(-1, t.shape[-1]) for p in parts)
        return {"attn_qkv.weight": joined(q, k, v), "attn_gate.weight": z}

    def keys(self, c):
        return super().keys(c) | expert_keys(c) | {
            "expert_shared_feed_forward_length": c.shared_expert_intermediate_size}


def joined(*tensors):
    import torch
    return torch.cat(tensors)


class Glm4(Family):
    name = architecture = "glm4"
    model, note = "Glm4", "four norms, half of a head turned"
    names = {"post_self_attn_layernorm": "post_attention_norm", "post_attention_layernorm": "ffn_norm",
             "post_mlp_layernorm": "post_ffw_norm", "mlp.gate_up_proj": "ffn_up"}

    def more(self):
        return {"head_dim": 32, "attention_bias": True, **rope(3000.0, partial_rotary_factor=0.5)}


class Glm4Moe(Family):
    name = architecture = "glm4moe"
    model, note = "Glm4Moe", "sigmoid, bias, shared expert, norms of heads"
    names = {"post_attention_layernorm": "post_attention_norm"}

    def more(self):
        return {"head_dim": 32, "attention_bias": True, "use_qk_norm": True, "n_routed_experts": 8,
                "num_experts_per_tok": 3, "moe_intermediate_size": 40, "n_group": 1, "topk_group": 1,
                "first_k_dense_replace": 1, "routed_scaling_factor": 1.8, "n_shared_experts": 2,
                "norm_topk_prob": True, **rope(3000.0, partial_rotary_factor=0.5)}

    def keys(self, c):
        return expert_keys(c) | {
            "expert_gating_func": 2, "expert_shared_count": c.n_shared_experts,
            "leading_dense_block_count": c.first_k_dense_replace,
            "expert_weights_scale": c.routed_scaling_factor, "expert_weights_norm": True}


class Olmo2(Family):
    name = architecture = "olmo2"
    model, note = "Olmo2", "norms after the branches"
    names = {"post_attention_layernorm": "post_attention_norm",
             "post_feedforward_layernorm": "post_ffw_norm"}

    def more(self):
        return rope(3000.0)


class Olmo3(Olmo2):
    name, model, note = "olmo3", "Olmo3", "windows; YaRN where all is seen"

    def more(self):
        full = yarn(3000.0, 8.0, 1024)["rope_parameters"]
        return {"sliding_window": WINDOW, "rope_parameters": {
            "full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": 3000.0}}}

    def keys(self, c):
        p = c.rope_parameters["full_attention"]
        return {"attention.sliding_window": c.sliding_window, "rope.freq_base": p["rope_theta"],
                "attention.sliding_window_pattern": [t == "sliding_attention" for t in c.layer_types],
                "rope.scaling.type": "yarn", "rope.scaling.factor": p["factor"],
                "rope.scaling.original_context_length": p["original_max_position_embeddings"]}


class Cohere2(Family):
    name = architecture = "cohere2"
    model, note, eps = "Cohere2", "parallel branches, windows", "layer_norm_eps"

    def more(self):
        return {"layer_norm_eps": 0.02, "logit_scale": 0.3, "sliding_window": WINDOW, **rope(3000.0)}

    def keys(self, c):
        return {"attention.sliding_window": getattr(c, "sliding_window", None),
                "logit_scale": c.logit_scale, "attention.layer_norm_epsilon": c.layer_norm_eps,
                "attention.layer_norm_rms_epsilon": None}


class Cohere(Cohere2):
    name = architecture = "command-r"
    model, note = "Cohere", "parallel branches, norms of heads"

    def more(self):
        return {"layer_norm_eps": 0.02, "logit_scale": 0.3, "use_qk_norm": True, **rope(3000.0)}

class Granite(Family):
    name = architecture = "granite"
    model, note, permuted = "Granite", "four scales, permuted", True

    def more(self):
        return {"embedding_multiplier": 1.7, "attention_multiplier": 0.3, "residual_multiplier": 0.6,
                "logits_scaling": 0.7, **rope(3000.0)}

    def keys(self, c):
        return {"embedding_scale": c.embedding_multiplier, "attention.scale": c.attention_multiplier,
                "residual_scale": c.residual_multiplier, "logit_scale": c.logits_scaling}


class GraniteMoe(Granite):
    name = architecture = "granitemoe"
    model, note = "GraniteMoeShared", "experts, shared expert"
    names = {"block_sparse_moe.router": "ffn_gate_inp",
             "block_sparse_moe.experts.down_proj": "ffn_down_exps.weight",
             "shared_mlp.output_linear": "ffn_down_shexp"}

    def more(self):
        return super().more() | {"num_local_experts": 8, "num_experts_per_tok": 3,
                                 "shared_intermediate_size": 56}

    def split(self, c, name, t):
        if name == "shared_mlp.input_linear.weight":
            gate, up = t.chunk(2)
            return {"ffn_gate_shexp.weight": gate, "ffn_up_shexp.weight": up}
        return super().split(c, name, t)

    def keys(self, c):
        return super().keys(c) | expert_keys(c, c.intermediate_size) | {
            "expert_shared_feed_forward_length": c.shared_intermediate_size}


class SmolLM3(Family):
    name = architecture = "smollm3"
    model, note, permuted = "SmolLM3", "every fourth layer without positions, tied", True

    def more(self):
        return {"tie_word_embeddings": True, **rope(3000.0)}


class Ministral3(Family):
    name = architecture = "mistral3"
    model, note, permuted = "Ministral3", "YaRN with its own betas, growing queries", True

    def more(self):
        p = yarn(3000.0, 16.0, 64, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)
        p["rope_parameters"] |= {"beta_fast": 2.0, "beta_slow": 0.5}
        return {"head_dim": 20, "sliding_window": None, **p}

    def keys(self, c):
        p = c.rope_parameters
        return {"rope.scaling.yarn_beta_fast": p["beta_fast"],
                "rope.scaling.yarn_beta_slow": p["beta_slow"],
                "rope.scaling.yarn_log_multiplier": p["mscale_all_dim"],
                "attention.temperature_scale": p["llama_4_scaling_beta"]}


class Starcoder2(Family):
    name = architecture = "starcoder2"
    model, note, eps = "Starcoder2", "LayerNorm, biases, no gate", "norm_epsilon"
    names = {"mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}

    def more(self):
        return {"norm_epsilon": 0.02, "use_bias": True, "tie_word_embeddings": False, **rope(3000.0)}

    def keys(self, c):
        return {"attention.layer_norm_epsilon": c.norm_epsilon,
                "attention.layer_norm_rms_epsilon": None}


class Starcoder2Long(Starcoder2):
    name, note, tokens = "starcoder2-long", "the window of 4096, which no key names", 4300

    def more(self):
        return super().more() | {"sliding_window": 4096, "num_attention_heads": 2,
                                 "num_key_value_heads": 1, "head_dim": 48,
                                 "max_position_embeddings": 16384}


class Phi3(Family):
    name = architecture = "phi3"
    model, note = "Phi3", "fused, long factors, windows"
    names = {"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}
    original = 128

    def more(self):
        short = [1 + 0.1 * i for i in range(9)]
        return {"sliding_window": WINDOW, "original_max_position_embeddings": self.original,
                **rope(3000.0, rope_type="longrope", partial_rotary_factor=0.75, short_factor=short,
                       long_factor=[2 * x for x in short],
                       original_max_position_embeddings=self.original)}

    def keys(self, c):
        return {"attention.sliding_window": c.sliding_window,
                "rope.scaling.original_context_length": self.original}

    def further(self, torch, model):
        p = model.config.rope_parameters
        return {f"rope_factors_{n}.weight": torch.tensor(p[f"{n}_factor"]).to(torch.single)
                for n in ("long", "short")}

    def file(self, torch, model, state):
        keys, tensors = super().file(torch, model, state)
        scale = float(model.model.rotary_emb.attention_scaling)
        return keys | {"phi3.rope.scaling.attn_factor": scale}, tensors


class Phi3Short(Phi3):
    name, note, original = "phi3-short", "fused, short factors, windows", 256


class MiniMaxM2(Family):
    name = architecture = "minimax-m2"
    model, note = "MiniMaxM2", "sigmoid experts, norms over all heads"
    names = {"mlp.e_score_correction_bias": "exp_probs_b.bias"}

    def more(self):
        return {"head_dim": 32, "intermediate_size": 40, "num_local_experts": 8,
                "num_experts_per_tok": 3, **rope(3000.0, partial_rotary_factor=0.5)}

    def keys(self, c):
        return expert_keys(c, c.intermediate_size) | {"expert_gating_func": 2}


class Llama4(Family):
    name = architecture = "llama4"
    model, note = "Llama4Text", "Scout: norms after RoPE, experts; below 8192 tokens"
    experts_transposed = True
    names = {"feed_forward.gate_proj": "ffn_gate", "feed_forward.up_proj": "ffn_up",
             "feed_forward.down_proj": "ffn_down", "feed_forward.router": "ffn_gate_inp",
             "feed_forward.shared_expert.gate_proj": "ffn_gate_shexp",
             "feed_forward.shared_expert.up_proj": "ffn_up_shexp",
             "feed_forward.shared_expert.down_proj": "ffn_down_shexp"}

    def more(self):
        return {"num_local_experts": 4, "intermediate_size": 40, "intermediate_size_mlp": 104,
                "interleave_moe_layer_step": 2, "num_experts_per_tok": 1,
                **rope(3000.0, rope_type="llama3", factor=16.0, low_freq_factor=1.0,
                       high_freq_factor=4.0, original_max_position_embeddings=64)}

    def split(self, c, name, t):
        if name == "feed_forward.experts.gate_up_proj":
            return super().split(c, name, t.transpose(1, 2))
        if name == "feed_forward.experts.down_proj":
            return {"ffn_down_exps.weight": t.transpose(1, 2)}
        return None

    def keys(self, c):
        return expert_keys(c, c.intermediate_size) | {
            "feed_forward_length": c.intermediate_size_mlp,
            "interleave_moe_layer_step": c.interleave_moe_layer_step}

    def further(self, torch, model):
        return Llama.further(self, torch, model)


class Llama4Long(Llama4):
    name, note, tokens = "llama4-long", "Scout: chunks of 8192, growing queries", 8300

    def more(self):
        return super().more() | {"num_attention_heads": 2, "num_key_value_heads": 1,
                                 "max_position_embeddings": 16384}


def mamba2(name, t, n_groups):
    """What is more than another name in a Mamba-2 layer."""
    mixer, _, part = name.partition(".")
    made = {"conv1d.weight": ("ssm_conv1d.weight", lambda: t[:, 0]),
            "A_log": ("ssm_a", lambda: -t.exp()[:, None]), "D": ("ssm_d", lambda: t[:, None]),
            "norm.weight": ("ssm_norm.weight", lambda: t.reshape(n_groups, -1))}
    if mixer not in ("mixer", "mamba") or part not in made:
        return None
    name, value = made[part]
    return {name: value()}


class NemotronH(Family):
    name = architecture = "nemotron_h"
    model, note, eps = "NemotronH", "Mamba-2, attention, squared relu", "layer_norm_epsilon"
    blocks = ["linear_attention", "mlp", "linear_attention", "full_attention", "mlp"]
    names = {"embeddings": "token_embd", "norm_f": "output_norm",
             "mixer.in_proj": "ssm_in", "mixer.out_proj": "ssm_out", "mixer.dt_bias": "ssm_dt.bias",
             "mixer.conv1d": "ssm_conv1d", "mixer.q_proj": "attn_q", "mixer.k_proj": "attn_k",
             "mixer.v_proj": "attn_v", "mixer.o_proj": "attn_output", "mixer.up_proj": "ffn_up",
             "mixer.down_proj": "ffn_down", "mixer.gate": "ffn_gate_inp",
             "mixer.gate.e_score_correction_bias": "exp_probs_b.bias",
             "mixer.experts.up_proj": "ffn_up_exps.weight",
             "mixer.experts.down_proj": "ffn_down_exps.weight",
             "mixer.shared_experts.up_proj": "ffn_up_shexp",
             "mixer.shared_experts.down_proj": "ffn_down_shexp",
             "mixer.fc1_latent_proj": "ffn_latent_down", "mixer.fc2_latent_proj": "ffn_latent_up"}

    def more(self):
        return {"head_dim": 20, "layers_block_type": self.blocks, "mamba_num_heads": 6,
                "mamba_head_dim": 16, "n_groups": 2, "ssm_state_size": 12, "chunk_size": 64,
                "layer_norm_epsilon": 0.02}

    def config(self):
        shape = super().config()
        del shape["num_hidden_layers"]
        return shape

    def split(self, c, name, t):
        if name == "norm.weight":
            return {"attn_norm.weight": t}
        return mamba2(name, t, c.n_groups) or super().split(c, name, t)

    def keys(self, c):
        width = {"mlp": c.intermediate_size, "moe": c.moe_intermediate_size}
        return {"feed_forward_length": [width.get(b, 0) for b in self.blocks],
                "attention.head_count_kv": [c.num_key_value_heads * (b == "full_attention")
                                            for b in self.blocks],
                "ssm.conv_kernel": 4, "ssm.state_size": c.ssm_state_size,
                "ssm.group_count": c.n_groups, "ssm.time_step_rank": c.mamba_num_heads,
                "ssm.inner_size": c.mamba_num_heads * c.mamba_head_dim}


class NemotronHMoe(NemotronH):
    name = architecture = "nemotron_h_moe"
    note = "Mamba-2, attention, experts on narrower rows"
    blocks = ["linear_attention", "moe", "linear_attention", "full_attention", "moe"]

    def more(self):
        return super().more() | {
            "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40,
            "moe_shared_expert_intermediate_size": 56, "moe_latent_size": 48,
            "routed_scaling_factor": 2.5, "norm_topk_prob": True}

    def keys(self, c):
        return super().keys(c) | expert_keys(c) | {
            "expert_shared_count": 1, "expert_weights_norm": True, "expert_gating_func": 2,
            "expert_weights_scale": c.routed_scaling_factor, "moe_latent_size": c.moe_latent_size,
            "expert_shared_feed_forward_length": c.moe_shared_expert_intermediate_size}


class Gemma4(Family):
    name = architecture = "gemma4"
    model, note = "Gemma4Text", "E2B: further inputs, shared keys, windows"
    kinds = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
             "sliding_attention", "full_attention"]
    names = FOUR_NORMS | {
        "layer_scalar": "layer_output_scale.weight", "per_layer_input_gate": "inp_gate",
        "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm",
        "embed_tokens_per_layer": "per_layer_token_embd",
        "per_layer_model_projection": "per_layer_model_proj",
        "per_layer_projection_norm": "per_layer_proj_norm", "router.proj": "ffn_gate_inp",
        "router.scale": "ffn_gate_inp.scale", "router.per_expert_scale": "ffn_down_exps.scale",
        "experts.gate_up_proj": "ffn_gate_up_exps.weight",
        "experts.down_proj": "ffn_down_exps.weight",
        "post_feedforward_layernorm_1": "post_ffw_norm_1",
        "post_feedforward_layernorm_2": "post_ffw_norm_2",
        "pre_feedforward_layernorm_2": "pre_ffw_norm_2"}

    def more(self):
        return {"head_dim": 16, "global_head_dim": 32, "num_hidden_layers": len(self.kinds),
                "layer_types": list(self.kinds), "sliding_window": WINDOW,
                "final_logit_softcapping": 6.0, "hidden_size_per_layer_input": 20,
                "vocab_size_per_layer_input": 257, "num_kv_shared_layers": 2,
                "use_double_wide_mlp": True, "rope_parameters": {
                    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                                       "rope_theta": 30000.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 2000.0}}}

    def split(self, c, name, t):
        return None

    def head_size(self, c):
        return 16

    def kv_heads(self, c):
        return 2

    def keys(self, c):
        kinds, p, shared = c.layer_types, c.rope_parameters, c.num_kv_shared_layers
        width = [c.intermediate_size * (1 + (c.use_double_wide_mlp and i >= len(kinds) - shared))
                 for i in range(len(kinds))]
        keys = {"attention.sliding_window": c.sliding_window,
                "attention.sliding_window_pattern": [k == "sliding_attention" for k in kinds],
                "attention.key_length": 32, "attention.value_length": 32,
                "attention.key_length_swa": 16, "attention.value_length_swa": 16,
                "rope.dimension_count": 32, "rope.dimension_count_swa": 16,
                "rope.freq_base": p["full_attention"]["rope_theta"],
                "rope.freq_base_swa": p["sliding_attention"]["rope_theta"],
                "attention.shared_kv_layers": shared, "feed_forward_length": width,
                "final_logit_softcapping": c.final_logit_softcapping,
                "embedding_length_per_layer_input": c.hidden_size_per_layer_input}
        return keys

    def further(self, torch, model):
        return {"rope_freqs.weight": torch.tensor([1.0] * 4 + [1e30] * 12).to(torch.single)}


class Gemma4Moe(Gemma4):
    name, note = "gemma4-moe", "26B: experts, keys as values"

    def more(self):
        return super().more() | {
            "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "use_double_wide_mlp": False,
            "enable_moe_block": True, "num_experts": 8, "top_k_experts": 3,
            "moe_intermediate_size": 40, "attention_k_eq_v": True, "num_global_key_value_heads": 1}

    def keys(self, c):
        return super().keys(c) | {
            "expert_count": c.num_experts, "expert_used_count": c.top_k_experts,
            "expert_feed_forward_length": c.moe_intermediate_size,
            "attention.head_count_kv": [2 if k == "sliding_attention" else 1 for k in c.layer_types]}


FAMILIES += [cls() for cls in (
    Llama, Qwen3Moe, Qwen2Moe, Qwen35Moe, Qwen3Next, Glm4, Glm4Moe, Olmo2, Olmo3, Cohere2, Cohere,
    Granite, GraniteMoe, SmolLM3, Ministral3, Starcoder2, Starcoder2Long, Phi3, Phi3Short,
    MiniMaxM2, Llama4, Llama4Long, NemotronH, NemotronHMoe, Gemma4, Gemma4Moe)]
