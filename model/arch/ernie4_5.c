/** ERNIE 4.5, dense and with experts. */
#include "model/arch.h"

const struct model_arch model_arch_ernie4_5 = {.name = "ernie4_5", .no_output_bias = true};

const struct model_arch model_arch_ernie4_5_moe = {
    .name = "ernie4_5-moe",
    .no_output_bias = true,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .key_blind = {"interleave_moe_layer_step"},
};
