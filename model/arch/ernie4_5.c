/** ERNIE 4.5, dense and with experts. */
#include "model/arch.h"

static const struct model_folder_map folder = {
    .classes = {"Ernie4_5ForCausalLM"},
};

const struct model_arch model_arch_ernie4_5 = {
    .name = "ernie4_5", .folder = &folder, .no_output_bias = true};

const struct model_arch model_arch_ernie4_5_moe = {
    .name = "ernie4_5-moe",
    .no_output_bias = true,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .key_blind = {"interleave_moe_layer_step"},
};
