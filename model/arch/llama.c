/** Architecture "llama": LLaMA 1 to 3, Mistral, Mixtral and what is stored like them. */
#include "model/arch.h"

static const struct model_folder_name names[] = {
    {"block_sparse_moe.gate", "ffn_gate_inp", MODEL_KEEP},
    {"block_sparse_moe.experts.*.w1", "ffn_gate_exps", MODEL_KEEP},
    {"block_sparse_moe.experts.*.w3", "ffn_up_exps", MODEL_KEEP},
    {"block_sparse_moe.experts.*.w2", "ffn_down_exps", MODEL_KEEP},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM"},
    .names = names,
    .turned = true,
};

const struct model_arch model_arch_llama = {
    .name = "llama",
    .windows = {.period = 1, .unknown_to_llama_cpp = true},
    .folder = &folder,
};
