/* The Kimi delta net: each channel of a state decays in its own way; q, k and v are apart. */
#include "model/forward/session.h"

/** The parts of the work area. I = H d; all but `low` and beta are [T, I]. */
struct kimi_work {
    float *in;            /* before a convolution: each of the three in turn */
    float *q, *k, *v;     /* convolved */
    float *low;           /* [T, d]: between two matrices of dt, or of the gate */
    float *dt, *z, *beta; /* beta: [T, H] */
    float *out;
};

static struct kimi_work divide(struct model_cut *cut, const struct model_hparams *h, size_t n)
{
    const struct model_recurrent_hparams *r = &h->recurrent;
    size_t floats = n * r->n_inner;
    return (struct kimi_work){.in = model_take(cut, floats),
                              .q = model_take(cut, floats),
                              .k = model_take(cut, floats),
                              .v = model_take(cut, floats),
                              .low = model_take(cut, n * r->state),
                              .dt = model_take(cut, floats),
                              .z = model_take(cut, floats),
                              .beta = model_take(cut, n * r->n_heads),
                              .out = model_take(cut, floats)};
}

size_t model_kimi_delta_net_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    (void)i_layer;
    struct model_cut cut = {0};
    (void)divide(&cut, &m->hparams, n_tokens);
    return cut.n_floats;
}

/** q, k and v: products, each convolved. */
static void project(struct model_session *s, const struct model_step *step,
                    const struct kimi_work *w, const float *in)
{
    const struct model_recurrent_hparams *h = &s->model->hparams.recurrent;
    const struct model_layer *l = step->layer;
    const struct {
        const struct model_product *product;
        enum model_place place;
        float *y;
    } parts[] = {{&l->q, MODEL_AT_Q_PROJECTED, w->q},
                 {&l->k, MODEL_AT_K_PROJECTED, w->k},
                 {&l->v, MODEL_AT_V_PROJECTED, w->v}};
    for (size_t i = 0; i < 3; i++) {
        model_multiply(s, parts[i].product, in, step->tile.n_tokens, w->in);
        model_show(s, parts[i].place, w->in, h->n_heads, h->state);
        model_convolve(s, step, i, w->in, parts[i].y);
    }
}

/** y of one matrix, or of two. */
static void project_gate(struct model_session *s, const struct model_product *narrow,
                         const struct model_product *product, const struct kimi_work *w,
                         const float *in, size_t n, float *y)
{
    if (narrow->weight.data) {
        model_multiply(s, narrow, in, n, w->low);
        in = w->low;
    }
    model_multiply(s, product, in, n, y);
}

/** beta, dt of each channel, and the gate. */
static void project_gates(struct model_session *s, const struct model_step *step,
                          const struct kimi_work *w, const float *in)
{
    const struct model_recurrent_hparams *h = &s->model->hparams.recurrent;
    const struct model_recurrent *l = &step->layer->recurrent;
    size_t n = step->tile.n_tokens;
    model_multiply(s, &l->beta, in, n, w->beta);
    model_show(s, MODEL_AT_BETA, w->beta, 1, h->n_heads);
    project_gate(s, &l->alpha_low, &l->alpha, w, in, n, w->dt);
    model_show(s, MODEL_AT_ALPHA, w->dt, h->n_heads, h->state);
    project_gate(s, &l->gate_low, &l->gate, w, in, n, w->z);
    model_show(s, MODEL_AT_MIXER_GATE, w->z, h->n_heads, h->state);
}

static void recur(struct model_session *s, const struct model_step *step, const struct kimi_work *w)
{
    struct kern_recur op = model_recur_of(s->model, step->i_layer);
    op.q = w->q;
    op.k = w->k;
    op.v = w->v;
    op.dt = w->dt;
    op.beta = w->beta;
    op.out = w->out;
    op.states = s->recur_states;
    op.runs = s->runs;
    op.n_runs = s->n_runs;
    MODEL_TRY(s, kern_recur(s->backend, &op, &s->failure.why));
    model_show(s, MODEL_AT_RECURRED, w->out, op.n_heads, op.v_size);
}

void model_block_kimi_delta_net(struct model_session *s, const struct model_step *step)
{
    const struct model_recurrent_hparams *h = &s->model->hparams.recurrent;
    const struct model_layer *layer = step->layer;
    size_t n = step->tile.n_tokens;
    struct model_cut cut = {.base = s->work};
    struct kimi_work w = divide(&cut, &s->model->hparams, n);
    const float *in;
    model_branch_input(s, step, &layer->attn_norm, &in);
    project(s, step, &w, in);
    project_gates(s, step, &w, in);
    recur(s, step, &w);
    model_normalise_rows(s, &layer->recurrent.norm, w.out, n * h->n_heads, h->state);
    struct kern_activate gate = {
        .kind = KERN_SIGMOID, .gate = w.z, .up = w.out, .n = n * h->n_inner};
    MODEL_TRY(s, kern_activate(s->backend, &gate, &s->failure.why));
    model_show(s, MODEL_AT_MIXER_GATED, w.z, h->n_heads, h->state);
    model_close_branch(s, step, &layer->output, &layer->attn_post_norm, w.z);
}
