/** Phi 3 to 4: fused projections, and RoPE with one list of factors for short windows, one for
 * long. */
#include "model/arch.h"

const struct model_arch model_arch_phi3 = {
    .name = "phi3",
    .rope_halves = true,
    .windows = {.period = 1, .unknown_to_llama_cpp = true},
    .ffn = MODEL_FFN_GATE_IN_UP,
};
