/** Qwen 2 and 2.5: LLaMA with RoPE in halves and biases on q, k and v. */
#include "model/arch.h"

const struct model_arch model_arch_qwen2 = {
    .name = "qwen2",
    .rope_halves = true,
};

/** Qwen 1.5 and 2 with experts: shares are not normalised, the shared expert has a gate. */
const struct model_arch model_arch_qwen2moe = {
    .name = "qwen2moe",
    .rope_halves = true,
    .normalise = MODEL_NORMALISE_NO,
    .shared = MODEL_SHARED_GATED,
    .split_ff = true,
};
