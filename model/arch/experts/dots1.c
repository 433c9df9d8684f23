/** dots.llm1, and Ling 2 and Ring 2: a dense beginning, then sigmoid experts. */
#include "model/arch.h"

#define SIGMOID_EXPERTS                                                                            \
    .rope_halves = true, .qk_norm = MODEL_QK_NORM_HEADS, .gating = KERN_GATE_SIGMOID,              \
    .normalise = MODEL_NORMALISE_BY_KEY, .shared = MODEL_SHARED_PLAIN, .experts_by_tensors = true

static const struct model_folder_map folder = {.classes = {"Dots1ForCausalLM"}};

const struct model_arch model_arch_dots1 = {
    .name = "dots1",
    .folder = &folder,
    .keys = {model_grouped_keys},
    SIGMOID_EXPERTS,
    .needs_shares = true,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

static const struct model_folder_name ling_names[] = {
    {"word_embeddings.weight", "token_embd.weight"},
    {"attention.query_key_value", "attn_qkv"},
    {"attention.dense", "attn_output"},
    {"attention.query_layernorm", "attn_q_norm"},
    {"attention.key_layernorm", "attn_k_norm"},
    {"mlp.gate.expert_bias", "exp_probs_b.bias"},
    {0},
};

static const struct model_arch_key ling_keys[] = {
    {"expert_gating_func", .from = "score_function"},
    {.from = "norm_head", .member = MODEL_MEMBER_FIXED},
    {0},
};

static const struct model_folder_map ling_folder = {
    .classes = {"BailingMoeV2ForCausalLM"},
    .names = {ling_names},
};

const struct model_arch model_arch_bailingmoe2 = {
    .name = "bailingmoe2",
    .folder = &ling_folder,
    .keys = {ling_keys, model_grouped_keys},
    SIGMOID_EXPERTS,
    .needs = {{"rope.dimension_count"},
              {"expert_group_count", MODEL_WHEN_EXPERTS,
               "experts are chosen from all; Ling 2 and Ring 2 choose groups first"}},
    .needs_shares = true,
    .nextn = MODEL_NEXTN_NORMED,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};
