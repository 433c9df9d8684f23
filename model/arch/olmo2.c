/** OLMo 2 and 3: norms after the branches only; sliding layers do not stretch their positions. */
#include "model/arch.h"

const struct model_arch model_arch_olmo2 = {
    .name = "olmo2",
    .norms = {.attn = "",
              .attn_post = "post_attention_norm",
              .ffn = "",
              .ffn_post = "post_ffw_norm"},
    .rope_halves = true,
    .sliding_rope = true,
    .qk_norm = MODEL_QK_NORM_WHOLE,
    .windows = {.period = 4},
};
