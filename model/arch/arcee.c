/** Arcee's AFM: LLaMA with a feed-forward without gate. */
#include "model/arch.h"

const struct model_arch model_arch_arcee = {
    .name = "arcee",
    .yarn_factor = true,
    .ffn = MODEL_FFN_UNGATED,
    .activation = KERN_RELU_SQUARED,
};
