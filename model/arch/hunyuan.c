/** Hunyuan, dense and with experts, and Hy 3: norms of each head's queries and keys. */
#include <math.h>

#include "model/arch.h"

/** A stretch of the base that depends on the size of heads; files mostly have it in the base. */
static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    float alpha = 0;
    enum status status = model_key_positive(&r->keys, "rope.scaling.alpha", &alpha, why);
    double size = h->layers[0].key_size;
    if (alpha > 0 && size > 2)
        h->ropes[MODEL_ROPE_FULL].freq_base *= (float)pow((double)alpha, size / (size - 2));
    return status;
}

const struct model_arch model_arch_hunyuan_dense = {
    .name = "hunyuan-dense",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .qk_norm_last = true,
    .read = read,
};

const struct model_arch model_arch_hunyuan_moe = {
    .name = "hunyuan-moe",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .qk_norm_last = true,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
};

const struct model_arch model_arch_hy_v3 = {
    .name = "hy_v3",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .nextn = MODEL_NEXTN_NORMED,
};
