#include "trace/names.h"

#include <stdio.h>
#include <string.h>

#include "base/text/words.h"

/**
 * The nodes that stand for each place; the first is the name that we print.
 * only, not: architectures, with blanks between them; NULL: all, none. op NULL: any.
 */
struct node {
    enum model_place place;
    const char *name, *op, *only, *not ;
};

/* clang-format off */
#define GEMMA4 "gemma4"
#define NEMOTRON "nemotron_h nemotron_h_moe"
/* The feed-forward's norm has the name of a norm after attention. */
#define POST_IS_FFN "gpt-oss qwen35 qwen35moe qwen3next"
/* ffn_up holds the gate, too. */
#define FUSED_UP "phi3 glm4"
/* What a branch adds is scaled in the next node; here its weight has the scale. */
#define SCALED_BRANCH "granite granitemoe"
#define RECURRENT "qwen35 qwen35moe qwen3next"

static const struct node nodes[] = {
    {MODEL_AT_EMBEDDING, "embd", "GET_ROWS", NULL, SCALED_BRANCH " gemma2 gemma3 gemma4"},
    {MODEL_AT_EMBEDDING, "inp_scaled", NULL, NULL, NULL},
    {MODEL_AT_EMBEDDING, "embd", "SCALE", NULL, NULL},
    {MODEL_AT_EMBEDDING, "model.input_embed", NULL, NULL, NULL},
    {MODEL_AT_EMBEDDING, "model.embed_tokens", NULL, NULL, NULL},
    {MODEL_AT_ATTN_NORM, "attn_norm", "MUL", NULL, "starcoder2"},
    {MODEL_AT_ATTN_NORM, "attn_norm", "ADD", NULL, NULL},
    {MODEL_AT_Q_LOW, "q", "MUL_MAT", NULL, NULL},
    {MODEL_AT_Q_LOW, "blk.attn_q_a.weight", "MUL_MAT", NULL, NULL},
    {MODEL_AT_Q_LOW_NORM, "q", "MUL", NULL, NULL},
    {MODEL_AT_Q_PROJECTED, "Qcur", "MUL_MAT", NULL, NULL},
    {MODEL_AT_Q_PROJECTED, "Qcur", "ADD", NULL, NULL},
    {MODEL_AT_Q_PROJECTED, "Qcur", "MUL", NULL, "llama4 command-r"},
    {MODEL_AT_Q_PROJECTED, "Qcur", "VIEW", "phi3", NULL},
    {MODEL_AT_Q_PROJECTED, "q", "MUL_MAT", NULL, NULL},
    {MODEL_AT_ATTN_GATE, "gate_reshaped", "CONT", NULL, NULL},
    {MODEL_AT_ATTN_GATE, "gate (cont)", "CONT", NULL, NULL},
    {MODEL_AT_K_PROJECTED, "Kcur", "MUL_MAT", NULL, NULL},
    {MODEL_AT_K_PROJECTED, "Kcur", "ADD", NULL, NULL},
    {MODEL_AT_K_PROJECTED, "Kcur", "MUL", NULL, "command-r"},
    {MODEL_AT_K_PROJECTED, "Kcur", "VIEW", "phi3", NULL},
    {MODEL_AT_V_PROJECTED, "Vcur", "MUL_MAT", NULL, NULL},
    {MODEL_AT_V_PROJECTED, "Vcur", "ADD", NULL, NULL},
    {MODEL_AT_V_PROJECTED, "Vcur", "MUL", NULL, NULL},
    {MODEL_AT_V_PROJECTED, "Vcur", "VIEW", "phi3", NULL},
    {MODEL_AT_V_PROJECTED, "Vcur_cont", NULL, NULL, NULL},
    {MODEL_AT_Q_NORM, "Qcur_normed", "MUL", NULL, NULL},
    {MODEL_AT_Q_NORM, "Qcur", "MUL", "command-r", NULL},
    {MODEL_AT_K_NORM, "Kcur_normed", "MUL", NULL, NULL},
    {MODEL_AT_K_NORM, "Kcur", "MUL", "command-r", NULL},
    {MODEL_AT_V_NORM, "Vcur_normed", "RMS_NORM", NULL, NULL},
    {MODEL_AT_Q_ROTATED, "Qcur", "ROPE", NULL, NULL},
    {MODEL_AT_Q_ROTATED, "Qcur_pos", "ROPE", NULL, NULL},
    {MODEL_AT_Q_ROTATED, "Qcur", "CONCAT", NULL, NULL},
    {MODEL_AT_K_ROTATED, "Kcur", "ROPE", NULL, NULL},
    {MODEL_AT_K_ROTATED, "Kcur_pos", "ROPE", NULL, NULL},
    {MODEL_AT_K_ROTATED, "Kcur", "CONCAT", NULL, NULL},
    {MODEL_AT_Q_BARE_NORM, "Qcur_normed", "RMS_NORM", NULL, NULL},
    {MODEL_AT_K_BARE_NORM, "Kcur_normed", "RMS_NORM", NULL, NULL},
    {MODEL_AT_Q_TEMPERED, "Qcur_attn_temp_scaled", "MUL", NULL, NULL},
    {MODEL_AT_Q_TEMPERED, "Qcur", "MUL", "llama4", NULL},
    {MODEL_AT_KV_LOW, "kv_cmpr_pe", "MUL_MAT", NULL, NULL},
    {MODEL_AT_KV_LOW, "kv_cmpr_pe", "MUL", NULL, NULL},
    {MODEL_AT_KV_LOW_NORM, "kv_cmpr", "MUL", NULL, NULL},
    {MODEL_AT_KV_UP, "kv", "MUL_MAT", NULL, NULL},
    {MODEL_AT_KV_UP, "kv", "MUL", NULL, NULL},
    {MODEL_AT_Q_WIDE, "Qcur", "CONCAT", NULL, NULL},
    {MODEL_AT_Q_WIDE, "Qcur_attn_temp_scaled", "MUL", "deepseek2", NULL},
    {MODEL_AT_ATTENTION, "kqv_out", "RESHAPE", NULL, NULL},
    {MODEL_AT_ATTENTION, "kqv_out", NULL, NULL, NULL},
    {MODEL_AT_GATED, "attn_gated", "MUL", NULL, NULL},
    {MODEL_AT_MIXER_IN, "linear_attn_qkv_mixed", "RESHAPE", NULL, NULL},
    {MODEL_AT_MIXER_IN, "blk.ssm_in.weight", "MUL_MAT", NULL, NULL},
    {MODEL_AT_MIXER_IN, "blk.attn_qkv.weight", "MUL_MAT", NULL, NULL},
    {MODEL_AT_MIXER_IN, "blk.ssm_in.scale", "MUL", NULL, NULL},
    {MODEL_AT_MIXER_GATE, "z", "MUL_MAT", NULL, NULL},
    {MODEL_AT_MIXER_GATE, "z", "MUL", NULL, NULL},
    {MODEL_AT_CONVOLVED, "conv_output_silu", "SILU", NULL, NULL},
    {MODEL_AT_BETA, "beta", "RESHAPE", "qwen35 qwen35moe", NULL},
    {MODEL_AT_BETA, "b (cont)", "CONT", NULL, NULL},
    {MODEL_AT_ALPHA, "alpha", "RESHAPE", NULL, NULL},
    {MODEL_AT_ALPHA, "a (cont)", "CONT", NULL, NULL},
    {MODEL_AT_RECURRED, "attn_output", "VIEW", RECURRENT, NULL},
    {MODEL_AT_RECURRED, "mamba2_y_add_d", "ADD", NULL, NULL},
    {MODEL_AT_MIXER_GATED, "final_output", "RESHAPE", NULL, NULL},
    {MODEL_AT_MIXER_GATED, "blk.ssm_norm.weight", "MUL", NULL, NULL},
    {MODEL_AT_ATTN_OUT, "attn_out", "MUL_MAT", NULL, SCALED_BRANCH},
    {MODEL_AT_ATTN_OUT, "attn_out", "ADD", NULL, GEMMA4 " " SCALED_BRANCH},
    {MODEL_AT_ATTN_OUT, "attn_output", "MUL_MAT", RECURRENT, NULL},
    {MODEL_AT_ATTN_OUT, "linear_attn_out", "MUL_MAT", RECURRENT, NULL},
    {MODEL_AT_ATTN_OUT, "blk.attn_output.bias", "ADD", NULL, SCALED_BRANCH},
    {MODEL_AT_ATTN_OUT, "blk.attn_output.weight", "MUL_MAT", NULL, SCALED_BRANCH},
    {MODEL_AT_ATTN_OUT, "blk.ssm_out.weight", "MUL_MAT", NULL, NULL},
    {MODEL_AT_ATTN_OUT, "attn_out", "MUL", NULL, SCALED_BRANCH},
    {MODEL_AT_ATTN_OUT, "attn_output", "MUL", RECURRENT, NULL},
    {MODEL_AT_ATTN_OUT, "linear_attn_out", "MUL", RECURRENT, NULL},
    {MODEL_AT_ATTN_OUT, "blk.attn_output.scale", "MUL", NULL, SCALED_BRANCH},
    {MODEL_AT_ATTN_OUT, "blk.ssm_out.scale", "MUL", NULL, NULL},
    {MODEL_AT_ATTN_RESIDUAL, "ffn_inp", "ADD", NULL, NULL},
    {MODEL_AT_ATTN_RESIDUAL, "sa_out", "ADD", NULL, NULL},
    {MODEL_AT_ATTN_RESIDUAL, "attn_residual", "ADD", NULL, NULL},
    {MODEL_AT_ATTN_RESIDUAL, "attn_out", "ADD", GEMMA4, NULL},
    {MODEL_AT_FFN_NORM, "ffn_norm", "MUL", NULL, NULL},
    {MODEL_AT_FFN_NORM, "ffn_norm", "ADD", NULL, NULL},
    {MODEL_AT_FFN_NORM, "ffn_norm_1", "MUL", GEMMA4, NULL},
    {MODEL_AT_FFN_NORM, "attn_post_norm", "MUL", POST_IS_FFN, NULL},
    {MODEL_AT_FFN_NORM, "post_attn_norm", "MUL", "glm4moe", NULL},
    {MODEL_AT_FFN_NORM, "attn_norm", "MUL", NEMOTRON, NULL},
    {MODEL_AT_FFN_GATE, "ffn_gate", "MUL_MAT", NULL, NULL},
    {MODEL_AT_FFN_GATE, "ffn_gate_b", "ADD", NULL, NULL},
    {MODEL_AT_FFN_GATE, "ffn_gate_s", "MUL", NULL, NULL},
    {MODEL_AT_FFN_UP, "ffn_up", "MUL_MAT", NULL, FUSED_UP " starcoder2"},
    {MODEL_AT_FFN_UP, "ffn_up_b", "ADD", NULL, FUSED_UP},
    {MODEL_AT_FFN_UP, "ffn_up_s", "MUL", NULL, FUSED_UP},
    {MODEL_AT_FFN_ACT, "ffn_swiglu", "SWIGLU", NULL, NULL},
    {MODEL_AT_FFN_ACT, "ffn_geglu", NULL, NULL, NULL},
    {MODEL_AT_FFN_ACT, "ffn_gelu", NULL, NULL, NULL},
    {MODEL_AT_FFN_ACT, "ffn_sqr(relu)", NULL, NULL, NULL},
    {MODEL_AT_FFN_OUT, "ffn_out", "MUL_MAT", NULL, SCALED_BRANCH},
    {MODEL_AT_FFN_OUT, "ffn_out", "ADD", NULL, SCALED_BRANCH},
    {MODEL_AT_FFN_OUT, "blk.ffn_down.weight", "MUL_MAT", GEMMA4, NULL},
    {MODEL_AT_FFN_OUT, "l_out", "MUL_MAT", NEMOTRON, NULL},
    {MODEL_AT_FFN_OUT, "ffn_out", "MUL", NULL, SCALED_BRANCH},
    {MODEL_AT_FFN_OUT, "l_out", "MUL", NEMOTRON, NULL},
    {MODEL_AT_FFN_OUT, "ffn_down_s", "MUL", GEMMA4, NULL},
    {MODEL_AT_EXPERT_NORM, "ffn_norm_2", "MUL", NULL, NULL},
    {MODEL_AT_ROUTER, "ffn_moe_logits", "MUL_MAT", NULL, "gpt-oss"},
    {MODEL_AT_ROUTER, "ffn_moe_logits_biased", "ADD", NULL, NULL},
    {MODEL_AT_ROUTER, "ffn_moe_probs", "ADD", "gpt-oss", NULL},
    {MODEL_AT_EXPERTS, "ffn_moe_topk", "VIEW", NULL, NULL},
    {MODEL_AT_EXPERTS, "ffn_moe_topk", NULL, NULL, NULL},
    {MODEL_AT_SHARES, "ffn_moe_weights_norm", "DIV", NULL, NULL},
    {MODEL_AT_SHARES, "ffn_moe_weights_norm", NULL, NULL, NULL},
    {MODEL_AT_SHARES, "ffn_moe_weights_scaled", NULL, NULL, NULL},
    {MODEL_AT_SHARES, "ffn_moe_weights_softmax", NULL, NULL, NULL},
    {MODEL_AT_SHARES, "ffn_moe_weights", "GET_ROWS", NULL, "gpt-oss"},
    {MODEL_AT_NARROW, "blk.ffn_latent_down.weight", "MUL_MAT", NULL, NULL},
    {MODEL_AT_EXPERT_GATE, "ffn_moe_gate", "MUL_MAT_ID", NULL, NULL},
    {MODEL_AT_EXPERT_GATE, "ffn_moe_gate_biased", NULL, NULL, NULL},
    {MODEL_AT_EXPERT_GATE, "ffn_moe_gate", "VIEW", NULL, NULL},
    {MODEL_AT_EXPERT_GATE, "ffn_moe_gate_scaled", NULL, NULL, NULL},
    {MODEL_AT_EXPERT_UP, "ffn_moe_up", "MUL_MAT_ID", NULL, NULL},
    {MODEL_AT_EXPERT_UP, "ffn_moe_up_biased", NULL, NULL, NULL},
    {MODEL_AT_EXPERT_UP, "ffn_moe_up", "VIEW", NULL, NULL},
    {MODEL_AT_EXPERT_UP, "ffn_moe_up_scaled", NULL, NULL, NULL},
    {MODEL_AT_EXPERT_ACT, "ffn_moe_swiglu", "SWIGLU", NULL, NULL},
    {MODEL_AT_EXPERT_ACT, "ffn_moe_geglu", NULL, NULL, NULL},
    {MODEL_AT_EXPERT_ACT, "ffn_moe_swiglu_oai", NULL, NULL, NULL},
    {MODEL_AT_EXPERT_ACT, "ffn_moe_relu_sqr", NULL, NULL, NULL},
    {MODEL_AT_EXPERT_OUT, "ffn_moe_down", "MUL_MAT_ID", NULL, SCALED_BRANCH},
    {MODEL_AT_EXPERT_OUT, "ffn_moe_down_biased", NULL, NULL, SCALED_BRANCH},
    {MODEL_AT_EXPERT_OUT, "ffn_moe_down_scaled", NULL, NULL, SCALED_BRANCH},
    {MODEL_AT_SHARED_GATE, "ffn_gate", "MUL_MAT", NULL, NULL},
    {MODEL_AT_SHARED_GATE, "ffn_gate_s", "MUL", NULL, NULL},
    {MODEL_AT_SHARED_UP, "ffn_up", "MUL_MAT", NULL, NULL},
    {MODEL_AT_SHARED_UP, "ffn_up_s", "MUL", NULL, NULL},
    {MODEL_AT_SHARED_ACT, "ffn_swiglu", "SWIGLU", NULL, NULL},
    {MODEL_AT_SHARED_ACT, "ffn_sqr(relu)", NULL, NULL, NULL},
    {MODEL_AT_SHARED_OUT, "ffn_shexp", "MUL_MAT", NULL, SCALED_BRANCH},
    {MODEL_AT_SHARED_OUT, "ffn_shexp", "MUL", NULL, SCALED_BRANCH},
    {MODEL_AT_INPUT_GATE, "per_layer_gated", "MUL", NULL, NULL},
    {MODEL_AT_INPUT_OUT, "blk.proj.weight", "MUL_MAT", NULL, NULL},
    {MODEL_AT_LAYER_OUT, "l_out", "ADD", NULL, NEMOTRON},
    {MODEL_AT_LAYER_OUT, "l_out", NULL, NULL, NEMOTRON},
    {MODEL_AT_LAYER_OUT, "nemotron_h_block_out", "ADD", NULL, NULL},
    {MODEL_AT_OUTPUT_NORM, "result_norm", "MUL", NULL, NULL},
    {MODEL_AT_OUTPUT_NORM, "result_norm", NULL, NULL, NULL},
    {MODEL_AT_LOGITS, "result_output", "MUL_MAT", NULL, NULL},
    {MODEL_AT_LOGITS, "result_output", NULL, NULL, NULL},
};
/* clang-format on */
enum { N_NODES = sizeof nodes / sizeof *nodes };

static const struct node *first_of(enum model_place place)
{
    for (size_t i = 0; i < N_NODES; i++)
        if (nodes[i].place == place)
            return &nodes[i];
    return NULL;
}

const char *trace_place_name(enum model_place place)
{
    return first_of(place)->name;
}

const char *trace_place_op(enum model_place place)
{
    const char *op = first_of(place)->op;
    return op ? op : "";
}

const char *trace_tensor_name(char out[TRACE_NAME_BYTES], enum model_place place, int layer)
{
    if (layer < 0)
        snprintf(out, TRACE_NAME_BYTES, "%s", trace_place_name(place));
    else
        snprintf(out, TRACE_NAME_BYTES, "%s-%d", trace_place_name(place), layer);
    return out;
}

bool trace_place_match(enum model_place place, const char *arch, const char *name, const char *op)
{
    for (size_t i = 0; i < N_NODES; i++) {
        const struct node *n = &nodes[i];
        bool of_arch = (!n->only || base_words_index(n->only, arch) >= 0) &&
                       (!n->not || base_words_index(n->not, arch) < 0);
        if (n->place == place && of_arch && strcmp(n->name, name) == 0 &&
            (!op || !n->op || strcmp(n->op, op) == 0))
            return true;
    }
    return false;
}

const char *trace_place_meaning(enum model_place place)
{
    static const char *const meanings[MODEL_N_PLACES] = {
        [MODEL_AT_EMBEDDING] = "the embedding",
        [MODEL_AT_ATTN_NORM] = "the norm before attention",
        [MODEL_AT_Q_LOW] = "the compressed queries",
        [MODEL_AT_Q_LOW_NORM] = "the compressed queries after their norm",
        [MODEL_AT_Q_PROJECTED] = "queries before RoPE",
        [MODEL_AT_ATTN_GATE] = "the gate of attention",
        [MODEL_AT_K_PROJECTED] = "keys before RoPE",
        [MODEL_AT_V_PROJECTED] = "values",
        [MODEL_AT_Q_NORM] = "queries after their norm",
        [MODEL_AT_K_NORM] = "keys after their norm",
        [MODEL_AT_V_NORM] = "values after their norm",
        [MODEL_AT_Q_ROTATED] = "queries after RoPE",
        [MODEL_AT_K_ROTATED] = "keys after RoPE",
        [MODEL_AT_Q_BARE_NORM] = "queries after RoPE and its norm",
        [MODEL_AT_K_BARE_NORM] = "keys after RoPE and its norm",
        [MODEL_AT_Q_TEMPERED] = "queries after their temperature",
        [MODEL_AT_KV_LOW] = "the compressed keys and values",
        [MODEL_AT_KV_LOW_NORM] = "the compressed keys and values after their norm",
        [MODEL_AT_KV_UP] = "keys and values of the heads",
        [MODEL_AT_Q_WIDE] = "queries for the compressed keys",
        [MODEL_AT_ATTENTION] = "attention, before its output matrix",
        [MODEL_AT_GATED] = "attention after its gate",
        [MODEL_AT_MIXER_IN] = "what comes into the recurrent layer",
        [MODEL_AT_MIXER_GATE] = "the gate of the recurrent layer",
        [MODEL_AT_CONVOLVED] = "the convolution",
        [MODEL_AT_BETA] = "beta of the delta net",
        [MODEL_AT_ALPHA] = "alpha of the delta net",
        [MODEL_AT_RECURRED] = "the recurrence",
        [MODEL_AT_MIXER_GATED] = "the recurrence after norm and gate",
        [MODEL_AT_ATTN_OUT] = "the output of attention",
        [MODEL_AT_ATTN_RESIDUAL] = "the residual stream after attention",
        [MODEL_AT_FFN_NORM] = "the norm before the feed-forward",
        [MODEL_AT_FFN_GATE] = "the gate of the feed-forward",
        [MODEL_AT_FFN_UP] = "ffn_up of the feed-forward",
        [MODEL_AT_FFN_ACT] = "the activation of the feed-forward",
        [MODEL_AT_FFN_OUT] = "the output of the feed-forward",
        [MODEL_AT_EXPERT_NORM] = "the norm before the experts",
        [MODEL_AT_ROUTER] = "the router's logits",
        [MODEL_AT_EXPERTS] = "the chosen experts",
        [MODEL_AT_SHARES] = "the shares of the chosen experts",
        [MODEL_AT_NARROW] = "the narrow rows for the experts",
        [MODEL_AT_EXPERT_GATE] = "the gate of the experts",
        [MODEL_AT_EXPERT_UP] = "ffn_up of the experts",
        [MODEL_AT_EXPERT_ACT] = "the activation of the experts",
        [MODEL_AT_EXPERT_OUT] = "the output of the experts",
        [MODEL_AT_SHARED_GATE] = "the gate of the shared expert",
        [MODEL_AT_SHARED_UP] = "ffn_up of the shared expert",
        [MODEL_AT_SHARED_ACT] = "the activation of the shared expert",
        [MODEL_AT_SHARED_OUT] = "the output of the shared expert",
        [MODEL_AT_INPUT_GATE] = "the gated input of the layer",
        [MODEL_AT_INPUT_OUT] = "the output of the layer's input",
        [MODEL_AT_LAYER_OUT] = "the residual stream after the layer",
        [MODEL_AT_OUTPUT_NORM] = "the output norm",
        [MODEL_AT_LOGITS] = "the logits",
    };
    return meanings[place];
}
