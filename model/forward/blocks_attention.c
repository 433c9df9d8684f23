#include "model/forward/index/index.h"

/** Heads of the step's layer, and the floats of a row of q, of keys, values, and of the result. */
struct widths {
    size_t n_heads, n_kv_heads, q, k, v, out;
};

static struct widths widths_of(const struct model_layer_shape *l)
{
    return (struct widths){
        .n_heads = l->n_heads,
        .n_kv_heads = l->n_kv_heads,
        .q = (size_t)l->n_heads * l->key_size,
        .k = (size_t)l->n_kv_heads * l->key_size,
        .v = (size_t)l->n_kv_heads * l->value_size,
        .out = (size_t)l->n_heads * l->value_size,
    };
}

/** The parts of the work area. */
struct attention_work {
    float *q, *out;
    float *gate;    /* [T, H dv], or NULL: none */
    float *both;    /* [T, H 2 d]: q and gate where one tensor makes them */
    float *by_head; /* [T, H], or NULL: a gate is of an element */
};

static struct attention_work divide(struct model_cut *cut, const struct model *m, size_t i_layer,
                                    size_t n)
{
    struct widths w = widths_of(&m->hparams.layers[i_layer]);
    /* An indexer's queries lie where the result will. */
    size_t n_out = base_max(n * w.out, model_index_floats(&m->hparams, i_layer, n));
    struct attention_work work = {.q = model_take(cut, n * w.q), .out = model_take(cut, n_out)};
    if (m->arch->gated_attention) {
        work.gate = model_take(cut, n * w.q);
        work.both = model_take(cut, n * 2 * w.q);
        return work;
    }
    const struct kern_weight *gate = &m->layers[i_layer].gate.weight;
    if (gate->data)
        work.gate = model_take(cut, n * w.out);
    if (gate->data && gate->n_rows == w.n_heads)
        work.by_head = model_take(cut, n * w.n_heads);
    return work;
}

size_t model_attention_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    struct model_cut cut = {0};
    (void)divide(&cut, m, i_layer, n_tokens);
    return cut.n_floats;
}

/** Where the tile's keys and values lie, and from where on its ranges count their rows. */
struct key_rows {
    float *k, *v;  /* row 0 of the ranges */
    size_t kv_row; /* of the tile's first token */
    bool of_batch; /* rows are the batch's tokens */
};

static struct key_rows key_rows_of(const struct model_session *s, const struct model_step *step,
                                   struct widths w)
{
    if (step->shape->kept < 0)
        return (struct key_rows){s->k, s->v, step->tile.kv_row, false};
    float *k = s->kept[step->shape->kept];
    return (struct key_rows){k, k + s->options.max_batch * w.k, step->tile.start, true};
}

/** q of the tile, and the gates of the result. */
static enum status project_q(struct model_session *s, const struct model_step *step,
                             const struct attention_work *work, const float *in,
                             struct status_why *why)
{
    const struct model_layer *layer = step->layer;
    size_t n = step->tile.n_tokens;
    if (!work->both) {
        enum status status = model_multiply(s, &layer->q, in, n, work->q, why);
        if (status || !work->gate)
            return status;
        float *gate = work->by_head ? work->by_head : work->gate;
        return model_multiply_same(s, &layer->gate, in, n, gate, why);
    }
    enum status status = model_multiply(s, &step->layer->q, in, n, work->both, why);
    struct kern_copy copy = {.x = work->both,
                             .x_stride = 2 * (size_t)step->shape->key_size,
                             .y = work->q,
                             .width = step->shape->key_size,
                             .n_rows = n * step->shape->n_heads};
    if (!status)
        status = model_copy(s, copy, why);
    copy.x += step->shape->key_size;
    copy.y = work->gate;
    return status ? status : model_copy(s, copy, why);
}

static enum status rotate(struct model_session *s, const struct model_step *step, float *x,
                          size_t n_heads, int is_k, struct status_why *why)
{
    enum status status = model_rotate(s, step, x, n_heads, step->shape->key_size, why);
    model_show(s, MODEL_AT_Q_ROTATED + is_k, x, n_heads, step->shape->key_size);
    return status;
}

/** Norms and rotation of all heads of q or of k. */
static enum status prepare(struct model_session *s, const struct model_step *step, float *x,
                           size_t n_heads, const struct model_norm *norm, struct status_why *why)
{
    size_t size = step->shape->key_size;
    size_t n = step->tile.n_tokens;
    bool whole = s->model->arch->qk_norm == MODEL_QK_NORM_WHOLE;
    size_t n_rows = whole ? n : n * n_heads, width = whole ? n_heads * size : size;
    int is_k = norm == &step->layer->k_norm; /* places of k follow those of q */
    bool last = s->model->arch->qk_norm_last;
    enum status status = STATUS_OK;
    if (last)
        status = rotate(s, step, x, n_heads, is_k, why);
    if (!status && norm->gain.data)
        status = model_normalise_rows(s, norm, x, n_rows, width, why);
    if (norm->gain.data)
        model_show(s, MODEL_AT_Q_NORM + is_k, x, n_heads, size);
    if (!status && !last)
        status = rotate(s, step, x, n_heads, is_k, why);
    if (status || !step->shape->bare_qk_norm)
        return status;
    status = model_normalise_rows(s, NULL, x, n_rows, width, why);
    model_show(s, MODEL_AT_Q_BARE_NORM + is_k, x, n_heads, size);
    return status;
}

/** The tile's rows of keys and values. after_q: the product of q is the operation before. */
static enum status project_kv(struct model_session *s, const struct model_step *step, bool after_q,
                              const float *in, struct status_why *why)
{
    const struct model_layer *layer = step->layer;
    struct widths w = widths_of(step->shape);
    size_t n = step->tile.n_tokens;
    struct key_rows rows = key_rows_of(s, step, w);
    float *k = rows.k + rows.kv_row * w.k;
    float *v = rows.v + rows.kv_row * w.v;
    enum status status = after_q ? model_multiply_same(s, &layer->k, in, n, k, why)
                                 : model_multiply(s, &layer->k, in, n, k, why);
    if (!status)
        status = model_multiply_same(s, &layer->v, in, n, v, why);
    model_show(s, MODEL_AT_K_PROJECTED, k, w.n_kv_heads, step->shape->key_size);
    model_show(s, MODEL_AT_V_PROJECTED, v, w.n_kv_heads, step->shape->value_size);
    if (!status)
        status = prepare(s, step, k, w.n_kv_heads, &layer->k_norm, why);
    size_t n_rows = n * w.n_kv_heads, width = step->shape->value_size;
    if (!status && s->model->arch->bare_v_norm) {
        status = model_normalise_rows(s, NULL, v, n_rows, width, why);
        model_show(s, MODEL_AT_V_NORM, v, w.n_kv_heads, width);
    }
    if (!status)
        status = model_round_keys(s, step->i_layer, k, n_rows, step->shape->key_size, why);
    return status ? status : model_round_values(s, step->i_layer, v, n_rows, width, why);
}

enum status model_block_keys(struct model_session *s, const struct model_step *step,
                             struct status_why *why)
{
    const float *in;
    enum status status = model_branch_input(s, step, &step->layer->attn_norm, &in, why);
    if (!status)
        status = project_kv(s, step, false, in, why);
    return status || !step->shape->sparse ? status : model_index_keys(s, step, in, why);
}

static enum status attend(struct model_session *s, const struct model_step *step,
                          const struct attention_work *work, const float *in,
                          struct status_why *why)
{
    const struct model_layer_shape *l = step->shape;
    const struct key_rows rows = key_rows_of(s, step, widths_of(l));
    if (rows.of_batch)
        model_tile_batch_rows(step->batch, &step->tile, s->ranges, step->n_ranges);
    struct kern_attention attention = {
        .q = work->q,
        .k = rows.k,
        .v = rows.v,
        .out = work->out,
        .n_heads = l->n_heads,
        .n_kv_heads = l->n_kv_heads,
        .head_size = l->key_size,
        .value_size = l->value_size,
        .scale = l->scale,
        .soft_cap = s->model->hparams.attn_soft_cap,
        .sinks = model_present(&step->layer->sinks),
        .sliding_window = l->window,
        .chunk = l->chunk,
        .ranges = s->ranges,
        .n_ranges = step->n_ranges,
    };
    enum status status = model_index_choose(
        s, step, &(struct model_index_inputs){in, in, work->out}, &attention.chosen, why);
    return status ? status : kern_attention(s->backend, &attention, why);
}

/** Multiply attention's result by its gates; into work->gate. */
static enum status apply_gate(struct model_session *s, const struct model_step *step,
                              const struct attention_work *work, struct status_why *why)
{
    size_t size = step->shape->value_size, n_heads = step->shape->n_heads;
    size_t n = step->tile.n_tokens * n_heads;
    struct kern_copy spread = {.x = work->by_head,
                               .x_stride = 1,
                               .y = work->gate,
                               .width = size,
                               .n_rows = n,
                               .spread = size};
    enum status status = work->by_head ? model_copy(s, spread, why) : STATUS_OK;
    struct kern_activate gate = {
        .kind = s->model->arch->gate_kind, .gate = work->gate, .up = work->out, .n = n * size};
    if (!status)
        status = kern_activate(s->backend, &gate, why);
    model_show(s, MODEL_AT_GATED, work->gate, n_heads, size);
    return status;
}

enum status model_block_attention(struct model_session *s, const struct model_step *step,
                                  struct status_why *why)
{
    const struct model_layer *layer = step->layer;
    struct widths w = widths_of(step->shape);
    struct model_cut cut = {.base = s->work};
    struct attention_work work = divide(&cut, s->model, step->i_layer, step->tile.n_tokens);
    const float *in;
    enum status status = model_branch_input(s, step, &layer->attn_norm, &in, why);
    if (!status)
        status = project_q(s, step, &work, in, why);
    model_show(s, MODEL_AT_Q_PROJECTED, work.q, w.n_heads, step->shape->key_size);
    if (work.gate)
        model_show(s, MODEL_AT_ATTN_GATE, work.by_head ? work.by_head : work.gate, w.n_heads,
                   work.by_head ? 1 : step->shape->value_size);
    if (!status && step->shape->kv_layer == step->i_layer && !step->keys_done)
        status = project_kv(s, step, !work.both, in, why);
    if (!status && step->shape->sparse && !step->keys_done)
        status = model_index_keys(s, step, in, why);
    if (!status)
        status = prepare(s, step, work.q, w.n_heads, &layer->q_norm, why);
    if (!status)
        status = model_temper(s, step, work.q, w.q, why);
    if (step->shape->tempered)
        model_show(s, MODEL_AT_Q_TEMPERED, work.q, w.n_heads, step->shape->key_size);
    if (!status)
        status = attend(s, step, &work, in, why);
    model_show(s, MODEL_AT_ATTENTION, work.out, w.n_heads, step->shape->value_size);
    if (!status && work.gate)
        status = apply_gate(s, step, &work, why);
    if (status)
        return status;
    return model_close_branch(s, step, &layer->output, &layer->attn_post_norm,
                              work.gate ? work.gate : work.out, why);
}
