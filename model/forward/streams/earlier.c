/*
 * Attention over earlier residuals (Kimi K3): a branch reads a mixture of x and of what x was where
 * it began anew. Stream 0 of a token is x; the others are these earlier ones, in their order.
 */
#include "model/forward/streams/earlier.h"

#include "kernels/mixing.h"

/** Parts of s->streams through a layer: what a branch reads, and x. */
struct earlier_rows {
    float *row, *x; /* [T, D] */
};

/** Parts of s->work, which no block uses then. */
struct earlier_work {
    float *gathered, *normed; /* [T, S * D] */
    float *weights;           /* [T, S] */
};

static struct earlier_rows divide(struct model_cut *cut, const struct model_hparams *h, size_t n)
{
    return (struct earlier_rows){.row = model_take(cut, n * h->n_embd),
                                 .x = model_take(cut, n * h->n_embd)};
}

static struct earlier_work divide_work(struct model_cut *cut, const struct model_hparams *h,
                                       size_t n)
{
    return (struct earlier_work){.gathered = model_take(cut, n * model_residual_width(h)),
                                 .normed = model_take(cut, n * model_residual_width(h)),
                                 .weights = model_take(cut, n * h->n_streams)};
}

size_t model_earlier_floats(const struct model *m, size_t n_tokens)
{
    struct model_cut cut = {0};
    (void)divide(&cut, &m->hparams, n_tokens);
    return cut.n_floats;
}

size_t model_earlier_work_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    (void)i_layer;
    struct model_cut cut = {0};
    (void)divide_work(&cut, &m->hparams, n_tokens);
    return cut.n_floats;
}

/** Streams that a token has before layer i. */
static size_t n_streams_before(const struct model_hparams *h, size_t i)
{
    return 1 + base_div_up(i, h->residual_block);
}

/**
 * row = the sum of n streams of x, each with its share: the softmax of what `score` makes of them
 * without their lengths.
 */
static void mix(struct model_session *s, const struct model_product *score, const float *x,
                size_t n_rows, size_t n, const struct earlier_work *w, float *row)
{
    const struct model_hparams *h = &s->model->hparams;
    if (n == 1) {
        model_take_stream(s, x, 0, n_rows, row);
        return;
    }
    struct model_norm_step norm = {
        .x = x, .y = w->normed, .n_rows = n_rows * h->n_streams, .width = h->n_embd};
    model_normalise(s, &norm);
    model_multiply(s, score, w->normed, norm.n_rows, w->weights);
    struct kern_softmax shares = {.x = w->weights, .n_rows = n_rows, .width = h->n_streams, .n = n};
    MODEL_TRY(s, kern_softmax(s->backend, &shares, &s->failure.why));
    struct kern_mix op = {.x = x,
                          .weights = w->weights,
                          .stride = h->n_streams,
                          .out = row,
                          .n_tokens = n_rows,
                          .n_in = h->n_streams,
                          .n_out = 1,
                          .width = h->n_embd};
    MODEL_TRY(s, kern_mix(s->backend, &op, &s->failure.why));
}

/** A branch: what it makes of the mixture of n streams is added to x. */
static void branch(struct model_session *s, const struct model_step *tile, model_block_fn *block,
                   const struct model_product *score, size_t n)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t n_rows = tile->tile.n_tokens;
    if (!block)
        return;
    struct model_cut cut = {.base = s->streams}, work_cut = {.base = s->work};
    struct earlier_rows rows = divide(&cut, h, n_rows);
    struct earlier_work work = divide_work(&work_cut, h, n_rows);
    struct model_step step = *tile;
    step.x = rows.row;
    step.to = rows.x;
    mix(s, score, tile->x, n_rows, n, &work, rows.row);
    block(s, &step);
    model_put_stream(s, rows.x, 0, n_rows, tile->x);
}

void model_earlier_layer(struct model_session *s, const struct model_step *tile,
                         model_block_fn *mixer, model_block_fn *feed_forward)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t n_rows = tile->tile.n_tokens, n = n_streams_before(h, tile->i_layer);
    struct model_cut cut = {.base = s->streams};
    struct earlier_rows rows = divide(&cut, h, n_rows);
    bool begins = tile->i_layer % h->residual_block == 0;
    model_take_stream(s, tile->x, 0, n_rows, rows.x);
    if (begins) { /* x is kept, and becomes what attention makes alone */
        model_put_stream(s, rows.x, n, n_rows, tile->x);
        model_copy(s, (struct kern_copy){
                          .x = s->zeros, .y = rows.x, .width = h->n_embd, .n_rows = n_rows});
    }
    branch(s, tile, mixer, &tile->layer->attn_mixer.product, n);
    model_show(s, MODEL_AT_ATTN_RESIDUAL, rows.x, 1, h->n_embd);
    branch(s, tile, feed_forward, &tile->layer->ffn_mixer.product, n + begins);
    model_show(s, MODEL_AT_LAYER_OUT, rows.x, 1, h->n_embd);
}

void model_earlier_begin(struct model_session *s, const int32_t *tokens, size_t n_tokens, float *x)
{
    const struct model *m = s->model;
    for (size_t t = 0; t < n_tokens && !s->failure.status; t += s->scratch.n_tokens) {
        size_t n = base_min(n_tokens - t, s->scratch.n_tokens);
        MODEL_TRY(s, kern_embed(s->backend, &m->embedding, tokens + t, n, s->h, &s->failure.why));
        s->shown = (struct model_shown){.layer = -1, .first = t, .n_rows = n};
        model_show(s, MODEL_AT_EMBEDDING, s->h, 1, m->hparams.n_embd);
        for (size_t i = 0; i < m->hparams.n_streams; i++) /* those that are not there, too */
            model_put_stream(s, s->h, i, n, x + t * model_residual_width(&m->hparams));
    }
}

void model_earlier_end(struct model_session *s, const float *x, const uint32_t *rows, size_t n_rows,
                       float *hidden)
{
    const struct model_hparams *h = &s->model->hparams;
    struct model_cut cut = {.base = s->work};
    struct earlier_work w = divide_work(&cut, h, s->scratch.n_tokens);
    for (size_t i = 0; i < n_rows && !s->failure.status; i += s->scratch.n_tokens) {
        size_t n = base_min(n_rows - i, s->scratch.n_tokens);
        struct kern_gather op = {x, rows + i, n, model_residual_width(h), w.gathered};
        MODEL_TRY(s, kern_gather(s->backend, &op, &s->failure.why));
        mix(s, &s->model->output_mixer.product, w.gathered, n, n_streams_before(h, h->n_layers), &w,
            hidden + i * h->n_embd);
    }
}
