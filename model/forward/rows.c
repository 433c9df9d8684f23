/* Steps that all blocks are made of. */
#include <math.h>

#include "model/forward/session.h"

void model_show_always(struct model_session *s, enum model_place place, const float *data,
                       size_t n_heads, size_t size)
{
    struct model_shown shown = s->shown;
    shown.place = place;
    shown.data = data;
    shown.n_heads = n_heads;
    shown.size = size;
    s->options.trace(s->options.trace_user, s->backend, &shown);
}

void model_show_route(struct model_session *s, size_t n_used)
{
    if (!s->options.trace || s->failure.status)
        return;
    struct model_shown shown = s->shown;
    shown.n_heads = 1;
    shown.size = n_used;
    shown.place = MODEL_AT_EXPERTS;
    shown.ids = s->experts;
    s->options.trace(s->options.trace_user, s->backend, &shown);
    shown.place = MODEL_AT_SHARES;
    shown.ids = NULL;
    shown.shares = s->shares;
    s->options.trace(s->options.trace_user, s->backend, &shown);
}

void model_multiply_marked(struct model_session *s, struct kern_linear op)
{
    if (s->marks && op.n_tokens == s->shown.n_rows) {
        op.marks = s->marks;
        op.mark_rows = s->shown.rows;
    }
    MODEL_TRY(s, kern_linear(s->backend, &op, &s->failure.why));
}

void model_multiply_as(struct model_session *s, const struct model_product *product,
                       struct kern_linear op)
{
    op.weight = &product->weight;
    op.bias = model_present(&product->bias);
    op.y_stride = product->weight.n_rows;
    model_multiply_marked(s, op);
}

void model_multiply(struct model_session *s, const struct model_product *product, const float *x,
                    size_t n_rows, float *y)
{
    model_multiply_as(s, product, (struct kern_linear){.x = x, .y = y, .n_tokens = n_rows});
}

void model_multiply_same(struct model_session *s, const struct model_product *product,
                         const float *x, size_t n_rows, float *y)
{
    struct kern_linear op = {.x = x, .y = y, .n_tokens = n_rows, .same_x = true};
    model_multiply_as(s, product, op);
}

void model_multiply_add(struct model_session *s, const struct model_product *product,
                        const float *x, size_t n_rows, float *y)
{
    struct kern_linear op = {.x = x, .y = y, .n_tokens = n_rows, .accumulate = true};
    model_multiply_as(s, product, op);
}

void model_multiply_heads(struct model_session *s, size_t n_tokens, size_t n_heads,
                          const struct model_per_head *op, float *head)
{
    const size_t n_rows = op->stack->n_rows / n_heads;
    for (size_t i = 0; i < n_heads; i++) {
        struct kern_weight matrix =
            kern_weight_rows(op->stack, op->step > 0 ? 0 : i * n_rows, n_rows);
        matrix.data = (const char *)matrix.data + i * op->step;
        model_copy(s, (struct kern_copy){.x = op->x + i * op->x_head,
                                         .x_stride = op->x_stride,
                                         .y = head,
                                         .width = matrix.n_cols,
                                         .n_rows = n_tokens});
        struct kern_linear product = {.weight = &matrix,
                                      .x = head,
                                      .y = op->y + i * op->y_head,
                                      .y_stride = op->y_stride,
                                      .n_tokens = n_tokens};
        model_multiply_marked(s, product);
    }
}

void model_normalise(struct model_session *s, const struct model_norm_step *step)
{
    const struct model_norm *norm = step->norm;
    struct kern_norm op = {.gain = norm ? model_present(&norm->gain) : NULL,
                           .bias = norm ? model_present(&norm->bias) : NULL,
                           .center = s->model->hparams.layer_norm,
                           .eps = norm && norm->eps > 0 ? norm->eps : s->model->hparams.eps,
                           .x = step->x,
                           .y = step->y,
                           .n_rows = step->n_rows,
                           .width = step->width,
                           .n_groups = 1,
                           .accumulate = step->accumulate};
    if (op.gain)
        op.n_groups = op.gain->n_cols / step->width;
    MODEL_TRY(s, kern_norm(s->backend, &op, &s->failure.why));
}

void model_normalise_rows(struct model_session *s, const struct model_norm *norm, float *x,
                          size_t n_rows, size_t width)
{
    model_normalise(s, &(struct model_norm_step){norm, x, x, n_rows, width, false});
}

void model_branch_input(struct model_session *s, const struct model_step *step,
                        const struct model_norm *norm, const float **in)
{
    *in = step->x;
    if (!norm->gain.data)
        return;
    *in = s->h;
    struct model_norm_step op = {.norm = norm,
                                 .x = step->x,
                                 .y = s->h,
                                 .n_rows = step->tile.n_tokens,
                                 .width = s->model->hparams.n_embd};
    model_normalise(s, &op);
    enum model_place place = norm == &step->layer->attn_norm  ? MODEL_AT_ATTN_NORM
                             : norm == &step->layer->ffn_norm ? MODEL_AT_FFN_NORM
                                                              : MODEL_AT_EXPERT_NORM;
    model_show(s, place, s->h, 1, op.width);
}

/** What a branch makes, before it is added: a place. */
static enum model_place branch_place(const struct model_step *step,
                                     const struct model_product *product)
{
    if (product == &step->layer->ffn.down)
        return MODEL_AT_FFN_OUT;
    if (product == &step->layer->altup.high)
        return MODEL_AT_LOW_OUT;
    return product == &step->layer->input.out ? MODEL_AT_INPUT_OUT : MODEL_AT_ATTN_OUT;
}

void model_close_branch(struct model_session *s, const struct model_step *step,
                        const struct model_product *product, const struct model_norm *post,
                        const float *in)
{
    size_t n = step->tile.n_tokens;
    enum model_place place = branch_place(step, product);
    bool adds = !post->gain.data;
    /* The second of branches side by side still reads s->h. */
    bool is_first = s->model->hparams.parallel ? place == MODEL_AT_ATTN_OUT
                                               : step->shape->mixer == MODEL_ATTENTION_MAMBA2 &&
                                                     product == &step->layer->output;
    bool shows = s->options.trace && !is_first;
    if (!adds || shows)
        model_multiply(s, product, in, n, s->h);
    if (shows)
        model_show(s, place, s->h, 1, s->model->hparams.n_embd);
    if (adds) {
        model_multiply_add(s, product, in, n, step->to);
        return;
    }
    struct model_norm_step op = {.norm = post,
                                 .x = s->h,
                                 .y = step->to,
                                 .n_rows = n,
                                 .width = s->model->hparams.n_embd,
                                 .accumulate = true};
    model_normalise(s, &op);
}

void model_copy(struct model_session *s, struct kern_copy op)
{
    if (op.y_stride == 0)
        op.y_stride = op.width;
    MODEL_TRY(s, kern_copy_rows(s->backend, &op, &s->failure.why));
}

void model_take_stream(struct model_session *s, const float *x, size_t i, size_t n, float *row)
{
    const struct model_hparams *h = &s->model->hparams;
    struct kern_copy copy = {.x = x + i * h->n_embd,
                             .x_stride = model_residual_width(h),
                             .y = row,
                             .width = h->n_embd,
                             .n_rows = n};
    model_copy(s, copy);
}

void model_put_stream(struct model_session *s, const float *row, size_t i, size_t n, float *x)
{
    const struct model_hparams *h = &s->model->hparams;
    struct kern_copy copy = {.x = row,
                             .x_stride = h->n_embd,
                             .y = x + i * h->n_embd,
                             .y_stride = model_residual_width(h),
                             .width = h->n_embd,
                             .n_rows = n};
    model_copy(s, copy);
}

void model_rotate(struct model_session *s, const struct model_step *step, float *x, size_t n_heads,
                  size_t head_size)
{
    struct model_turn turn = {.x = x,
                              .n_rows = step->tile.n_tokens,
                              .n_heads = n_heads,
                              .head_size = head_size,
                              .positions = s->angle_rows,
                              .halves = s->model->hparams.rope_halves};
    model_turn(s, step, &turn);
}

void model_turn(struct model_session *s, const struct model_step *step,
                const struct model_turn *turn)
{
    int use = step->shape->rope;
    if (use == MODEL_ROPE_OFF || turn->n_rows == 0)
        return;
    struct kern_rope op = {.x = turn->x,
                           .stride = turn->n_heads * turn->head_size,
                           .n_tokens = turn->n_rows,
                           .n_heads = turn->n_heads,
                           .head_size = turn->head_size,
                           .n_pairs = s->model->hparams.ropes[use].n_rot / 2,
                           .split_halves = turn->halves,
                           .angles = turn->back ? s->back_angles[use] : s->angles[use],
                           .n_positions = s->scratch.n_short + s->options.max_segment,
                           .positions = turn->positions};
    MODEL_TRY(s, kern_rope(s->backend, &op, &s->failure.why));
}

void model_temper(struct model_session *s, const struct model_step *step, float *q, size_t width)
{
    const struct model_temperature *t = &s->model->hparams.temperature;
    if (!step->shape->tempered)
        return;
    for (size_t i = 0; i < step->tile.n_tokens; i++) {
        double periods = floor(((double)s->positions[i] + t->offset) / t->length);
        s->factors[i] = (float)(1 + (double)t->scale * log1p(periods));
    }
    MODEL_TRY(
        s, kern_scale_rows(s->backend, q, width, step->tile.n_tokens, s->factors, &s->failure.why));
}
