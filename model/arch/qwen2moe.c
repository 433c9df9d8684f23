/** Qwen 1.5 and 2 with experts: shares are not normalised, the shared expert has a gate. */
#include "model/arch/arch.h"

const struct model_arch model_arch_qwen2moe = {
    .name = "qwen2moe",
    .rope_halves = true,
    .normalise = MODEL_NORMALISE_NO,
    .shared = MODEL_SHARED_GATED,
    .split_ff = true,
};
