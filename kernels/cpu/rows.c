/* The operations on single rows: embedding, RMSNorm, rotary embedding, silu_mul, experts. */
#include <string.h>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/numerics/ops_scalar.h"

/** Rows, or elements, that a thread takes at a time. */
enum { EMBED_ROWS = 64, ROWS = 8, SILU_MUL_ELEMENTS = 8192 };

/** The work of an operation: rows [begin, end). */
typedef void rows_fn(const void *context, size_t begin, size_t end);

struct ranges {
    rows_fn *fn;
    const void *context;
    size_t n_rows, grain;
};

static void run_range(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct ranges *r = context;
    r->fn(r->context, index * r->grain, base_min((index + 1) * r->grain, r->n_rows));
}

/** Do all rows, `grain` at a time, on the backend's threads. */
static enum status run_rows(struct kern_backend *b, size_t n_rows, size_t grain, rows_fn *fn,
                            const void *context)
{
    struct ranges r = {.fn = fn, .context = context, .n_rows = n_rows, .grain = grain};
    return kern_cpu_run(kern_cpu_of(b), base_div_up(n_rows, grain), run_range, &r);
}

static const struct kern_ops *ops_of(struct kern_backend *b)
{
    return &kern_cpu_of(b)->kernels.ops;
}

struct embed {
    const struct kern_cpu *cpu;
    const struct kern_weight *matrix;
    const int32_t *tokens;
    float *x;
};

static void embed_rows(const void *context, size_t begin, size_t end)
{
    const struct embed *e = context;
    for (size_t t = begin; t < end; t++)
        kern_weight_decode_row(e->cpu, e->matrix, (size_t)e->tokens[t],
                               e->x + t * e->matrix->n_cols);
}

enum status kern_cpu_embed(struct kern_backend *b, const struct kern_weight *matrix,
                           const int32_t *tokens, size_t n_tokens, float *x, struct status_why *why)
{
    (void)why;
    struct embed e = {.cpu = kern_cpu_of(b), .matrix = matrix, .tokens = tokens, .x = x};
    return run_rows(b, n_tokens, EMBED_ROWS, embed_rows, &e);
}

struct norm {
    kern_op_rmsnorm_fn *rmsnorm;
    const float *gain, *x;
    float *y;
    size_t width;
    float eps;
};

static void norm_rows(const void *context, size_t begin, size_t end)
{
    const struct norm *n = context;
    for (size_t t = begin; t < end; t++)
        n->rmsnorm(n->y + t * n->width, n->x + t * n->width, n->gain, n->eps, n->width);
}

enum status kern_cpu_rmsnorm(struct kern_backend *b, const struct kern_weight *gain, float eps,
                             const float *x, size_t n_tokens, float *y, struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    void *decoded;
    enum status status = kern_cpu_scratch(cpu, &decoded, gain->n_cols * sizeof(float), why);
    if (status)
        return status;
    kern_weight_decode_row(cpu, gain, 0, decoded);
    struct norm n = {.rmsnorm = ops_of(b)->rmsnorm,
                     .gain = decoded,
                     .x = x,
                     .y = y,
                     .width = gain->n_cols,
                     .eps = eps};
    return run_rows(b, n_tokens, ROWS, norm_rows, &n);
}

struct rotation {
    const struct kern_rope *op;
    kern_op_rope_halves_fn *rotate;
};

static void rotate_rows(const void *context, size_t begin, size_t end)
{
    const struct rotation *r = context;
    const struct kern_rope *op = r->op;
    for (size_t t = begin; t < end; t++) {
        const float *angles = op->angles + (size_t)op->positions[t] * 2 * op->n_pairs;
        for (size_t h = 0; h < op->n_heads; h++)
            r->rotate(op->x + t * op->stride + h * op->head_size, angles, op->n_pairs);
    }
}

enum status kern_cpu_rope(struct kern_backend *b, const struct kern_rope *op,
                          struct status_why *why)
{
    (void)why;
    const struct kern_ops *ops = ops_of(b);
    struct rotation r = {op, op->split_halves ? ops->rope_halves : ops->rope_adjacent};
    return run_rows(b, op->n_tokens, ROWS, rotate_rows, &r);
}

struct silu_mul {
    kern_op_silu_mul_fn *fn;
    float *gate;
    const float *up;
};

static void silu_mul_elements(const void *context, size_t begin, size_t end)
{
    const struct silu_mul *s = context;
    s->fn(s->gate + begin, s->up + begin, end - begin);
}

enum status kern_cpu_silu_mul(struct kern_backend *b, float *gate, const float *up, size_t n,
                              struct status_why *why)
{
    (void)why;
    struct silu_mul s = {ops_of(b)->silu_mul, gate, up};
    return run_rows(b, n, SILU_MUL_ELEMENTS, silu_mul_elements, &s);
}

struct choice {
    const float *logits;
    size_t n_experts, n_used;
    int32_t *experts;
    float *shares;
};

static void choose_experts(const void *context, size_t begin, size_t end)
{
    const struct choice *c = context;
    for (size_t t = begin; t < end; t++)
        kern_scalar_top_experts(c->logits + t * c->n_experts, c->n_experts, c->n_used,
                                c->experts + t * c->n_used, c->shares + t * c->n_used);
}

enum status kern_cpu_top_experts(struct kern_backend *b, const float *logits, size_t n_tokens,
                                 size_t n_experts, size_t n_used, int32_t *experts, float *shares,
                                 struct status_why *why)
{
    (void)why;
    struct choice c = {logits, n_experts, n_used, experts, shares};
    return run_rows(b, n_tokens, ROWS, choose_experts, &c);
}

/** Rows to and from an expert. */
struct move {
    kern_op_add_scaled_fn *add_scaled;
    const float *x;
    size_t width;
    const uint32_t *rows;
    const float *shares;
    float *y;
};

static void gather_rows(const void *context, size_t begin, size_t end)
{
    const struct move *m = context;
    for (size_t i = begin; i < end; i++)
        memcpy(m->y + i * m->width, m->x + m->rows[i] * m->width, m->width * sizeof(float));
}

enum status kern_cpu_gather(struct kern_backend *b, const float *x, size_t width,
                            const uint32_t *rows, size_t n_rows, float *y, struct status_why *why)
{
    (void)why;
    struct move m = {.x = x, .width = width, .rows = rows, .y = y};
    return run_rows(b, n_rows, ROWS, gather_rows, &m);
}

static void scatter_rows(const void *context, size_t begin, size_t end)
{
    const struct move *m = context;
    for (size_t i = begin; i < end; i++)
        m->add_scaled(m->y + m->rows[i] * m->width, m->x + i * m->width, m->shares[i], m->width);
}

enum status kern_cpu_scatter_add(struct kern_backend *b, const float *x, size_t width,
                                 const uint32_t *rows, const float *shares, size_t n_rows, float *y,
                                 struct status_why *why)
{
    (void)why;
    struct move m = {ops_of(b)->add_scaled, x, width, rows, shares, y};
    return run_rows(b, n_rows, ROWS, scatter_rows, &m);
}
