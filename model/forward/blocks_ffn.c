#include "kernels/mixing.h"
#include "model/forward/session.h"

void model_ffn_inner(struct model_session *s, const struct model_ffn_step *step)
{
    const struct model_ffn *ffn = step->ffn;
    bool gated = ffn->gate.weight.data != NULL;
    size_t n = step->n_rows, width = ffn->up.weight.n_rows;
    /* What comes out is read by the activation and the product after it alone, and by who traces.
     */
    struct kern_linear op = {
        .x = step->x, .y = step->y, .n_tokens = n, .passing = !s->options.trace};
    model_multiply_as(s, gated ? &ffn->gate : &ffn->up, op);
    op.y = step->up;
    op.same_x = true;
    if (gated)
        model_multiply_as(s, &ffn->up, op);
    model_show(s, step->place + !gated, step->y, 1, width);
    struct kern_sparsify cut = {
        .x = step->y, .n_rows = n, .width = width, .sample = s->model->hparams.sample_deviation};
    if (step->sparse) {
        cut.scale = step->sparse->sparsity;
        MODEL_TRY(s, kern_sparsify(s->backend, &cut, &s->failure.why));
    }
    if (gated)
        model_show(s, step->place + 1, step->up, 1, width);
    struct kern_activate activate = {.kind = step->activation->kind,
                                     .curve = step->activation->curve,
                                     .gate = step->y,
                                     .up = gated ? step->up : NULL,
                                     .n = n * width};
    MODEL_TRY(s, kern_activate(s->backend, &activate, &s->failure.why));
    model_show(s, step->place + 2, step->y, 1, width);
}

size_t model_ffn_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    struct model_cut cut = {0};
    (void)model_take(&cut, n_tokens * m->hparams.layers[i_layer].n_ff);
    (void)model_take(&cut, n_tokens * m->hparams.layers[i_layer].n_ff);
    return cut.n_floats;
}

void model_block_ffn(struct model_session *s, const struct model_step *step)
{
    const struct model_layer *layer = step->layer;
    size_t n = step->tile.n_tokens;
    struct model_cut cut = {.base = s->work};
    float *inner = model_take(&cut, n * step->shape->n_ff);
    float *up = model_take(&cut, n * step->shape->n_ff);
    const float *in = s->h; /* of parallel branches: what attention read */
    if (!s->model->hparams.parallel)
        model_branch_input(s, step, &layer->ffn_norm, &in);
    struct model_ffn_step ffn = {.ffn = &layer->ffn,
                                 .activation = &step->shape->activation,
                                 .place = MODEL_AT_FFN_GATE,
                                 .x = in,
                                 .n_rows = n,
                                 .y = inner,
                                 .up = up,
                                 .sparse = step->shape->sparse_gates ? step->shape : NULL};
    model_ffn_inner(s, &ffn);
    model_close_branch(s, step, &layer->ffn.down, &layer->ffn_post_norm, inner);
}
