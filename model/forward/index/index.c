/*
 * Sparse layers: which keys the queries of a tile see. Where no sequence is long enough for a query
 * to leave out a key, nothing of this is computed.
 */
#include "model/forward/index/index.h"

#include "kernels/mixing.h"

/** The parts of s->index_k, each [R, di]; those after the first are of pools. */
enum index_part { KEYS, POOL_U, POOL_Z, N_PARTS };

static size_t sets_of(const struct model_hparams *h)
{
    return h->index.weighed || h->index.as_one ? 1 : h->index.n_heads;
}

bool model_index_decides(const struct model_hparams *h, size_t i_layer, size_t n_positions)
{
    return h->layers[i_layer].sparse && n_positions > model_index_limit(h, i_layer);
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

size_t model_index_row_floats(const struct model_hparams *h, size_t i_layer, size_t n_rows)
{
    size_t n_parts = h->index.means ? POOL_Z : N_PARTS; /* means have no z */
    return n_rows * h->index.key_size * (h->layers[i_layer].pool > 0 ? n_parts : 1);
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

struct kern_choose model_choose_of(const struct model_hparams *h, size_t i_layer,
                                   size_t n_positions)
{
    static const float some; /* weights are there */
    size_t pool = h->layers[i_layer].pool;
    return (struct kern_choose){.weights = h->index.weighed ? &some : NULL,
                                .n_heads = h->index.n_heads,
                                .head_size = h->index.key_size,
                                .k_stride = h->index.key_size,
                                .n_best = h->index.n_best / (pool > 0 ? pool : 1),
                                .pool = pool,
                                .as_one = h->index.as_one,
                                .fill = h->index.fill,
                                .together = h->index.together,
                                .n_local = h->index.n_local,
                                .most_keys = n_positions};
}

/** Whether products of the layer's indexer are watched, which are then computed for every token,
 * where the session's longest sequences would have them at all. */
static bool is_watched(const struct model_session *s, const struct model_step *step)
{
    return s->marks &&
           model_index_decides(&s->model->hparams, step->i_layer, s->options.max_segment);
}

/** Whether a query of the tile leaves out a key. */
static bool decides(const struct model_session *s, const struct model_step *step)
{
    if (is_watched(s, step))
        return true;
    for (size_t i = 0; i < step->n_ranges; i++) {
        const struct kern_query_range *range = &s->ranges[i];
        size_t n_seen = range->n_parent + range->q_offset + range->n_q;
        if (model_index_decides(&s->model->hparams, step->i_layer, n_seen))
            return true;
    }
    return false;
}

/** Whether a query of the batch does so: keys and pools of a tile are made of earlier tiles' rows,
 * also where only other sequences of the tile need them. */
static bool will_decide(const struct model_session *s, const struct model_step *step)
{
    if (is_watched(s, step))
        return true;
    for (size_t i = 0; i < step->batch->n_segments; i++) {
        size_t n = model_batch_length(step->batch, i);
        if (model_index_decides(&s->model->hparams, step->i_layer, n))
            return true;
    }
    return false;
}

/** Rotate the first elements of each head, or the last. */
static void rotate(struct model_session *s, const struct model_step *step, float *x, size_t n_heads)
{
    const struct model_index_hparams *h = &s->model->hparams.index;
    size_t n_rot = s->model->hparams.ropes[MODEL_ROPE_FULL].n_rot;
    struct model_turn turn = {.x = h->at_end ? x + h->key_size - n_rot : x,
                              .n_rows = step->tile.n_tokens,
                              .n_heads = n_heads,
                              .head_size = h->key_size,
                              .positions = s->angle_rows,
                              .halves = h->halves};
    model_turn(s, step, &turn);
}

/** Where the tile's rows of a part of s->index_k begin. */
static float *rows_of(const struct model_session *s, const struct model_step *step,
                      enum index_part part)
{
    size_t row = (size_t)part * s->scratch.n_kv_rows + step->tile.kv_row;
    return s->index_k + row * s->model->hparams.index.key_size;
}

/** The keys of the pools that end in the tile, of its rows of u and of what indexers read. They are
 * means for each element of u, weighted by a softmax of z, and lie as the further keys of runs. */
static void make_pools(struct model_session *s, const struct model_step *step, const float *in)
{
    size_t width = s->model->hparams.index.key_size;
    size_t part = s->scratch.n_kv_rows * width; /* floats */
    struct model_new_runs made = model_runs_begin(s, step, step->shape->pool, false);
    struct model_run_keys pools = {.compressor = &step->layer->index_compressor,
                                   .u = s->index_k + POOL_U * part,
                                   .z = s->index_k + POOL_Z * part,
                                   .keys = s->index_k + made.first * width,
                                   .n_keys = made.n,
                                   .width = width,
                                   .run = step->shape->pool};
    model_runs_compress(s, step, &pools, in);
    if (made.n > 0)
        model_round_rows(s, model_index_type(&s->model->hparams, step->i_layer), pools.keys, made.n,
                         width);
}

/** Keys of pools that are plain means, normed, and turned as the first of their positions. */
static void make_means(struct model_session *s, const struct model_step *step)
{
    const struct model_index_hparams *h = &s->model->hparams.index;
    size_t width = h->key_size;
    struct model_new_runs made = model_runs_begin(s, step, step->shape->pool, false);
    float *keys = s->index_k + made.first * width;
    struct kern_compress op = {.u = s->index_k + POOL_U * s->scratch.n_kv_rows * width,
                               .stride = width,
                               .rows = s->run_terms,
                               .n_terms = step->shape->pool,
                               .y = keys,
                               .n_out = made.n,
                               .width = width};
    struct model_turn turn = {.x = keys,
                              .n_rows = made.n,
                              .n_heads = 1,
                              .head_size = width,
                              .positions = s->run_positions,
                              .halves = h->halves};
    if (made.n == 0)
        return;
    MODEL_TRY(s, kern_compress(s->backend, &op, &s->failure.why));
    model_normalise_rows(s, &step->layer->indexer.k_norm, keys, made.n, width);
    model_turn(s, step, &turn);
}

void model_index_keys(struct model_session *s, const struct model_step *step, const float *in)
{
    const struct model_index_hparams *h = &s->model->hparams.index;
    const struct model_indexer *x = &step->layer->indexer;
    if (step->shape->index_layer != step->i_layer || !will_decide(s, step))
        return;
    size_t n = step->tile.n_tokens;
    bool pooled = step->shape->pool > 0;
    float *k = rows_of(s, step, pooled ? POOL_U : KEYS);
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
    if (!h->means) {
        MODEL_TRY(s, kern_norm(s->backend, &norm, &s->failure.why));
        rotate(s, step, k, 1);
    }
    model_show(s, MODEL_AT_INDEX_K, k, 1, h->key_size);
    struct model_kv_type type = model_index_type(&s->model->hparams, step->i_layer);
    if (!pooled || h->means)
        model_round_rows(s, type, k, n, h->key_size);
    if (h->means)
        make_means(s, step);
    else if (pooled)
        make_pools(s, step, in);
}

/** Let the tile's queries choose among pools. */
static void see_pools(struct model_session *s, const struct model_step *step,
                      struct kern_choose *op)
{
    for (size_t i = 0; i < step->n_ranges; i++) {
        const struct kern_query_range *range = &s->ranges[i];
        for (size_t q = 0; q < range->n_q; q++)
            s->run_seen[range->q_row + q] = (uint32_t)kern_choose_seen(op, range, q);
    }
    op->n_seen = s->run_seen;
    op->ranges = s->run_ranges;
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
    struct kern_choose op =
        model_choose_of(&s->model->hparams, step->i_layer, s->options.max_segment);
    op.q = q;
    op.k = s->index_k;
    op.weights = h->weighed ? weights : NULL;
    op.bits = bits;
    op.ranges = s->ranges;
    op.n_ranges = step->n_ranges;
    if (step->shape->pool > 0)
        see_pools(s, step, &op);
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
