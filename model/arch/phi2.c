/** Phi 2: LayerNorm, biases, both branches of the same rows, a feed-forward without gate. */
#include "model/arch.h"

const struct model_arch model_arch_phi2 = {
    .name = "phi2",
    .layer_norm = true,
    .parallel = true,
    .rope_halves = true,
    .ffn = MODEL_FFN_UNGATED,
    .activation = KERN_GELU,
};
