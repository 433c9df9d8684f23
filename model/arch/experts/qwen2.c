/** Qwen 2 and 2.5: LLaMA with RoPE in halves and biases on q, k and v. */
#include "model/arch.h"

static const struct model_folder_map folder = {.classes = {"Qwen2ForCausalLM"}};

const struct model_arch model_arch_qwen2 = {
    .name = "qwen2",
    .rope_halves = true,
    .folder = &folder,
    .presence = {{MODEL_MOSTLY, "attn_q.bias attn_qkv.bias"}},
};

/** What Qwen 2 VL and 2.5 VL read of text; llama.cpp's norms have no eps there. */
static void read_vl(struct model_hparams *h, const struct model_reading *r)
{
    if (r->options->llama_compat)
        h->eps = 0;
}

static const struct model_folder_map vl_folder = {
    .classes = {"Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration"},
};

const struct model_arch model_arch_qwen2vl = {
    .name = "qwen2vl",
    .folder = &vl_folder,
    .rope_halves = true,
    .key_blind = {"rope.dimension_sections"},
    .read = read_vl,
    .presence = {{MODEL_ALWAYS, MODEL_QKV_BIASES}},
};

static const struct model_arch_key moe_keys[] = {
    {.from = "norm_topk_prob", .member = MODEL_MEMBER_FALSE},
    {"expert_shared_feed_forward_length"},
    {0},
};

static const struct model_folder_map moe_folder = {.classes = {"Qwen2MoeForCausalLM"}};

/** Qwen 1.5 and 2 with experts: shares are not normalised, the shared expert has a gate. */
const struct model_arch model_arch_qwen2moe = {
    .name = "qwen2moe",
    .folder = &moe_folder,
    .keys = {moe_keys},
    .rope_halves = true,
    .normalise = MODEL_NORMALISE_NO,
    .shared = MODEL_SHARED_GATED,
    .split_ff = true,
    .presence = {{MODEL_ALWAYS, "output.weight " MODEL_QKV_BIASES}},
};
