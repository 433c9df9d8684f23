/** Step 3.5: a gate for each head's result; limits of SwiGLU that differ from layer to layer. */
#include "model/arch.h"

/** Full layers turn half as many elements; their list of factors has as many as there could be. */
static enum status read_ropes(struct model_hparams *h, const struct model_reading *r,
                              struct status_why *why)
{
    enum status status = model_sliding_rope_read(h, r, 10000, why);
    struct model_rope *full = &h->ropes[MODEL_ROPE_FULL];
    if (!status && full->n_rot % 4 != 0)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: half of %u elements of a head are rotated (key "
                             "'%s.rope.dimension_count'), expected a multiple of 4",
                             gguf_path(r->keys.file), full->n_rot, r->keys.prefix);
    full->n_rot /= 2;
    return status;
}

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    float experts[MODEL_MAX_BLOCKS] = {0};
    float others[MODEL_MAX_BLOCKS] = {0};
    enum status status = model_pattern_require(r, why);
    if (!status)
        status = read_ropes(h, r, why);
    if (!status)
        status = model_limits_read(r, "swiglu_clamp_exp", experts, why);
    if (!status)
        status = model_limits_read(r, "swiglu_clamp_shexp", others, why);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        h->layers[i].expert_activation = model_limited(KERN_SWIGLU_CLAMP_AFTER, experts[i]);
        h->layers[i].activation = model_limited(KERN_SWIGLU_CLAMP_AFTER, others[i]);
    }
    return status;
}

const struct model_arch model_arch_step35 = {
    .name = "step35",
    .rope_halves = true,
    .sliding_rope = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .attn_gate = MODEL_SOMETIMES,
    .gate_kind = KERN_SIGMOID,
    .windows = {.period = 4},
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .nextn = MODEL_NEXTN_STREAM,
    .nextn_slides = true,
    .read = read,
};
