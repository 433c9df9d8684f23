#include "model/forward/session.h"

#include <stdlib.h>

#include "base/arithmetic.h"

enum { DEFAULT_TILE_TOKENS = 2048, LINE_FLOATS = 16 /* 64 bytes */ };

size_t model_work_floats(size_t n_floats)
{
    return base_round_up(n_floats, LINE_FLOATS);
}

struct model_scratch model_scratch_of(const struct model *model,
                                      const struct model_session_options *options)
{
    const struct model_hparams *h = &model->hparams;
    size_t n_heads = 0;
    size_t n_kv_heads = 0;
    size_t n_ff = 0;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        n_heads = base_max(n_heads, h->n_heads[i]);
        n_kv_heads = base_max(n_kv_heads, h->n_kv_heads[i]);
        n_ff = base_max(n_ff, h->n_ff[i]);
    }
    size_t tile = options->tile_tokens ? options->tile_tokens : DEFAULT_TILE_TOKENS;
    struct model_scratch scratch;
    size_t t = scratch.n_tokens = base_min(tile, options->max_batch);
    scratch.n_kv_rows = base_max(t, base_min(options->max_segment, options->max_batch));
    scratch.h = t * h->n_embd;
    scratch.k = scratch.v = scratch.n_kv_rows * n_kv_heads * h->head_size;
    scratch.angles = options->max_segment * h->n_rot;
    size_t attention = 2 * model_work_floats(t * n_heads * h->head_size);
    size_t ffn = 2 * model_work_floats(t * n_ff);
    if (h->n_experts > 0)
        ffn += model_work_floats(t * h->n_experts) + 2 * model_work_floats(t * h->n_embd);
    scratch.work = base_max(attention, ffn);
    return scratch;
}

size_t model_session_bytes(const struct model *model, const struct model_session_options *options)
{
    struct model_scratch s = model_scratch_of(model, options);
    return (s.h + s.k + s.v + s.angles + s.work) * sizeof(float);
}

static enum status alloc_floats(struct model_session *s, float **out, size_t n_floats,
                                struct status_why *why)
{
    void *memory;
    enum status status = kern_alloc(s->backend, &memory, n_floats * sizeof(float), why);
    *out = memory;
    return status;
}

static enum status alloc_backend(struct model_session *s, struct status_why *why)
{
    const struct model_scratch *scratch = &s->scratch;
    enum status status = alloc_floats(s, &s->h, scratch->h, why);
    if (!status)
        status = alloc_floats(s, &s->k, scratch->k, why);
    if (!status)
        status = alloc_floats(s, &s->v, scratch->v, why);
    if (!status)
        status = alloc_floats(s, &s->angles, scratch->angles, why);
    if (!status)
        status = alloc_floats(s, &s->work, scratch->work, why);
    return status;
}

static enum status alloc_host(struct model_session *s, struct status_why *why)
{
    size_t t = s->scratch.n_tokens;
    size_t n_used = s->model->hparams.n_experts_used;
    s->positions = calloc(t, sizeof *s->positions);
    s->ranges = calloc(t, sizeof *s->ranges);
    bool ok = s->positions && s->ranges;
    if (n_used > 0) {
        s->experts = calloc(t * n_used, sizeof *s->experts);
        s->shares = calloc(t * n_used, sizeof *s->shares);
        s->expert_rows = calloc(t, sizeof *s->expert_rows);
        s->expert_shares = calloc(t, sizeof *s->expert_shares);
        ok = ok && s->experts && s->shares && s->expert_rows && s->expert_shares;
    }
    if (!ok)
        return status_fail(why, STATUS_MEMORY, "no memory for a tile of %zu tokens", t);
    return STATUS_OK;
}

/** n weights of products, of which those without data are not in the model. */
static enum status preload_products(const struct model_session *s,
                                    const struct kern_weight *const *weights, size_t n,
                                    struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < n; i++) {
        if (weights[i]->data)
            status = kern_preload(s->backend, weights[i], why);
    }
    return status;
}

/** A layer's weights, in the order of their use. */
static enum status preload_layer(const struct model_session *s, const struct model_layer *layer,
                                 struct status_why *why)
{
    const struct kern_weight *const first[] = {&layer->q, &layer->k, &layer->v, &layer->output,
                                               &layer->router};
    enum status status = preload_products(s, first, sizeof first / sizeof *first, why);
    for (size_t e = 0; !status && e < base_max(s->model->hparams.n_experts, 1); e++) {
        const struct model_ffn *ffn = &layer->ffn[e];
        const struct kern_weight *const inner[] = {&ffn->gate, &ffn->up, &ffn->down};
        status = preload_products(s, inner, sizeof inner / sizeof *inner, why);
    }
    return status;
}

static enum status preload(const struct model_session *s, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < s->model->hparams.n_layers; i++)
        status = preload_layer(s, model_layer(s->model, i), why);
    return status;
}

enum status model_session_open(struct model_session **out, const struct model *model,
                               struct kern_backend *backend,
                               const struct model_session_options *options, struct status_why *why)
{
    *out = NULL;
    if (options->max_batch == 0 || options->max_segment == 0 || options->max_segment > INT32_MAX)
        return status_fail(why, STATUS_USAGE,
                           "a session for batches of %zu and segments of %zu tokens, expected 1 "
                           "or more and at most %d per segment",
                           options->max_batch, options->max_segment, INT32_MAX);
    struct model_session *s = calloc(1, sizeof *s);
    if (!s)
        return status_fail(why, STATUS_MEMORY, "no memory for a session");
    s->model = model;
    s->backend = backend;
    s->options = *options;
    s->scratch = model_scratch_of(model, options);
    enum status status = alloc_host(s, why);
    if (!status)
        status = alloc_backend(s, why);
    if (!status)
        status = preload(s, why);
    if (status) {
        model_session_close(s);
        return status;
    }
    *out = s;
    return STATUS_OK;
}

void model_session_close(struct model_session *s)
{
    if (!s)
        return;
    float *const buffers[] = {s->h, s->k, s->v, s->angles, s->work};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        kern_free(s->backend, buffers[i]);
    free(s->positions);
    free(s->ranges);
    free(s->experts);
    free(s->shares);
    free(s->expert_rows);
    free(s->expert_shares);
    free(s);
}
