/** GLM 4 (0414): four norms a layer, the gate in ffn_up. */
#include "model/arch.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    h->rope_halves = model_key_find(&r->keys, "rope.dimension_sections") != NULL;
}

static const struct model_folder_name folder_names[] = {
    {"post_self_attn_layernorm", "post_attention_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"post_mlp_layernorm", "post_ffw_norm"},
    {"mlp.gate_up_proj", "ffn_up"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"Glm4ForCausalLM"},
    .names = {folder_names},
};

const struct model_arch model_arch_glm4 = {
    .name = "glm4",
    .folder = &folder,
    /* ffn_up holds the gate, too. */
    .nodes = (const struct model_node[]){{MODEL_AT_FFN_UP, "", .other = true}, {0}},
    .norms = {.attn_post = "post_attention_norm", .ffn_post = "post_ffw_norm"},
    .ffn = MODEL_FFN_GATE_IN_UP,
    .needs = {{"rope.dimension_count"}},
    .read = read,
};
