/** StarCoder 2: LayerNorm, biases, a feed-forward without gate; all layers slide, which files omit.
 */
#include "model/arch.h"

const struct model_arch model_arch_starcoder2 = {
    .name = "starcoder2",
    .layer_norm = true,
    .rope_halves = true,
    .windows = {.period = 1, .length = 4096, .unknown_to_llama_cpp = true},
    .ffn = MODEL_FFN_UNGATED,
    .activation = KERN_GELU,
};
