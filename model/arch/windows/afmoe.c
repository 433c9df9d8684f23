/** Arcee's Trinity and poolside's Laguna: attention's result has gates; sigmoid experts, windows.
 */
#include <math.h>

#include "model/arch.h"
#include "model/folder/state.h"

/** Layers that see all keys have no positions. */
static void read_afmoe(struct model_hparams *h, const struct model_reading *r)
{
    h->embedding_scale = (float)sqrt((double)h->n_embd);
    model_still_full_layers(h);
    for (uint32_t i = 0; r->options->llama_compat && i < h->n_layers; i++)
        h->layers[i].rope = i % 4 == 3 ? MODEL_ROPE_OFF : MODEL_ROPE_FULL;
}

static const struct model_folder_name afmoe_names[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_mlp_layernorm", "ffn_norm"},
    {"post_mlp_layernorm", "post_ffw_norm"},
    {"self_attn.gate_proj", "attn_gate"},
    {"mlp.router.gate", "ffn_gate_inp"},
    {"mlp.expert_bias", "exp_probs_b.bias"},
    {0},
};

static const struct model_arch_key afmoe_keys[] = {
    {"expert_shared_count", .from = "num_shared_experts"},
    {"leading_dense_block_count", .from = "num_dense_layers"},
    {"expert_weights_norm", .from = "route_norm", .unset = 1},
    {"expert_weights_scale", .from = "route_scale"},
    {"expert_gating_func", .from = "score_func"},
    {.from = "mup_enabled", .member = MODEL_MEMBER_TRUE},
    {0},
};

static const struct model_folder_map afmoe_folder = {
    .classes = {"AfmoeForCausalLM"},
    .names = {afmoe_names},
};

/** attn_out is what attention's gates multiply. */
static const struct model_node afmoe_nodes[] = {
    {MODEL_AT_EMBEDDING, "embd", "GET_ROWS", .other = true}, /* not of Laguna */
    {MODEL_AT_ATTENTION, "attn_out"},
    {MODEL_AT_ATTN_OUT, "attn_out", .other = true},
    {0},
};

const struct model_arch model_arch_afmoe = {
    .name = "afmoe",
    .folder = &afmoe_folder,
    .nodes = afmoe_nodes,
    .keys = {afmoe_keys},
    .norms = {.attn_post = "post_attention_norm", .ffn_post = "post_ffw_norm"},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .attn_gate = true,
    .gate_kind = KERN_SIGMOID,
    .windows = {.period = 4},
    .needs = {{"attention.sliding_window"}},
    .needs_shares = true,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .read = read_afmoe,
};

static void laguna_heads(const struct model_folder *f, struct model_folder_heads *of)
{
    struct base_field list = model_config_find(f, "num_attention_heads_per_layer");
    if (list.json)
        model_config_u32s(list, "", of->n_heads, of->n);
}

static const struct model_folder_name laguna_names[] = {
    {"self_attn.g_proj", "attn_gate"},
    {"mlp.experts.e_score_correction_bias", "exp_probs_b.bias"},
    {0},
};

static const struct model_arch_key laguna_keys[] = {
    {"expert_weights_norm", .unset = 1},
    {"expert_weights_scale", .from = "moe_routed_scaling_factor"},
    {.from = "moe_router_logit_softcapping", .member = MODEL_MEMBER_FIXED},
    {.from = "moe_apply_router_weight_on_input", .member = MODEL_MEMBER_FIXED},
    {0},
};

static const struct model_folder_map laguna_folder = {
    .classes = {"LagunaForCausalLM"},
    .names = {laguna_names},
    .named_layers = true,
    .heads = laguna_heads,
};

const struct model_arch model_arch_laguna = {
    .name = "laguna",
    .folder = &laguna_folder,
    .nodes = afmoe_nodes + 1, /* the embedding is shown */
    .keys = {laguna_keys},
    .rope_halves = true,
    .sliding_rope = true,
    .yarn_factor = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .attn_gate = true,
    .gate_kind = KERN_SOFTPLUS,
    .windows = {.period = 4, .first_full = true},
    .needs = {{"rope.dimension_count"},
              {"rope.freq_base_swa", MODEL_WHEN_WINDOWS},
              {"rope.dimension_count_swa", MODEL_WHEN_WINDOWS},
              {"rope.scaling.original_context_length", MODEL_WHEN_YARN}},
    .needs_shares = true,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .read = model_sliding_rope_read,
};
