/** Arcee's AFM: LLaMA with a feed-forward without gate. */
#include "model/arch.h"

static const struct model_folder_map folder = {
    .classes = {"ArceeForCausalLM"},
    .turned = true,
};

const struct model_arch model_arch_arcee = {
    .name = "arcee",
    .folder = &folder,
    .yarn_factor = true,
    .needs = {{"rope.scaling.original_context_length", MODEL_WHEN_YARN}},
    .ffn = MODEL_FFN_UNGATED,
    .activation = KERN_RELU_SQUARED,
};
