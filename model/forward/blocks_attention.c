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

struct model_gate model_gate_take(struct model_cut *cut, const struct model *m, size_t i_layer,
                                  size_t n)
{
    const struct model_layer_shape *l = &m->hparams.layers[i_layer];
    const struct kern_weight *weight = &m->layers[i_layer].gate.weight;
    struct model_gate gate = {0};
    if (weight->data || m->arch->gated_attention)
        gate.gate = model_take(cut, n * l->n_heads * l->value_size);
    if (weight->data && weight->n_rows == l->n_heads)
        gate.by_head = model_take(cut, n * l->n_heads);
    return gate;
}

void model_gate_project(struct model_session *s, const struct model_step *step,
                        const struct model_gate *gate, struct kern_linear op)
{
    op.y = gate->by_head ? gate->by_head : gate->gate;
    if (gate->gate)
        model_multiply_as(s, &step->layer->gate, op);
}

void model_gate_show(struct model_session *s, const struct model_step *step,
                     const struct model_gate *gate)
{
    if (gate->gate)
        model_show(s, MODEL_AT_ATTN_GATE, gate->by_head ? gate->by_head : gate->gate,
                   step->shape->n_heads, gate->by_head ? 1 : step->shape->value_size);
}

float *model_gate_apply(struct model_session *s, const struct model_step *step,
                        const struct model_gate *gate, float *out)
{
    size_t size = step->shape->value_size, n_heads = step->shape->n_heads;
    size_t n = step->tile.n_tokens * n_heads;
    if (!gate->gate)
        return out;
    struct kern_copy spread = {.x = gate->by_head,
                               .x_stride = 1,
                               .y = gate->gate,
                               .width = size,
                               .n_rows = n,
                               .spread = size};
    if (gate->by_head)
        model_copy(s, spread);
    struct kern_activate op = {
        .kind = s->model->arch->gate_kind, .gate = gate->gate, .up = out, .n = n * size};
    MODEL_TRY(s, kern_activate(s->backend, &op, &s->failure.why));
    model_show(s, MODEL_AT_GATED, gate->gate, n_heads, size);
    return gate->gate;
}

/** The parts of the work area. */
struct attention_work {
    float *q, *out;
    struct model_gate gate;
    float *both; /* [T, H 2 d]: q and gate where one tensor makes them */
};

static struct attention_work divide(struct model_cut *cut, const struct model *m, size_t i_layer,
                                    size_t n)
{
    struct widths w = widths_of(&m->hparams.layers[i_layer]);
    /* An indexer's queries lie where the result will. */
    size_t n_out = base_max(n * w.out, model_index_floats(&m->hparams, i_layer, n));
    struct attention_work work = {.q = model_take(cut, n * w.q), .out = model_take(cut, n_out)};
    work.gate = model_gate_take(cut, m, i_layer, n);
    if (m->arch->gated_attention)
        work.both = model_take(cut, n * 2 * w.q);
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
static void project_q(struct model_session *s, const struct model_step *step,
                      const struct attention_work *work, const float *in)
{
    const struct model_layer *layer = step->layer;
    size_t n = step->tile.n_tokens;
    if (!work->both) {
        model_multiply(s, &layer->q, in, n, work->q);
        struct kern_linear op = {.x = in, .n_tokens = n, .same_x = true};
        model_gate_project(s, step, &work->gate, op);
        return;
    }
    model_multiply(s, &step->layer->q, in, n, work->both);
    struct kern_copy copy = {.x = work->both,
                             .x_stride = 2 * (size_t)step->shape->key_size,
                             .y = work->q,
                             .width = step->shape->key_size,
                             .n_rows = n * step->shape->n_heads};
    model_copy(s, copy);
    copy.x += step->shape->key_size;
    copy.y = work->gate.gate;
    model_copy(s, copy);
}

static void rotate(struct model_session *s, const struct model_step *step, float *x, size_t n_heads,
                   int is_k)
{
    model_rotate(s, step, x, n_heads, step->shape->key_size);
    model_show(s, MODEL_AT_Q_ROTATED + is_k, x, n_heads, step->shape->key_size);
}

/** Norms and rotation of all heads of q or of k. */
static void prepare(struct model_session *s, const struct model_step *step, float *x,
                    size_t n_heads, const struct model_norm *norm)
{
    size_t size = step->shape->key_size;
    size_t n = step->tile.n_tokens;
    bool whole = s->model->arch->qk_norm == MODEL_QK_NORM_WHOLE;
    size_t n_rows = whole ? n : n * n_heads, width = whole ? n_heads * size : size;
    int is_k = norm == &step->layer->k_norm; /* places of k follow those of q */
    bool last = s->model->arch->qk_norm_last;
    if (last)
        rotate(s, step, x, n_heads, is_k);
    if (norm->gain.data)
        model_normalise_rows(s, norm, x, n_rows, width);
    if (norm->gain.data)
        model_show(s, MODEL_AT_Q_NORM + is_k, x, n_heads, size);
    if (!last)
        rotate(s, step, x, n_heads, is_k);
    if (!step->shape->bare_qk_norm)
        return;
    model_normalise_rows(s, NULL, x, n_rows, width);
    model_show(s, MODEL_AT_Q_BARE_NORM + is_k, x, n_heads, size);
}

/** The tile's rows of keys and values. after_q: the product of q is the operation before. */
static void project_kv(struct model_session *s, const struct model_step *step, bool after_q,
                       const float *in)
{
    const struct model_layer *layer = step->layer;
    struct widths w = widths_of(step->shape);
    size_t n = step->tile.n_tokens;
    struct key_rows rows = key_rows_of(s, step, w);
    float *k = rows.k + rows.kv_row * w.k;
    float *v = rows.v + rows.kv_row * w.v;
    if (after_q)
        model_multiply_same(s, &layer->k, in, n, k);
    else
        model_multiply(s, &layer->k, in, n, k);
    model_multiply_same(s, &layer->v, in, n, v);
    model_show(s, MODEL_AT_K_PROJECTED, k, w.n_kv_heads, step->shape->key_size);
    model_show(s, MODEL_AT_V_PROJECTED, v, w.n_kv_heads, step->shape->value_size);
    prepare(s, step, k, w.n_kv_heads, &layer->k_norm);
    size_t n_rows = n * w.n_kv_heads, width = step->shape->value_size;
    if (s->model->arch->bare_v_norm) {
        model_normalise_rows(s, NULL, v, n_rows, width);
        model_show(s, MODEL_AT_V_NORM, v, w.n_kv_heads, width);
    }
    model_round_keys(s, step->i_layer, k, n_rows, step->shape->key_size);
    model_round_values(s, step->i_layer, v, n_rows, width);
}

void model_block_keys(struct model_session *s, const struct model_step *step)
{
    const float *in;
    model_branch_input(s, step, &step->layer->attn_norm, &in);
    project_kv(s, step, false, in);
    if (step->shape->sparse)
        model_index_keys(s, step, in);
}

static void attend(struct model_session *s, const struct model_step *step,
                   const struct attention_work *work, const float *in)
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
    model_index_choose(s, step, &(struct model_index_inputs){in, in, work->out}, &attention.chosen);
    model_name_keys(s, l->kv_layer, &attention);
    MODEL_TRY(s, kern_attention(s->backend, &attention, &s->failure.why));
}

void model_block_attention(struct model_session *s, const struct model_step *step)
{
    const struct model_layer *layer = step->layer;
    struct widths w = widths_of(step->shape);
    struct model_cut cut = {.base = s->work};
    struct attention_work work = divide(&cut, s->model, step->i_layer, step->tile.n_tokens);
    const float *in;
    model_branch_input(s, step, &layer->attn_norm, &in);
    project_q(s, step, &work, in);
    model_show(s, MODEL_AT_Q_PROJECTED, work.q, w.n_heads, step->shape->key_size);
    model_gate_show(s, step, &work.gate);
    if (step->shape->kv_layer == step->i_layer && !step->keys_done)
        project_kv(s, step, !work.both, in);
    if (step->shape->sparse && !step->keys_done)
        model_index_keys(s, step, in);
    prepare(s, step, work.q, w.n_heads, &layer->q_norm);
    model_temper(s, step, work.q, w.q);
    if (step->shape->tempered)
        model_show(s, MODEL_AT_Q_TEMPERED, work.q, w.n_heads, step->shape->key_size);
    attend(s, step, &work, in);
    model_show(s, MODEL_AT_ATTENTION, work.out, w.n_heads, step->shape->value_size);
    const float *out = model_gate_apply(s, step, &work.gate, work.out);
    model_close_branch(s, step, &layer->output, &layer->attn_post_norm, out);
}

size_t model_matrix_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    (void)i_layer;
    return n_tokens * m->hparams.n_embd;
}

void model_block_matrix(struct model_session *s, const struct model_step *step)
{
    const struct model_layer *layer = step->layer;
    struct model_norm_step norm = {.norm = &layer->attn_norm,
                                   .x = step->x,
                                   .y = s->work,
                                   .n_rows = step->tile.n_tokens,
                                   .width = s->model->hparams.n_embd};
    model_normalise(s, &norm);
    model_show(s, MODEL_AT_ATTN_NORM, norm.y, 1, norm.width);
    model_close_branch(s, step, &layer->output, &layer->attn_post_norm, norm.y);
}
