/*
 * Sparse layers: which keys the queries of a tile see. Where no sequence is long enough for a query
 * to leave out a key, nothing of this is computed.
 */
#include "model/forward/index/index.h"

/** A query that sees so many keys or fewer has chosen all of them. */
static size_t limit_of(const struct model_hparams *h)
{
    return (size_t)h->index.n_best * h->index.together;
}

static size_t sets_of(const struct model_hparams *h)
{
    return h->index.weighed ? 1 : h->index.n_heads;
}

bool model_index_decides(const struct model_hparams *h, size_t i_layer, size_t n_positions)
{
    return h->layers[i_layer].sparse && n_positions > limit_of(h);
}

/** Whether choices are kept for later layers: then they are of the batch, else of a tile. */
static bool keeps_choices(const struct model_hparams *h)
{
    for (size_t i = 0; i < h->n_layers; i++)
        if (h->layers[i].sparse && h->layers[i].index_layer != i)
            return true;
    return false;
}

size_t model_chosen_floats(const struct model_hparams *h, size_t n_tile, size_t n_batch,
                           size_t n_positions)
{
    size_t n_rows = (keeps_choices(h) ? n_batch : n_tile) * sets_of(h);
    return n_rows * kern_chosen_words(n_positions) * (sizeof(uint64_t) / sizeof(float));
}

size_t model_index_floats(const struct model_hparams *h, size_t i_layer, size_t n_tokens)
{
    struct model_cut cut = {0};
    if (h->layers[i_layer].sparse && h->layers[i_layer].index_layer == i_layer) {
        (void)model_take(&cut, n_tokens * h->index.n_heads * h->index.key_size);
        (void)model_take(&cut, n_tokens * h->index.n_heads);
    }
    return cut.n_floats;
}

struct kern_choose model_choose_of(const struct model_hparams *h, size_t n_positions)
{
    static const float some; /* weights are there */
    return (struct kern_choose){.weights = h->index.weighed ? &some : NULL,
                                .n_heads = h->index.n_heads,
                                .head_size = h->index.key_size,
                                .k_stride = h->index.key_size,
                                .n_best = h->index.n_best,
                                .together = h->index.together,
                                .n_local = h->index.n_local,
                                .most_keys = n_positions};
}

/** Whether products of indexers are watched, which are then computed for every token. */
static bool is_watched(const struct model_session *s)
{
    return s->marks && s->scratch.index_k;
}

/** Whether a query of the tile leaves out a key. */
static bool decides(const struct model_session *s, const struct model_step *step)
{
    if (is_watched(s))
        return true;
    for (size_t i = 0; i < step->n_ranges; i++) {
        const struct kern_query_range *range = &s->ranges[i];
        size_t n_seen = range->n_parent + range->q_offset + range->n_q;
        if (model_index_decides(&s->model->hparams, step->i_layer, n_seen))
            return true;
    }
    return false;
}

/** Whether a query of a sequence of which the tile has tokens does so, in this tile or a later one.
 */
static bool will_decide(const struct model_session *s, const struct model_step *step)
{
    if (is_watched(s))
        return true;
    const struct model_batch *batch = step->batch;
    const struct model_segment *all = batch->segments;
    size_t end = step->tile.start + step->tile.n_tokens, i = step->tile.segment;
    if (all[i].parent >= 0)
        i = (size_t)all[i].parent;
    for (; i < batch->n_segments && (all[i].start < end || all[i].parent >= 0); i++) {
        size_t before = all[i].parent >= 0 ? all[all[i].parent].n_tokens : 0;
        if (model_index_decides(&s->model->hparams, step->i_layer, before + all[i].n_tokens))
            return true;
    }
    return false;
}

/** Rotate the first elements of each head. */
static void rotate(struct model_session *s, const struct model_step *step, float *x, size_t n_heads)
{
    const struct model_index_hparams *h = &s->model->hparams.index;
    struct model_turn turn = {.x = x,
                              .n_rows = step->tile.n_tokens,
                              .n_heads = n_heads,
                              .head_size = h->key_size,
                              .positions = s->angle_rows,
                              .halves = h->halves};
    model_turn(s, step, &turn);
}

void model_index_keys(struct model_session *s, const struct model_step *step, const float *in)
{
    const struct model_index_hparams *h = &s->model->hparams.index;
    const struct model_indexer *x = &step->layer->indexer;
    if (step->shape->index_layer != step->i_layer || !will_decide(s, step))
        return;
    size_t n = step->tile.n_tokens;
    float *k = s->index_k + step->tile.kv_row * h->key_size;
    struct kern_norm norm = {.gain = &x->k_norm.gain,
                             .bias = model_present(&x->k_norm.bias),
                             .center = h->weighed,
                             .eps = h->eps,
                             .x = k,
                             .y = k,
                             .n_rows = n,
                             .width = h->key_size,
                             .n_groups = 1};
    model_multiply(s, &x->k, in, n, k);
    MODEL_TRY(s, kern_norm(s->backend, &norm, &s->failure.why));
    rotate(s, step, k, 1);
    model_show(s, MODEL_AT_INDEX_K, k, 1, h->key_size);
    struct model_kv_type type = model_index_type(&s->model->hparams, step->i_layer);
    model_round_rows(s, type, k, n, h->key_size);
}

/** Choose for the tile's queries, into rows of bits. */
static void choose(struct model_session *s, const struct model_step *step,
                   const struct model_index_inputs *in, uint64_t *bits)
{
    const struct model_index_hparams *h = &s->model->hparams.index;
    const struct model_indexer *x = &step->layer->indexer;
    size_t n = step->tile.n_tokens;
    struct model_cut cut = {.base = in->spare};
    float *q = model_take(&cut, n * h->n_heads * h->key_size);
    float *weights = model_take(&cut, n * h->n_heads);
    model_multiply(s, &x->q, in->queries, n, q);
    if (x->q_norm.gain.data)
        model_normalise_rows(s, &x->q_norm, q, n * h->n_heads, h->key_size);
    rotate(s, step, q, h->n_heads);
    model_show(s, MODEL_AT_INDEX_Q, q, h->n_heads, h->key_size);
    if (h->weighed) {
        model_multiply(s, &x->weights, in->rows, n, weights);
        model_show(s, MODEL_AT_INDEX_WEIGHTS, weights, 1, h->n_heads);
    }
    struct kern_choose op = model_choose_of(&s->model->hparams, s->options.max_segment);
    op.q = q;
    op.k = s->index_k;
    op.weights = h->weighed ? weights : NULL;
    op.bits = bits;
    op.ranges = s->ranges;
    op.n_ranges = step->n_ranges;
    MODEL_TRY(s, kern_choose(s->backend, &op, &s->failure.why));
}

void model_index_choose(struct model_session *s, const struct model_step *step,
                        const struct model_index_inputs *in, struct kern_chosen *chosen)
{
    *chosen = (struct kern_chosen){0};
    if (!decides(s, step))
        return;
    const struct model_hparams *h = &s->model->hparams;
    size_t first = keeps_choices(h) ? step->tile.start : 0;
    size_t n_words = kern_chosen_words(s->options.max_segment);
    uint64_t *bits = (uint64_t *)(void *)s->chosen + first * sets_of(h) * n_words;
    *chosen = (struct kern_chosen){bits, sets_of(h), s->options.max_segment};
    if (step->shape->index_layer == step->i_layer)
        choose(s, step, in, bits);
}
