/** Architecture "llama": LLaMA 1 to 3, Mistral, Mixtral and what is stored like them. */
#include "model/arch.h"

const struct model_arch model_arch_llama = {
    .name = "llama",
    .windows = {.period = 1, .unknown_to_llama_cpp = true},
};
