"""Models of second_opinion.py that came later; most are combinations of known parts."""
from second_opinion_families import Cohere2, GraniteMoe, Llama, mamba2
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


class StableLm12(StableLm):
    name, note = "stablelm-12b", "parallel branches, LayerNorms of heads"

    def more(self):
        return super().more() | {"use_parallel_residual": True, "qk_layernorm": True}

    def split(self, c, name, t):
        return {} if "_layernorm.norms." in name else None  # further() has them

    def further(self, torch, model):
        return {f"blk.{i}.attn_{x}_norm.weight": as_rows(torch, norms.norms)
                for i, layer in enumerate(model.model.layers)
                for x, norms in (("q", layer.self_attn.q_layernorm),
                                 ("k", layer.self_attn.k_layernorm))}


def as_rows(torch, modules):
    """The weights of modules as one tensor."""
    return torch.stack([m.weight for m in modules]).detach().to(torch.single)


class Cohere2Moe(Cohere2):
    name = architecture = "cohere2moe"
    model, note = "Cohere2Moe", "LayerNorm, mean with the shared expert, windows"

    def config(self):
        return {k: v for k, v in super().config().items() if k != "rms_norm_eps"} | self.norm()

    def norm(self):
        return {"layer_norm_eps": 0.02}

    def more(self):
        return super().more() | EXPERTS | {
            "mlp_layer_types": ["dense"] + ["sparse"] * 3, "intermediate_size": 40,
            "prefix_dense_intermediate_size": 104, "num_shared_experts": 2,
            "expert_selection_fn": "sigmoid", "norm_topk_prob": True, "layer_types": [
                "full_attention", "sliding_attention", "full_attention", "sliding_attention"]}

    def keys(self, c):
        return super().keys(c) | expert_keys(c, c.intermediate_size) | SIGMOID | {
            "feed_forward_length": c.prefix_dense_intermediate_size,
            "leading_dense_block_count": 1, "expert_shared_count": c.num_shared_experts,
            "expert_shared_feed_forward_length": c.num_shared_experts * c.intermediate_size,
            "attention.sliding_window_pattern": slides(c)}


class Cohere2MoeRms(Cohere2Moe):
    name, note = "cohere2moe-rms", "the same with RMS norms"

    def norm(self):
        return {"rms_norm_eps": 0.02}

    def keys(self, c):
        return super().keys(c) | {"attention.layer_norm_epsilon": None,
                                  "attention.layer_norm_rms_epsilon": c.rms_norm_eps}


class Afmoe(Family):
    name = architecture = "afmoe"
    model, note = "Afmoe", "gates, four norms, windows, sigmoid experts"
    names = {"post_attention_layernorm": "post_attention_norm", "pre_mlp_layernorm": "ffn_norm",
             "post_mlp_layernorm": "post_ffw_norm", "self_attn.gate_proj": "attn_gate",
             "mlp.router.gate": "ffn_gate_inp", "mlp.expert_bias": "exp_probs_b.bias"}

    def more(self):
        return EXPERTS | {"num_shared_experts": 2, "mup_enabled": True, "route_scale": 2.826,
                          "num_dense_layers": 1, "sliding_window": WINDOW, **rope(3000.0)}

    def keys(self, c):
        return expert_keys(c) | SIGMOID | {
            "attention.sliding_window": c.sliding_window, "leading_dense_block_count": 1,
            "expert_shared_count": c.num_shared_experts, "expert_weights_scale": c.route_scale}


class Laguna(Family):
    name = architecture = "laguna"
    model, note = "Laguna", "a gate for each head, heads by layer, two bases, YaRN"
    gating = "per-head"
    names = {"self_attn.g_proj": "attn_gate"}

    def more(self):
        full = yarn(3000.0, 8.0, 1024, partial_rotary_factor=0.5, attention_factor=1.1)
        full["rope_parameters"]["beta_fast"] = 20.0
        return EXPERTS | {
            "gating": self.gating, "num_attention_heads_per_layer": [4, 6, 4, 6],
            "shared_expert_intermediate_size": 56, "moe_routed_scaling_factor": 2.5,
            "sliding_window": WINDOW, "layer_types": ["full_attention", "sliding_attention"] * 2,
            "rope_parameters": {"full_attention": full["rope_parameters"],
                                "sliding_attention": {"rope_type": "default", "rope_theta": 900.0}}}

    def keys(self, c):
        p = c.rope_parameters["full_attention"]
        return expert_keys(c) | SIGMOID | {
            "attention.head_count": c.num_attention_heads_per_layer,
            "attention.sliding_window": c.sliding_window, "attention.sliding_window_pattern": 2,
            "rope.freq_base": p["rope_theta"], "rope.dimension_count": c.head_dim // 2,
            "rope.freq_base_swa": c.rope_parameters["sliding_attention"]["rope_theta"],
            "rope.dimension_count_swa": c.head_dim, "rope.scaling.type": "yarn",
            "rope.scaling.factor": p["factor"],
            "rope.scaling.original_context_length": p["original_max_position_embeddings"],
            "rope.scaling.yarn_attn_factor": p["attention_factor"],
            "rope.scaling.yarn_beta_fast": p["beta_fast"],
            "rope.scaling.yarn_beta_slow": p["beta_slow"], "leading_dense_block_count": 1,
            "expert_shared_feed_forward_length": c.shared_expert_intermediate_size,
            "expert_weights_scale": c.moe_routed_scaling_factor}


class LagunaElements(Laguna):
    name, note, gating = "laguna-elements", "a gate for each element", "per-element"


class Apertus(Family):
    name = architecture = "apertus"
    model, note = "Apertus", "xIELU, norms of heads, factors"
    names = {"attention_layernorm": "attn_norm", "feedforward_layernorm": "ffn_norm"}
    further = Llama.further

    def more(self):
        return Llama().more() | {"attention_bias": True}

    def split(self, c, name, t):
        return {} if ".act_fn." in name else None  # file() has them

    def file(self, torch, model, state):
        keys, tensors = super().file(torch, model, state)
        n = model.config.num_hidden_layers
        return keys | {f"xielu.{k}": [float(state[f"model.layers.{i}.mlp.act_fn.{k}"])
                                      for i in range(n)]
                       for k in ("alpha_n", "alpha_p", "beta", "eps")}, tensors


class Lfm2(Family):
    name = architecture = "lfm2"
    model, note, eps = "Lfm2", "short convolutions, norms of heads", "norm_eps"
    names = {"embedding_norm": "token_embd_norm", "operator_norm": "attn_norm",
             "ffn_norm": "ffn_norm", "conv.in_proj": "shortconv.in_proj",
             "conv.out_proj": "shortconv.out_proj", "self_attn.out_proj": "attn_output",
             "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm",
             "feed_forward.w1": "ffn_gate", "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down",
             "feed_forward.gate": "ffn_gate_inp", "feed_forward.expert_bias": "exp_probs_b.bias",
             "feed_forward.experts.down_proj": "ffn_down_exps.weight"}

    def more(self):
        return {"norm_eps": 0.02, "layer_types": ["conv", "full_attention"] * 2,
                "tie_word_embeddings": True, "block_auto_adjust_ff_dim": False, **rope(3000.0)}

    def split(self, c, name, t):
        return {"shortconv.conv.weight": t[:, 0]} if name == "conv.conv.weight" else \
            super().split(c, name, t)

    def keys(self, c):
        return {"shortconv.l_cache": c.conv_L_cache, "attention.head_count_kv": [
            c.num_key_value_heads * (t == "full_attention") for t in c.layer_types]}


class Lfm2Moe(Lfm2):
    name = architecture = "lfm2moe"
    model, note = "Lfm2Moe", "the same, sigmoid experts with a bias"

    def more(self):
        return super().more() | EXPERTS | {"num_dense_layers": 1}

    def keys(self, c):
        return super().keys(c) | expert_keys(c) | {"leading_dense_block_count": 1,
                                                   "expert_gating_func": 2}


MAMBA = {f"mamba.{theirs}": ours for theirs, ours in (
    ("in_proj", "ssm_in"), ("out_proj", "ssm_out"), ("dt_bias", "ssm_dt.bias"),
    ("conv1d", "ssm_conv1d"))}


def mamba_keys(c):
    return {"ssm.conv_kernel": c.mamba_d_conv, "ssm.state_size": c.mamba_d_state,
            "ssm.group_count": c.mamba_n_groups, "ssm.time_step_rank": c.mamba_n_heads,
            "ssm.inner_size": c.mamba_n_heads * c.mamba_d_head}


class GraniteHybrid(GraniteMoe):
    name = architecture = "granitehybrid"
    model, note, permuted = "GraniteMoeHybrid", "Mamba-2, attention without positions, experts", False
    names = GraniteMoe.names | MAMBA
    n_experts = 8

    def more(self):
        return super().more() | {
            "layer_types": ["linear_attention", "linear_attention", "full_attention",
                            "linear_attention"], "num_local_experts": self.n_experts,
            "mamba_n_heads": 6, "mamba_d_head": 32, "mamba_d_state": 12, "mamba_n_groups": 2,
            "mamba_chunk_size": 64}

    def split(self, c, name, t):
        return mamba2(name, t, c.mamba_n_groups) or super().split(c, name, t)

    def keys(self, c):
        return super().keys(c) | mamba_keys(c) | {
            "rope.scaling.finetuned": False, "attention.head_count_kv": [
                c.num_key_value_heads * (t == "full_attention") for t in c.layer_types]}


class GraniteHybridDense(GraniteHybrid):
    name, note, n_experts = "granitehybrid-dense", "the same without experts", 0
    names = GraniteHybrid.names | {"shared_mlp.output_linear": "ffn_down"}

    def split(self, c, name, t):
        return {k.replace("_shexp", ""): v for k, v in (super().split(c, name, t) or {}).items()} \
            or None

    def keys(self, c):
        return super().keys(c) | {
            "feed_forward_length": c.shared_intermediate_size, "expert_count": None,
            "expert_used_count": None, "expert_feed_forward_length": None,
            "expert_shared_feed_forward_length": None}


class FalconH1(Family):
    name = architecture = "falcon-h1"
    model, note = "FalconH1", "attention and Mamba-2 side by side"
    normed = True
    names = MAMBA | {"final_layernorm": "output_norm", "feed_forward.gate_proj": "ffn_gate",
                     "feed_forward.up_proj": "ffn_up", "feed_forward.down_proj": "ffn_down"}

    def more(self):
        return {"mamba_d_ssm": 96, "mamba_n_heads": 6, "mamba_d_head": 16, "mamba_d_state": 12,
                "mamba_n_groups": 2, "mamba_chunk_size": 64, "mamba_rms_norm": self.normed,
                "mamba_norm_before_gate": False, "mlp_bias": True, "head_dim": 20, **rope(3000.0)}

    def split(self, c, name, t):
        if name == "pre_ff_layernorm.weight":
            return {"ffn_norm": t}
        return mamba2(name, t, c.mamba_n_groups)

    def keys(self, c):
        return mamba_keys(c)


class FalconH1Plain(FalconH1):
    name, note, normed = "falcon-h1-plain", "the same without the norm after Mamba-2", False


FAMILIES += [cls() for cls in (
    Qwen2VL, Qwen3VL, Qwen3VLMoe, Mistral4, SeedOss, Ernie45, Ernie45Moe, HunyuanDense, HunyuanMoe,
    Hyv3, Exaone4, ExaoneMoe, Dots1, Arcee, Olmoe, Mellum, Phi2, StableLm,
    StableLm12, Cohere2Moe, Cohere2MoeRms, Afmoe, Laguna, LagunaElements, Apertus, Lfm2, Lfm2Moe,
    GraniteHybrid, GraniteHybridDense, FalconH1, FalconH1Plain)]
