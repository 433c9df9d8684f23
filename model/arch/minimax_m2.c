/** MiniMax M2: norms of all heads as one vector, experts with a bias in their selection. */
#include "model/arch.h"

const struct model_arch model_arch_minimax_m2 = {
    .name = "minimax-m2",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_WHOLE,
};
