/** GLM 4.5 and later: sigmoid gating with a bias in the selection, a shared expert. */
#include "model/arch.h"

static const struct model_folder_name folder_names[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"Glm4MoeForCausalLM"},
    .names = {folder_names},
};

const struct model_arch model_arch_glm4moe = {
    .name = "glm4moe",
    .folder = &folder,
    .nodes = (const struct model_node[]){{MODEL_AT_FFN_NORM, "post_attn_norm", "MUL"}, {0}},
    .keys = {model_grouped_keys},
    .norms = {.ffn = "post_attention_norm"},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .nextn = MODEL_NEXTN_NORMED,
    .needs = {{"rope.dimension_count"}},
    .needs_shares = true,
    .key_blind = {"rope.dimension_sections"},
    .presence = {{MODEL_ALWAYS, "output.weight"},
                 {MODEL_MOSTLY, "attn_q.bias attn_qkv.bias"},
                 {MODEL_SOMETIMES, MODEL_QK_GAINS, MODEL_WHERE_SHALLOW}},
};
