/** LFM 2, dense and with experts: short convolutions instead of attention in most layers. */
#include "model/arch.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    h->recurrent.n_inner = h->n_embd;
    h->experts.sum_eps = r->options->llama_compat ? 0 : 1e-6f;
    return model_key_u32_required(&r->keys, "shortconv.l_cache",
                                  (struct model_range){1, KERN_CONVOLVE_MAX}, &h->recurrent.n_taps,
                                  why);
}

#define LFM2                                                                                       \
    .norms = {.output = "token_embd_norm"}, .without_keys = MODEL_SHORT_CONVOLUTION,               \
    .rope_halves = true, .qk_norm = MODEL_QK_NORM_HEADS, .windows = {.period = 1}, .read = read

const struct model_arch model_arch_lfm2 = {.name = "lfm2", LFM2};

const struct model_arch model_arch_lfm2moe = {
    .name = "lfm2moe",
    .gating = KERN_GATE_SIGMOID,
    LFM2,
};
