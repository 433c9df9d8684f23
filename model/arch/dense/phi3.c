/** Phi 3 to 4: fused projections, and RoPE with one list of factors for short windows, one for
 * long. */
#include "model/arch.h"

static const struct model_folder_name folder_names[] = {
    {"self_attn.qkv_proj", "attn_qkv"},
    {"mlp.gate_up_proj", "ffn_up"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"Phi3ForCausalLM"},
    .names = {folder_names},
};

const struct model_arch model_arch_phi3 = {
    .name = "phi3",
    .folder = &folder,
    /* ffn_up holds the gate, too. */
    .nodes = (const struct model_node[]){{MODEL_AT_Q_PROJECTED, "Qcur", "VIEW"},
                                         {MODEL_AT_K_PROJECTED, "Kcur", "VIEW"},
                                         {MODEL_AT_V_PROJECTED, "Vcur", "VIEW"},
                                         {MODEL_AT_FFN_UP, "", .other = true},
                                         {0}},
    .rope_halves = true,
    .windows = {.period = 1, .unknown_to_llama_cpp = true},
    .ffn = MODEL_FFN_GATE_IN_UP,
    .needs = {{"rope.scaling.attn_factor", MODEL_WHEN_LONG},
              {"rope.scaling.original_context_length", MODEL_WHEN_LONG}},
    .old_base = true,
};
