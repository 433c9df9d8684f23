/* Layers with a state: the gated delta net and Mamba-2. */
#include "model/forward/session.h"

/** Floats of a row. */
struct sizes {
    size_t channels;    /* C: of the convolution */
    size_t in;          /* of what comes in: C, or for Mamba-2 z, C, dt */
    size_t inner;       /* all heads' values */
    size_t heads, keys; /* Hv; Hk * dk */
};

static struct sizes sizes_of(const struct model_hparams *h, size_t i_layer)
{
    const struct model_recurrent_hparams *n = &h->recurrent;
    struct sizes z = {
        .inner = n->n_inner, .heads = n->n_heads, .keys = (size_t)n->n_groups * n->state};
    z.channels = z.inner + 2 * z.keys;
    enum model_mixer mixer = h->layers[i_layer].mixer;
    if (mixer == MODEL_KIMI_DELTA_NET) /* q, k and v apart, of one width */
        z.channels = z.inner;
    z.in = z.channels;
    if (mixer == MODEL_MAMBA2 || mixer == MODEL_ATTENTION_MAMBA2)
        z.in += z.inner + z.heads;
    return z;
}

/** The parts of the work area. */
struct recurrent_work {
    float *in;        /* [T, in] */
    float *joined;    /* [T, C + inner]: of older files */
    float *mixed;     /* [T, C]: convolved */
    float *z;         /* [T, inner]: the gate */
    float *out;       /* [T, inner] */
    float *both;      /* [T, 2 * Hv]: beta and dt of each key head's value heads */
    float *beta, *dt; /* [T, Hv] */
};

static struct recurrent_work divide(struct model_cut *cut, const struct model *m, size_t i_layer,
                                    size_t n)
{
    struct sizes z = sizes_of(&m->hparams, i_layer);
    bool is_joined = m->layers[i_layer].recurrent.joined.weight.data;
    return (struct recurrent_work){.joined =
                                       model_take(cut, is_joined ? n * (z.channels + z.inner) : 0),
                                   .in = model_take(cut, n * z.in),
                                   .mixed = model_take(cut, n * z.channels),
                                   .z = model_take(cut, n * z.inner),
                                   .out = model_take(cut, n * z.inner),
                                   .both = model_take(cut, n * 2 * z.heads),
                                   .beta = model_take(cut, n * z.heads),
                                   .dt = model_take(cut, n * z.heads)};
}

size_t model_recurrent_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    struct model_cut cut = {0};
    (void)divide(&cut, m, i_layer, n_tokens);
    return cut.n_floats;
}

/** The shapes of a layer's operations; pointers are to be set. */
struct kern_convolve model_convolve_of(const struct model *m, size_t i_layer)
{
    const struct model_recurrent *l = &m->layers[i_layer].recurrent;
    return (struct kern_convolve){.x_stride = sizes_of(&m->hparams, i_layer).in,
                                  .weight = &l->taps,
                                  .bias = model_present(&l->taps_bias),
                                  .bare =
                                      m->hparams.layers[i_layer].mixer == MODEL_SHORT_CONVOLUTION};
}

void model_convolve(struct model_session *s, const struct model_step *step, size_t which,
                    const float *x, float *y)
{
    const struct model_recurrent *l = &step->layer->recurrent;
    const struct kern_weight *const taps[] = {&l->taps, &l->k_taps, &l->v_taps};
    struct kern_convolve op = model_convolve_of(s->model, step->i_layer);
    size_t state_floats = kern_convolve_state_bytes(&op) / sizeof(float);
    op.weight = taps[which];
    op.x = x;
    op.y = y;
    if (s->convolve_states)
        op.states = s->convolve_states + which * MODEL_N_STATES * state_floats;
    op.runs = s->runs;
    op.n_runs = s->n_runs = model_tile_runs(step->batch, &step->tile, s->runs);
    MODEL_TRY(s, kern_convolve(s->backend, &op, &s->failure.why));
    model_show(s, MODEL_AT_CONVOLVED + which, y, 1, op.weight->n_rows);
}

struct kern_recur model_recur_of(const struct model *m, size_t i_layer)
{
    const struct model_recurrent_hparams *n = &m->hparams.recurrent;
    const struct model_recurrent *l = &m->layers[i_layer].recurrent;
    struct sizes z = sizes_of(&m->hparams, i_layer);
    enum model_mixer mixer = m->hparams.layers[i_layer].mixer;
    bool delta = mixer == MODEL_DELTA_NET, by_channel = mixer == MODEL_KIMI_DELTA_NET;
    return (struct kern_recur){.stride = z.channels,
                               .dt_stride = by_channel ? z.inner
                                            : delta    ? z.heads
                                                       : z.in,
                               .by_channel = by_channel,
                               .least_log = n->least_log,
                               .beta_stride = z.heads,
                               .dt_bias = &l->dt_bias,
                               .decay = &l->a,
                               .skip = model_present(&l->skip),
                               .dt_min = n->dt_min,
                               .n_k_heads = n->n_groups,
                               .n_heads = n->n_heads,
                               .k_size = n->state,
                               .v_size = n->n_inner / n->n_heads,
                               .alternate = delta && !n->grouped,
                               .unit = n->unit,
                               .eps = n->unit_eps,
                               .scale = n->scale};
}

/** Convolution and recurrence of x [T, in], columns C: out. */
static void recur(struct model_session *s, const struct model_step *step,
                  const struct recurrent_work *w, struct kern_recur op, const float *x)
{
    model_convolve(s, step, 0, x, w->mixed);
    op.out = w->out;
    op.states = s->recur_states;
    op.runs = s->runs;
    op.n_runs = s->n_runs;
    MODEL_TRY(s, kern_recur(s->backend, &op, &s->failure.why));
    model_show(s, MODEL_AT_RECURRED, w->out, op.n_heads, op.v_size);
}

/** n numbers of z become out times what the architecture makes of them. */
static void gate(struct model_session *s, const struct recurrent_work *w, size_t n)
{
    struct kern_activate op = {
        .kind = s->model->arch->mixer_gate, .gate = w->z, .up = w->out, .n = n};
    MODEL_TRY(s, kern_activate(s->backend, &op, &s->failure.why));
}

/** What the convolution reads, and the gate: apart, or joined in one matrix of older files. */
static void project_in(struct model_session *s, const struct model_step *step,
                       const struct recurrent_work *w, const float *in)
{
    const struct model_recurrent *l = &step->layer->recurrent;
    size_t n = step->tile.n_tokens;
    if (l->joined.weight.data) {
        model_multiply(s, &l->joined, in, n, w->joined);
        return;
    }
    model_multiply(s, &l->in, in, n, w->in);
    model_multiply_same(s, &l->gate, in, n, w->z);
}

/** Joined rows have q, k, v and z of one key head after the other. */
static void take_apart(struct model_session *s, const struct model_step *step,
                       const struct recurrent_work *w)
{
    const struct model_recurrent_hparams *h = &s->model->hparams.recurrent;
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    size_t k = h->state, v = z.inner / h->n_groups, of_head = 2 * (k + v);
    const struct {
        float *y;
        size_t first, width, y_stride;
    } parts[] = {{w->in, 0, k, z.channels},
                 {w->in + z.keys, k, k, z.channels},
                 {w->in + 2 * z.keys, 2 * k, v, z.channels},
                 {w->z, 2 * k + v, v, z.inner}};
    for (size_t i = 0; i < 4 * (size_t)h->n_groups; i++) {
        size_t head = i / 4, part = i % 4;
        struct kern_copy op = {.x = w->joined + head * of_head + parts[part].first,
                               .x_stride = h->n_groups * of_head,
                               .y = parts[part].y + head * parts[part].width,
                               .y_stride = parts[part].y_stride,
                               .width = parts[part].width,
                               .n_rows = step->tile.n_tokens};
        model_copy(s, op);
    }
}

/** beta and dt of each token: from two matrices, or from one that has them by key heads. */
static void project_gates(struct model_session *s, const struct model_step *step,
                          const struct recurrent_work *w, const float *in)
{
    const struct model_recurrent *l = &step->layer->recurrent;
    const struct model_recurrent_hparams *h = &s->model->hparams.recurrent;
    size_t n = step->tile.n_tokens;
    if (!l->beta_alpha.weight.data) {
        model_multiply_same(s, &l->beta, in, n, w->beta);
        model_multiply_same(s, &l->alpha, in, n, w->dt);
        return;
    }
    size_t ratio = h->n_heads / h->n_groups;
    model_multiply_same(s, &l->beta_alpha, in, n, w->both);
    struct kern_copy op = {.x = w->both,
                           .x_stride = 2 * ratio,
                           .y = w->beta,
                           .width = ratio,
                           .n_rows = n * h->n_groups};
    model_copy(s, op);
    op.x += ratio;
    op.y = w->dt;
    model_copy(s, op);
}

void model_block_delta_net(struct model_session *s, const struct model_step *step)
{
    const struct model_recurrent *l = &step->layer->recurrent;
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    size_t n = step->tile.n_tokens;
    struct model_cut cut = {.base = s->work};
    struct recurrent_work w = divide(&cut, s->model, step->i_layer, n);
    const float *in;
    model_branch_input(s, step, &step->layer->attn_norm, &in);
    project_in(s, step, &w, in);
    project_gates(s, step, &w, in);
    if (l->joined.weight.data)
        take_apart(s, step, &w);
    model_show(s, MODEL_AT_MIXER_IN, w.in, 1, z.in);
    model_show(s, MODEL_AT_MIXER_GATE, w.z, 1, z.inner);
    model_show(s, MODEL_AT_BETA, w.beta, 1, z.heads);
    model_show(s, MODEL_AT_ALPHA, w.dt, 1, z.heads);
    struct kern_recur op = model_recur_of(s->model, step->i_layer);
    op.q = w.mixed;
    op.k = w.mixed + z.keys;
    op.v = w.mixed + 2 * z.keys;
    op.beta = w.beta;
    op.dt = w.dt;
    recur(s, step, &w, op, w.in);
    model_normalise_rows(s, &l->norm, w.out, n * z.heads, z.inner / z.heads);
    gate(s, &w, n * z.inner);
    model_show(s, MODEL_AT_MIXER_GATED, w.z, z.heads, z.inner / z.heads);
    model_close_branch(s, step, &l->out, &step->layer->attn_post_norm, w.z);
}

/** x += Mamba-2 of the normalised rows `in`. */
static void add_mamba2(struct model_session *s, const struct model_step *step, const float *in)
{
    const struct model_recurrent *l = &step->layer->recurrent;
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    size_t n = step->tile.n_tokens;
    size_t n_groups = s->model->hparams.recurrent.n_groups;
    struct model_cut cut = {.base = s->work};
    struct recurrent_work w = divide(&cut, s->model, step->i_layer, n);
    model_multiply(s, &l->in, in, n, w.in);
    model_show(s, MODEL_AT_MIXER_IN, w.in, 1, z.in);
    struct kern_recur op = model_recur_of(s->model, step->i_layer);
    op.v = w.mixed;
    op.k = w.mixed + z.inner;
    op.q = w.mixed + z.inner + z.keys;
    op.dt = w.in + z.inner + z.channels;
    recur(s, step, &w, op, w.in + z.inner);
    model_copy(s, (struct kern_copy){
                      .x = w.in, .x_stride = z.in, .y = w.z, .width = z.inner, .n_rows = n});
    gate(s, &w, n * z.inner);
    if (l->norm.gain.data)
        model_normalise_rows(s, &l->norm, w.z, n * n_groups, z.inner / n_groups);
    model_show(s, MODEL_AT_MIXER_GATED, w.z, n_groups, z.inner / n_groups);
    model_close_branch(s, step, &l->out, &step->layer->attn_post_norm, w.z);
}

void model_block_mamba2(struct model_session *s, const struct model_step *step)
{
    const float *in;
    model_branch_input(s, step, &step->layer->attn_norm, &in);
    add_mamba2(s, step, in);
}

void model_block_attention_mamba2(struct model_session *s, const struct model_step *step)
{
    model_block_attention(s, step);
    add_mamba2(s, step, s->h); /* where attention left its input */
}

/** One after the other. */
size_t model_attention_mamba2_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    return base_max(model_attention_floats(m, i_layer, n_tokens),
                    model_recurrent_floats(m, i_layer, n_tokens));
}
