/*
 * The streams of Gemma 3n. A layer predicts all streams from themselves, lets its branches work on
 * the first one, and corrects all of them by what that became. The other streams begin and end as
 * products of the first, of its length.
 */
#include <math.h>

#include "kernels/mixing.h"
#include "model/forward/streams/altup.h"

/** Parts of s->streams through a layer: the row that its branches work on, one that they read. */
struct altup_rows {
    float *active, *other; /* [T, D] */
};

/** The parts of the work area, between the branches. */
struct altup_work {
    float *modal, *weights; /* [T, S], [T, S + S * S] */
    float *low;             /* [T, Laurel's rank] */
};

/** What the ends need of it: rows of all streams, and three of one. */
struct end_work {
    float *streams, *first, *row, *product;
};

static struct altup_rows divide_rows(struct model_cut *cut, const struct model *m, size_t n)
{
    return (struct altup_rows){.active = model_take(cut, n * m->hparams.n_embd),
                               .other = model_take(cut, n * m->hparams.n_embd)};
}

/** Weights of one row that is added to S streams, and of S streams: kern_mix's. */
static size_t n_weights(const struct model *m)
{
    return (size_t)m->hparams.n_streams * (1 + m->hparams.n_streams);
}

static struct altup_work divide(struct model_cut *cut, const struct model *m, size_t i_layer,
                                size_t n)
{
    return (struct altup_work){.modal = model_take(cut, n * m->hparams.n_streams),
                               .weights = model_take(cut, n * n_weights(m)),
                               .low =
                                   model_take(cut, n * m->layers[i_layer].altup.low.weight.n_rows)};
}

static struct end_work divide_end(struct model_cut *cut, const struct model *m, size_t n)
{
    size_t width = m->hparams.n_embd;
    return (struct end_work){.streams = model_take(cut, n * model_residual_width(&m->hparams)),
                             .first = model_take(cut, n * width),
                             .row = model_take(cut, n * width),
                             .product = model_take(cut, n * width)};
}

size_t model_altup_floats(const struct model *m, size_t n_tokens)
{
    struct model_cut cut = {0};
    (void)divide_rows(&cut, m, n_tokens);
    return cut.n_floats;
}

size_t model_altup_work_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    struct model_cut cut = {0}, end = {0};
    (void)divide(&cut, m, i_layer, n_tokens);
    (void)divide_end(&end, m, n_tokens);
    return base_max(cut.n_floats, end.n_floats);
}

/**
 * Rows of weights that all tokens share. `correction`, to which c is added and of which it is
 * subtracted: X_i += (1 + c_i) (o - X_0). `others`: a row is added to all streams but the first.
 */
struct constants {
    float *correction, *others; /* each [S], [S from, S to] */
    float *identity;            /* the latter's second part */
};

static struct constants divide_constants(float *base, const struct model *m)
{
    float *others = base + n_weights(m);
    return (struct constants){base, others, others + m->hparams.n_streams};
}

size_t model_altup_constants(const struct model *m, float *to)
{
    size_t n = m->hparams.n_streams;
    if (!to)
        return 2 * n_weights(m);
    struct constants c = divide_constants(to, m);
    for (size_t i = 0; i < n; i++) {
        c.correction[i] = 1;
        c.correction[n + i] = i == 0 ? 0 : -1;
        if (i > 0)
            c.correction[n + i * n + i] = 1;
        c.others[i] = i == 0 ? 0 : 1;
        c.identity[i * n + i] = 1;
    }
    return 2 * n_weights(m);
}

static struct constants constants_of(const struct model_session *s)
{
    return divide_constants(s->zeros + s->model->hparams.n_embd, s->model);
}

static void scale(struct model_session *s, float *row, size_t n, float factor)
{
    for (size_t i = 0; i < n; i++)
        s->factors[i] = factor;
    MODEL_TRY(s, kern_scale_rows(s->backend, row, s->model->hparams.n_embd, n, s->factors,
                                 &s->failure.why));
}

/** y += x, or with a gain y = x * gain, of n rows of D. */
static void add(struct model_session *s, const float *x, const struct model_norm *gain, size_t n,
                float *y)
{
    struct kern_norm op = {.gain = gain ? &gain->gain : NULL,
                           .x = x,
                           .y = y,
                           .n_rows = n,
                           .width = s->model->hparams.n_embd,
                           .n_groups = 1,
                           .accumulate = !gain,
                           .plain = true};
    MODEL_TRY(s, kern_norm(s->backend, &op, &s->failure.why));
}

/** modal = tanh(router(norm(row))), and rows of weights begin as one of the constants. */
static void route(struct model_session *s, const struct model_step *step, const float *row,
                  const struct altup_work *w, struct kern_copy begin)
{
    const struct model_altup *a = &step->layer->altup;
    const struct model_hparams *h = &s->model->hparams;
    size_t n = begin.n_rows = step->tile.n_tokens;
    struct model_norm_step norm = {
        .norm = &a->router_norm, .x = row, .y = s->h, .n_rows = n, .width = h->n_embd};
    struct kern_activate op = {.kind = KERN_TANH, .gate = w->modal, .n = n * h->n_streams};
    model_normalise(s, &norm);
    model_multiply(s, &a->router, s->h, n, w->modal);
    MODEL_TRY(s, kern_activate(s->backend, &op, &s->failure.why));
    begin.y = w->weights;
    model_copy(s, begin);
}

/** The tile's streams, mixed in place. */
static void mix(struct model_session *s, const struct model_step *step, struct kern_mix op)
{
    const struct model_hparams *h = &s->model->hparams;
    op.x = op.out = step->x;
    op.n_tokens = step->tile.n_tokens;
    op.n_in = op.n_out = h->n_streams;
    op.width = h->n_embd;
    MODEL_TRY(s, kern_mix(s->backend, &op, &s->failure.why));
}

/** X_i += sum over j of c[i, j] X_j; *row becomes the new X_0. */
static void predict(struct model_session *s, const struct model_step *step, float *row)
{
    size_t n = step->tile.n_tokens, n_c = step->layer->altup.predict.weight.n_rows;
    struct model_cut cut = {.base = s->work};
    struct altup_work w = divide(&cut, s->model, step->i_layer, n);
    struct kern_copy begin = {.x = constants_of(s).identity, .width = n_c};
    model_take_stream(s, step->x, 0, n, row);
    route(s, step, row, &w, begin);
    model_multiply_add(s, &step->layer->altup.predict, w.modal, n, w.weights);
    mix(s, step, (struct kern_mix){.weights = w.weights, .stride = n_c, .by_output = true});
    model_take_stream(s, step->x, 0, n, row);
    model_show(s, MODEL_AT_PREDICTED, row, 1, s->model->hparams.n_embd);
}

/** Laurel: active = (active + h + norm(high low h)) / sqrt 2, h being what attention read. */
static void add_low(struct model_session *s, const struct model_step *step,
                    const struct altup_rows *rows, const float *x)
{
    const struct model_altup *a = &step->layer->altup;
    size_t n = step->tile.n_tokens, width = s->model->hparams.n_embd;
    struct model_cut cut = {.base = s->work};
    struct altup_work w = divide(&cut, s->model, step->i_layer, n);
    model_take_stream(s, x, 0, n, rows->other);
    model_normalise_rows(s, &step->layer->attn_norm, rows->other, n, width);
    add(s, rows->other, NULL, n, rows->active);
    model_multiply(s, &a->low, rows->other, n, w.low);
    model_close_branch(s, step, &a->high, &a->low_post_norm, w.low);
    scale(s, rows->active, n, (float)sqrt(0.5));
}

/** weights[t, from ...] += by * c of the tile's tokens. */
static void add_correction(struct model_session *s, const struct model_step *step,
                           const struct altup_work *w, float by, size_t from)
{
    struct model_product product = step->layer->altup.correct;
    product.weight.scale *= by;
    product.bias.scale *= by;
    struct kern_linear op = {.weight = &product.weight,
                             .bias = model_present(&product.bias),
                             .x = w->modal,
                             .y = w->weights + from,
                             .y_stride = n_weights(s->model),
                             .n_tokens = step->tile.n_tokens,
                             .accumulate = true};
    model_multiply_marked(s, op);
}

/** X_i += (o - X_0) (1 + c_i), o being the active row. */
static void correct(struct model_session *s, const struct model_step *step, const float *row)
{
    size_t n_streams = s->model->hparams.n_streams;
    struct model_cut cut = {.base = s->work};
    struct altup_work w = divide(&cut, s->model, step->i_layer, step->tile.n_tokens);
    struct kern_copy begin = {.x = constants_of(s).correction, .width = n_weights(s->model)};
    route(s, step, row, &w, begin);
    add_correction(s, step, &w, 1, 0);
    add_correction(s, step, &w, -1, n_streams);
    struct kern_mix op = {.y = row,
                          .y_weights = w.weights,
                          .weights = w.weights + n_streams,
                          .stride = n_weights(s->model)};
    mix(s, step, op);
}

/** All streams but the first += the further input, whose gate reads the first one times a gain. */
static void add_input(struct model_session *s, const struct model_step *step,
                      const struct altup_rows *rows)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t n = step->tile.n_tokens;
    struct model_step input = *step;
    input.x = rows->active;
    input.to = rows->other;
    struct kern_copy clear = {.x = s->zeros, .y = rows->other, .width = h->n_embd, .n_rows = n};
    model_take_stream(s, step->x, 0, n, rows->active);
    add(s, rows->active, &step->layer->altup.scale, n, rows->active);
    model_copy(s, clear);
    model_block_input(s, &input);
    struct constants c = constants_of(s);
    struct kern_mix op = {.y = rows->other, .y_weights = c.others, .weights = c.identity};
    mix(s, step, op);
}

void model_altup_layer(struct model_session *s, const struct model_step *tile,
                       model_block_fn *mixer, model_block_fn *feed_forward)
{
    struct model_cut cut = {.base = s->streams};
    struct altup_rows rows = divide_rows(&cut, s->model, tile->tile.n_tokens);
    struct model_step step = *tile;
    step.x = step.to = rows.active;
    predict(s, tile, rows.active);
    mixer(s, &step);
    add_low(s, &step, &rows, tile->x);
    model_show(s, MODEL_AT_ATTN_RESIDUAL, rows.active, 1, s->model->hparams.n_embd);
    feed_forward(s, &step);
    correct(s, tile, rows.active);
    add_input(s, tile, &rows);
    model_show(s, MODEL_AT_LAYER_OUT, tile->x, s->model->hparams.n_streams,
               s->model->hparams.n_embd);
}

/** row = matrix i of a stack times x, of the length of `first`; with accumulate added to row. */
static void stretch(struct model_session *s, const struct model_product *stack, size_t i,
                    struct kern_stretch op, float *product)
{
    size_t n_embd = s->model->hparams.n_embd;
    struct model_product one = *stack;
    one.weight = kern_weight_rows(&stack->weight, i * n_embd, n_embd);
    model_multiply(s, &one, op.x, op.n_rows, product);
    op.x = product;
    op.width = n_embd;
    op.least = s->model->hparams.stream_least;
    MODEL_TRY(s, kern_stretch(s->backend, &op, &s->failure.why));
}

void model_altup_begin(struct model_session *s, const int32_t *tokens, size_t n_tokens, float *x)
{
    const struct model *m = s->model;
    struct model_cut cut = {.base = s->work};
    struct end_work w = divide_end(&cut, m, s->scratch.n_tokens);
    for (size_t t = 0; t < n_tokens && !s->failure.status; t += s->scratch.n_tokens) {
        size_t n = base_min(n_tokens - t, s->scratch.n_tokens);
        float *to = x + t * model_residual_width(&m->hparams);
        struct kern_stretch op = {.x = w.first, .to = w.first, .y = w.row, .n_rows = n};
        MODEL_TRY(s,
                  kern_embed(s->backend, &m->embedding, tokens + t, n, w.first, &s->failure.why));
        s->shown = (struct model_shown){.layer = -1, .first = t, .n_rows = n};
        model_show(s, MODEL_AT_EMBEDDING, w.first, 1, m->hparams.n_embd);
        model_put_stream(s, w.first, 0, n, to);
        for (size_t i = 1; i < m->hparams.n_streams; i++) {
            stretch(s, &m->stream_in, i - 1, op, w.product);
            model_put_stream(s, w.row, i, n, to);
        }
    }
}

/** (X_0 + the sum of the others' products, of its length) / S. */
static void contract(struct model_session *s, const struct end_work *w, size_t n, float *hidden)
{
    const struct model *m = s->model;
    struct kern_stretch op = {
        .x = w->row, .to = w->first, .y = hidden, .n_rows = n, .accumulate = true};
    model_take_stream(s, w->streams, 0, n, w->first);
    model_take_stream(s, w->streams, 0, n, hidden);
    for (size_t i = 1; i < m->hparams.n_streams; i++) {
        model_take_stream(s, w->streams, i, n, w->row);
        stretch(s, &m->stream_out, i - 1, op, w->product);
    }
    scale(s, hidden, n, 1.0f / (float)m->hparams.n_streams);
}

void model_altup_end(struct model_session *s, const float *x, const uint32_t *rows, size_t n_rows,
                     float *hidden)
{
    const struct model_hparams *h = &s->model->hparams;
    struct model_cut cut = {.base = s->work};
    struct end_work w = divide_end(&cut, s->model, s->scratch.n_tokens);
    for (size_t i = 0; i < n_rows && !s->failure.status; i += s->scratch.n_tokens) {
        size_t n = base_min(n_rows - i, s->scratch.n_tokens);
        struct kern_gather op = {x, rows + i, n, model_residual_width(h), w.streams};
        MODEL_TRY(s, kern_gather(s->backend, &op, &s->failure.why));
        contract(s, &w, n, hidden + i * h->n_embd);
    }
}
