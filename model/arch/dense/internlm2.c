/** InternLM 2 and 2.5: LLaMA, whose folders have q, k and v of a key head one after the other. */
#include "model/arch.h"

static const struct model_folder_name names[] = {
    {"tok_embeddings.weight", "token_embd.weight"},
    {"output", "output"},
    {"attention_norm", "attn_norm"},
    {"attention.wqkv", "attn_q", MODEL_GROUPED | MODEL_TURN_Q},
    {"attention.wqkv", "attn_k", MODEL_GROUPED | MODEL_TURN_K},
    {"attention.wqkv", "attn_v", MODEL_GROUPED},
    {"attention.wo", "attn_output"},
    {"ffn_norm", "ffn_norm"},
    {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w3", "ffn_up"},
    {"feed_forward.w2", "ffn_down"},
    {0},
};

static const struct model_arch_key keys[] = {
    {.from = "bias", .member = MODEL_MEMBER_FALSE},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"InternLM2ForCausalLM"},
    .names = {names},
    .dynamic = true,
};

const struct model_arch model_arch_internlm2 = {
    .name = "internlm2",
    .folder = &folder,
    .keys = {keys},
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};
