/** Architecture "llama": LLaMA 1 to 3, Mistral, Mixtral and what is stored like them. */
#include "model/arch.h"

static const struct model_folder_map folder = {
    .classes = {"LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM"},
    .names = {model_mixtral_names},
    .turned = true,
};

const struct model_arch model_arch_llama = {
    .name = "llama",
    .old_base = true,
    .windows = {.period = 1, .unknown_to_llama_cpp = true},
    .folder = &folder,
};
