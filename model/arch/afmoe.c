/** Arcee's Trinity and poolside's Laguna: attention's result has gates; sigmoid experts, windows.
 */
#include <math.h>

#include "model/arch.h"

/** Layers that see all keys have no positions. */
static enum status read_afmoe(struct model_hparams *h, const struct model_reading *r,
                              struct status_why *why)
{
    (void)why;
    h->embedding_scale = (float)sqrt((double)h->n_embd);
    model_still_full_layers(h);
    for (uint32_t i = 0; r->options->llama_compat && i < h->n_layers; i++)
        h->layers[i].rope = i % 4 == 3 ? MODEL_ROPE_OFF : MODEL_ROPE_FULL;
    return STATUS_OK;
}

const struct model_arch model_arch_afmoe = {
    .name = "afmoe",
    .norms = {.attn_post = "post_attention_norm", .ffn_post = "post_ffw_norm"},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .attn_gate = MODEL_ALWAYS,
    .gate_kind = KERN_SIGMOID,
    .windows = {.period = 4, .llama_cpp_period = 4, .required = true},
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .read = read_afmoe,
};

/** Layers that slide have angles of their own. */
static enum status read_laguna(struct model_hparams *h, const struct model_reading *r,
                               struct status_why *why)
{
    return model_sliding_rope_read(h, r, 0, why);
}

const struct model_arch model_arch_laguna = {
    .name = "laguna",
    .rope_halves = true,
    .sliding_rope = true,
    .yarn_factor = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .attn_gate = MODEL_ALWAYS,
    .gate_kind = KERN_SOFTPLUS,
    .windows = {.period = 4, .llama_cpp_period = 4, .first_full = true},
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .read = read_laguna,
};
