"""Models of second_opinion.py whose operations no other architecture has."""
import statistics

from second_opinion_families import Gemma4
from second_opinion_models import (EXPERTS, FAMILIES, FOUR_NORMS, WINDOW, DeepseekV3, Family,
                                   expert_keys, rope, yarn)
from second_opinion_recent import SIGMOID, as_rows, slides

INDEXER = {"self_attn.indexer.wq_b": "indexer.attn_q_b", "self_attn.indexer.wk": "indexer.attn_k",
           "self_attn.indexer.k_norm": "indexer.k_norm",
           "self_attn.indexer.weights_proj": "indexer.proj"}


def indexer_keys(c, n_keys):
    return {"attention.indexer.head_count": c.index_n_heads, "attention.indexer.top_k": n_keys,
            "attention.indexer.key_length": c.index_head_dim}


class DeepseekV32(DeepseekV3):
    name = architecture = "deepseek32"
    model, note = "DeepseekV32", "keys that an indexer chooses, in halves"
    names = DeepseekV3.names | INDEXER

    def more(self):
        return super().more() | {"index_n_heads": 4, "index_head_dim": 32, "index_topk": 40}

    def keys(self, c):
        return super().keys(c) | indexer_keys(c, c.index_topk)


class GlmDsa(DeepseekV32):
    name = architecture = "glm-dsa"
    model, note = "GlmMoeDsa", "neighbours, choices of an earlier layer"

    def more(self):
        return super().more() | {"n_group": 1, "topk_group": 1, **rope(3000.0),
                                 "indexer_types": ["full", "shared", "full", "shared"]}

    def keys(self, c):
        return super().keys(c) | {
            "attention.indexer.types": [t == "full" for t in c.indexer_types]}


class KimiLinear(DeepseekV3):
    name = architecture = "kimi-linear"
    model, note = "KimiLinear", "delta nets with decays of channels, no positions"
    names = DeepseekV3.names | {f"self_attn.{theirs}": ours for theirs, ours in (
        ("forget_gate.f_a_proj", "ssm_f_a"), ("forget_gate.f_b_proj", "ssm_f_b"),
        ("forget_gate.dt_bias", "ssm_dt.bias"), ("b_proj", "ssm_beta"), ("g_a_proj", "ssm_g_a"),
        ("g_b_proj", "ssm_g_b"), ("o_norm", "ssm_norm"))}

    def more(self):
        latent = {k: v for k, v in super().more().items()
                  if k not in ("rope_parameters", "q_lora_rank", "first_k_dense_replace")}
        return latent | {"n_group": 1, "topk_group": 1, "linear_head_dim": 16, "linear_num_heads": 4,
                         "layer_types": ["linear_attention"] * 3 + ["full_attention"]}

    def split(self, c, name, t):
        if name == "self_attn.conv1d.weight":
            return {f"ssm_conv1d_{x}.weight": part.transpose(0, 1)[..., None, :]
                    for x, part in zip("qkv", t.chunk(3))}
        if name == "self_attn.forget_gate.A_log":
            return {"ssm_a": -t.exp()}
        return super().split(c, name, t)

    def keys(self, c):
        r, size = c.kv_lora_rank, c.qk_nope_head_dim + c.qk_rope_head_dim
        return expert_keys(c) | SIGMOID | {
            "attention.kv_lora_rank": r, "attention.key_length": r + c.qk_rope_head_dim,
            "attention.value_length": r, "attention.key_length_mla": size,
            "attention.value_length_mla": c.v_head_dim, "rope.dimension_count": c.qk_rope_head_dim,
            "attention.head_count_kv": [int(t == "full_attention") for t in c.layer_types],
            "ssm.conv_kernel": c.linear_conv_kernel_dim, "kda.head_dim": c.linear_head_dim,
            "leading_dense_block_count": 1, "expert_shared_count": c.n_shared_experts,
            "expert_weights_scale": c.routed_scaling_factor, "expert_weights_norm": None}


class Step35(Family):
    name = architecture = "step35"
    model, note = "Step3p7Text", "a gate for each head, heads by layer, limits, factors"
    norms_offset = True
    names = {"self_attn.g_proj": "attn_gate"}
    factors = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}

    def more(self):
        return {"pad_token_id": 0, "num_sliding_attention_heads": 6, "sliding_window": WINDOW,
                "layer_types": ["full_attention", "sliding_attention"] * 2,
                "mlp_layer_types": ["dense"] + ["sparse"] * 3, "n_routed_experts": 8,
                "num_experts_per_tok": 3, "moe_intermediate_size": 40, "share_expert_dim": 56,
                "moe_router_scaling_factor": 3.0, "swiglu_limits": [0.0, 0.9, 0.0, 0.5],
                "swiglu_limits_shared": [1.2, 0.0, 1.1, 0.6], "rope_parameters": {
                    "full_attention": {"rope_type": "llama3", "rope_theta": 3000.0,
                                       "partial_rotary_factor": 0.5, **self.factors},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 900.0}}}

    def file(self, torch, model, state):
        model.config.allow_global_per_layer_attribute_access = True
        return super().file(torch, model, state)

    def keys(self, c):
        return expert_keys(c) | SIGMOID | {
            "attention.head_count": [
                c.num_sliding_attention_heads if slide else c.num_attention_heads
                for slide in slides(c)],
            "attention.head_count_kv": [c.num_key_value_heads] * c.num_hidden_layers,
            "attention.sliding_window": c.sliding_window,
            "attention.sliding_window_pattern": slides(c), "rope.dimension_count": c.head_dim,
            "rope.freq_base": c.rope_parameters["full_attention"]["rope_theta"],
            "rope.freq_base_swa": c.rope_parameters["sliding_attention"]["rope_theta"],
            "swiglu_clamp_exp": c.swiglu_limits, "swiglu_clamp_shexp": c.swiglu_limits_shared,
            "expert_shared_feed_forward_length": c.share_expert_dim,
            "expert_weights_scale": c.moe_router_scaling_factor}

    def further(self, torch, model):
        """As many factors as a whole head has pairs; half of them are used."""
        c, w = model.config, model.rotary_emb.full_attention_inv_freq
        plain = c.rope_parameters["full_attention"]["rope_theta"] ** -(torch.arange(len(w)) / len(w))
        return {"rope_freqs.weight": torch.cat([plain / w, torch.ones(c.head_dim // 2 - len(w))])
                .to(torch.single)}


class Mimo2(Family):
    name = architecture = "mimo2"
    model, note = "MiMoV2Flash", "values of another size, sinks, windows, two bases"
    names = {"self_attn.sinks": "attn_sinks.weight"}

    def more(self):
        turned = {"rope_type": "default", "partial_rotary_factor": 0.5}
        return {"head_dim": 32, "v_head_dim": 20, "num_attention_heads": 4, "num_key_value_heads": 1,
                "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40,
                "sliding_window": WINDOW, "layer_types": ["full_attention"] + ["sliding_attention"] * 2
                + ["full_attention"], "rope_parameters": {
                    "full_attention": turned | {"rope_theta": 3000.0},
                    "sliding_attention": turned | {"rope_theta": 900.0}}}

    def keys(self, c):
        return expert_keys(c) | {
            "attention.value_length": c.v_head_dim, "rope.dimension_count": c.head_dim // 2,
            "attention.head_count_kv": [c.num_key_value_heads * (1 + slide) for slide in slides(c)],
            "attention.sliding_window": c.sliding_window,
            "attention.sliding_window_pattern": slides(c),
            "attention.value_scale": c.attention_value_scale, "expert_gating_func": 2,
            "rope.freq_base": c.rope_parameters["full_attention"]["rope_theta"],
            "rope.freq_base_swa": c.rope_parameters["sliding_attention"]["rope_theta"]}


class MiniMaxM3(Family):
    name = architecture = "minimax-m3"
    model, note = "MiniMaxM3VLText", "blocks of keys that each key head chooses"
    norms_offset, spread = True, 2.5  # some values meet the limit of the activation
    names = {f"self_attn.indexer.{x}": f"indexer.{x}" for x in ("q_proj", "k_proj", "q_norm", "k_norm")}

    def more(self):
        return {"head_dim": 32, "rotary_dim": 16, "intermediate_size": 40,
                "dense_intermediate_size": 104, "shared_intermediate_size": 40,
                "num_local_experts": 8, "num_experts_per_tok": 3, "index_n_heads": 2,
                "index_head_dim": 32, "index_block_size": 16, "index_topk_blocks": 4,
                "index_local_blocks": 1, "mlp_layer_types": ["dense"] + ["sparse"] * 3,
                "layer_types": ["full_attention"] + ["minimax_m3_sparse"] * 3,
                **rope(3000.0, partial_rotary_factor=0.5)}

    def split(self, c, name, t):
        for theirs, ours in (("mlp.", ""), ("mlp.shared_experts.", "_shexp")):
            if name == theirs + "gate_up_proj.weight":
                gate, up = t.chunk(2)
                return {f"ffn_gate{ours}.weight": gate, f"ffn_up{ours}.weight": up}
        return super().split(c, name, t)

    def keys(self, c):
        return expert_keys(c, c.intermediate_size) | SIGMOID | indexer_keys(c, c.index_topk_blocks) | {
            "feed_forward_length": c.dense_intermediate_size, "leading_dense_block_count": 1,
            "expert_shared_count": 1, "expert_weights_scale": c.routed_scaling_factor,
            "attention.indexer.block_size": c.index_block_size,
            "attention.indexer.local_blocks": c.index_local_blocks}


class DeepseekV4(Family):
    name = architecture = "deepseek4"
    model, note = "DeepseekV4", "four streams, keys of runs, experts by id"
    ratios = [0, 4, 128, 4]
    compressors = {f"self_attn.compressor.{theirs}{x}": f"{ours}_compressor_{y}"
                   for theirs, ours in (("", "attn"), ("indexer.", "indexer"))
                   for x, y in (("kv_proj", "kv"), ("gate_proj", "gate"), ("kv_norm", "norm"),
                                ("position_bias", "ape.weight"))}
    streams = {f"{branch}_hc.{x}": f"hc_{branch}_{x}.weight"
               for branch in ("attn", "ffn") for x in ("fn", "base", "scale")}
    names = compressors | streams | {
        "hc_head.hc_fn": "output_hc_fn.weight", "hc_head.hc_base": "output_hc_base.weight",
        "hc_head.hc_scale": "output_hc_scale.weight", "self_attn.sinks": "attn_sinks.weight",
        "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_norm": "attn_q_a_norm",
        "self_attn.q_b_proj": "attn_q_b", "self_attn.kv_proj": "attn_kv",
        "self_attn.kv_norm": "attn_kv_a_norm", "self_attn.o_a_proj": "attn_output_a",
        "self_attn.o_b_proj": "attn_output_b",
        "self_attn.compressor.indexer.q_b_proj": "indexer.attn_q_b",
        "self_attn.compressor.indexer.scorer.weights_proj": "indexer.proj",
        "mlp.gate.tid2eid": "ffn_gate_tid2eid.weight"}

    def more(self):
        turned = {"partial_rotary_factor": 0.5}
        far = yarn(9000.0, 16.0, 1024, attention_factor=1.0, **turned)["rope_parameters"]
        return {"head_dim": 32, "partial_rotary_factor": 0.5, "num_key_value_heads": 1,
                "moe_intermediate_size": 40, "n_routed_experts": 8, "num_experts_per_tok": 3,
                "compress_ratios": list(self.ratios), "num_hash_layers": 2, "q_lora_rank": 40,
                "o_groups": 2, "o_lora_rank": 20, "index_n_heads": 4, "index_head_dim": 32,
                "index_topk": 12, "sliding_window": WINDOW, "hc_sinkhorn_iters": 5, "hc_eps": 1e-4,
                "swiglu_limit": 0.8, "rope_parameters": {
                    "main": {"rope_type": "default", "rope_theta": 3000.0, **turned},
                    "compress": far}}

    def config(self):
        shape = super().config()
        del shape["intermediate_size"]
        return shape

    def keys(self, c):
        far = c.rope_parameters["compress"]
        return expert_keys(c) | indexer_keys(c, c.index_topk) | {
            "rope.dimension_count": c.qk_rope_head_dim,
            "rope.freq_base": c.rope_parameters["main"]["rope_theta"],
            "attention.compress_rope_freq_base": far["rope_theta"], "rope.scaling.type": "yarn",
            "rope.scaling.factor": far["factor"],
            "rope.scaling.original_context_length": far["original_max_position_embeddings"],
            "attention.q_lora_rank": c.q_lora_rank, "attention.sliding_window": c.sliding_window,
            "attention.output_group_count": c.o_groups, "attention.output_lora_rank": c.o_lora_rank,
            "attention.compress_ratios": list(self.ratios), "hyper_connection.count": c.hc_mult,
            "hyper_connection.sinkhorn_iterations": c.hc_sinkhorn_iters,
            "hyper_connection.epsilon": c.hc_eps, "hash_layer_count": 2,
            "swiglu_clamp_exp": [c.swiglu_limit] * c.num_hidden_layers, "expert_gating_func": 4,
            "expert_shared_count": c.n_shared_experts, "expert_weights_norm": True,
            "expert_weights_scale": c.routed_scaling_factor}


class Glm5Next(KimiLinear):
    name = architecture = "glm5-next"
    model, note = "Glm5NextText", "four streams, bounded delta nets, pools of keys"
    names = KimiLinear.names | INDEXER | DeepseekV4.streams | {
        "self_attn.indexer.index_kpool_compress_gate": "indexer_compressor_gate.weight",
        "self_attn.indexer.index_kpool_compress_ape": "indexer_compressor_ape.weight"}

    def more(self):
        latent = {k: v for k, v in DeepseekV3.more(self).items()
                  if k not in ("rope_parameters", "first_k_dense_replace")}
        return latent | {
            "n_group": 1, "topk_group": 1, "qk_rope_head_dim": 0, "linear_head_dim": 16,
            "linear_num_heads": 4, "linear_lower_bound": -3.0, "index_n_heads": 4,
            "index_head_dim": 32, "index_topk": 40, "index_kpool": 8, "hc_sinkhorn_iters": 5,
            "hc_eps": 1e-4, "swiglu_limit": 0.8, "mlp_layer_types": ["dense"] + ["sparse"] * 3,
            "layer_types": ["linear_attention", *["indexed_attention"] * 2, "linear_attention"],
            "indexer_types": ["full", "full", "shared", "full"]}

    def further(self, torch, model):
        """The head, which files always have."""
        return {"output.weight": model.embed_tokens.weight.detach().to(torch.single)}

    def keys(self, c):
        keys = super().keys(c)
        keys["attention.head_count_kv"] = [int(t != "linear_attention") for t in c.layer_types]
        return keys | indexer_keys(c, c.index_topk) | {
            "attention.indexer.kpool": c.index_kpool, "attention.q_lora_rank": c.q_lora_rank,
            "attention.indexer.types": [t == "full" for t in c.indexer_types],
            "kda.gate_lower_bound": float(c.linear_lower_bound), "hyper_connection.count": c.hc_mult,
            "hyper_connection.sinkhorn_iterations": c.hc_sinkhorn_iters,
            "hyper_connection.epsilon": c.hc_eps, "expert_weights_norm": True,
            "expert_weights_scale": float(c.routed_scaling_factor),
            "swiglu_clamp_exp": [c.swiglu_limit] * c.num_hidden_layers,
            "swiglu_clamp_shexp": [c.swiglu_limit] * c.num_hidden_layers}


class Gemma3n(Family):
    name = architecture = "gemma3n"
    model, note = "Gemma3nText", "streams, Laurel, sparse gates, further inputs, shared keys"
    kinds = ["sliding_attention", "full_attention"] * 3
    sparsity = [0.95, 0.7, 0.0, 0.0, 0.9, 0.0]
    names = FOUR_NORMS | {k: v for k, v in Gemma4.names.items() if "per_layer" in k} | {
        "altup.correct_output_scale": "altup_correct_scale.weight",
        "altup.correction_coefs": "altup_correct_coef",
        "altup.prediction_coefs": "altup_predict_coef", "altup.modality_router": "altup_router",
        "altup.router_norm": "altup_router_norm", "laurel.linear_left": "laurel_l",
        "laurel.linear_right": "laurel_r", "laurel.post_laurel_norm": "laurel_post_norm"}

    def more(self):
        return {"num_hidden_layers": len(self.kinds), "layer_types": list(self.kinds),
                "sliding_window": WINDOW, "final_logit_softcapping": 6.0, "laurel_rank": 16,
                "vocab_size_per_layer_input": 257, "hidden_size_per_layer_input": 20,
                "num_kv_shared_layers": 2, "activation_sparsity_pattern": list(self.sparsity),
                "rope_parameters": {
                    "full_attention": {"rope_type": "default", "rope_theta": 30000.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 2000.0}}}

    def split(self, c, name, t):
        return {} if name.startswith("altup_") else None  # further() has them

    def further(self, torch, model):
        return {"altup_proj.weight": as_rows(torch, model.model.altup_projections),
                "altup_unembd_proj.weight": as_rows(torch, model.model.altup_unembed_projections)}

    def keys(self, c):
        quantile = statistics.NormalDist().inv_cdf
        return {"feed_forward_length": c.intermediate_size[0],
                "attention.sliding_window": c.sliding_window,
                "attention.sliding_window_pattern": slides(c),
                "rope.freq_base": c.rope_parameters["full_attention"]["rope_theta"],
                "rope.freq_base_swa": c.rope_parameters["sliding_attention"]["rope_theta"],
                "attention.shared_kv_layers": c.num_kv_shared_layers,
                "altup.num_inputs": c.altup_num_inputs, "altup.active_idx": c.altup_active_idx,
                "embedding_length_per_layer_input": c.hidden_size_per_layer_input,
                "final_logit_softcapping": c.final_logit_softcapping,
                "activation_sparsity_scale": [quantile(x) if x else float("-inf")
                                              for x in c.activation_sparsity_pattern]}


FAMILIES += [cls() for cls in (
    DeepseekV32, GlmDsa, KimiLinear, Step35, Mimo2, MiniMaxM3, DeepseekV4, Glm5Next, Gemma3n)]
