/** Mistral 3 (Ministral and later): YaRN, and queries that grow with their position. */
#include <math.h>

#include "model/arch.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    enum status status = model_temperature_read(h, r, why);
    float l = 0;
    if (!status)
        status = model_key_f32(&r->keys, "rope.scaling.yarn_log_multiplier", &l, why);
    struct model_rope *rope = &h->ropes[MODEL_ROPE_FULL];
    if (rope->yarn_ext_factor > 0 && rope->factor > 1)
        rope->magnitude /= 1 + 0.1 * (double)l * log((double)rope->factor);
    return status;
}

const struct model_arch model_arch_mistral3 = {
    .name = "mistral3",
    .yarn_betas = true,
    .read = read,
};
