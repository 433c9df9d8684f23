/*
 * Attention with one head of rows that are keys and values at once, within a window of tokens, and
 * with further keys, each made of a run of tokens, of which an indexer may choose. The result's
 * rotation is taken back; heads in groups make narrower rows before the last product.
 */
#include <assert.h>

#include "kernels/mixing.h"
#include "model/forward/runs/runs.h"
#include "model/forward/session.h"

struct sizes {
    size_t n_heads, d, n_rot, n_groups, group; /* group: elements of a group's heads */
    size_t run, terms;                         /* m; tokens that a further key is made of */
    size_t index, n_index_heads, words;        /* words of bits of a query's choice */
    bool chooses;
};

static struct sizes sizes_of(const struct model *m, size_t i_layer, size_t most_positions)
{
    const struct model_hparams *h = &m->hparams;
    const struct model_layer_shape *l = &h->layers[i_layer];
    struct sizes z = {.n_heads = l->n_heads,
                      .d = l->key_size,
                      .n_rot = h->ropes[MODEL_ROPE_FULL].n_rot,
                      .n_groups = h->runs.n_groups,
                      .group = (size_t)l->n_heads * l->key_size / h->runs.n_groups,
                      .run = l->run,
                      .terms = l->run * (l->runs_overlap ? 2 : 1)};
    /* Up to so many runs all are chosen, whatever their scores are. */
    z.chooses = l->runs_overlap && most_positions / l->run > h->index.n_best;
    if (z.chooses) {
        z.index = h->index.key_size;
        z.n_index_heads = h->index.n_heads;
        z.words = kern_chosen_words(most_positions / l->run);
    }
    return z;
}

/** Rows of all tokens that a tile looks back at, and of their further keys. */
struct run_rows {
    float *u, *z, *keys;                   /* [R, terms / m * d] twice, [R, d] */
    float *index_u, *index_z, *index_keys; /* likewise, of the indexer */
};

static struct run_rows divide_rows(struct model_cut *cut, const struct sizes *z, size_t n_rows)
{
    if (z->run == 0)
        return (struct run_rows){0};
    size_t times = z->terms / z->run;
    return (struct run_rows){.u = model_take(cut, n_rows * times * z->d),
                             .z = model_take(cut, n_rows * times * z->d),
                             .keys = model_take(cut, n_rows * z->d),
                             .index_u = model_take(cut, n_rows * times * z->index),
                             .index_z = model_take(cut, n_rows * times * z->index),
                             .index_keys = model_take(cut, n_rows * z->index)};
}

size_t model_runs_row_floats(const struct model *m, size_t i_layer, size_t n_rows,
                             size_t most_positions)
{
    struct model_cut cut = {0};
    struct sizes z = sizes_of(m, i_layer, most_positions);
    (void)divide_rows(&cut, &z, n_rows);
    return cut.n_floats;
}

/** The parts of the work area. */
struct run_work {
    float *q_low, *q, *out; /* [T, q rank], [T, H * d] twice */
    float *head, *low;      /* [T, group], [T, groups * rank] */
    float *index_q, *index_weights;
    uint64_t *bits; /* [T, words] */
};

static struct run_work divide(struct model_cut *cut, const struct model_hparams *h,
                              const struct sizes *z, size_t n)
{
    return (struct run_work){.q_low = model_take(cut, n * h->q_rank),
                             .q = model_take(cut, n * z->n_heads * z->d),
                             .out = model_take(cut, n * z->n_heads * z->d),
                             .head = model_take(cut, n * z->group),
                             .low = model_take(cut, n * z->n_groups * h->runs.rank),
                             .index_q = model_take(cut, n * z->n_index_heads * z->index),
                             .index_weights = model_take(cut, n * z->n_index_heads),
                             .bits = (uint64_t *)(void *)model_take(cut, 2 * n * z->words)};
}

size_t model_runs_floats(const struct model *m, size_t i_layer, size_t n_tokens,
                         size_t most_positions)
{
    struct model_cut cut = {0};
    struct sizes z = sizes_of(m, i_layer, most_positions);
    (void)divide(&cut, &m->hparams, &z, n_tokens);
    return cut.n_floats;
}

/** What a layer's block works with. */
struct run_parts {
    struct sizes z;
    struct run_work w;
    struct run_rows rows;
};

static struct run_parts parts_of(struct model_session *s, const struct model_step *step)
{
    struct sizes z = sizes_of(s->model, step->i_layer, s->options.max_segment);
    struct model_cut cut = {.base = s->work}, rows_cut = {.base = s->run_rows};
    return (struct run_parts){z, divide(&cut, &s->model->hparams, &z, step->tile.n_tokens),
                              divide_rows(&rows_cut, &z, s->scratch.n_kv_rows)};
}

/** Turn the end of each of n_heads heads of `size` elements. */
static struct model_turn turn_of(const struct model_session *s, const struct model_step *step,
                                 float *x, size_t n_heads, size_t size)
{
    return (struct model_turn){.x = x + size - s->model->hparams.ropes[step->shape->rope].n_rot,
                               .n_rows = step->tile.n_tokens,
                               .n_heads = n_heads,
                               .head_size = size,
                               .positions = s->angle_rows,
                               .halves = s->model->hparams.rope_halves};
}

static void project_q(struct model_session *s, const struct model_step *step,
                      const struct run_work *w, const float *in)
{
    const struct model_layer *layer = step->layer;
    size_t n = step->tile.n_tokens, n_heads = step->shape->n_heads, d = step->shape->key_size;
    model_multiply(s, &layer->latent.q_down, in, n, w->q_low);
    model_show(s, MODEL_AT_Q_LOW, w->q_low, 1, s->model->hparams.q_rank);
    model_normalise_rows(s, &layer->latent.q_norm, w->q_low, n, s->model->hparams.q_rank);
    model_show(s, MODEL_AT_Q_LOW_NORM, w->q_low, 1, s->model->hparams.q_rank);
    model_multiply(s, &layer->q, w->q_low, n, w->q);
    model_show(s, MODEL_AT_Q_PROJECTED, w->q, n_heads, d);
    model_normalise_rows(s, NULL, w->q, n * n_heads, d);
    model_show(s, MODEL_AT_Q_NORM, w->q, n_heads, d);
    struct model_turn turn = turn_of(s, step, w->q, n_heads, d);
    model_turn(s, step, &turn);
    model_show(s, MODEL_AT_Q_ROTATED, w->q, n_heads, d);
}

/** The tile's rows of s->k. */
static void project_kv(struct model_session *s, const struct model_step *step, const float *in)
{
    const struct model_latent *l = &step->layer->latent;
    size_t n = step->tile.n_tokens, d = step->shape->key_size;
    float *k = s->k + step->tile.kv_row * d;
    model_multiply(s, &l->kv_down, in, n, k);
    model_show(s, MODEL_AT_K_PROJECTED, k, 1, d);
    model_normalise_rows(s, &l->kv_norm, k, n, d);
    model_show(s, MODEL_AT_K_NORM, k, 1, d);
    struct model_turn turn = turn_of(s, step, k, 1, d);
    model_turn(s, step, &turn);
    model_show(s, MODEL_AT_K_ROTATED, k, 1, d);
    struct model_kv_type type = model_key_type(&s->model->hparams, step->i_layer);
    model_round_rows(s, type, k, n, d);
}

struct model_new_runs model_runs_begin(struct model_session *s, const struct model_step *step,
                                       size_t run, bool overlap)
{
    assert(run * (overlap ? 2 : 1) <= s->scratch.run_terms);
    model_runs_terms(s->ranges, step->n_ranges, run, overlap, s->run_terms, s->run_positions);
    for (size_t i = 0; i < step->tile.n_tokens; i++)
        s->run_tokens[i] = s->positions[i] % (int32_t)run;
    return model_runs_ranges(s->ranges, step->n_ranges, run, s->run_ranges);
}

void model_runs_compress(struct model_session *s, const struct model_step *step,
                         const struct model_run_keys *c, const float *in)
{
    size_t n = step->tile.n_tokens, times = c->overlap ? 2 : 1, stride = c->width * times;
    float *z = c->z + step->tile.kv_row * stride;
    MODEL_TRY(s, kern_embed(s->backend, &c->compressor->ape, s->run_tokens, n, z, &s->failure.why));
    model_multiply_add(s, &c->compressor->gate, in, n, z);
    struct kern_compress op = {.u = c->u,
                               .z = c->z,
                               .stride = stride,
                               .rows = s->run_terms,
                               .n_terms = c->run * times,
                               .n_early = c->overlap ? c->run : 0,
                               .late = stride - c->width,
                               .y = c->keys,
                               .n_out = c->n_keys,
                               .width = c->width};
    MODEL_TRY(s, kern_compress(s->backend, &op, &s->failure.why));
}

/** The tile's tokens' u and z, and the further keys of the runs that end in it. type: what these
 * are rounded to. */
static void compress(struct model_session *s, const struct model_step *step,
                     struct model_run_keys c, struct model_kv_type type, const float *in)
{
    size_t stride = c.width * (step->shape->runs_overlap ? 2 : 1);
    c.run = step->shape->run;
    c.overlap = step->shape->runs_overlap;
    model_multiply(s, &c.compressor->kv, in, step->tile.n_tokens, c.u + step->tile.kv_row * stride);
    model_runs_compress(s, step, &c, in);
    if (c.n_keys > 0)
        model_normalise_rows(s, &c.compressor->norm, c.keys, c.n_keys, c.width);
    struct model_turn turn = turn_of(s, step, c.keys, 1, c.width);
    turn.n_rows = c.n_keys;
    turn.positions = s->run_positions;
    model_turn(s, step, &turn);
    if (c.n_keys > 0)
        model_round_rows(s, type, c.keys, c.n_keys, c.width);
}

/** Which further keys each query sees. */
static void choose(struct model_session *s, const struct model_step *step,
                   const struct run_parts *parts, const float *in)
{
    const struct sizes *z = &parts->z;
    const struct run_work *w = &parts->w;
    const struct model_indexer *x = &step->layer->indexer;
    size_t n = step->tile.n_tokens;
    model_multiply(s, &x->q, w->q_low, n, w->index_q);
    struct model_turn turn = turn_of(s, step, w->index_q, z->n_index_heads, z->index);
    model_turn(s, step, &turn);
    model_show(s, MODEL_AT_INDEX_Q, w->index_q, z->n_index_heads, z->index);
    model_multiply(s, &x->weights, in, n, w->index_weights);
    model_show(s, MODEL_AT_INDEX_WEIGHTS, w->index_weights, 1, z->n_index_heads);
    for (size_t i = 0; i < n; i++)
        s->run_seen[i] = (uint32_t)((size_t)(s->positions[i] + 1) / z->run);
    struct kern_choose op = {.q = w->index_q,
                             .k = parts->rows.index_keys,
                             .weights = w->index_weights,
                             .bits = w->bits,
                             .n_heads = z->n_index_heads,
                             .head_size = z->index,
                             .k_stride = z->index,
                             .n_best = s->model->hparams.index.n_best,
                             .together = 1,
                             .most_keys = s->options.max_segment / z->run,
                             .n_seen = s->run_seen,
                             .ranges = s->run_ranges,
                             .n_ranges = step->n_ranges};
    MODEL_TRY(s, kern_choose(s->backend, &op, &s->failure.why));
}

/** Further keys, and which of them are seen. */
static void make_further(struct model_session *s, const struct model_step *step,
                         const struct run_parts *parts, const float *in)
{
    const struct sizes *z = &parts->z;
    const struct run_rows *rows = &parts->rows;
    const struct model_layer *layer = step->layer;
    const struct model_hparams *h = &s->model->hparams;
    struct model_new_runs made = model_runs_begin(s, step, z->run, step->shape->runs_overlap);
    struct model_run_keys keys = {.compressor = &layer->compressor,
                                  .u = rows->u,
                                  .z = rows->z,
                                  .keys = rows->keys + made.first * z->d,
                                  .n_keys = made.n,
                                  .width = z->d};
    compress(s, step, keys, model_key_type(h, step->i_layer), in);
    struct model_run_keys index = {.compressor = &layer->index_compressor,
                                   .u = rows->index_u,
                                   .z = rows->index_z,
                                   .keys = rows->index_keys + made.first * z->index,
                                   .n_keys = made.n,
                                   .width = z->index};
    if (z->chooses)
        compress(s, step, index, model_index_type(h, step->i_layer), in);
    if (z->chooses)
        choose(s, step, parts, in);
}

static void attend(struct model_session *s, const struct model_step *step,
                   const struct run_parts *parts)
{
    const struct sizes *z = &parts->z;
    const struct model_layer_shape *l = step->shape;
    struct kern_attention op = {
        .q = parts->w.q,
        .k = s->k,
        .v = s->k,
        .out = parts->w.out,
        .n_heads = l->n_heads,
        .n_kv_heads = 1,
        .head_size = l->key_size,
        .value_size = l->key_size,
        .scale = l->scale,
        .sinks = model_present(&step->layer->sinks),
        .sliding_window = l->window,
        .ranges = s->ranges,
        .n_ranges = step->n_ranges,
    };
    if (z->run > 0)
        op.further =
            (struct kern_further){parts->rows.keys, parts->rows.keys, s->run_ranges, z->run};
    if (z->chooses)
        op.chosen = (struct kern_chosen){parts->w.bits, 1, s->options.max_segment / z->run};
    model_name_keys(s, step->i_layer, &op);
    MODEL_TRY(s, kern_attention(s->backend, &op, &s->failure.why));
}

void model_block_runs(struct model_session *s, const struct model_step *step)
{
    const struct model_layer *layer = step->layer;
    struct run_parts parts = parts_of(s, step);
    const struct sizes z = parts.z;
    const struct run_work w = parts.w;
    size_t n = step->tile.n_tokens;
    const float *in;
    model_branch_input(s, step, &layer->attn_norm, &in);
    project_q(s, step, &w, in);
    project_kv(s, step, in);
    if (z.run > 0)
        make_further(s, step, &parts, in);
    attend(s, step, &parts);
    struct model_turn turn = turn_of(s, step, w.out, z.n_heads, z.d);
    turn.back = true;
    model_turn(s, step, &turn);
    model_show(s, MODEL_AT_ATTENTION, w.out, z.n_heads, z.d);
    struct model_per_head groups = {.stack = &layer->output_groups,
                                    .x = w.out,
                                    .x_head = z.group,
                                    .x_stride = z.n_heads * z.d,
                                    .y = w.low,
                                    .y_head = s->model->hparams.runs.rank,
                                    .y_stride = z.n_groups * s->model->hparams.runs.rank};
    model_multiply_heads(s, n, z.n_groups, &groups, w.head);
    model_close_branch(s, step, &layer->output, &layer->attn_post_norm, w.low);
}
