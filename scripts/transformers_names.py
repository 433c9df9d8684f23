"""Names that trace-transformers.py gives the modules of transformers, by architecture."""
IN, OUT = "in", "out"

# What is recorded of a layer, by the module: (side, name with its operation, form). Forms: "turned",
# heads that RoPE turns; "heads", the same with the axis of heads in front; "qkv", all three beside
# each other; "gate_up", the two; "router"; "experts".
LAYER = {
    "": [(OUT, "l_out.ADD", "")],
    "input_layernorm": [(OUT, "attn_norm.MUL", "")],
    "self_attn.q_proj": [(OUT, "Qcur.MUL_MAT", "turned")],
    "self_attn.k_proj": [(OUT, "Kcur.MUL_MAT", "turned")],
    "self_attn.v_proj": [(OUT, "Vcur.MUL_MAT", "")],
    "self_attn.q_norm": [(OUT, "Qcur_normed.MUL", "turned")],
    "self_attn.k_norm": [(OUT, "Kcur_normed.MUL", "turned")],
    "self_attn.o_proj": [(IN, "kqv_out.RESHAPE", ""), (OUT, "attn_out.MUL_MAT", "")],
    "post_attention_layernorm": [(IN, "ffn_inp.ADD", ""), (OUT, "ffn_norm.MUL", "")],
    "mlp.gate_proj": [(OUT, "ffn_gate.MUL_MAT", "")],
    "mlp.up_proj": [(OUT, "ffn_up.MUL_MAT", "")],
    "mlp.down_proj": [(IN, "ffn_swiglu.SWIGLU", ""), (OUT, "ffn_out.MUL_MAT", "")],
}
EXPERTS = {
    "mlp.gate": [(OUT, "ffn_moe_logits.MUL_MAT", "router")],
    "mlp.experts": [(IN, "ffn_moe_weights_scaled", "experts")],
}


def shared(name):
    """A shared expert beside them."""
    return {f"mlp.{name}.gate_proj": LAYER["mlp.gate_proj"],
            f"mlp.{name}.up_proj": LAYER["mlp.up_proj"],
            f"mlp.{name}.down_proj": [(IN, "ffn_swiglu.SWIGLU", ""), (OUT, "ffn_shexp.MUL_MAT", "")]}


FOUR_NORMS = {  # of Gemma: what follows a branch has no counterpart
    "post_attention_layernorm": [], "post_feedforward_layernorm": [],
    "pre_feedforward_layernorm": LAYER["post_attention_layernorm"],
    "mlp.down_proj": [(IN, "ffn_geglu.GEGLU", ""), (OUT, "ffn_out.MUL_MAT", "")]}
HEADS_FIRST = {"self_attn.q_norm": [(OUT, "Qcur_normed.MUL", "heads")],
               "self_attn.k_norm": [(OUT, "Kcur_normed.MUL", "heads")]}
LATENT = {
    "self_attn.q_proj": [(OUT, "Qcur.MUL_MAT", "")],
    "self_attn.q_a_proj": [(OUT, "q.MUL_MAT", "")],
    "self_attn.q_a_layernorm": [(OUT, "q.MUL", "")],
    "self_attn.q_b_proj": [(OUT, "Qcur.MUL_MAT", "")],
    "self_attn.kv_a_proj_with_mqa": [(OUT, "kv_cmpr_pe.MUL_MAT", "")],
    "self_attn.kv_a_layernorm": [(OUT, "kv_cmpr.MUL", "")],
    "self_attn.kv_b_proj": [(OUT, "kv.MUL_MAT", "")]}
NORMS_AFTER = {"post_attention_layernorm": [], "post_feedforward_layernorm": [],
               "mlp": [(IN, "ffn_inp.ADD", "")]}
SCALED = {  # branches that are scaled after their matrix, which here the matrix does
    "self_attn.o_proj": LAYER["self_attn.o_proj"][:1],
    "mlp.down_proj": LAYER["mlp.down_proj"][:1]}
NOT_GATED = {
    "input_layernorm": [(OUT, "attn_norm.ADD", "")],
    "post_attention_layernorm": [(IN, "ffn_inp.ADD", ""), (OUT, "ffn_norm.ADD", "")],
    "mlp.c_fc": [(OUT, "ffn_up_b.ADD", "")],
    "mlp.c_proj": [(IN, "ffn_gelu.UNARY", ""), (OUT, "ffn_out.ADD", "")]}
FUSED = {  # the half for up has no name of its own
    "self_attn.qkv_proj": [(OUT, "", "qkv")],
    "mlp.gate_up_proj": [(OUT, "ffn_gate.MUL_MAT", "gate_up")]}
# Modules without a counterpart, beside those that have an empty list above.
WITHOUT = ("embed_tokens", "rotary_emb", "lm_head", "*act_fn", "*activation_fn", "*.act",
           "*.activation", "*dropout", "mlp.shared_expert_gate")


# Of each chosen expert: gate, up, activation, output.
INSIDE = ("ffn_moe_gate.MUL_MAT_ID", "ffn_moe_up.MUL_MAT_ID", "ffn_moe_swiglu.SWIGLU",
          "ffn_moe_down.MUL_MAT_ID")


class Architecture:
    """gguf: its name in a GGUF file. permuted: converters permute q and k. more: of the layer.
    inside: names of what experts compute. gates: the method of experts that takes gate and up,
    interleaved; "": their products are calls of linear."""

    def __init__(self, gguf, *more, permuted=False, embedding="embd.GET_ROWS", inside=INSIDE, gates=""):
        self.gguf, self.permuted, self.embedding = gguf, permuted, embedding
        self.inside, self.gates = inside, gates
        self.layer = dict(LAYER)
        for rows in more:
            self.layer |= rows


SCALED_INPUT = "inp_scaled.SCALE"
LLAMA = Architecture("llama", permuted=True)
DEEPSEEK = Architecture("deepseek2", LATENT, EXPERTS, shared("shared_experts"))
# By model_type of config.json.
ARCHITECTURES = {
    "llama": LLAMA, "mistral": LLAMA,
    "mixtral": Architecture("llama", EXPERTS, permuted=True),
    "ministral3": Architecture("mistral3", permuted=True),
    "smollm3": Architecture("smollm3", permuted=True),
    "granite": Architecture("granite", SCALED, permuted=True, embedding=SCALED_INPUT),
    "granitemoeshared": Architecture(
        "granitemoe", SCALED, {"block_sparse_moe.router": EXPERTS["mlp.gate"],
                               "block_sparse_moe.experts": EXPERTS["mlp.experts"],
                               "shared_mlp.input_linear": FUSED["mlp.gate_up_proj"],
                               "shared_mlp.output_linear": SCALED["mlp.down_proj"]},
        permuted=True, embedding=SCALED_INPUT, inside=INSIDE[:3]),
    "qwen2": Architecture("qwen2"),
    "qwen2_moe": Architecture("qwen2moe", EXPERTS, shared("shared_expert")),
    "qwen3": Architecture("qwen3"),
    "qwen3_moe": Architecture("qwen3moe", EXPERTS),
    "gemma2": Architecture("gemma2", FOUR_NORMS, embedding=SCALED_INPUT),
    "gemma3_text": Architecture("gemma3", FOUR_NORMS, HEADS_FIRST, embedding=SCALED_INPUT),
    "gpt_oss": Architecture("gpt-oss", {
        "mlp.router": [(OUT, "ffn_moe_logits_biased.ADD", "router")],
        "mlp.experts": EXPERTS["mlp.experts"]},
        inside=("ffn_moe_gate_biased", "ffn_moe_up_biased", "ffn_moe_swiglu_oai"),
        gates="_apply_gate"),
    "deepseek_v2": DEEPSEEK, "deepseek_v3": DEEPSEEK, "glm4_moe_lite": DEEPSEEK,
    "kimi_k2": DEEPSEEK,
    "glm4": Architecture("glm4", FUSED,
                         {"post_self_attn_layernorm": [], "post_mlp_layernorm": []}),
    "glm4_moe": Architecture("glm4moe", EXPERTS, shared("shared_experts")),
    "minimax_m2": Architecture("minimax-m2", EXPERTS),
    "olmo2": Architecture("olmo2", NORMS_AFTER), "olmo3": Architecture("olmo2", NORMS_AFTER),
    "cohere": Architecture("command-r"), "cohere2": Architecture("cohere2"),
    "starcoder2": Architecture("starcoder2", NOT_GATED),
    "phi3": Architecture("phi3", FUSED),
}
