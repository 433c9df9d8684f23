#include "model/forward/session.h"

enum status model_ffn_inner(struct model_session *s, const struct model_ffn *ffn, const float *x,
                            size_t n_rows, float *gate, float *up, struct status_why *why)
{
    size_t n_ff = ffn->gate.n_rows;
    struct kern_linear op = {.weight = &ffn->gate,
                             .bias = model_bias(&ffn->gate_bias),
                             .x = x,
                             .y = gate,
                             .y_stride = n_ff,
                             .n_tokens = n_rows};
    enum status status = kern_linear(s->backend, &op, why);
    op.weight = &ffn->up;
    op.bias = model_bias(&ffn->up_bias);
    op.y = up;
    op.same_x = true;
    if (!status)
        status = kern_linear(s->backend, &op, why);
    if (!status)
        status = kern_activate(
            s->backend,
            &(struct kern_activate){.kind = KERN_SILU, .gate = gate, .up = up, .n = n_rows * n_ff},
            why);
    return status;
}

enum status model_block_ffn(struct model_session *s, const struct model_step *step,
                            struct status_why *why)
{
    const struct model_ffn *ffn = step->layer->ffn;
    size_t n = step->tile.n_tokens;
    float *gate = s->work;
    float *up = s->work + model_work_floats(n * ffn->gate.n_rows);
    enum status status = model_norm(s, &step->layer->ffn_norm, step->x, n, s->h, why);
    if (!status)
        status = model_ffn_inner(s, ffn, s->h, n, gate, up, why);
    if (status)
        return status;
    struct kern_linear down = {.weight = &ffn->down,
                               .bias = model_bias(&ffn->down_bias),
                               .x = gate,
                               .y = step->x,
                               .y_stride = s->model->hparams.n_embd,
                               .n_tokens = n,
                               .accumulate = true};
    return kern_linear(s->backend, &down, why);
}
