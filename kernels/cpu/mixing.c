/* Streams of a residual, and keys that are made of runs of tokens. */
#include <string.h>

#include "kernels/mixing.h"

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/operations.h"
#include "kernels/mixing/weights.h"

enum { CHUNK = 256 /* elements of a row at a time */, TOKENS = 16 };

/** An operation's tasks: each is a row, or a few. */
struct mixing {
    const struct kern_ops *ops;
    const void *op;
    const float *scale, *base; /* of struct kern_stream_weights */
};

/** out = weight * x for the first term, then += . */
static void add_term(const struct kern_ops *ops, float *out, const float *x, float weight,
                     bool first, size_t n)
{
    if (first)
        ops->scale(out, x, weight, n);
    else
        ops->add_scaled(out, x, weight, n);
}

/** Elements from .. from + n - 1 of a token's streams: all are made before the first is written. */
static void mix_chunk(const struct mixing *m, size_t t, size_t from, size_t n)
{
    const struct kern_mix *op = m->op;
    _Alignas(64) float sums[KERN_STREAMS_MAX][CHUNK];
    const float *x = op->x + t * op->n_in * op->width + from;
    const float *weights = op->weights + t * op->stride;
    size_t from_step = op->by_output ? 1 : op->n_out, to_step = op->by_output ? op->n_in : 1;
    for (size_t u = 0; u < op->n_out; u++) {
        if (op->y)
            m->ops->scale(sums[u], op->y + t * op->width + from, op->y_weights[t * op->stride + u],
                          n);
        for (size_t s = 0; s < op->n_in; s++)
            add_term(m->ops, sums[u], x + s * op->width, weights[s * from_step + u * to_step],
                     s == 0 && !op->y, n);
    }
    for (size_t u = 0; u < op->n_out; u++)
        m->ops->scale(op->out + (t * op->n_out + u) * op->width + from, sums[u], 1.0f, n);
}

/** Streams that are not mixed: each gets its share of y. */
static void share_out(const struct mixing *m, size_t t)
{
    const struct kern_mix *op = m->op;
    for (size_t u = 0, at = t * op->n_out * op->width; u < op->n_out; u++, at += op->width) {
        if (op->out != op->x)
            memcpy(op->out + at, op->x + at, op->width * sizeof *op->x);
        m->ops->add_scaled(op->out + at, op->y + t * op->width, op->y_weights[t * op->stride + u],
                           op->width);
    }
}

static void mix_token(void *context, size_t t, unsigned thread)
{
    (void)thread;
    const struct mixing *m = context;
    const struct kern_mix *op = m->op;
    if (!op->weights) {
        share_out(m, t);
        return;
    }
    for (size_t from = 0; from < op->width; from += CHUNK)
        mix_chunk(m, t, from, base_min(op->width - from, CHUNK));
}

enum status kern_cpu_mix(struct kern_backend *b, const struct kern_mix *op, struct status_why *why)
{
    (void)why;
    struct mixing m = {.ops = &kern_cpu_of(b)->kernels.ops, .op = op};
    return kern_cpu_run(kern_cpu_of(b), op->n_tokens, mix_token, &m);
}

static void weigh_tokens(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct mixing *m = context;
    const struct kern_stream_weights *op = m->op;
    size_t end = base_min((index + 1) * TOKENS, op->n_tokens);
    for (size_t t = index * TOKENS; t < end; t++)
        kern_stream_weights_row(op->a + t * op->base->n_cols, m->scale, m->base, &op->rule);
}

enum status kern_cpu_stream_weights(struct kern_backend *b, const struct kern_stream_weights *op,
                                    struct status_why *why)
{
    (void)why;
    enum { PARTS = 3, MOST = (2 + KERN_STREAMS_MAX) * KERN_STREAMS_MAX };
    struct kern_cpu *cpu = kern_cpu_of(b);
    float scale[PARTS], base[MOST];
    kern_weight_take_row(cpu, op->scale, 0, scale);
    kern_weight_take_row(cpu, op->base, 0, base);
    struct mixing m = {.op = op, .scale = scale, .base = base};
    return kern_cpu_run(cpu, base_div_up(op->n_tokens, TOKENS), weigh_tokens, &m);
}

static void compress_row(void *context, size_t i, unsigned thread)
{
    (void)thread;
    const struct mixing *m = context;
    const struct kern_compress *op = m->op;
    struct kern_terms terms = {.u = op->u,
                               .z = op->z,
                               .stride = op->stride,
                               .rows = op->rows + i * op->n_terms,
                               .n_terms = op->n_terms,
                               .n_early = op->n_early,
                               .late = op->late};
    m->ops->compress(op->y + i * op->width, &terms, op->width);
}

enum status kern_cpu_compress(struct kern_backend *b, const struct kern_compress *op,
                              struct status_why *why)
{
    (void)why;
    struct mixing m = {.ops = &kern_cpu_of(b)->kernels.ops, .op = op};
    return kern_cpu_run(kern_cpu_of(b), op->n_out, compress_row, &m);
}

static void softmax_rows(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct mixing *m = context;
    const struct kern_softmax *op = m->op;
    size_t end = base_min((index + 1) * TOKENS, op->n_rows);
    for (size_t r = index * TOKENS; r < end; r++)
        kern_softmax_row(op->x + r * op->width, op->n, op->width);
}

enum status kern_cpu_softmax(struct kern_backend *b, const struct kern_softmax *op,
                             struct status_why *why)
{
    (void)why;
    struct mixing m = {.op = op};
    return kern_cpu_run(kern_cpu_of(b), base_div_up(op->n_rows, TOKENS), softmax_rows, &m);
}
