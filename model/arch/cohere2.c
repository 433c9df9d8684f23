/** Command R: LayerNorm without bias, both branches of the same rows, scaled logits. */
#include "model/arch.h"

static enum status read_logit_scale(struct model_hparams *h, const struct model_reading *r,
                                    struct status_why *why)
{
    return model_key_positive(&r->keys, "logit_scale", &h->logit_scale, why);
}

/** Command R7B and later: layers that see all have no positions. */
static enum status read_cohere2(struct model_hparams *h, const struct model_reading *r,
                                struct status_why *why)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (!h->layers[i].slides)
            h->layers[i].rope = MODEL_ROPE_OFF;
    return read_logit_scale(h, r, why);
}

const struct model_arch model_arch_cohere2 = {
    .name = "cohere2",
    .norms = {.ffn = ""},
    .layer_norm = true,
    .parallel = true,
    .windows = {.period = 4, .required = true},
    .read = read_cohere2,
};

const struct model_arch model_arch_command_r = {
    .name = "command-r",
    .norms = {.ffn = ""},
    .layer_norm = true,
    .parallel = true,
    .qk_norm = MODEL_QK_NORM_EACH,
    .read = read_logit_scale,
};
