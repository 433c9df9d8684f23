/*
 * An embedding of each token's last tokens. Hashes of two and more of them name rows of a table;
 * keys that are made of these are matched with the streams, and each stream gets its share of a
 * value, and of a convolution of these shares. Only the named rows of the table are read.
 */
#include "model/forward/streams/ngrams.h"

#include "base/arithmetic.h"
#include "kernels/mixing.h"
#include "model/forward/read_ahead.h"

/** The parts of the work area. */
struct ngram_work {
    float *rows, *value;           /* [T, D] */
    float *shared, *normed, *sums; /* [T, S * D] */
};

static struct ngram_work divide(struct model_cut *cut, const struct model_hparams *h, size_t n)
{
    size_t width = model_residual_width(h);
    return (struct ngram_work){.rows = model_take(cut, n * h->n_embd),
                               .value = model_take(cut, n * h->n_embd),
                               .shared = model_take(cut, n * width),
                               .normed = model_take(cut, n * width),
                               .sums = model_take(cut, n * width)};
}

size_t model_ngrams_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    struct model_cut cut = {0};
    if (m->hparams.layers[i_layer].ngrams)
        (void)divide(&cut, &m->hparams, n_tokens);
    return cut.n_floats;
}

static struct kern_convolve convolve_of(const struct model *m, size_t i_layer)
{
    return (struct kern_convolve){.x_stride = model_residual_width(&m->hparams),
                                  .weight = &m->layers[i_layer].ngrams.taps,
                                  .step = m->hparams.ngrams.most};
}

size_t model_ngrams_state_floats(const struct model *m, size_t i_layer)
{
    struct kern_convolve op = convolve_of(m, i_layer);
    return MODEL_N_STATES * kern_convolve_state_bytes(&op) / sizeof(float);
}

/** The token `back` before token t of a segment; -1: the sequence begins after it. */
static int64_t token_before(const struct model_batch *batch, const struct model_segment *segment,
                            size_t t, size_t back)
{
    if (back > t && segment->parent >= 0) {
        back -= t;
        segment = &batch->segments[segment->parent];
        t = segment->n_tokens;
    }
    return back <= t ? batch->tokens[segment->start + t - back] : -1;
}

/** Find the rows of the table that token t of a segment names. */
static void find_rows(const struct model_ngram_hparams *h, const struct model_batch *batch,
                      const struct model_segment *segment, size_t t, int32_t *rows)
{
    uint64_t hash = (uint64_t)batch->tokens[segment->start + t] * h->multipliers[0];
    bool ended = false;
    for (uint32_t back = 1, k = 0; back < h->most; back++) {
        int64_t token = ended ? -1 : token_before(batch, segment, t, back);
        ended = token < 0 || token == h->end;
        hash ^= (ended ? h->end : (uint64_t)token) * h->multipliers[back];
        for (uint32_t head = 0; head < h->n_heads; head++, k++)
            rows[k] = (int32_t)(hash % h->n_rows[k] + h->first_row[k]);
    }
}

/** The part of the table that has a row, and the row's number in it. */
static struct kern_weight part_of(const struct model_ngrams *l, int32_t *row)
{
    const struct gguf_view *view = l->source->view;
    struct kern_weight part = l->table;
    if (!view || view->part_rows == 0)
        return part;
    size_t i = (size_t)*row / view->part_rows, first = i * view->part_rows;
    part.data = view->matrices[i];
    part.n_rows = base_min(part.n_rows - first, view->part_rows);
    *row -= (int32_t)first;
    return part;
}

/** Read n rows of the table, of a table in parts row by row. */
static void embed(struct model_session *s, const struct model_ngrams *l, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++) {
        int32_t row = s->ngram_rows[i];
        struct kern_weight part = part_of(l, &row);
        model_read_ahead_row(&part, (size_t)row);
    }
    MODEL_TRY(s, model_tensor_check_rows(l->source, s->ngram_rows, n, &s->failure.why));
    size_t together = l->source->view && l->source->view->part_rows ? 1 : n;
    for (size_t i = 0; i < n; i += together, to += together * l->table.n_cols) {
        struct kern_weight part = part_of(l, &s->ngram_rows[i]);
        MODEL_TRY(s,
                  kern_embed(s->backend, &part, &s->ngram_rows[i], together, to, &s->failure.why));
    }
}

/** Read the rows of the tile's tokens, one after the other: [T, D]. */
static void read_rows(struct model_session *s, const struct model_step *step, float *rows)
{
    const struct model_ngram_hparams *h = &s->model->hparams.ngrams;
    size_t per_token = model_ngram_rows(h), n = step->tile.n_tokens * per_token;
    int32_t *next = s->ngram_rows;
    for (size_t i = 0; i < step->n_ranges; i++) {
        const struct kern_query_range *range = &s->ranges[i];
        const struct model_segment *segment = &step->batch->segments[step->tile.segment + i];
        for (size_t t = 0; t < range->n_q; t++, next += per_token)
            find_rows(h, step->batch, segment, range->q_offset + t, next);
    }
    embed(s, &step->layer->ngrams, n, rows);
    model_show(s, MODEL_AT_NGRAMS, rows, 1, s->model->hparams.n_embd);
}

/** y = each stream of x, normed by itself. */
static void normalise(struct model_session *s, const struct model_step *step,
                      const struct model_norm *norm, const float *x, float *y)
{
    const struct model_hparams *h = &s->model->hparams;
    struct model_norm_step op = {.norm = norm,
                                 .x = x,
                                 .y = y,
                                 .n_rows = step->tile.n_tokens * h->n_streams,
                                 .width = h->n_embd};
    model_normalise(s, &op);
}

static void convolve(struct model_session *s, const struct model_step *step, const float *x,
                     float *y)
{
    struct kern_convolve op = convolve_of(s->model, step->i_layer);
    op.x = x;
    op.y = y;
    op.states = s->ngram_states;
    op.runs = s->runs;
    op.n_runs = s->n_runs = model_tile_runs(step->batch, &step->tile, s->runs);
    MODEL_TRY(s, kern_convolve(s->backend, &op, &s->failure.why));
}

static void add(struct model_session *s, const struct model_step *step, const float *x)
{
    struct kern_norm op = {.x = x,
                           .y = step->x,
                           .n_rows = step->tile.n_tokens,
                           .width = model_residual_width(&s->model->hparams),
                           .n_groups = 1,
                           .accumulate = true,
                           .plain = true};
    MODEL_TRY(s, kern_norm(s->backend, &op, &s->failure.why));
}

void model_block_ngrams(struct model_session *s, const struct model_step *step)
{
    const struct model_hparams *h = &s->model->hparams;
    const struct model_ngrams *l = &step->layer->ngrams;
    size_t n = step->tile.n_tokens;
    struct model_cut cut = {.base = s->work};
    struct ngram_work w = divide(&cut, h, n);
    read_rows(s, step, w.rows);
    model_multiply(s, &l->key, w.rows, n, w.shared);
    model_multiply_same(s, &l->value, w.rows, n, w.value);
    normalise(s, step, &l->key_norm, w.shared, w.shared);
    normalise(s, step, &l->query_norm, step->x, w.normed);
    struct kern_match match = {w.shared, w.normed, w.value, w.shared, n, h->n_streams, h->n_embd};
    MODEL_TRY(s, kern_match(s->backend, &match, &s->failure.why));
    model_show(s, MODEL_AT_NGRAM_SHARES, w.shared, h->n_streams, h->n_embd);
    normalise(s, step, &l->taps_norm, w.shared, w.normed);
    convolve(s, step, w.normed, w.sums);
    model_show(s, MODEL_AT_NGRAM_SUMS, w.sums, h->n_streams, h->n_embd);
    add(s, step, w.shared);
    add(s, step, w.sums);
}
