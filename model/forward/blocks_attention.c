#include <math.h>

#include "model/forward/session.h"

/** Heads of the step's layer, and the floats of a row. */
struct widths {
    size_t n_heads, n_kv_heads, head_size;
    size_t q, kv; /* H * d, G * d */
};

static struct widths widths_of(const struct model_hparams *h, size_t i_layer)
{
    struct widths w = {h->n_heads[i_layer], h->n_kv_heads[i_layer], h->head_size, 0, 0};
    w.q = w.n_heads * w.head_size;
    w.kv = w.n_kv_heads * w.head_size;
    return w;
}

/** q, k and v (out, in this order) of the normalised tokens. */
static enum status project(struct model_session *s, const struct model_layer *layer,
                           size_t n_tokens, float *const out[3], struct status_why *why)
{
    const struct kern_weight *const weights[] = {&layer->q, &layer->k, &layer->v};
    const struct kern_weight *const biases[] = {&layer->q_bias, &layer->k_bias, &layer->v_bias};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < 3 && !status; i++) {
        struct kern_linear op = {.weight = weights[i],
                                 .bias = model_bias(biases[i]),
                                 .x = s->h,
                                 .y = out[i],
                                 .y_stride = weights[i]->n_rows,
                                 .n_tokens = n_tokens,
                                 .same_x = i > 0};
        status = kern_linear(s->backend, &op, why);
    }
    return status;
}

static enum status rotate(struct model_session *s, float *x, size_t n_heads, size_t n_tokens,
                          struct status_why *why)
{
    const struct model_hparams *h = &s->model->hparams;
    struct kern_rope op = {.x = x,
                           .stride = n_heads * h->head_size,
                           .n_tokens = n_tokens,
                           .n_heads = n_heads,
                           .head_size = h->head_size,
                           .n_pairs = h->n_rot / 2,
                           .split_halves = h->rope_split_halves,
                           .angles = s->angles,
                           .n_positions = s->options.max_segment,
                           .positions = s->positions};
    return kern_rope(s->backend, &op, why);
}

/** q of the tile, and the tile's rows of k and v. */
static enum status project_qkv(struct model_session *s, const struct model_step *step, float *q,
                               struct status_why *why)
{
    const struct model_layer *layer = step->layer;
    struct widths w = widths_of(&s->model->hparams, step->i_layer);
    size_t n = step->tile.n_tokens;
    float *k = s->k + step->tile.kv_row * w.kv;
    float *v = s->v + step->tile.kv_row * w.kv;
    enum status status = kern_rmsnorm(s->backend, &layer->attn_norm, s->model->hparams.rms_eps,
                                      step->x, n, s->h, why);
    if (!status)
        status = project(s, layer, n, (float *const[]){q, k, v}, why);
    if (!status)
        status = rotate(s, q, w.n_heads, n, why);
    if (!status)
        status = rotate(s, k, w.n_kv_heads, n, why);
    return status;
}

enum status model_block_attention(struct model_session *s, const struct model_step *step,
                                  struct status_why *why)
{
    struct widths w = widths_of(&s->model->hparams, step->i_layer);
    float *q = s->work;
    float *out = s->work + model_work_floats(step->tile.n_tokens * w.q);
    enum status status = project_qkv(s, step, q, why);
    if (status)
        return status;
    struct kern_attention attention = {
        .q = q,
        .k = s->k,
        .v = s->v,
        .out = out,
        .n_heads = w.n_heads,
        .n_kv_heads = w.n_kv_heads,
        .head_size = w.head_size,
        .value_size = w.head_size,
        .scale = (float)(1 / sqrt((double)w.head_size)),
        .sliding_window = s->model->hparams.sliding_window,
        .ranges = s->ranges,
        .n_ranges = step->n_ranges,
    };
    status = kern_attention(s->backend, &attention, why);
    if (status)
        return status;
    struct kern_linear output = {.weight = &step->layer->output,
                                 .bias = model_bias(&step->layer->output_bias),
                                 .x = out,
                                 .y = step->x,
                                 .y_stride = s->model->hparams.n_embd,
                                 .n_tokens = step->tile.n_tokens,
                                 .accumulate = true};
    return kern_linear(s->backend, &output, why);
}
