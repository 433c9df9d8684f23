"""Models of second_opinion.py that came later; most are combinations of known parts."""
from second_opinion_families import Llama
from second_opinion_models import (EXPERTS, FAMILIES, WINDOW, DeepseekV3, Family,
                                   expert_keys, rope, yarn)


def slides(c):
    return [t == "sliding_attention" for t in c.layer_types]


SIGMOID = {"expert_gating_func": 2, "expert_weights_norm": True}
EVERY_FOURTH = ["sliding_attention"] * 3 + ["full_attention"]


class Qwen2VL(Family):
    name = architecture = "qwen2vl"
    model, note = "Qwen2VLText", "the text's part"

    def more(self):
        return rope(3000.0, mrope_section=[4, 4, 4]) | {"tie_word_embeddings": True}

    def keys(self, c):
        return {"rope.dimension_sections": [4, 4, 4, 0]}


class Qwen3VL(Qwen2VL):
    name = architecture = "qwen3vl"
    model = "Qwen3VLText"


class Qwen3VLMoe(Qwen3VL):
    name = architecture = "qwen3vlmoe"
    model, note = "Qwen3VLMoeText", "the text's part, experts"

    def more(self):
        return super().more() | EXPERTS

    def keys(self, c):
        return super().keys(c) | expert_keys(c)


class Mistral4(DeepseekV3):
    name = architecture = "mistral4"
    model, note = "Mistral4", "latent attention, softmax experts, growing queries"

    def more(self):
        return super().more() | {"n_group": 1, "topk_group": 1,
                                 **yarn(3000.0, 40.0, 64, mscale=1.0, mscale_all_dim=1.0,
                                        llama_4_scaling_beta=0.1, partial_rotary_factor=16 / 28)}

    def gating(self):
        return {}

    def keys(self, c):
        return super().keys(c) | {
            "attention.temperature_scale": c.rope_parameters["llama_4_scaling_beta"]}


class SeedOss(Family):
    name = architecture = "seed_oss"
    model, note = "SeedOss", "biases, the ffn's norm has another name"
    names = {"post_attention_layernorm": "post_attention_norm"}

    def more(self):
        return {"head_dim": 20, "attention_out_bias": False, **rope(3000.0)}


class Ernie45(Family):
    name = architecture = "ernie4_5"
    model, note = "Ernie4_5", "biases, neighbours turned"

    def more(self):
        return {"head_dim": 20, "use_bias": True, "tie_word_embeddings": True, **rope(3000.0)}


class Ernie45Moe(Ernie45):
    name = architecture = "ernie4_5-moe"
    model, note = "Ernie4_5_Moe", "softmax experts with a bias, shared expert"

    def more(self):
        return {"use_bias": False, "moe_num_experts": 8, "moe_k": 3, "moe_intermediate_size": 40,
                "moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_end_index": 3,
                **rope(3000.0)}

    def split(self, c, name, t):
        if name == "mlp.gate.moe_statics.e_score_correction_bias":
            return {"exp_probs_b.bias": t[0]}
        return super().split(c, name, t)

    def keys(self, c):
        return {"expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 40,
                "expert_shared_feed_forward_length": 80, "leading_dense_block_count": 1,
                "interleave_moe_layer_step": 1, "expert_shared_count": 2}


class HunyuanDense(Family):
    name = architecture = "hunyuan-dense"
    model, note = "HunYuanDenseV1", "norms of heads after RoPE"
    names = {"self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm"}

    def more(self):
        return {"head_dim": 20, **rope(3000.0)}


class HunyuanMoe(HunyuanDense):
    name = architecture = "hunyuan-moe"
    model, note = "HunYuanMoEV1", "the same with softmax experts, shared expert"
    names = HunyuanDense.names | {"mlp.gate.wg": "ffn_gate_inp",
                                  "mlp.shared_mlp.gate_proj": "ffn_gate_shexp",
                                  "mlp.shared_mlp.up_proj": "ffn_up_shexp",
                                  "mlp.shared_mlp.down_proj": "ffn_down_shexp"}

    def more(self):
        return super().more() | {"num_experts": 8, "moe_topk": 3}

    def keys(self, c):
        return {"expert_count": 8, "expert_used_count": 3,
                "expert_feed_forward_length": c.intermediate_size,
                "expert_shared_feed_forward_length": c.intermediate_size}


class Hyv3(Family):
    name = architecture = "hy_v3"
    model, note = "HYV3", "sigmoid experts with a bias, shared expert"
    names = {"mlp.e_score_correction_bias": "exp_probs_b"}

    def more(self):
        return EXPERTS | {"head_dim": 20, "num_shared_experts": 1, "router_scaling_factor": 2.826,
                          **rope(3000.0)}

    def keys(self, c):
        return expert_keys(c) | SIGMOID | {"expert_shared_count": 1,
                                           "expert_weights_scale": c.router_scaling_factor}


class Exaone4(Family):
    name = architecture = "exaone4"
    model, note = "Exaone4", "norms after the branches, windows, factors"
    names = {"post_attention_layernorm": "post_attention_norm",
             "post_feedforward_layernorm": "post_ffw_norm"}
    further = Llama.further

    def more(self):
        return {"sliding_window": WINDOW, "sliding_window_pattern": 4,
                "layer_types": list(EVERY_FOURTH), **Llama().more()}

    def keys(self, c):
        return {"attention.sliding_window": c.sliding_window,
                "attention.sliding_window_pattern": slides(c)}


class ExaoneMoe(Exaone4):
    name = architecture = "exaone-moe"
    model, note = "ExaoneMoe", "windows, sigmoid experts with a bias, shared expert"
    names = {}

    def more(self):
        return super().more() | EXPERTS | {
            "head_dim": 20, "num_shared_experts": 1, "routed_scaling_factor": 2.5,
            "first_k_dense_replace": 1, "mlp_layer_types": ["dense"] + ["sparse"] * 3}

    def keys(self, c):
        return super().keys(c) | expert_keys(c) | SIGMOID | {
            "leading_dense_block_count": 1, "expert_shared_count": 1,
            "expert_shared_feed_forward_length": c.moe_intermediate_size,
            "expert_weights_scale": c.routed_scaling_factor}


class Dots1(Family):
    name = architecture = "dots1"
    model, note = "Dots1", "sigmoid experts with a bias, shared expert"

    def more(self):
        return {"head_dim": 20, "num_key_value_heads": 4, "n_routed_experts": 8, "n_shared_experts": 2,
                "num_experts_per_tok": 3, "moe_intermediate_size": 40, "first_k_dense_replace": 1,
                "norm_topk_prob": True, "routed_scaling_factor": 2.5, **rope(3000.0)}

    def keys(self, c):
        return expert_keys(c) | SIGMOID | {
            "expert_count": c.n_routed_experts, "leading_dense_block_count": 1,
            "expert_shared_count": 2, "expert_weights_scale": c.routed_scaling_factor}


class Arcee(Family):
    name = architecture = "arcee"
    model, note, permuted = "Arcee", "squared relu, no gate, YaRN, permuted", True

    def more(self):
        return {"head_dim": 20, **yarn(3000.0, 20.0, 512)}


class Olmoe(Family):
    name = architecture = "olmoe"
    model, note = "Olmoe", "norms over all heads, experts not renormalised"

    def more(self):
        return {"intermediate_size": 40, "num_experts": 8, "num_experts_per_tok": 3,
                "norm_topk_prob": False, **rope(3000.0)}

    def keys(self, c):
        return expert_keys(c, c.intermediate_size)


class Mellum(Family):
    name = architecture = "mellum"
    model, note = "Mellum", "windows, two bases, YaRN, experts"

    def more(self):
        return EXPERTS | {
            "head_dim": 20, "sliding_window": WINDOW, "layer_types": list(EVERY_FOURTH),
            "norm_topk_prob": True, "rope_parameters": {
                "full_attention": yarn(3000.0, 8.0, 1024)["rope_parameters"],
                "sliding_attention": {"rope_type": "default", "rope_theta": 900.0}}}

    def keys(self, c):
        p = c.rope_parameters["full_attention"]
        return expert_keys(c) | {
            "attention.sliding_window": c.sliding_window,
            "attention.sliding_window_pattern": slides(c), "rope.freq_base": p["rope_theta"],
            "rope.freq_base_swa": c.rope_parameters["sliding_attention"]["rope_theta"],
            "rope.scaling.type": "yarn", "rope.scaling.factor": p["factor"],
            "rope.scaling.original_context_length": p["original_max_position_embeddings"]}


class Phi2(Family):
    name = architecture = "phi2"
    model, note, eps = "Phi", "parallel branches, LayerNorm, biases, part of a head", "layer_norm_eps"
    names = {"self_attn.dense": "attn_output", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down",
             "final_layernorm": "output_norm"}

    def more(self):
        return {"layer_norm_eps": 0.02, "hidden_act": "gelu_new",
                **rope(3000.0, partial_rotary_factor=0.5)}

    def keys(self, c):
        return {"attention.layer_norm_epsilon": c.layer_norm_eps,
                "attention.layer_norm_rms_epsilon": None}


class StableLm(Phi2):
    name = architecture = "stablelm"
    model, note, names = "StableLm", "LayerNorm, part of a head", {}

    def more(self):
        return {"layer_norm_eps": 0.02, "use_qkv_bias": True,
                **rope(3000.0, partial_rotary_factor=0.25)}


FAMILIES += [cls() for cls in (
    Qwen2VL, Qwen3VL, Qwen3VLMoe, Mistral4, SeedOss, Ernie45, Ernie45Moe, HunyuanDense, HunyuanMoe,
    Hyv3, Exaone4, ExaoneMoe, Dots1, Arcee, Olmoe, Mellum, Phi2, StableLm)]
