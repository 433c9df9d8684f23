/* What Gemma 4 has after a layer: a further input from the tokens themselves, and a scale of x. */
#include "model/forward/session.h"

/** The parts of the work area. */
struct input_work {
    float *x0;           /* [T, D]: the embedding */
    float *u, *c, *gate; /* [T, P] */
};

static struct input_work divide(struct model_cut *cut, const struct model *m, size_t n)
{
    size_t width = m->hparams.per_layer_width;
    return (struct input_work){.x0 = model_take(cut, n * m->hparams.n_embd),
                               .u = model_take(cut, n * width),
                               .c = model_take(cut, n * width),
                               .gate = model_take(cut, n * width)};
}

size_t model_input_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    (void)i_layer;
    struct model_cut cut = {0};
    (void)divide(&cut, m, n_tokens);
    return cut.n_floats;
}

/** x += post_norm(out(gelu(gate x) * u)), u = own embedding + norm(project embedding). */
static void add_input(struct model_session *s, const struct model_step *step)
{
    const struct model *m = s->model;
    const struct model_per_layer_input *input = &step->layer->input;
    const int32_t *tokens = step->batch->tokens + step->tile.start;
    size_t n = step->tile.n_tokens;
    size_t width = m->hparams.per_layer_width;
    struct model_cut cut = {.base = s->work};
    struct input_work w = divide(&cut, m, n);
    const struct model_norm gain = {.gain = m->per_layer_norm};
    MODEL_TRY(s, kern_embed(s->backend, &m->embedding, tokens, n, w.x0, &s->failure.why));
    MODEL_TRY(s, kern_embed(s->backend, &input->embedding, tokens, n, w.u, &s->failure.why));
    model_multiply(s, &input->project, w.x0, n, w.c);
    struct model_norm_step norm = {
        .norm = &gain, .x = w.c, .y = w.u, .n_rows = n, .width = width, .accumulate = true};
    model_normalise(s, &norm);
    model_multiply(s, &input->gate, step->x, n, w.gate);
    struct kern_activate op = {
        .kind = m->arch->activation, .gate = w.gate, .up = w.u, .n = n * width};
    MODEL_TRY(s, kern_activate(s->backend, &op, &s->failure.why));
    model_show(s, MODEL_AT_INPUT_GATE, w.gate, 1, width);
    model_close_branch(s, step, &input->out, &input->post_norm, w.gate);
}

void model_block_input(struct model_session *s, const struct model_step *step)
{
    size_t n = step->tile.n_tokens;
    if (s->model->hparams.per_layer_width)
        add_input(s, step);
    if (step->layer->output_scale == 1)
        return;
    for (size_t i = 0; i < n; i++)
        s->factors[i] = step->layer->output_scale;
    MODEL_TRY(s, kern_scale_rows(s->backend, step->x, s->model->hparams.n_embd, n, s->factors,
                                 &s->failure.why));
}
