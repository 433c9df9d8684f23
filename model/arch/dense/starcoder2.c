/** StarCoder 2: LayerNorm, biases, a feed-forward without gate; all layers slide, which files omit.
 */
#include "model/arch.h"

static const struct model_folder_name folder_names[] = {
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"Starcoder2ForCausalLM"},
    .names = {folder_names},
};

const struct model_arch model_arch_starcoder2 = {
    .name = "starcoder2",
    .folder = &folder,
    .nodes = (const struct model_node[]){{MODEL_AT_ATTN_NORM, "attn_norm", "MUL", .other = true},
                                         {MODEL_AT_FFN_UP, "ffn_up", .other = true},
                                         {0}},
    .layer_norm = true,
    .rope_halves = true,
    .windows = {.period = 1, .length = 4096, .unknown_to_llama_cpp = true},
    .ffn = MODEL_FFN_UNGATED,
    .activation = KERN_GELU,
    .presence = {{MODEL_ALWAYS, MODEL_QKV_BIASES " attn_output.bias ffn_up.bias ffn_down.bias"}},
};
