/** OLMo 2 and 3: norms after the branches only; sliding layers do not stretch their positions. */
#include "model/arch.h"

static const struct model_folder_name folder_names[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"Olmo2ForCausalLM", "Olmo3ForCausalLM"},
    .names = {folder_names},
};

const struct model_arch model_arch_olmo2 = {
    .name = "olmo2",
    .folder = &folder,
    .norms = {.attn = "",
              .attn_post = "post_attention_norm",
              .ffn = "",
              .ffn_post = "post_ffw_norm"},
    .rope_halves = true,
    .sliding_rope = true,
    .qk_norm = MODEL_QK_NORM_WHOLE,
    .windows = {.period = 4},
    .presence = {{MODEL_ALWAYS, "output.weight"}},
    .needs = {{"rope.scaling.original_context_length", MODEL_WHEN_YARN}},
};
