/** dots.llm1, and Ling 2 and Ring 2: a dense beginning, then sigmoid experts. */
#include "model/arch.h"

#define SIGMOID_EXPERTS                                                                            \
    .rope_halves = true, .qk_norm = MODEL_QK_NORM_HEADS, .gating = KERN_GATE_SIGMOID,              \
    .normalise = MODEL_NORMALISE_BY_KEY, .shared = MODEL_SHARED_PLAIN, .experts_by_tensors = true

static const struct model_folder_map folder = {
    .classes = {"Dots1ForCausalLM"},
    .keys = model_folder_grouped,
};

const struct model_arch model_arch_dots1 = {.name = "dots1", .folder = &folder, SIGMOID_EXPERTS};

const struct model_arch model_arch_bailingmoe2 = {
    .name = "bailingmoe2", SIGMOID_EXPERTS, .nextn = MODEL_NEXTN_NORMED};
