/** Phi 2: LayerNorm, biases, both branches of the same rows, a feed-forward without gate. */
#include "model/arch.h"

static const struct model_folder_name folder_names[] = {
    {"final_layernorm", "output_norm"},
    {"self_attn.dense", "attn_output"},
    {"mlp.fc1", "ffn_up"},
    {"mlp.fc2", "ffn_down"},
    {0},
};

static const struct model_arch_key keys[] = {
    {.from = "qk_layernorm", .member = MODEL_MEMBER_FALSE},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"PhiForCausalLM"},
    .names = {folder_names},
};

const struct model_arch model_arch_phi2 = {
    .name = "phi2",
    .folder = &folder,
    .keys = {keys},
    .layer_norm = true,
    .parallel = true,
    .rope_halves = true,
    .ffn = MODEL_FFN_UNGATED,
    .activation = KERN_GELU,
    .presence = {{MODEL_ALWAYS, "output.weight output.bias " MODEL_QKV_BIASES
                                " attn_output.bias ffn_up.bias ffn_down.bias"}},
    .needs = {{"rope.dimension_count"}},
    .old_base = true,
};
