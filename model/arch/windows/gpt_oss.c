/** gpt-oss: sinks, biases everywhere, experts with a clamped activation, every second layer slides.
 */
#include "model/arch.h"
#include "model/folder/state.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    h->ropes[MODEL_ROPE_FULL].yarn_unrounded = !r->options->llama_compat;
    if (r->options->llama_compat)
        model_remark(r->remarks, "YaRN's range of pairs is rounded, as llama.cpp does");
}

enum { GATE = MODEL_OF_COLUMNS | MODEL_EVEN, UP = MODEL_OF_COLUMNS | MODEL_ODD };

/** Gate and up take turns; matrices of experts are stored transposed, but for those in MXFP4. */
static const struct model_folder_name folder_names[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"self_attn.sinks", "attn_sinks.weight"},
    {"mlp.router", "ffn_gate_inp"},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", GATE | MODEL_TURN_OVER},
    {"mlp.experts.gate_up_proj", "ffn_up_exps.weight", UP | MODEL_TURN_OVER},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_exps.bias", GATE},
    {"mlp.experts.gate_up_proj_bias", "ffn_up_exps.bias", UP},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", MODEL_TURN_OVER},
    {"mlp.experts.gate_up_proj_blocks", "ffn_gate_exps.weight", MODEL_EVEN},
    {"mlp.experts.gate_up_proj_blocks", "ffn_up_exps.weight", MODEL_ODD},
    {"mlp.experts.down_proj_blocks", "ffn_down_exps.weight"},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"},
    {0},
};

static const struct model_arch_key keys[] = {
    {"expert_feed_forward_length", .from = "intermediate_size"},
    {.from = "swiglu_alpha", .unset = 1.702, .member = MODEL_MEMBER_FIXED},
    {.from = "swiglu_limit", .unset = 7, .member = MODEL_MEMBER_FIXED},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"GptOssForCausalLM"},
    .names = {folder_names},
    .unrounded = true,
};

const struct model_arch model_arch_gpt_oss = {
    .name = "gpt-oss",
    .folder = &folder,
    /* The feed-forward's norm has the name of a norm after attention. */
    .nodes = (const struct model_node[]){{MODEL_AT_FFN_NORM, "attn_post_norm", "MUL"},
                                         {MODEL_AT_ROUTER, "ffn_moe_logits", .other = true},
                                         {MODEL_AT_ROUTER, "ffn_moe_probs", "ADD"},
                                         {MODEL_AT_SHARES, "ffn_moe_weights", .other = true},
                                         {0}},
    .keys = {keys},
    .norms = {.ffn = "post_attention_norm"},
    .rope_halves = true,
    .sinks = true,
    .windows = {.period = 2},
    .needs = {{"attention.sliding_window"},
              {"rope.scaling.original_context_length", MODEL_WHEN_YARN}},
    .activation = KERN_SWIGLU_OAI,
    .gating = KERN_GATE_SOFTMAX_CHOSEN,
    .normalise = MODEL_NORMALISE_NO,
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight " MODEL_QKV_BIASES
                                " attn_output.bias ffn_gate_inp.bias ffn_gate_exps.bias "
                                "ffn_up_exps.bias ffn_down_exps.bias ffn_gate_up_exps.bias"}},
};
