/** Seed-OSS: LLaMA with RoPE in halves, biases, and another name for the second norm. */
#include "model/arch.h"

static const struct model_folder_name folder_names[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"SeedOssForCausalLM"},
    .names = {folder_names},
};

const struct model_arch model_arch_seed_oss = {
    .name = "seed_oss",
    .folder = &folder,
    .norms = {.ffn = "post_attention_norm"},
    .rope_halves = true,
    .presence = {{MODEL_ALWAYS, MODEL_QKV_BIASES}},
};
