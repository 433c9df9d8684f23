/** OLMoE: norms of all heads as one vector, shares that are not divided by their sum. */
#include "model/arch.h"

const struct model_arch model_arch_olmoe = {
    .name = "olmoe",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_WHOLE,
    .normalise = MODEL_NORMALISE_NO,
    .experts_by_tensors = true,
};
