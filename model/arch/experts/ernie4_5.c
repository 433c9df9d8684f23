/** ERNIE 4.5, dense and with experts. */
#include "model/arch.h"

static const struct model_folder_map folder = {.classes = {"Ernie4_5ForCausalLM"}};

const struct model_arch model_arch_ernie4_5 = {
    .name = "ernie4_5", .folder = &folder, .no_output_bias = true};

static const struct model_folder_name moe_names[] = {
    {"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"},
    {0},
};

static const struct model_arch_key moe_keys[] = {
    {"leading_dense_block_count", .from = "moe_layer_start_index"},
    {"expert_shared_count", .from = "moe_num_shared_experts"},
    {0},
};

static const struct model_folder_map moe_folder = {
    .classes = {"Ernie4_5_MoeForCausalLM"},
    .names = {moe_names},
};

const struct model_arch model_arch_ernie4_5_moe = {
    .name = "ernie4_5-moe",
    .folder = &moe_folder,
    .keys = {moe_keys},
    .no_output_bias = true,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .key_blind = {"interleave_moe_layer_step"},
    .presence = {{MODEL_ALWAYS, "exp_probs_b.bias"}},
};
