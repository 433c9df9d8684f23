/** Qwen 2 and 2.5: LLaMA with RoPE in halves and biases on q, k and v. */
#include "model/arch/arch.h"

const struct model_arch model_arch_qwen2 = {
    .name = "qwen2",
    .rope_halves = true,
};
