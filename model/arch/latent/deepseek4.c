/**
 * DeepSeek V4: a residual of several streams, attention with further keys that are made of runs of
 * tokens, experts that are a token's own in the first layers.
 */
#include <math.h>
#include <string.h>

#include "base/text/number.h"
#include "base/text/words.h"
#include "model/arch/latent/latent.h"
#include "model/bind/bind.h"
#include "model/folder/state.h"
#include "model/state.h"

enum { SHORT_RUN = 4, LONG_RUN = 128 };

/** One key head, as wide as the values, of which the end is rotated. */
static void read_heads(struct model_hparams *h, const struct model_reading *r)
{
    const struct model_layer_shape *l = &h->layers[0];
    uint32_t n_rot = h->ropes[MODEL_ROPE_FULL].n_rot;
    if (l->value_size != l->key_size)
        model_key_fail(&r->keys, STATUS_FORMAT, "attention.value_length",
                       "is %u, expected the %u of keys", l->value_size, l->key_size);
    if (n_rot >= l->key_size)
        model_key_fail(&r->keys, STATUS_FORMAT, "rope.dimension_count",
                       "is %u, expected less than the %u elements of a key", n_rot, l->key_size);
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (h->layers[i].n_kv_heads != 1 || h->layers[i].n_heads != l->n_heads)
            model_key_fail(&r->keys, STATUS_FORMAT, "attention.head_count",
                           "is %u and 'attention.head_count_kv' %u for layer %u, expected %u and 1",
                           h->layers[i].n_heads, h->layers[i].n_kv_heads, i, l->n_heads);
}

/** How many tokens a further key of each layer is made of; its angles are then YaRN's. */
static void read_runs(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "attention.compress_ratios";
    uint32_t runs[MODEL_MAX_BLOCKS] = {0};
    model_key_require(&r->keys, suffix, "an array of whole numbers");
    model_key_per_layer(&r->keys, suffix, (struct model_range){0, LONG_RUN}, runs, r->n_blocks);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        l->mixer = MODEL_RUN_ATTENTION;
        l->run = runs[i];
        l->runs_overlap = runs[i] == SHORT_RUN;
        l->rope = l->run > 0 ? MODEL_ROPE_FULL : MODEL_ROPE_SLIDING;
        if (l->run != 0 && l->run != SHORT_RUN && l->run != LONG_RUN)
            model_key_fail(&r->keys, STATUS_UNSUPPORTED, suffix,
                           "is %u for layer %u, supported: 0, %d, %d", l->run, i, SHORT_RUN,
                           LONG_RUN);
    }
}

/** Angles of layers with further keys have a base of their own; cos and sin stay unscaled. */
static void read_base(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "attention.compress_rope_freq_base";
    struct model_rope *rope = &h->ropes[MODEL_ROPE_FULL];
    struct base_number shown;
    model_key_require(&r->keys, suffix, "a float");
    rope->freq_base = model_key_f32(&r->keys, suffix, rope->freq_base);
    if (!(rope->freq_base > 1))
        model_key_fail(&r->keys, STATUS_FORMAT, suffix, "is %s, expected more than 1",
                       base_float_text(&shown, rope->freq_base));
    if (rope->scaling == MODEL_ROPE_LONG)
        model_key_fail(&r->keys, STATUS_UNSUPPORTED, "rope.scaling.type",
                       "is longrope, supported are yarn, linear and none");
    if (rope->yarn_ext_factor > 0 && rope->factor > 1)
        rope->magnitude /= 1 + 0.1 * log((double)rope->factor);
}

/** Refuse sizes of the output's groups and of the indexer's keys that cannot be. */
static void check_sizes(struct model_hparams *h, const struct model_reading *r)
{
    const struct model_keys *keys = &r->keys;
    uint32_t n_rot = h->ropes[MODEL_ROPE_FULL].n_rot, n_heads = h->layers[0].n_heads;
    h->index.together = 1;
    h->index.weighed = true;
    if (n_heads % h->runs.n_groups != 0)
        model_key_fail(keys, STATUS_FORMAT, "attention.output_group_count",
                       "is %u, expected a divisor of the %u heads", h->runs.n_groups, n_heads);
    if (h->index.key_size < n_rot)
        model_key_fail(keys, STATUS_FORMAT, "attention.indexer.key_length",
                       "is %u, expected at least the %u that are rotated", h->index.key_size,
                       n_rot);
}

/** Limits of the gated activation; those of the shared expert are the others' where no key has
 * them. */
static void read_limits(struct model_hparams *h, const struct model_reading *r)
{
    float experts[MODEL_MAX_BLOCKS] = {0};
    float shared[MODEL_MAX_BLOCKS];
    model_limits_read(r, "swiglu_clamp_exp", experts);
    memcpy(shared, experts, sizeof shared);
    model_limits_read(r, "swiglu_clamp_shexp", shared);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        h->layers[i].expert_activation = model_limited(KERN_SWIGLU_CLAMP_BEFORE, experts[i]);
        h->layers[i].activation = model_limited(KERN_SWIGLU_CLAMP_BEFORE, shared[i]);
    }
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    read_heads(h, r);
    read_runs(h, r);
    read_base(h, r);
    check_sizes(h, r);
    read_limits(h, r);
    h->experts.n_by_token =
        model_key_u32(&r->keys, "hash_layer_count", (struct model_range){0, r->n_blocks});
}

static void bind(struct model *m, size_t i)
{
    if (i == MODEL_NO_LAYER) {
        model_streams_bind_end(m);
        return;
    }
    model_streams_bind(m, i);
    if (i < m->hparams.experts.n_by_token)
        model_bind_experts_by_token(m, i, "ffn_gate_tid2eid.weight");
}

static const struct model_folder_name folder_names[] = {
    {"embed", "token_embd"},
    {"head", "output"},
    {"hc_head_fn", "output_hc_fn.weight"},
    {"hc_head_base", "output_hc_base.weight"},
    {"hc_head_scale", "output_hc_scale.weight"},
    {"hc_head.hc_fn", "output_hc_fn.weight"}, /* transformers saves them so */
    {"hc_head.hc_base", "output_hc_base.weight"},
    {"hc_head.hc_scale", "output_hc_scale.weight"},
    {"hc_attn_fn", "hc_attn_fn.weight"},
    {"hc_attn_base", "hc_attn_base.weight"},
    {"hc_attn_scale", "hc_attn_scale.weight"},
    {"hc_ffn_fn", "hc_ffn_fn.weight"},
    {"hc_ffn_base", "hc_ffn_base.weight"},
    {"hc_ffn_scale", "hc_ffn_scale.weight"},
    {"attn_norm", "attn_norm"},
    {"ffn_norm", "ffn_norm"},
    {"attn.attn_sink", "attn_sinks.weight"},
    {"attn.wq_a", "attn_q_a"},
    {"attn.q_norm", "attn_q_a_norm"},
    {"attn.wq_b", "attn_q_b"},
    {"attn.wkv", "attn_kv"},
    {"attn.kv_norm", "attn_kv_a_norm"},
    {"attn.norm", "attn_kv_a_norm"}, /* transformers' name of it */
    {"attn.wo_a", "attn_output_a"},
    {"attn.wo_b", "attn_output_b"},
    {"attn.compressor.wkv", "attn_compressor_kv"},
    {"attn.compressor.wgate", "attn_compressor_gate"},
    {"attn.compressor.ape", "attn_compressor_ape.weight"},
    {"attn.compressor.norm", "attn_compressor_norm"},
    {"attn.indexer.wq_b", "indexer.attn_q_b"},
    {"attn.indexer.weights_proj", "indexer.proj"},
    {"attn.indexer.compressor.wkv", "indexer_compressor_kv"},
    {"attn.indexer.compressor.wgate", "indexer_compressor_gate"},
    {"attn.indexer.compressor.ape", "indexer_compressor_ape.weight"},
    {"attn.indexer.compressor.norm", "indexer_compressor_norm"},
    {"ffn.gate.weight", "ffn_gate_inp.weight"},
    {"ffn.gate.bias", "exp_probs_b.bias"},
    {"ffn.gate.tid2eid", "ffn_gate_tid2eid.weight", MODEL_WHOLE_NUMBERS},
    {"ffn.experts.*.w1", "ffn_gate_exps"},
    {"ffn.experts.*.w2", "ffn_down_exps"},
    {"ffn.experts.*.w3", "ffn_up_exps"},
    {"ffn.shared_experts.w1", "ffn_gate_shexp"},
    {"ffn.shared_experts.w2", "ffn_down_shexp"},
    {"ffn.shared_experts.w3", "ffn_up_shexp"},
    {0},
};

static const struct model_arch_key keys[] = {
    {"attention.q_lora_rank", MODEL_REQUIRED, .least = 1, .unset = 1024},
    {"attention.output_group_count", MODEL_REQUIRED, .unset = 8},
    {"attention.output_lora_rank", MODEL_REQUIRED, .unset = 1024},
    {"attention.indexer.head_count", MODEL_REQUIRED, .unset = 64},
    {"attention.indexer.key_length", MODEL_REQUIRED, .unset = 128},
    {"attention.indexer.top_k", MODEL_REQUIRED, .unset = 512},
    {"attention.compress_rope_freq_base", .unset = 160000},
    {"hyper_connection.count", MODEL_REQUIRED, .unset = 4},
    {"hyper_connection.sinkhorn_iterations", MODEL_REQUIRED, .unset = 20},
    {"hyper_connection.epsilon", MODEL_REQUIRED, .unset = 1e-6},
    {"expert_shared_count", .from = "n_shared_experts", .unset = 1},
    {"expert_weights_scale", .unset = 1.5},
    {"expert_weights_norm", .unset = 1},
    {"expert_gating_func", .unset = 4},
    {0},
};

/** Runs of each layer: numbers, or kinds with a number for each. */
static void write_runs(struct model_folder *f)
{
    static const char kinds[] =
        "sliding_attention compressed_sparse_attention heavily_compressed_attention";
    struct base_field list = model_config_find(f, "compress_ratios"), item = {0};
    struct base_field rates = model_config_find(f, "compress_rates");
    uint32_t lengths[] = {0, SHORT_RUN, LONG_RUN}, runs[MODEL_MAX_BLOCKS];
    uint8_t kind_of[MODEL_MAX_BLOCKS];
    for (struct base_field rate = {0}; base_field_next(rates, &rate);) {
        const char *name = rate.json->string ? rate.json->string : "";
        int kind = base_words_index(kinds, name);
        if (kind < 1 || rate.json->valuedouble != lengths[kind])
            model_config_fail(f, STATUS_UNSUPPORTED,
                              "member 'compress_rates' has '%s' as %g, expected runs of %d for "
                              "compressed_sparse_attention and of %d for "
                              "heavily_compressed_attention",
                              name, rate.json->valuedouble, SHORT_RUN, LONG_RUN);
    }
    uint32_t i = 0, n = list.json ? 0 : model_config_kinds(f, "layer_types", kinds, kind_of);
    for (; i < n; i++)
        runs[i] = lengths[kind_of[i]];
    for (; i < f->n_layers && base_field_next(list, &item); i++) {
        /* Lists may go on with blocks that predict further tokens. */
        double length = cJSON_IsNumber(item.json) ? item.json->valuedouble : -1;
        runs[i] = length >= 0 && length <= LONG_RUN ? (uint32_t)length
                                                    : UINT32_MAX; /* refused where keys are read */
    }
    if (i != f->n_layers)
        model_config_fail(f, STATUS_FORMAT,
                          "members 'compress_ratios' and 'layer_types' say it of %u layers what "
                          "their keys are made of, expected %u",
                          i, f->n_layers);
    model_write_u32s(f, "attention.compress_ratios", runs, i);
}

/** How many layers at the beginning have experts by token. */
static void write_by_token(struct model_folder *f)
{
    uint8_t kinds[MODEL_MAX_BLOCKS];
    uint32_t n = model_config_kinds(f, "mlp_layer_types", "hash_moe moe", kinds);
    uint32_t n_by_token = n > 0 ? 0 : f->n_layers < 3 ? f->n_layers : 3;
    for (uint32_t i = 0; i < n; i++) {
        if (kinds[i] == 0 && i != n_by_token)
            model_config_fail(f, STATUS_UNSUPPORTED,
                              "member 'mlp_layer_types' has hash_moe for layer %u after moe, "
                              "expected it only at the beginning",
                              i);
        n_by_token += kinds[i] == 0;
    }
    model_write_u32(f, "hash_layer_count", model_config_u32_or(f, "num_hash_layers", n_by_token));
}

static void write_folder(struct model_folder *f)
{
    write_runs(f);
    write_by_token(f);
    model_limit_write(f, "swiglu_clamp_exp");
}

static const struct model_folder_map folder = {
    .classes = {"DeepseekV4ForCausalLM"},
    .names = {folder_names},
    .write = write_folder,
};

const struct model_arch model_arch_deepseek4 = {
    .name = "deepseek4",
    .nodes = (const struct model_node[]){{MODEL_AT_EMBEDDING, "embd", .other = true}, {0}},
    .folder = &folder,
    .keys = {keys},
    .windows = {.period = 1},
    .needs = {{"attention.sliding_window"},
              {"swiglu_clamp_exp"},
              {"rope.scaling.original_context_length", MODEL_WHEN_YARN}},
    .needs_shares = true,
    .gating = KERN_GATE_SQRT_SOFTPLUS,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .read = read,
    .bind = bind,
    .presence = {{MODEL_ALWAYS, "output.weight exp_probs_b.bias"}},
};
