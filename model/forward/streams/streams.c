/*
 * Residuals of several streams (hyper-connections): S rows of D for each token. A branch reads a
 * mixture of them and what it makes is shared out among them again, with weights that come of all
 * S * D numbers. Where there is one stream nothing of this is called.
 */
#include "model/forward/streams/streams.h"

#include "kernels/mixing.h"

/** Parts of s->streams, from the opening of a branch to its end. */
struct stream_work {
    float *row, *sum; /* [T, D]: what the branch reads, and what it makes */
    float *weights;   /* [T, n_weights()]: pre, post; where they are mixed [S from, S to] */
};

/** Parts of s->work, which no block uses then. */
struct mix_work {
    float *gathered, *normed; /* [T, S * D] */
    float *weights;           /* [T, S] */
};

static struct kern_stream_rule rule_of(const struct model_hparams *h)
{
    return (struct kern_stream_rule){.n_streams = h->n_streams,
                                     .n_rounds = h->stream_rounds,
                                     .eps = h->stream_eps,
                                     .magnitude = h->stream_magnitude};
}

static size_t n_weights(const struct model_hparams *h)
{
    struct kern_stream_rule rule = rule_of(h);
    return kern_stream_products(&rule);
}

static struct stream_work divide(struct model_cut *cut, const struct model_hparams *h, size_t n)
{
    return (struct stream_work){.row = model_take(cut, n * h->n_embd),
                                .sum = model_take(cut, n * h->n_embd),
                                .weights = model_take(cut, n * n_weights(h))};
}

static struct mix_work divide_work(struct model_cut *cut, const struct model_hparams *h, size_t n)
{
    size_t width = model_residual_width(h);
    return (struct mix_work){.gathered = model_take(cut, n * width),
                             .normed = model_take(cut, n * width),
                             .weights = model_take(cut, n * h->n_streams)};
}

size_t model_streams_floats(const struct model *m, size_t n_tokens)
{
    struct model_cut cut = {0};
    (void)divide(&cut, &m->hparams, n_tokens);
    return cut.n_floats;
}

size_t model_streams_work_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    (void)i_layer;
    struct model_cut cut = {0};
    (void)divide_work(&cut, &m->hparams, n_tokens);
    return cut.n_floats;
}

size_t model_streams_constants(const struct model *m, float *to)
{
    size_t n = m->hparams.n_streams;
    for (size_t i = 0; to && i < n; i++)
        to[i] = 1.0f / (float)n;
    return n;
}

/** Rows that are one of each token's streams: row = sum of pre_s x_s. */
struct mixture {
    const struct model_stream_mixer *mixer;
    const float *x; /* [n, S * D] */
    size_t n;
    float *normed;  /* scratch, of as many floats */
    float *weights; /* [n, as many as the mixer makes], which begin with pre */
    float *row;     /* [n, D] */
};

static void mix(struct model_session *s, const struct mixture *m)
{
    const struct model_hparams *h = &s->model->hparams;
    const struct model_product *product = &m->mixer->product;
    struct model_norm_step norm = {
        .x = m->x, .y = m->normed, .n_rows = m->n, .width = model_residual_width(h)};
    model_normalise(s, &norm);
    model_multiply(s, product, m->normed, m->n, m->weights);
    struct kern_stream_weights weigh = {.a = m->weights,
                                        .scale = &m->mixer->scale,
                                        .base = &m->mixer->base,
                                        .n_tokens = m->n,
                                        .rule = rule_of(h)};
    weigh.rule.pre_only = product->weight.n_rows == h->n_streams;
    MODEL_TRY(s, kern_stream_weights(s->backend, &weigh, &s->failure.why));
    struct kern_mix op = {.x = m->x,
                          .weights = m->weights,
                          .stride = product->weight.n_rows,
                          .out = m->row,
                          .n_tokens = m->n,
                          .n_in = h->n_streams,
                          .n_out = 1,
                          .width = h->n_embd};
    MODEL_TRY(s, kern_mix(s->backend, &op, &s->failure.why));
}

void model_streams_mean(struct model_session *s, const float *x, size_t n, float *row)
{
    const struct model_hparams *h = &s->model->hparams;
    struct kern_mix op = {.x = x,
                          .weights = s->zeros + h->n_embd, /* the constants */
                          .out = row,
                          .n_tokens = n,
                          .n_in = h->n_streams,
                          .n_out = 1,
                          .width = h->n_embd};
    MODEL_TRY(s, kern_mix(s->backend, &op, &s->failure.why));
}

void model_streams_open(struct model_session *s, const struct model_step *tile,
                        const struct model_stream_mixer *mixer, struct model_step *step)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t n = tile->tile.n_tokens;
    struct model_cut cut = {.base = s->streams}, work_cut = {.base = s->work};
    struct stream_work w = divide(&cut, h, n);
    struct mix_work work = divide_work(&work_cut, h, n);
    struct mixture mixture = {mixer, tile->x, n, work.normed, w.weights, w.row};
    mix(s, &mixture);
    struct kern_copy clear = {.x = s->zeros, .y = w.sum, .width = h->n_embd, .n_rows = n};
    *step = *tile;
    step->x = w.row;
    step->to = w.sum;
    model_copy(s, clear);
}

void model_streams_close(struct model_session *s, const struct model_step *tile)
{
    const struct model_hparams *h = &s->model->hparams;
    struct model_cut cut = {.base = s->streams};
    struct stream_work w = divide(&cut, h, tile->tile.n_tokens);
    struct kern_mix op = {.x = tile->x,
                          .weights =
                              h->stream_rounds > 0 ? w.weights + 2 * (size_t)h->n_streams : NULL,
                          .y = w.sum,
                          .y_weights = w.weights + h->n_streams,
                          .stride = n_weights(h),
                          .out = tile->x,
                          .n_tokens = tile->tile.n_tokens,
                          .n_in = h->n_streams,
                          .n_out = h->n_streams,
                          .width = h->n_embd};
    MODEL_TRY(s, kern_mix(s->backend, &op, &s->failure.why));
}

/** All streams begin as the embedding. */
static void spread(struct model_session *s, const float *x0, size_t n, float *x)
{
    const struct model_hparams *h = &s->model->hparams;
    for (size_t i = 0; i < h->n_streams; i++)
        model_copy(s, (struct kern_copy){.x = x0,
                                         .x_stride = h->n_embd,
                                         .y = x + i * h->n_embd,
                                         .y_stride = model_residual_width(h),
                                         .width = h->n_embd,
                                         .n_rows = n});
}

void model_streams_begin(struct model_session *s, const int32_t *tokens, size_t n_tokens, float *x)
{
    for (size_t t = 0; t < n_tokens && !s->failure.status; t += s->scratch.n_tokens) {
        size_t n = base_min(n_tokens - t, s->scratch.n_tokens);
        MODEL_TRY(
            s, kern_embed(s->backend, &s->model->embedding, tokens + t, n, s->h, &s->failure.why));
        spread(s, s->h, n, x + t * model_residual_width(&s->model->hparams));
    }
    s->shown = (struct model_shown){.layer = -1, .n_rows = n_tokens};
    model_show(s, MODEL_AT_EMBEDDING, x, s->model->hparams.n_streams, s->model->hparams.n_embd);
}

void model_streams_end(struct model_session *s, const float *x, const uint32_t *rows, size_t n_rows,
                       float *hidden)
{
    const struct model_hparams *h = &s->model->hparams;
    struct model_cut cut = {.base = s->work};
    struct mix_work w = divide_work(&cut, h, s->scratch.n_tokens);
    for (size_t i = 0; i < n_rows && !s->failure.status; i += s->scratch.n_tokens) {
        size_t n = base_min(n_rows - i, s->scratch.n_tokens);
        struct kern_gather op = {x, rows + i, n, model_residual_width(h), w.gathered};
        MODEL_TRY(s, kern_gather(s->backend, &op, &s->failure.why));
        struct mixture mixture = {.mixer = &s->model->output_mixer,
                                  .x = w.gathered,
                                  .n = n,
                                  .normed = w.normed,
                                  .weights = w.weights,
                                  .row = hidden + i * h->n_embd};
        if (mixture.mixer->product.weight.data)
            mix(s, &mixture);
        else
            model_streams_mean(s, mixture.x, n, mixture.row);
    }
}
