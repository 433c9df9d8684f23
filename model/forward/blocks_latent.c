/*
 * Latent attention: keys and values are products of one compressed row per token. Newer files let
 * the queries be multiplied by the keys' matrix instead (each head reads the compressed rows, which
 * are keys and values at once); older ones hold a matrix that makes keys and values of them.
 */
#include "model/forward/index/index.h"

struct sizes {
    size_t n_heads, key, value, rot, plain, rank, wide; /* wide: a compressed key, rank + rot */
    bool compressed;
};

static struct sizes sizes_of(const struct model_hparams *h, size_t i_layer)
{
    const struct model_layer_shape *l = &h->layers[i_layer];
    struct sizes z = {.n_heads = l->n_heads,
                      .key = l->key_size,
                      .value = l->value_size,
                      .rot = h->ropes[MODEL_ROPE_FULL].n_rot,
                      .rank = l->kv_rank,
                      .compressed = h->compressed_keys};
    z.plain = z.key - z.rot;
    z.wide = z.rank + z.rot;
    return z;
}

/** The parts of the work area. */
struct latent_work {
    float *q_low;    /* [T, q rank] */
    float *q;        /* [T, H * key] */
    float *z;        /* [T, wide]: the compressed row, and the rotated part of all keys */
    float *head;     /* [T, of one head] */
    float *q_wide;   /* [T, H * wide] */
    float *kv;       /* [T, H * (plain + value)], or the compressed rows alone */
    float *out_wide; /* [T, H * rank] */
    float *out;      /* [T, H * value] */
    struct model_gate gate;
};

static struct latent_work divide(struct model_cut *cut, const struct model *m, size_t i_layer,
                                 size_t n)
{
    const struct model_hparams *h = &m->hparams;
    struct sizes z = sizes_of(h, i_layer);
    struct latent_work w = {
        .q_low = model_take(cut, n * h->q_rank),
        .q = model_take(cut, n * z.n_heads * z.key),
        .z = model_take(cut, n * z.wide),
        .head = model_take(cut, n * base_max(base_max(z.plain, z.rank), z.rot)),
        .out = model_take(cut, n * z.n_heads * z.value),
    };
    size_t n_wide = z.compressed ? n * z.n_heads * z.rank : 0;
    /* An indexer's queries lie there before. */
    w.out_wide = model_take(cut, base_max(n_wide, model_index_floats(h, i_layer, n)));
    if (z.compressed)
        w.q_wide = model_take(cut, n * z.n_heads * z.wide);
    else
        w.kv = model_take(cut, n * z.n_heads * (z.plain + z.value));
    w.gate = model_gate_take(cut, m, i_layer, n);
    return w;
}

size_t model_latent_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    struct model_cut cut = {0};
    (void)divide(&cut, m, i_layer, n_tokens);
    return cut.n_floats;
}

/** Rotate the end of each of n_heads heads of `size` elements. */
static void rotate_end(struct model_session *s, const struct model_step *step, float *x,
                       size_t n_heads, size_t size)
{
    size_t n_rot = s->model->hparams.ropes[MODEL_ROPE_FULL].n_rot;
    model_rotate(s, step, x + size - n_rot, n_heads, size);
}

static void project_q(struct model_session *s, const struct model_step *step,
                      const struct latent_work *w, const float *in)
{
    const struct model_layer *layer = step->layer;
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    size_t n = step->tile.n_tokens;
    if (layer->latent.q_down.weight.data) {
        model_multiply(s, &layer->latent.q_down, in, n, w->q_low);
        model_show(s, MODEL_AT_Q_LOW, w->q_low, 1, s->model->hparams.q_rank);
        model_normalise_rows(s, &layer->latent.q_norm, w->q_low, n, s->model->hparams.q_rank);
        model_show(s, MODEL_AT_Q_LOW_NORM, w->q_low, 1, s->model->hparams.q_rank);
        in = w->q_low;
    }
    model_multiply(s, &layer->q, in, n, w->q);
    model_show(s, MODEL_AT_Q_PROJECTED, w->q, z.n_heads, z.key);
    rotate_end(s, step, w->q, z.n_heads, z.key);
    if (!z.compressed)
        model_show(s, MODEL_AT_Q_ROTATED, w->q, z.n_heads, z.key);
    model_temper(s, step, w->q, z.n_heads * z.key);
}

/** Normalise the keys' part that is rotated, in z. */
static void normalise_rot(struct model_session *s, const struct model_step *step,
                          const struct latent_work *w)
{
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    struct kern_copy op = {.x = w->z + z.rank,
                           .x_stride = z.wide,
                           .y = w->head,
                           .y_stride = z.rot,
                           .width = z.rot,
                           .n_rows = step->tile.n_tokens};
    model_copy(s, op);
    model_normalise_rows(s, &step->layer->k_norm, w->head, op.n_rows, z.rot);
    op.x = w->head;
    op.x_stride = z.rot;
    op.y = w->z + z.rank;
    op.y_stride = z.wide;
    model_copy(s, op);
}

/** z: the compressed row normalised into c [T, rank], then the rotated part of all heads' keys. */
static void compress(struct model_session *s, const struct model_step *step,
                     const struct latent_work *w, const float *in, float *c)
{
    const struct model_latent *l = &step->layer->latent;
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    size_t n = step->tile.n_tokens;
    model_multiply(s, &l->kv_down, in, n, w->z);
    model_show(s, MODEL_AT_KV_LOW, w->z, 1, z.wide);
    if (step->layer->k_norm.gain.data)
        normalise_rot(s, step, w);
    model_copy(
        s, (struct kern_copy){.x = w->z, .x_stride = z.wide, .y = c, .width = z.rank, .n_rows = n});
    model_normalise_rows(s, &l->kv_norm, c, n, z.rank);
    model_show(s, MODEL_AT_KV_LOW_NORM, c, 1, z.rank);
    rotate_end(s, step, w->z, 1, z.wide);
}

/** k: of each row v and the rotated part of z. */
static void join(struct model_session *s, const struct model_step *step,
                 const struct latent_work *w, const float *v, float *k)
{
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    size_t n = step->tile.n_tokens;
    struct kern_copy op = {
        .x = v, .x_stride = z.rank, .y = k, .y_stride = z.wide, .width = z.rank, .n_rows = n};
    model_copy(s, op);
    op.x = w->z + z.rank;
    op.x_stride = z.wide;
    op.y = k + z.rank;
    op.width = z.rot;
    model_copy(s, op);
}

/** Where the parts of a row have types of their own. */
static void round_parts(struct model_session *s, struct sizes z, const struct latent_work *w,
                        float *v, size_t n)
{
    const struct model_kv_type parts[] = {{GGUF_TYPE_FP8_DS_MLA, 0}, {GGUF_TYPE_BF16, 0}};
    model_round_rows(s, parts[0], v, n, z.rank);
    model_round_rows(s, parts[1], w->z, n, z.wide);
}

/** Keys are the compressed rows with their rotated part; values the compressed rows. */
static void keys_compressed(struct model_session *s, const struct model_step *step,
                            const struct latent_work *w, const float *in)
{
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    size_t n = step->tile.n_tokens;
    float *k = s->k + step->tile.kv_row * z.wide;
    float *v = s->v + step->tile.kv_row * z.rank;
    compress(s, step, w, in, v);
    join(s, step, w, v, k);
    model_show(s, MODEL_AT_K_ROTATED, k, 1, z.wide);
    struct model_kv_type type = model_key_type(&s->model->hparams, step->i_layer);
    if (type.type == GGUF_TYPE_FP8_DS_MLA) {
        round_parts(s, z, w, v, n);
        join(s, step, w, v, k);
        return;
    }
    model_round_rows(s, type, k, n, z.wide);
    struct kern_copy op = {.x = k, .x_stride = z.wide, .y = v, .width = z.rank, .n_rows = n};
    if (type.type != GGUF_TYPE_F32)
        model_copy(s, op);
}

/** Keys and values of each head, made of the compressed rows. */
static void keys_of_heads(struct model_session *s, const struct model_step *step,
                          const struct latent_work *w, const float *in)
{
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    size_t n = step->tile.n_tokens;
    float *k = s->k + step->tile.kv_row * z.n_heads * z.key;
    float *v = s->v + step->tile.kv_row * z.n_heads * z.value;
    compress(s, step, w, in, w->head);
    model_multiply(s, &step->layer->latent.kv_up, w->head, n, w->kv);
    model_show(s, MODEL_AT_KV_UP, w->kv, z.n_heads, z.plain + z.value);
    struct kern_copy op = {.x = w->kv,
                           .x_stride = z.plain + z.value,
                           .y = k,
                           .y_stride = z.key,
                           .width = z.plain,
                           .n_rows = n * z.n_heads};
    model_copy(s, op);
    op.x = w->kv + z.plain;
    op.y = v;
    op.y_stride = op.width = z.value;
    model_copy(s, op);
    for (size_t i = 0; i < z.n_heads; i++)
        model_copy(s, (struct kern_copy){.x = w->z + z.rank,
                                         .x_stride = z.wide,
                                         .y = k + i * z.key + z.plain,
                                         .y_stride = z.n_heads * z.key,
                                         .width = z.rot,
                                         .n_rows = n});
    model_show(s, MODEL_AT_K_ROTATED, k, z.n_heads, z.key);
    model_show(s, MODEL_AT_V_PROJECTED, v, z.n_heads, z.value);
    model_round_keys(s, step->i_layer, k, n * z.n_heads, z.key);
    model_round_values(s, step->i_layer, v, n * z.n_heads, z.value);
}

/** Queries that meet compressed keys: k_up q for each head, then its rotated part. */
static void widen_q(struct model_session *s, const struct model_step *step,
                    const struct latent_work *w)
{
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    size_t n = step->tile.n_tokens;
    struct model_per_head op = {.stack = &step->layer->latent.k_up,
                                .step = step->layer->latent.step,
                                .x = w->q,
                                .x_head = z.key,
                                .x_stride = z.n_heads * z.key,
                                .y = w->q_wide,
                                .y_head = z.wide,
                                .y_stride = z.n_heads * z.wide};
    model_multiply_heads(s, n, z.n_heads, &op, w->head);
    model_copy(s, (struct kern_copy){.x = w->q + z.plain,
                                     .x_stride = z.key,
                                     .y = w->q_wide + z.rank,
                                     .y_stride = z.wide,
                                     .width = z.rot,
                                     .n_rows = n * z.n_heads});
}

static void attend(struct model_session *s, const struct model_step *step,
                   const struct latent_work *w, const struct kern_chosen *chosen)
{
    struct sizes z = sizes_of(&s->model->hparams, step->i_layer);
    struct kern_attention op = {
        .q = z.compressed ? w->q_wide : w->q,
        .k = s->k,
        .v = s->v,
        .out = z.compressed ? w->out_wide : w->out,
        .n_heads = z.n_heads,
        .n_kv_heads = step->shape->n_kv_heads,
        .head_size = z.compressed ? z.wide : z.key,
        .value_size = z.compressed ? z.rank : z.value,
        .scale = step->shape->scale,
        .sinks = model_present(&step->layer->sinks),
        .sliding_window = step->shape->window,
        .chosen = *chosen,
        .ranges = s->ranges,
        .n_ranges = step->n_ranges,
    };
    model_name_keys(s, step->i_layer, &op);
    MODEL_TRY(s, kern_attention(s->backend, &op, &s->failure.why));
    if (!z.compressed)
        return;
    struct model_per_head up = {.stack = &step->layer->latent.v_up,
                                .step = step->layer->latent.step,
                                .x = w->out_wide,
                                .x_head = z.rank,
                                .x_stride = z.n_heads * z.rank,
                                .y = w->out,
                                .y_head = z.value,
                                .y_stride = z.n_heads * z.value};
    model_multiply_heads(s, step->tile.n_tokens, z.n_heads, &up, w->head);
}

void model_block_latent(struct model_session *s, const struct model_step *step)
{
    const struct model_layer *layer = step->layer;
    struct model_cut cut = {.base = s->work};
    struct latent_work w = divide(&cut, s->model, step->i_layer, step->tile.n_tokens);
    bool compressed = s->model->hparams.compressed_keys;
    const float *in;
    model_branch_input(s, step, &layer->attn_norm, &in);
    project_q(s, step, &w, in);
    struct kern_linear gate = {.x = in, .n_tokens = step->tile.n_tokens};
    model_gate_project(s, step, &w.gate, gate);
    model_gate_show(s, step, &w.gate);
    if (compressed)
        keys_compressed(s, step, &w, in);
    else
        keys_of_heads(s, step, &w, in);
    struct kern_chosen chosen;
    if (step->shape->sparse)
        model_index_keys(s, step, in);
    model_index_choose(s, step, &(struct model_index_inputs){in, w.q_low, w.out_wide}, &chosen);
    if (compressed)
        widen_q(s, step, &w);
    if (compressed)
        model_show(s, MODEL_AT_Q_WIDE, w.q_wide, step->shape->n_heads,
                   model_kv_widths(&s->model->hparams, step->i_layer).k);
    attend(s, step, &w, &chosen);
    model_show(s, MODEL_AT_ATTENTION, w.out, step->shape->n_heads, step->shape->value_size);
    const float *out = model_gate_apply(s, step, &w.gate, w.out);
    model_close_branch(s, step, &layer->output, &layer->attn_post_norm, out);
}
