/** Gemma 3: norms of q and k instead of the scores' cap; five layers slide, the sixth sees all. */
#include "model/arch/gemma.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    model_gemma_scale_largest(h, 62);
    h->ropes[MODEL_ROPE_SLIDING].freq_base = 10000;
    enum status status = model_key_positive(&r->keys, "rope.freq_base_swa",
                                            &h->ropes[MODEL_ROPE_SLIDING].freq_base, why);
    return status ? status : model_gemma_read_ends(h, r, 0, why);
}

const struct model_arch model_arch_gemma3 = {
    .name = "gemma3",
    .norms = MODEL_GEMMA_NORMS,
    .rope_halves = true,
    .sliding_rope = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .windows = {.period = 6},
    .activation = KERN_GELU,
    .read = read,
};
