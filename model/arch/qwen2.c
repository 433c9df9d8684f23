/** Qwen 2 and 2.5: LLaMA with RoPE in halves and biases on q, k and v. */
#include "model/arch.h"

const struct model_arch model_arch_qwen2 = {
    .name = "qwen2",
    .rope_halves = true,
};

/** What Qwen 2 VL and 2.5 VL read of text; llama.cpp's norms have no eps there. */
static enum status read_vl(struct model_hparams *h, const struct model_reading *r,
                           struct status_why *why)
{
    (void)why;
    if (r->options->llama_compat)
        h->eps = 0;
    return STATUS_OK;
}

const struct model_arch model_arch_qwen2vl = {
    .name = "qwen2vl",
    .rope_halves = true,
    .key_blind = {"rope.dimension_sections"},
    .read = read_vl,
};

/** Qwen 1.5 and 2 with experts: shares are not normalised, the shared expert has a gate. */
const struct model_arch model_arch_qwen2moe = {
    .name = "qwen2moe",
    .rope_halves = true,
    .normalise = MODEL_NORMALISE_NO,
    .shared = MODEL_SHARED_GATED,
    .split_ff = true,
};
