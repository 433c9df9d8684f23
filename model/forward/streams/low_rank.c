/*
 * Streams that are not mixed with each other. With y = each stream normed by itself, a branch reads
 * the mean over the streams of sigmoid(up silu(down y / S)) y, and each stream gets 2
 * sigmoid(inject y / S) times what it makes. Divisions by S are in the scales of the products.
 */
#include "model/forward/streams/low_rank.h"

#include "kernels/mixing.h"
#include "model/forward/streams/streams.h"

/** Parts of s->streams, from the opening of a branch to its end. */
struct branch_rows {
    float *row, *sum; /* [T, D]: what the branch reads, and what it makes */
    float *shares;    /* [T, S] */
};

/** Parts of s->work, which no block uses then. */
struct mix_work {
    float *gathered, *normed, *gates; /* [T, S * D] */
    float *low;                       /* [T, r] */
};

static struct branch_rows divide(struct model_cut *cut, const struct model_hparams *h, size_t n)
{
    return (struct branch_rows){.row = model_take(cut, n * h->n_embd),
                                .sum = model_take(cut, n * h->n_embd),
                                .shares = model_take(cut, n * h->n_streams)};
}

static struct mix_work divide_work(struct model_cut *cut, const struct model_hparams *h, size_t n)
{
    size_t width = model_residual_width(h);
    return (struct mix_work){.gathered = model_take(cut, n * width),
                             .normed = model_take(cut, n * width),
                             .gates = model_take(cut, n * width),
                             .low = model_take(cut, n * h->stream_rank)};
}

size_t model_low_rank_floats(const struct model *m, size_t n_tokens)
{
    struct model_cut cut = {0};
    (void)divide(&cut, &m->hparams, n_tokens);
    return cut.n_floats;
}

size_t model_low_rank_work_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    (void)i_layer;
    struct model_cut cut = {0};
    (void)divide_work(&cut, &m->hparams, n_tokens);
    return cut.n_floats;
}

/** What each stream gets of the branch, of normed rows. */
static void share(struct model_session *s, const struct model_stream_mixer *mixer,
                  const float *normed, size_t n, float *shares)
{
    size_t n_streams = s->model->hparams.n_streams;
    struct kern_activate op = {.kind = KERN_SIGMOID, .gate = shares, .n = n * n_streams};
    model_multiply_same(s, &mixer->inject, normed, n, shares);
    MODEL_TRY(s, kern_activate(s->backend, &op, &s->failure.why));
    for (size_t i = 0; i < n; i++)
        s->factors[i] = 2;
    MODEL_TRY(s, kern_scale_rows(s->backend, shares, n_streams, n, s->factors, &s->failure.why));
}

/** row [n, D] = what a branch reads of n rows of x; shares [n, S]: what each stream gets of what it
 * makes, or NULL. */
static void mix(struct model_session *s, const struct model_stream_mixer *mixer, const float *x,
                size_t n, const struct mix_work *w, float *row, float *shares)
{
    const struct model_hparams *h = &s->model->hparams;
    struct model_norm_step norm = {.norm = &mixer->norm,
                                   .x = x,
                                   .y = w->normed,
                                   .n_rows = n * h->n_streams,
                                   .width = h->n_embd};
    struct kern_activate low = {.kind = KERN_SILU, .gate = w->low, .n = n * h->stream_rank};
    struct kern_activate gate = {
        .kind = KERN_SIGMOID, .gate = w->gates, .up = w->normed, .n = n * model_residual_width(h)};
    model_normalise(s, &norm);
    model_multiply(s, &mixer->product, w->normed, n, w->low);
    if (shares)
        share(s, mixer, w->normed, n, shares);
    MODEL_TRY(s, kern_activate(s->backend, &low, &s->failure.why));
    model_multiply(s, &mixer->up, w->low, n, w->gates);
    MODEL_TRY(s, kern_activate(s->backend, &gate, &s->failure.why));
    model_streams_mean(s, w->gates, n, row);
}

void model_low_rank_open(struct model_session *s, const struct model_step *tile,
                         const struct model_stream_mixer *mixer, struct model_step *step)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t n = tile->tile.n_tokens;
    struct model_cut cut = {.base = s->streams}, work_cut = {.base = s->work};
    struct branch_rows rows = divide(&cut, h, n);
    struct mix_work w = divide_work(&work_cut, h, n);
    struct kern_copy clear = {.x = s->zeros, .y = rows.sum, .width = h->n_embd, .n_rows = n};
    mix(s, mixer, tile->x, n, &w, rows.row, rows.shares);
    model_show(s, mixer == &tile->layer->attn_mixer ? MODEL_AT_ATTN_NORM : MODEL_AT_FFN_NORM,
               rows.row, 1, h->n_embd);
    *step = *tile;
    step->x = rows.row;
    step->to = rows.sum;
    model_copy(s, clear);
}

void model_low_rank_close(struct model_session *s, const struct model_step *tile)
{
    const struct model_hparams *h = &s->model->hparams;
    struct model_cut cut = {.base = s->streams};
    struct branch_rows rows = divide(&cut, h, tile->tile.n_tokens);
    struct kern_mix op = {.x = tile->x,
                          .y = rows.sum,
                          .y_weights = rows.shares,
                          .stride = h->n_streams,
                          .out = tile->x,
                          .n_tokens = tile->tile.n_tokens,
                          .n_in = h->n_streams,
                          .n_out = h->n_streams,
                          .width = h->n_embd};
    MODEL_TRY(s, kern_mix(s->backend, &op, &s->failure.why));
}

void model_low_rank_end(struct model_session *s, const float *x, const uint32_t *rows,
                        size_t n_rows, float *hidden)
{
    const struct model_hparams *h = &s->model->hparams;
    struct model_cut cut = {.base = s->work};
    struct mix_work w = divide_work(&cut, h, s->scratch.n_tokens);
    for (size_t i = 0; i < n_rows && !s->failure.status; i += s->scratch.n_tokens) {
        size_t n = base_min(n_rows - i, s->scratch.n_tokens);
        struct kern_gather op = {x, rows + i, n, model_residual_width(h), w.gathered};
        MODEL_TRY(s, kern_gather(s->backend, &op, &s->failure.why));
        mix(s, &s->model->output_mixer, w.gathered, n, &w, hidden + i * h->n_embd, NULL);
    }
}
