/** Seed-OSS: LLaMA with RoPE in halves, biases, and another name for the second norm. */
#include "model/arch.h"

const struct model_arch model_arch_seed_oss = {
    .name = "seed_oss",
    .norms = {.ffn = "post_attention_norm"},
    .rope_halves = true,
};
