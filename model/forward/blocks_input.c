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
static enum status add_input(struct model_session *s, const struct model_step *step,
                             struct status_why *why)
{
    const struct model *m = s->model;
    const struct model_per_layer_input *input = &step->layer->input;
    const int32_t *tokens = step->batch->tokens + step->tile.start;
    size_t n = step->tile.n_tokens;
    size_t width = m->hparams.per_layer_width;
    struct model_cut cut = {.base = s->work};
    struct input_work w = divide(&cut, m, n);
    const struct model_norm gain = {.gain = m->per_layer_norm};
    enum status status = kern_embed(s->backend, &m->embedding, tokens, n, w.x0, why);
    if (!status)
        status = kern_embed(s->backend, &input->embedding, tokens, n, w.u, why);
    if (!status)
        status = model_multiply(s, &input->project, w.x0, n, w.c, why);
    struct model_norm_step norm = {
        .norm = &gain, .x = w.c, .y = w.u, .n_rows = n, .width = width, .accumulate = true};
    if (!status)
        status = model_normalise(s, &norm, why);
    if (!status)
        status = model_multiply(s, &input->gate, step->x, n, w.gate, why);
    struct kern_activate op = {
        .kind = m->arch->activation, .gate = w.gate, .up = w.u, .n = n * width};
    if (!status)
        status = kern_activate(s->backend, &op, why);
    model_show(s, MODEL_AT_INPUT_GATE, w.gate, 1, width);
    return status ? status
                  : model_close_branch(s, step, &input->out, &input->post_norm, w.gate, why);
}

enum status model_block_input(struct model_session *s, const struct model_step *step,
                              struct status_why *why)
{
    size_t n = step->tile.n_tokens;
    enum status status = STATUS_OK;
    if (s->model->hparams.per_layer_width)
        status = add_input(s, step, why);
    if (status || step->layer->output_scale == 1)
        return status;
    for (size_t i = 0; i < n; i++)
        s->factors[i] = step->layer->output_scale;
    return kern_scale_rows(s->backend, step->x, s->model->hparams.n_embd, n, s->factors, why);
}
