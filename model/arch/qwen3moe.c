/** Qwen 3 with experts. */
#include "model/arch/arch.h"

const struct model_arch model_arch_qwen3moe = {
    .name = "qwen3moe",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .split_ff = true,
};
