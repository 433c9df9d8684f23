/**
 * DeepSeek V4: a residual of several streams, attention with further keys that are made of runs of
 * tokens, experts that are a token's own in the first layers.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/number.h"
#include "kernels/mixing/op.h"
#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/state.h"

enum { SHORT_RUN = 4, LONG_RUN = 128 };

/** One key head, as wide as the values, of which the end is rotated. */
static enum status read_heads(struct model_hparams *h, const struct model_reading *r,
                              struct status_why *why)
{
    const struct model_layer_shape *l = &h->layers[0];
    uint32_t n_rot = h->ropes[MODEL_ROPE_FULL].n_rot;
    enum status status = model_key_u32_required(&r->keys, "attention.q_lora_rank",
                                                model_width_range, &h->q_rank, why);
    if (!status && l->value_size != l->key_size)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key '%s.attention.value_length' is %u, expected the %u of keys",
                             gguf_path(r->keys.file), r->keys.prefix, l->value_size, l->key_size);
    if (!status && n_rot >= l->key_size)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key '%s.rope.dimension_count' is %u, expected less than the %u "
                             "elements of a key",
                             gguf_path(r->keys.file), r->keys.prefix, n_rot, l->key_size);
    for (uint32_t i = 0; i < h->n_layers && !status; i++)
        if (h->layers[i].n_kv_heads != 1 || h->layers[i].n_heads != l->n_heads)
            status = status_fail(why, STATUS_FORMAT,
                                 "%s: key '%s.attention.head_count' is %u and "
                                 "'attention.head_count_kv' %u for layer %u, expected %u and 1",
                                 gguf_path(r->keys.file), r->keys.prefix, h->layers[i].n_heads,
                                 h->layers[i].n_kv_heads, i, l->n_heads);
    return status;
}

/** How many tokens a further key of each layer is made of; its angles are then YaRN's. */
static enum status read_runs(struct model_hparams *h, const struct model_reading *r,
                             struct status_why *why)
{
    static const char suffix[] = "attention.compress_ratios";
    uint32_t runs[MODEL_MAX_BLOCKS] = {0};
    enum status status = model_key_require(&r->keys, suffix, "an array of whole numbers", why);
    if (!status)
        status = model_key_per_layer(&r->keys, suffix, (struct model_range){0, LONG_RUN}, runs,
                                     r->n_blocks, why);
    for (uint32_t i = 0; i < h->n_layers && !status; i++) {
        struct model_layer_shape *l = &h->layers[i];
        l->mixer = MODEL_RUN_ATTENTION;
        l->run = runs[i];
        l->runs_overlap = runs[i] == SHORT_RUN;
        l->rope = l->run > 0 ? MODEL_ROPE_FULL : MODEL_ROPE_SLIDING;
        if (l->run != 0 && l->run != SHORT_RUN && l->run != LONG_RUN)
            status = status_fail(
                why, STATUS_UNSUPPORTED, "%s: key '%s.%s' is %u for layer %u, supported: 0, %d, %d",
                gguf_path(r->keys.file), r->keys.prefix, suffix, l->run, i, SHORT_RUN, LONG_RUN);
    }
    return status;
}

/** Angles of layers with further keys have a base of their own; cos and sin stay unscaled. */
static enum status read_base(struct model_hparams *h, const struct model_reading *r,
                             struct status_why *why)
{
    static const char suffix[] = "attention.compress_rope_freq_base";
    struct model_rope *rope = &h->ropes[MODEL_ROPE_FULL];
    struct base_number shown;
    enum status status = model_key_require(&r->keys, suffix, "a float", why);
    if (!status)
        status = model_key_f32(&r->keys, suffix, &rope->freq_base, why);
    if (!status && !(rope->freq_base > 1))
        status = status_fail(why, STATUS_FORMAT, "%s: key '%s.%s' is %s, expected more than 1",
                             gguf_path(r->keys.file), r->keys.prefix, suffix,
                             base_float_text(&shown, rope->freq_base));
    if (!status && rope->scaling == MODEL_ROPE_LONG)
        status = status_fail(why, STATUS_UNSUPPORTED,
                             "%s: key '%s.rope.scaling.type' is longrope, supported are yarn, "
                             "linear and none",
                             gguf_path(r->keys.file), r->keys.prefix);
    if (rope->yarn_ext_factor > 0 && rope->factor > 1)
        rope->magnitude /= 1 + 0.1 * log((double)rope->factor);
    return status;
}

static enum status read_output(struct model_hparams *h, const struct model_reading *r,
                               struct status_why *why)
{
    static const char suffix[] = "attention.output_group_count";
    enum status status =
        model_key_u32_required(&r->keys, suffix, model_heads_range, &h->runs.n_groups, why);
    if (!status)
        status = model_key_u32_required(&r->keys, "attention.output_lora_rank", model_width_range,
                                        &h->runs.rank, why);
    if (!status && h->layers[0].n_heads % h->runs.n_groups != 0)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key '%s.%s' is %u, expected a divisor of the %u heads",
                             gguf_path(r->keys.file), r->keys.prefix, suffix, h->runs.n_groups,
                             h->layers[0].n_heads);
    return status;
}

static enum status read_indexer(struct model_hparams *h, const struct model_reading *r,
                                struct status_why *why)
{
    static const char size[] = "attention.indexer.key_length";
    const struct model_keys *keys = &r->keys;
    uint32_t n_rot = h->ropes[MODEL_ROPE_FULL].n_rot;
    h->index.together = 1;
    h->index.weighed = true;
    enum status status = model_key_u32_required(keys, "attention.indexer.head_count",
                                                model_heads_range, &h->index.n_heads, why);
    if (!status)
        status = model_key_u32_required(keys, size, model_head_size_range, &h->index.key_size, why);
    if (!status)
        status = model_key_u32_required(keys, "attention.indexer.top_k", model_positions_range,
                                        &h->index.n_best, why);
    if (!status && h->index.key_size < n_rot)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key '%s.%s' is %u, expected at least the %u that are rotated",
                             gguf_path(keys->file), keys->prefix, size, h->index.key_size, n_rot);
    return status;
}

static enum status read_streams(struct model_hparams *h, const struct model_reading *r,
                                struct status_why *why)
{
    static const char eps[] = "hyper_connection.epsilon";
    const struct model_keys *keys = &r->keys;
    enum status status =
        model_key_u32_required(keys, "hyper_connection.count",
                               (struct model_range){2, KERN_STREAMS_MAX}, &h->n_streams, why);
    if (!status)
        status = model_key_u32_required(keys, "hyper_connection.sinkhorn_iterations",
                                        (struct model_range){1, 1000}, &h->stream_rounds, why);
    if (!status)
        status = model_key_require(keys, eps, "a float", why);
    return status ? status : model_key_positive(keys, eps, &h->stream_eps, why);
}

/** Limits of the gated activation; those of the shared expert are the others' where no key has
 * them. */
static enum status read_limits(struct model_hparams *h, const struct model_reading *r,
                               struct status_why *why)
{
    float experts[MODEL_MAX_BLOCKS] = {0};
    float shared[MODEL_MAX_BLOCKS];
    enum status status = model_limits_read(r, "swiglu_clamp_exp", experts, why);
    memcpy(shared, experts, sizeof shared);
    if (!status)
        status = model_limits_read(r, "swiglu_clamp_shexp", shared, why);
    for (uint32_t i = 0; i < h->n_layers && !status; i++) {
        h->layers[i].expert_activation = model_limited(KERN_SWIGLU_CLAMP_BEFORE, experts[i]);
        h->layers[i].activation = model_limited(KERN_SWIGLU_CLAMP_BEFORE, shared[i]);
    }
    return status;
}

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    enum status status = read_heads(h, r, why);
    if (!status)
        status = read_runs(h, r, why);
    if (!status)
        status = read_base(h, r, why);
    if (!status)
        status = read_output(h, r, why);
    if (!status)
        status = read_indexer(h, r, why);
    if (!status)
        status = read_streams(h, r, why);
    if (!status)
        status = read_limits(h, r, why);
    return status ? status
                  : model_key_u32_required(&r->keys, "hash_layer_count",
                                           (struct model_range){0, r->n_blocks},
                                           &h->experts.n_by_token, why);
}

/** The three tensors "<name>_fn" and so on, of n_parts parts. */
static enum status bind_mixer(struct model *m, const char *name, bool last,
                              struct model_stream_mixer *x, struct status_why *why)
{
    size_t n = m->hparams.n_streams, rows = last ? n : (2 + n) * n;
    struct model_shape fn = {.n_rows = rows, .n_cols = model_residual_width(&m->hparams)};
    char whole[64];
    struct model_tensor *tensor;
    snprintf(whole, sizeof whole, "%s_fn.weight", name);
    enum status status = model_bind_tensor(m, &tensor, whole, fn, false, why);
    if (status)
        return status;
    x->product.weight = model_tensor_rows(tensor, 0, rows);
    snprintf(whole, sizeof whole, "%s_scale.weight", name);
    status = model_bind_vector(m, &x->scale, whole, last ? 1 : 3, false, why);
    snprintf(whole, sizeof whole, "%s_base.weight", name);
    return status ? status : model_bind_vector(m, &x->base, whole, rows, false, why);
}

static enum status bind(struct model *m, size_t i, struct status_why *why)
{
    if (i == MODEL_NO_LAYER)
        return bind_mixer(m, "output_hc", true, &m->output_mixer, why);
    struct model_layer *l = &m->layers[i];
    char name[48];
    snprintf(name, sizeof name, "blk.%zu.hc_attn", i);
    enum status status = bind_mixer(m, name, false, &l->attn_mixer, why);
    snprintf(name, sizeof name, "blk.%zu.hc_ffn", i);
    if (!status)
        status = bind_mixer(m, name, false, &l->ffn_mixer, why);
    return status || i >= m->hparams.experts.n_by_token
               ? status
               : model_bind_experts_by_token(m, i, "ffn_gate_tid2eid.weight", why);
}

const struct model_arch model_arch_deepseek4 = {
    .name = "deepseek4",
    .windows = {.period = 1, .required = true},
    .gating = KERN_GATE_SQRT_SOFTPLUS,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .read = read,
    .bind = bind,
};
