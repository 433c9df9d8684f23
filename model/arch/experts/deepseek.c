/** DeepSeek's first mixture, and GigaChat 20B: a dense beginning, many small experts. */
#include "model/arch.h"

static const struct model_arch_key keys[] = {
    {"expert_gating_func"},
    {"expert_weights_norm"},
    {"leading_dense_block_count"},
    {"expert_shared_count"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"DeepseekForCausalLM"},
    .turned = true,
};

const struct model_arch model_arch_deepseek = {
    .name = "deepseek",
    .folder = &folder,
    .keys = {keys},
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .presence = {{MODEL_NEVER, "exp_probs_b.bias"}},
};
