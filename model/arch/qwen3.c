/** Qwen 3, dense and with experts: norms of each head's queries and keys. */
#include "model/arch.h"

const struct model_arch model_arch_qwen3 = {
    .name = "qwen3",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
};

const struct model_arch model_arch_qwen3moe = {
    .name = "qwen3moe",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .split_ff = true,
};
