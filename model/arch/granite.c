/** Granite 3: four scales; granitemoe the same with experts; Granite 4 mostly Mamba-2. */
#include "model/arch.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    const struct model_keys *keys = &r->keys;
    float logit_scale = 0;
    float attention_scale = 0;
    bool rotates = true;
    enum status status = model_key_positive(keys, "embedding_scale", &h->embedding_scale, why);
    if (!status)
        status = model_key_positive(keys, "residual_scale", &h->residual_scale, why);
    if (!status)
        status = model_key_positive(keys, "attention.scale", &attention_scale, why);
    if (!status)
        status = model_key_positive(keys, "logit_scale", &logit_scale, why);
    if (!status)
        status = model_key_bool(keys, "rope.scaling.finetuned", &rotates, why);
    if (!status && logit_scale == 0)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key '%s.logit_scale' is missing, expected a number above 0",
                             gguf_path(keys->file), keys->prefix);
    h->logit_scale = 1 / logit_scale;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (attention_scale > 0)
            h->layers[i].scale = attention_scale;
        if (!rotates)
            h->layers[i].rope = MODEL_ROPE_OFF;
    }
    return status;
}

const struct model_arch model_arch_granite = {.name = "granite", .read = read};

const struct model_arch model_arch_granitemoe = {
    .name = "granitemoe",
    .shared = MODEL_SHARED_PLAIN,
    .read = read,
};

/** Its steps may be as short as they come. */
static enum status read_hybrid(struct model_hparams *h, const struct model_reading *r,
                               struct status_why *why)
{
    enum status status = read(h, r, why);
    h->recurrent.scale = 1;
    return status ? status : model_recurrent_read(h, r, why);
}

const struct model_arch model_arch_granitehybrid = {
    .name = "granitehybrid",
    .without_keys = MODEL_MAMBA2,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .read = read_hybrid,
};
