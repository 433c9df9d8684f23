/** OLMoE: norms of all heads as one vector, shares that are not divided by their sum. */
#include "model/arch.h"

static const struct model_arch_key keys[] = {
    {.from = "norm_topk_prob", .member = MODEL_MEMBER_FALSE},
    {0},
};

static const struct model_folder_map folder = {.classes = {"OlmoeForCausalLM"}};

const struct model_arch model_arch_olmoe = {
    .name = "olmoe",
    .folder = &folder,
    .keys = {keys},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_WHOLE,
    .normalise = MODEL_NORMALISE_NO,
    .experts_by_tensors = true,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};
