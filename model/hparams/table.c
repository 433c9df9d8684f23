#include "model/hparams/table.h"

#include <assert.h>
#include <string.h>

#include "kernels/mixing.h"
#include "model/hparams/read.h"

#define NOWHERE        MODEL_HPARAM_NOWHERE, 0
#define MODEL(member)  MODEL_HPARAM_OF_MODEL, offsetof(struct model_hparams, member)
#define LAYERS(member) MODEL_HPARAM_OF_LAYERS, offsetof(struct model_layer_shape, member)
#define HEADS(member)  MODEL_HPARAM_OF_HEADS, offsetof(struct model_layer_shape, member)
#define ROPES(member)  MODEL_HPARAM_OF_ROPES, offsetof(struct model_rope, member)
#define SCALED(member) MODEL_HPARAM_OF_SCALED, offsetof(struct model_rope, member)
/** Sizes are bounded far above any model that exists, and low enough that the product of three of
 * them and the size of a float fits 64 bits. */
enum { MAX_WIDTH = 1 << 20, MAX_FF = 1 << 24, MAX_HEADS = 1 << 16, MAX_HEAD = 1 << 16 };

const struct model_range model_width_range = {1, MAX_WIDTH}, model_ff_range = {1, MAX_FF},
                         model_heads_range = {1, MAX_HEADS}, model_head_size_range = {2, MAX_HEAD},
                         model_positions_range = {1, INT32_MAX};

/* clang-format off */
const struct model_hparam model_hparam_table[] = {
    {"block_count", MODEL_HPARAM_U32, MODEL(n_layers), {1, MODEL_MAX_BLOCKS},
     .label = "layers", .name = "n_layers"},
    {"nextn_predict_layers", MODEL_HPARAM_U32, NOWHERE,
     .label = "of them for drafts", .name = "n_nextn"},
    {"embedding_length", MODEL_HPARAM_U32, MODEL(n_embd), {1, MAX_WIDTH},
     .label = "width", .name = "n_embd"},
    {"feed_forward_length", MODEL_HPARAM_U32, LAYERS(n_ff), {1, MAX_FF},
     .label = "feed-forward width", .name = "n_ff",
     .members = "intermediate_size_mlp prefix_dense_intermediate_size "
                "dense_intermediate_size intermediate_size "
                "moe_ffn_hidden_size"},
    {"attention.head_count", MODEL_HPARAM_U32, LAYERS(n_heads), {1, MAX_HEADS},
     .label = "heads", .name = "n_heads"},
    {"attention.head_count_kv", MODEL_HPARAM_U32, HEADS(n_kv_heads), {1, MAX_HEADS},
     .label = "key/value heads", .name = "n_kv_heads"},
    {"attention.key_length", MODEL_HPARAM_U32, HEADS(key_size), {2, MAX_HEAD},
     .label = "head size", .name = "head_size"},
    {"attention.value_length", MODEL_HPARAM_U32, HEADS(value_size), {2, MAX_HEAD},
     .members = "v_head_dim"},
    {"expert_count", MODEL_HPARAM_U32, MODEL(experts.n), {0, 1024},
     .label = "experts", .name = "n_experts"},
    {"expert_used_count", MODEL_HPARAM_U32, LAYERS(n_experts_used),
     .label = "experts used", .name = "n_experts_used",
     .members = "num_experts_per_tok num_experts_per_token top_k_experts "
                "moe_topk moe_k moe_top_k moe_num_active_primary_experts"},
    {"context_length", MODEL_HPARAM_U32, MODEL(n_ctx_train), {1, INT32_MAX},
     .label = "context", .name = "n_ctx_train",
     .members = "max_position_embeddings model_max_length"},
    {"attention.sliding_window", MODEL_HPARAM_U32, LAYERS(window),
     .label = "sliding window", .name = "sliding_window"},
    {"attention.layer_norm_rms_epsilon", MODEL_HPARAM_F32, NOWHERE,
     .label = "norm epsilon", .name = "rms_eps"},
    {"rope.dimension_count", MODEL_HPARAM_U32, ROPES(n_rot),
     .label = "rotated elements", .name = "n_rot"},
    {"rope.freq_base", MODEL_HPARAM_F32, ROPES(freq_base),
     .label = "rope base", .name = "rope_freq_base"},
    {"rope.scaling.type", MODEL_HPARAM_SCALING, ROPES(scaling),
     .label = "rope scaling", .name = "rope_scaling"},
    {"rope.scaling.factor", MODEL_HPARAM_F32, SCALED(factor),
     .label = "rope factor", .name = "rope_factor"},
    {"vocab_size", MODEL_HPARAM_U32, NOWHERE,
     .label = "vocabulary", .name = "n_vocab"},

    {"attention.layer_norm_epsilon", MODEL_HPARAM_F32, MODEL(eps)},
    {"embedding_scale", MODEL_HPARAM_F32, MODEL(embedding_scale), .absent = 1,
     .members = "embedding_multiplier"},
    {"residual_scale", MODEL_HPARAM_F32, MODEL(residual_scale), .absent = 1,
     .members = "residual_multiplier"},
    {"logit_scale", MODEL_HPARAM_F32, MODEL(logit_scale), .absent = 1,
     .members = "logit_scale"},
    {"attention.value_scale", MODEL_HPARAM_F32, MODEL(value_scale), .absent = 1, .own = true,
     .members = "attention_value_scale"},
    {"attn_logit_softcapping", MODEL_HPARAM_CAP, MODEL(attn_soft_cap),
     .members = "attn_logit_softcapping"},
    {"final_logit_softcapping", MODEL_HPARAM_CAP, MODEL(logit_soft_cap),
     .members = "final_logit_softcapping"},
    {"attention.temperature_scale", MODEL_HPARAM_F32, MODEL(temperature.scale)},
    {"attention.temperature_length", MODEL_HPARAM_U32, MODEL(temperature.length), {1, INT32_MAX}},
    {"expert_shared_feed_forward_length", MODEL_HPARAM_U32, MODEL(experts.n_ff_shared),
     .members = "shared_expert_intermediate_size"},
    {"expert_group_count", MODEL_HPARAM_U32, MODEL(experts.n_groups),
     .members = "n_group"},
    {"expert_group_used_count", MODEL_HPARAM_U32, MODEL(experts.n_groups_used),
     .members = "topk_group"},
    {"expert_weights_norm", MODEL_HPARAM_BOOL, MODEL(experts.normalise),
     .members = "norm_topk_prob"},
    {"expert_weights_scale", MODEL_HPARAM_F32, MODEL(experts.scale),
     .members = "routed_scaling_factor"},
    {"expert_gating_func", MODEL_HPARAM_GATING, MODEL(experts.gating),
     .members = "scoring_func"},
    {"attention.q_lora_rank", MODEL_HPARAM_U32, MODEL(q_rank), {0, MAX_WIDTH},
     .members = "q_lora_rank"},
    {"attention.kv_lora_rank", MODEL_HPARAM_U32, LAYERS(kv_rank), {1, MAX_WIDTH},
     .members = "kv_lora_rank"},

    {"attention.indexer.head_count", MODEL_HPARAM_U32, MODEL(index.n_heads), {1, MAX_HEADS},
     .own = true, .members = "index_n_heads"},
    {"attention.indexer.key_length", MODEL_HPARAM_U32, MODEL(index.key_size), {2, MAX_HEAD},
     .own = true, .members = "index_head_dim"},
    {"attention.indexer.top_k", MODEL_HPARAM_U32, MODEL(index.n_best), {1, INT32_MAX}, .own = true,
     .members = "index_topk"},
    {"attention.indexer.block_size", MODEL_HPARAM_U32, MODEL(index.together), {1, INT32_MAX},
     .own = true},
    {"attention.indexer.kpool", MODEL_HPARAM_U32, LAYERS(pool), .own = true,
     .members = "index_kpool"},
    {"attention.indexer.local_blocks", MODEL_HPARAM_U32, MODEL(index.n_local), .own = true},
    {"attention.output_group_count", MODEL_HPARAM_U32, MODEL(runs.n_groups), {1, MAX_HEADS},
     .own = true, .members = "o_groups"},
    {"attention.output_lora_rank", MODEL_HPARAM_U32, MODEL(runs.rank), {1, MAX_WIDTH}, .own = true,
     .members = "o_lora_rank"},
    {"hyper_connection.count", MODEL_HPARAM_U32, MODEL(n_streams), {2, KERN_STREAMS_MAX},
     .absent = 1, .own = true,
     .members = "hc_mult"},
    {"hyper_connection.low_rank", MODEL_HPARAM_U32, MODEL(stream_rank), {1, MAX_WIDTH}, .own = true,
     .members = "hc_lowrank"},
    {"ple.ngram_size", MODEL_HPARAM_U32, MODEL(ngrams.most), {2, MODEL_NGRAMS_MOST}, .own = true,
     .members = "ngram_size"},
    {"ple.heads_per_ngram", MODEL_HPARAM_U32, MODEL(ngrams.n_heads), {1, MODEL_NGRAM_ROWS},
     .own = true, .members = "heads_per_ngram"},
    {"ple.conv_kernel", MODEL_HPARAM_U32, MODEL(ngrams.n_taps), {1, KERN_CONVOLVE_MAX},
     .own = true, .members = "ple_conv_kernel_size"},
    {"ple.eos_token_id", MODEL_HPARAM_U32, MODEL(ngrams.end), {0, INT32_MAX}, .own = true},
    {"altup.num_inputs", MODEL_HPARAM_U32, MODEL(n_streams), {1, KERN_STREAMS_MAX}, .absent = 1,
     .own = true},
    {"hyper_connection.sinkhorn_iterations", MODEL_HPARAM_U32, MODEL(stream_rounds), {1, 1000},
     .own = true, .members = "hc_sinkhorn_iters"},
    {"hyper_connection.epsilon", MODEL_HPARAM_F32, MODEL(stream_eps), .own = true,
     .members = "hc_eps"},
    {"hyper_connection.magnitude", MODEL_HPARAM_F32, MODEL(stream_magnitude), .absent = 2,
     .own = true, .members = "hc_magnitude"},
    {"hash_layer_count", MODEL_HPARAM_U32, MODEL(experts.n_by_token), .own = true},
    {"embedding_length_per_layer_input", MODEL_HPARAM_U32, MODEL(per_layer_width), {0, 1u << 16},
     .own = true, .members = "hidden_size_per_layer_input"},
    {"ssm.conv_kernel", MODEL_HPARAM_U32, MODEL(recurrent.n_taps), {1, KERN_CONVOLVE_MAX},
     .own = true, .members = "mamba_d_conv"},
    {"shortconv.l_cache", MODEL_HPARAM_U32, MODEL(recurrent.n_taps), {1, KERN_CONVOLVE_MAX},
     .own = true, .members = "conv_L_cache"},
    {"ssm.inner_size", MODEL_HPARAM_U32, MODEL(recurrent.n_inner), {1, MAX_WIDTH}, .own = true},
    {"ssm.state_size", MODEL_HPARAM_U32, MODEL(recurrent.state), {1, 1024}, .own = true,
     .members = "mamba_d_state"},
    {"kda.head_dim", MODEL_HPARAM_U32, MODEL(recurrent.state), {1, 1024}, .own = true},
    {"kda.gate_lower_bound", MODEL_HPARAM_F32, MODEL(recurrent.least_log), .own = true,
     .members = "gate_lower_bound"},
    {"attn_res.block_size", MODEL_HPARAM_U32, MODEL(residual_block), {0, MODEL_MAX_BLOCKS},
     .own = true, .members = "attn_res_block_size"},
    {"activation.situ_beta", MODEL_HPARAM_F32, LAYERS(activation.curve.beta), .own = true,
     .members = "activation_situ_beta"},
    {"activation.situ_linear_beta", MODEL_HPARAM_F32, LAYERS(activation.curve.up_beta),
     .own = true, .members = "activation_situ_linear_beta"},
    {"expert_latent_length", MODEL_HPARAM_U32, MODEL(experts.width), {0, MAX_WIDTH}, .own = true,
     .members = "routed_expert_hidden_size"},
    {"ssm.time_step_rank", MODEL_HPARAM_U32, MODEL(recurrent.n_heads), {1, MAX_HEADS}, .own = true,
     .members = "mamba_n_heads"},
    {"ssm.group_count", MODEL_HPARAM_U32, MODEL(recurrent.n_groups), {1, MAX_HEADS}, .own = true,
     .members = "mamba_n_groups"},
    {"expert_shared_count", MODEL_HPARAM_U32, NOWHERE,
     .members = "n_shared_experts num_shared_experts"},
    {"leading_dense_block_count", MODEL_HPARAM_U32, NOWHERE,
     .members = "first_k_dense_replace"},
    {"interleave_moe_layer_step", MODEL_HPARAM_U32, NOWHERE,
     .members = "interleave_moe_layer_step"},
    {"full_attention_interval", MODEL_HPARAM_U32, NOWHERE,
     .members = "full_attention_interval"},
    {"attention.shared_kv_layers", MODEL_HPARAM_U32, NOWHERE,
     .members = "num_kv_shared_layers"},
    {"attention.key_length_swa", MODEL_HPARAM_U32, NOWHERE,
     .members = "head_dim"},
    {"attention.value_length_swa", MODEL_HPARAM_U32, NOWHERE,
     .members = "head_dim"},
    {"attention.value_length_mla", MODEL_HPARAM_U32, NOWHERE,
     .members = "v_head_dim"},
    {"attention.compress_rope_freq_base", MODEL_HPARAM_F32, NOWHERE,
     .members = "compress_rope_theta"},

    {"attention.sliding_window_pattern", MODEL_HPARAM_BOOL, LAYERS(slides)},
    {"attention.scale", MODEL_HPARAM_F32, LAYERS(scale),
     .members = "attention_multiplier"},
    {"experts of the layer", MODEL_HPARAM_U32, LAYERS(n_experts)}, /* several keys say it */
    {"expert_feed_forward_length", MODEL_HPARAM_U32, LAYERS(n_ff_expert), {1, MAX_FF},
     .members = "moe_intermediate_size expert_intermediate_size "
                "moe_ffn_hidden_size"},

    {"rope.scaling.original_context_length", MODEL_HPARAM_U32, SCALED(original_ctx)},
    {"rope.scaling.attn_factor", MODEL_HPARAM_F64, SCALED(magnitude)},
    {"rope.scaling.yarn_beta_fast", MODEL_HPARAM_F32, SCALED(yarn_beta_fast)},
    {"rope.scaling.yarn_beta_slow", MODEL_HPARAM_F32, SCALED(yarn_beta_slow)},
    {0},
};
/* clang-format on */

const struct model_hparam *model_hparam_row(const char *suffix)
{
    const struct model_hparam *row = model_hparam_table;
    while (row->suffix && strcmp(row->suffix, suffix) != 0)
        row++;
    assert(row->suffix);
    return row;
}

static void put(const struct model_hparam *row, struct model_hparams *h, double value)
{
    char *at = (char *)h + row->at;
    if (row->kind == MODEL_HPARAM_U32)
        *(uint32_t *)at = (uint32_t)value;
    else if (row->kind == MODEL_HPARAM_BOOL)
        *(bool *)at = value != 0;
    else
        *(float *)at = (float)value;
}

void model_hparams_default(struct model_hparams *h)
{
    for (const struct model_hparam *row = model_hparam_table; row->suffix; row++)
        if (row->place == MODEL_HPARAM_OF_MODEL && row->absent != 0)
            put(row, h, row->absent);
}

static void read_one(struct model_hparams *h, const struct model_reading *r,
                     const struct model_arch_key *key)
{
    const struct model_hparam *row = model_hparam_row(key->suffix);
    const struct model_keys *keys = &r->keys;
    assert(row->place == MODEL_HPARAM_OF_MODEL);
    bool given = model_key_find(keys, row->suffix) != NULL;
    double absent = !given && key->absent != 0 ? key->absent : row->absent;
    struct model_range range = row->range;
    bool required = key->reader == MODEL_REQUIRED;
    if (key->least > range.low)
        range.low = key->least;
    if (required && row->kind != MODEL_HPARAM_U32)
        model_key_require(keys, row->suffix, "a float");
    if (required && row->kind == MODEL_HPARAM_U32)
        put(row, h, model_key_u32(keys, row->suffix, range));
    else if (row->kind == MODEL_HPARAM_U32)
        put(row, h, model_key_u32_or(keys, row->suffix, range, (uint32_t)absent));
    else if (row->kind == MODEL_HPARAM_BOOL)
        put(row, h, model_key_bool(keys, row->suffix, absent != 0));
    else
        put(row, h, (double)model_key_positive(keys, row->suffix, required ? 0 : (float)absent));
}

void model_hparams_read_keys(struct model_hparams *h, const struct model_reading *r,
                             const struct model_arch_key *list)
{
    for (; list->suffix || list->from; list++) {
        if (!list->suffix || list->reader == MODEL_BY_CODE)
            continue;
        const struct model_arch_key *own = model_arch_key_find(r->arch, list->suffix);
        if (!own || own == list || own->reader == MODEL_BY_CODE)
            read_one(h, r, list);
    }
}
