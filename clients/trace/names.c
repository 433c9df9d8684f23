#include "clients/trace/names.h"

#include <stdio.h>
#include <string.h>

#include "base/text/words.h"

/**
 * The nodes that stand for a place where the architecture has no other. The first one of each has
 * the name and the operation that we print, and what the place is, for sentences.
 * op: one of these words; NULL: any.
 */
struct node {
    enum model_place place;
    const char *name, *op, *meaning;
    bool printed; /* it only has the name: architectures have their own nodes */
};

/* clang-format off */
static const struct node nodes[] = {
    {MODEL_AT_EMBEDDING, "embd", "GET_ROWS", "the embedding"},
    {MODEL_AT_EMBEDDING, "inp_scaled"},
    {MODEL_AT_EMBEDDING, "inp_embd_scaled"},
    {MODEL_AT_EMBEDDING, "embd", "SCALE"},
    {MODEL_AT_EMBEDDING, "model.input_embed"},
    {MODEL_AT_EMBEDDING, "model.embed_tokens"},
    {MODEL_AT_EMBEDDING, "hc_init"},
    {MODEL_AT_NGRAMS, "ple_embd", NULL, "the embedding of the last tokens"},
    {MODEL_AT_NGRAM_SHARES, "ple_gated_value", NULL, "what the streams get of that embedding"},
    {MODEL_AT_NGRAM_SUMS, "ple_conv_out", NULL, "the convolution of what they get"},
    {MODEL_AT_ATTN_NORM, "attn_norm", "MUL", "the norm before attention"},
    {MODEL_AT_ATTN_NORM, "attn_norm", "ADD"},
    {MODEL_AT_ATTN_NORM, "model.layers.{}.operator_norm", "MUL"},
    {MODEL_AT_Q_LOW, "q", "MUL_MAT", "the compressed queries"},
    {MODEL_AT_Q_LOW, "qr", "MUL_MAT"},
    {MODEL_AT_Q_LOW, "blk.attn_q_a.weight", "MUL_MAT"},
    {MODEL_AT_Q_LOW_NORM, "q", "MUL", "the compressed queries after their norm"},
    {MODEL_AT_Q_LOW_NORM, "qr", "MUL"},
    {MODEL_AT_Q_LOW_NORM, "blk.attn_q_a_norm.weight", "MUL"},
    {MODEL_AT_Q_PROJECTED, "Qcur", "MUL_MAT ADD MUL", "queries before RoPE"},
    {MODEL_AT_Q_PROJECTED, "q", "MUL_MAT"},
    {MODEL_AT_Q_PROJECTED, "blk.attn_q.weight", "MUL_MAT"},
    {MODEL_AT_Q_PROJECTED, "blk.attn_q_b.weight", "MUL_MAT"},
    {MODEL_AT_ATTN_GATE, "gate_reshaped", "CONT", "the gate of attention"},
    {MODEL_AT_ATTN_GATE, "gate (cont)", "CONT"},
    {MODEL_AT_ATTN_GATE, "attn_gate_proj", "MUL_MAT"},
    {MODEL_AT_ATTN_GATE, "blk.attn_gate.weight", "MUL_MAT"},
    {MODEL_AT_K_PROJECTED, "Kcur", "MUL_MAT ADD MUL", "keys before RoPE"},
    {MODEL_AT_K_PROJECTED, "blk.attn_k.weight", "MUL_MAT"},
    {MODEL_AT_V_PROJECTED, "Vcur", "MUL_MAT ADD MUL", "values"},
    {MODEL_AT_V_PROJECTED, "Vcur_cont"},
    {MODEL_AT_V_PROJECTED, "blk.attn_v.weight", "MUL_MAT"},
    {MODEL_AT_Q_NORM, "Qcur_normed", "MUL", "queries after their norm"},
    {MODEL_AT_K_NORM, "Kcur_normed", "MUL", "keys after their norm"},
    {MODEL_AT_V_NORM, "Vcur_normed", "RMS_NORM", "values after their norm"},
    {MODEL_AT_Q_ROTATED, "Qcur", "ROPE CONCAT", "queries after RoPE"},
    {MODEL_AT_Q_ROTATED, "Qcur_pos", "ROPE"},
    {MODEL_AT_Q_ROTATED, "Qcur-post-rope", "ROPE"},
    {MODEL_AT_Q_ROTATED, "Qcur_rope", "ROPE"},
    {MODEL_AT_K_ROTATED, "Kcur", "ROPE CONCAT", "keys after RoPE"},
    {MODEL_AT_K_ROTATED, "Kcur_pos", "ROPE"},
    {MODEL_AT_K_ROTATED, "Kcur-post-rope", "ROPE"},
    {MODEL_AT_K_ROTATED, "Kcur_rope", "ROPE"},
    {MODEL_AT_Q_BARE_NORM, "Qcur_normed", "RMS_NORM", "queries after the norm after RoPE"},
    {MODEL_AT_K_BARE_NORM, "Kcur_normed", "RMS_NORM", "keys after the norm after RoPE"},
    {MODEL_AT_Q_TEMPERED, "Qcur_attn_temp_scaled", "MUL", "queries after their temperature"},
    {MODEL_AT_KV_LOW, "kv_cmpr_pe", "MUL_MAT MUL", "the compressed keys and values"},
    {MODEL_AT_KV_LOW, "blk.attn_kv_a_mqa.weight", "MUL_MAT"},
    {MODEL_AT_KV_LOW_NORM, "kv_cmpr", "MUL", "the compressed keys and values after their norm"},
    {MODEL_AT_KV_LOW_NORM, "blk.attn_kv_a_norm.weight", "MUL"},
    {MODEL_AT_KV_UP, "kv", "MUL_MAT MUL", "keys and values of the heads"},
    {MODEL_AT_Q_WIDE, "Qcur", "CONCAT", "queries for the compressed keys"},
    {MODEL_AT_INDEX_K, "indexer_k", "ROPE CONCAT", "keys of the indexer"},
    {MODEL_AT_INDEX_Q, "indexer_q", "ROPE CONCAT", "queries of the indexer"},
    {MODEL_AT_INDEX_WEIGHTS, "indexer_weights", "MUL_MAT", "weights of the indexer's heads"},
    {MODEL_AT_INDEX_WEIGHTS, "blk.indexer.proj.weight", "MUL_MAT"},
    {MODEL_AT_ATTENTION, "kqv_out", "RESHAPE", "attention, before its output matrix"},
    {MODEL_AT_ATTENTION, "kqv_out"},
    {MODEL_AT_GATED, "attn_gated", "MUL", "attention after its gate"},
    {MODEL_AT_GATED, "attn_gated", "RESHAPE"},
    {MODEL_AT_MIXER_IN, "linear_attn_qkv_mixed", "RESHAPE", "what comes into the recurrent layer"},
    {MODEL_AT_MIXER_IN, "blk.ssm_in.weight", "MUL_MAT"},
    {MODEL_AT_MIXER_IN, "model.layers.{}.conv.in_proj", "MUL_MAT"},
    {MODEL_AT_MIXER_IN, "blk.attn_qkv.weight", "MUL_MAT"},
    {MODEL_AT_MIXER_IN, "blk.ssm_in.scale", "MUL"},
    {MODEL_AT_MIXER_GATE, "z", "MUL_MAT MUL", "the gate of the recurrent layer"},
    {MODEL_AT_MIXER_GATE, "kda_g2"},
    {MODEL_AT_CONVOLVED, "conv_output_silu", "SILU", "the convolution"},
    {MODEL_AT_CONVOLVED, "kda_q_conv"},
    {MODEL_AT_K_CONVOLVED, "Kcur_conv", "SILU", "the convolution of the keys"},
    {MODEL_AT_K_CONVOLVED, "kda_k_conv"},
    {MODEL_AT_V_CONVOLVED, "Vcur_conv", "SILU", "the convolution of the values"},
    {MODEL_AT_V_CONVOLVED, "kda_v_conv"},
    {MODEL_AT_BETA, "beta", "RESHAPE", "beta of the delta net", .printed = true},
    {MODEL_AT_BETA, "b (cont)", "CONT"},
    {MODEL_AT_BETA, "blk.ssm_beta.weight", "MUL_MAT"},
    {MODEL_AT_ALPHA, "alpha", "RESHAPE", "alpha of the delta net"},
    {MODEL_AT_ALPHA, "a (cont)", "CONT"},
    {MODEL_AT_RECURRED, "attn_output", "VIEW", "the recurrence", .printed = true},
    {MODEL_AT_RECURRED, "mamba2_y_add_d", "ADD"},
    {MODEL_AT_RECURRED, "kda_scan_out"},
    {MODEL_AT_MIXER_GATED, "final_output", "RESHAPE", "the recurrence after norm and gate"},
    {MODEL_AT_MIXER_GATED, "blk.ssm_norm.weight", "MUL"},
    {MODEL_AT_ATTN_OUT, "attn_out", "MUL_MAT MUL ADD", "the output of attention"},
    {MODEL_AT_ATTN_OUT, "attn_out_scaled", "SCALE"},
    {MODEL_AT_ATTN_OUT, "attn_o_proj", "MUL_MAT"},
    {MODEL_AT_ATTN_OUT, "blk.attn_output.bias", "ADD"},
    {MODEL_AT_ATTN_OUT, "blk.attn_output.weight", "MUL_MAT"},
    {MODEL_AT_ATTN_OUT, "blk.ssm_out.weight", "MUL_MAT"},
    {MODEL_AT_ATTN_OUT, "kda_out", "MUL_MAT"},
    {MODEL_AT_ATTN_OUT, "mla_out", "MUL_MAT"},
    {MODEL_AT_ATTN_OUT, "model.layers.{}.conv.out_proj", "MUL_MAT"},
    {MODEL_AT_ATTN_OUT, "model.layers.{}.self_attn.out_proj", "MUL_MAT"},
    {MODEL_AT_ATTN_OUT, "blk.attn_output.scale", "MUL"},
    {MODEL_AT_ATTN_OUT, "blk.ssm_out.scale", "MUL"},
    {MODEL_AT_PREDICTED, "active_prediction", "VIEW", "the first stream as a layer predicts it"},
    {MODEL_AT_LOW_OUT, "blk.laurel_r.weight", "MUL_MAT", "the low-rank branch beside attention"},
    {MODEL_AT_ATTN_RESIDUAL, "ffn_inp", "ADD", "the residual stream after attention"},
    {MODEL_AT_ATTN_RESIDUAL, "sa_out", "ADD"},
    {MODEL_AT_ATTN_RESIDUAL, "attn_residual", "ADD"},
    {MODEL_AT_ATTN_RESIDUAL, "hc_attn_post"},
    {MODEL_AT_FFN_NORM, "ffn_norm", "MUL ADD", "the norm before the feed-forward"},
    {MODEL_AT_FFN_NORM, "blk.ffn_norm.weight", "MUL"},
    {MODEL_AT_FFN_GATE, "ffn_gate", "MUL_MAT", "the gate of the feed-forward"},
    {MODEL_AT_FFN_GATE, "ffn_gate_b", "ADD"},
    {MODEL_AT_FFN_GATE, "ffn_gate_s", "MUL"},
    {MODEL_AT_FFN_UP, "ffn_up", "MUL_MAT", "ffn_up of the feed-forward"},
    {MODEL_AT_FFN_UP, "ffn_up_b", "ADD"},
    {MODEL_AT_FFN_UP, "ffn_up_s", "MUL"},
    {MODEL_AT_FFN_ACT, "ffn_swiglu", "SWIGLU", "the activation of the feed-forward"},
    {MODEL_AT_FFN_ACT, "ffn_geglu"},
    {MODEL_AT_FFN_ACT, "ffn_gelu"},
    {MODEL_AT_FFN_ACT, "ffn_sqr(relu)"},
    {MODEL_AT_FFN_ACT, "ffn_xielu"},
    {MODEL_AT_FFN_ACT, "ffn_swiglu_limited"},
    {MODEL_AT_FFN_OUT, "ffn_out", "MUL_MAT ADD MUL", "the output of the feed-forward"},
    {MODEL_AT_FFN_OUT, "blk.ffn_down.weight", "MUL_MAT"},
    {MODEL_AT_EXPERT_NORM, "ffn_norm_2", "MUL", "the norm before the experts"},
    {MODEL_AT_ROUTER, "ffn_moe_logits", "MUL_MAT", "the router's logits"},
    {MODEL_AT_ROUTER, "ffn_moe_logits_biased", "ADD"},
    {MODEL_AT_EXPERTS, "ffn_moe_topk", "VIEW", "the chosen experts"},
    {MODEL_AT_EXPERTS, "ffn_moe_topk"},
    {MODEL_AT_SHARES, "ffn_moe_weights_norm", "DIV", "the shares of the chosen experts"},
    {MODEL_AT_SHARES, "ffn_moe_weights_norm"},
    {MODEL_AT_SHARES, "ffn_moe_weights_scaled"},
    {MODEL_AT_SHARES, "ffn_moe_weights_softmax"},
    {MODEL_AT_SHARES, "ffn_moe_weights", "GET_ROWS"},
    {MODEL_AT_NARROW, "blk.ffn_latent_down.weight", "MUL_MAT", "the narrow rows for the experts"},
    {MODEL_AT_EXPERT_GATE, "ffn_moe_gate", "MUL_MAT_ID VIEW", "the gate of the experts"},
    {MODEL_AT_EXPERT_GATE, "ffn_moe_gate_biased"},
    {MODEL_AT_EXPERT_GATE, "ffn_moe_gate_scaled"},
    {MODEL_AT_EXPERT_UP, "ffn_moe_up", "MUL_MAT_ID VIEW", "ffn_up of the experts"},
    {MODEL_AT_EXPERT_UP, "ffn_moe_up_biased"},
    {MODEL_AT_EXPERT_UP, "ffn_moe_up_scaled"},
    {MODEL_AT_EXPERT_ACT, "ffn_moe_swiglu", "SWIGLU", "the activation of the experts"},
    {MODEL_AT_EXPERT_ACT, "ffn_moe_geglu"},
    {MODEL_AT_EXPERT_ACT, "ffn_moe_swiglu_oai"},
    {MODEL_AT_EXPERT_ACT, "ffn_moe_relu_sqr"},
    {MODEL_AT_EXPERT_ACT, "ffn_moe_reglu"},
    {MODEL_AT_EXPERT_ACT, "ffn_moe_swiglu_limited"},
    {MODEL_AT_EXPERT_OUT, "ffn_moe_down", "MUL_MAT_ID", "the output of the experts"},
    {MODEL_AT_EXPERT_OUT, "ffn_moe_down_biased"},
    {MODEL_AT_EXPERT_OUT, "ffn_moe_down_scaled"},
    {MODEL_AT_SHARED_GATE, "ffn_gate", "MUL_MAT", "the gate of the shared expert"},
    {MODEL_AT_SHARED_GATE, "ffn_gate_s", "MUL"},
    {MODEL_AT_SHARED_UP, "ffn_up", "MUL_MAT", "ffn_up of the shared expert"},
    {MODEL_AT_SHARED_UP, "ffn_up_s", "MUL"},
    {MODEL_AT_SHARED_ACT, "ffn_swiglu", "SWIGLU", "the activation of the shared expert"},
    {MODEL_AT_SHARED_ACT, "ffn_sqr(relu)"},
    {MODEL_AT_SHARED_ACT, "ffn_swiglu_limited"},
    {MODEL_AT_SHARED_OUT, "ffn_shexp", "MUL_MAT MUL", "the output of the shared expert"},
    {MODEL_AT_SHARED_OUT, "blk.ffn_down_shexp.weight", "MUL_MAT"},
    {MODEL_AT_INPUT_GATE, "per_layer_gated", "MUL", "the gated input of the layer"},
    {MODEL_AT_INPUT_GATE, "first_prediction_scaled", "MUL"},
    {MODEL_AT_INPUT_OUT, "blk.proj.weight", "MUL_MAT", "the output of the layer's input"},
    {MODEL_AT_LAYER_OUT, "l_out", "ADD", "the residual stream after the layer"},
    {MODEL_AT_LAYER_OUT, "l_out"},
    {MODEL_AT_LAYER_OUT, "nemotron_h_block_out", "ADD"},
    {MODEL_AT_OUTPUT_NORM, "result_norm", "MUL", "the output norm"},
    {MODEL_AT_OUTPUT_NORM, "result_norm"},
    {MODEL_AT_LOGITS, "result_output", "MUL_MAT", "the logits"},
    {MODEL_AT_LOGITS, "result_output"},
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

struct base_string trace_place_op(enum model_place place)
{
    const char *ops = first_of(place)->op;
    return (struct base_string){ops, strcspn(ops, " ")};
}

const char *trace_tensor_name(char out[TRACE_NAME_BYTES], enum model_place place, int layer)
{
    if (layer < 0)
        snprintf(out, TRACE_NAME_BYTES, "%s", trace_place_name(place));
    else
        snprintf(out, TRACE_NAME_BYTES, "%s-%d", trace_place_name(place), layer);
    return out;
}

/** Whether a node has one of these operations.   op: NULL: not known. */
static bool has_op(const char *ops, const char *op)
{
    return !op || !ops || base_words_index(ops, op) >= 0;
}

bool trace_place_match(enum model_place place, const char *arch, const char *name, const char *op)
{
    for (const struct model_node *n = model_arch_nodes(arch); n && n->name; n++) {
        bool same = *n->name == '\0' || strcmp(n->name, name) == 0;
        bool fits = op || !n->other ? has_op(n->op, op) : !n->op;
        if (n->place == place && same && fits)
            return !n->other;
    }
    for (size_t i = 0; i < N_NODES; i++) {
        const struct node *n = &nodes[i];
        if (n->place == place && !n->printed && strcmp(n->name, name) == 0 && has_op(n->op, op))
            return true;
    }
    return false;
}

const char *trace_place_meaning(enum model_place place)
{
    return first_of(place)->meaning;
}
