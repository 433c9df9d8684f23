/** Gemma 2: four norms a layer, soft caps, every second layer slides. */
#include <math.h>

#include "model/arch/gemma.h"

enum status model_gemma_read_ends(struct model_hparams *h, const struct model_reading *r, float cap,
                                  struct status_why *why)
{
    h->embedding_scale = (float)sqrt((double)h->n_embd);
    h->logit_soft_cap = model_key_find(&r->keys, "final_logit_softcapping") ? 0 : cap;
    return model_key_positive(&r->keys, "final_logit_softcapping", &h->logit_soft_cap, why);
}

void model_gemma_scale_largest(struct model_hparams *h, uint32_t n_layers)
{
    for (uint32_t i = 0; h->n_layers == n_layers && i < n_layers; i++)
        h->layers[i].scale = (float)sqrt((double)h->layers[i].n_heads / h->n_embd);
}

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    model_gemma_scale_largest(h, 46);
    h->attn_soft_cap = model_key_find(&r->keys, "attn_logit_softcapping") ? 0 : 50;
    enum status status =
        model_key_positive(&r->keys, "attn_logit_softcapping", &h->attn_soft_cap, why);
    return status ? status : model_gemma_read_ends(h, r, 30, why);
}

const struct model_arch model_arch_gemma2 = {
    .name = "gemma2",
    .norms = MODEL_GEMMA_NORMS,
    .rope_halves = true,
    .sliding_rope = true,
    .windows = {.period = 2, .length = 4096},
    .activation = KERN_GELU,
    .read = read,
};
