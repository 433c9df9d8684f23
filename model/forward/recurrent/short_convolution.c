/* The short convolution: C * convolve(B * x), B, C and x being parts of one product. */
#include "model/forward/session.h"

/** The parts of the work area; D is the width. */
struct short_work {
    float *in;       /* [T, 3 D]: B, C, x */
    float *u, *part; /* [T, D]: B, then B * x; what it is multiplied by */
    float *y;        /* [T, D]: convolved, then gated */
};

static struct short_work divide(struct model_cut *cut, const struct model_hparams *h, size_t n)
{
    size_t floats = n * h->recurrent.n_inner;
    return (struct short_work){.in = model_take(cut, 3 * floats),
                               .u = model_take(cut, floats),
                               .part = model_take(cut, floats),
                               .y = model_take(cut, floats)};
}

size_t model_short_convolution_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    (void)i_layer;
    struct model_cut cut = {0};
    (void)divide(&cut, &m->hparams, n_tokens);
    return cut.n_floats;
}

/** Columns [i D, (i + 1) D) of w->in. */
static void take(struct model_session *s, const struct short_work *w, size_t i, size_t n, float *to)
{
    size_t width = s->model->hparams.recurrent.n_inner;
    struct kern_copy op = {
        .x = w->in + i * width, .x_stride = 3 * width, .y = to, .width = width, .n_rows = n};
    model_copy(s, op);
}

/** y *= part i. */
static void gate(struct model_session *s, const struct short_work *w, size_t i, size_t n, float *y)
{
    struct kern_activate op = {.kind = KERN_IDENTITY,
                               .gate = y,
                               .up = w->part,
                               .n = n * s->model->hparams.recurrent.n_inner};
    take(s, w, i, n, w->part);
    MODEL_TRY(s, kern_activate(s->backend, &op, &s->failure.why));
}

void model_block_short_convolution(struct model_session *s, const struct model_step *step)
{
    enum { B, C, X };
    const struct model_recurrent *l = &step->layer->recurrent;
    size_t n = step->tile.n_tokens, width = s->model->hparams.recurrent.n_inner;
    struct model_cut cut = {.base = s->work};
    struct short_work w = divide(&cut, &s->model->hparams, n);
    const float *in;
    model_branch_input(s, step, &step->layer->attn_norm, &in);
    model_multiply(s, &l->in, in, n, w.in);
    model_show(s, MODEL_AT_MIXER_IN, w.in, 1, 3 * width);
    take(s, &w, B, n, w.u);
    gate(s, &w, X, n, w.u);
    model_convolve(s, step, 0, w.u, w.y);
    gate(s, &w, C, n, w.y);
    model_show(s, MODEL_AT_MIXER_GATED, w.y, 1, width);
    model_close_branch(s, step, &l->out, &step->layer->attn_post_norm, w.y);
}
