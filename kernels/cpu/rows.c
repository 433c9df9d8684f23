/* The operations on single rows: embedding, norms, rotary embedding, activations, experts. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/operations.h"
#include "kernels/experts/route.h"
#include "kernels/quant/round.h"

/** Rows, or elements, that a thread takes at a time. */
enum { EMBED_ROWS = 64, ROWS = 8, ELEMENTS = 8192 };

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

/** Rows of this width that a thread takes at a time: they may be whole tokens, or small heads. */
static size_t grain_of(size_t width)
{
    return base_max(ROWS, ELEMENTS / width);
}

static const struct kern_ops *ops_of(struct kern_backend *b)
{
    return &kern_cpu_of(b)->kernels.ops;
}

/** A vector decoded to *memory, which moves past it; NULL if there is none. */
static const float *take_vector(const struct kern_cpu *cpu, const struct kern_weight *w,
                                float **memory)
{
    if (!w)
        return NULL;
    float *values = *memory;
    kern_weight_take_row(cpu, w, 0, values);
    *memory += w->n_cols;
    return values;
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
        kern_weight_take_row(e->cpu, e->matrix, (size_t)e->tokens[t], e->x + t * e->matrix->n_cols);
}

enum status kern_cpu_embed(struct kern_backend *b, const struct kern_weight *matrix,
                           const int32_t *tokens, size_t n_tokens, float *x, struct status_why *why)
{
    (void)why;
    struct embed e = {.cpu = kern_cpu_of(b), .matrix = matrix, .tokens = tokens, .x = x};
    return run_rows(b, n_tokens, EMBED_ROWS, embed_rows, &e);
}

struct norm {
    const struct kern_norm *op;
    kern_op_norm_fn *fn;
    const float *gain, *bias;
};

static void norm_rows(const void *context, size_t begin, size_t end)
{
    const struct norm *n = context;
    const struct kern_norm *op = n->op;
    for (size_t r = begin; r < end; r++) {
        size_t group = r % op->n_groups * op->width;
        n->fn(&(struct kern_norm_row){.y = op->y + r * op->width,
                                      .x = op->x + r * op->width,
                                      .gain = n->gain ? n->gain + group : NULL,
                                      .bias = n->bias ? n->bias + group : NULL,
                                      .n = op->width,
                                      .eps = op->eps,
                                      .center = op->center,
                                      .accumulate = op->accumulate,
                                      .plain = op->plain});
    }
}

enum status kern_cpu_norm(struct kern_backend *b, const struct kern_norm *op,
                          struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    void *memory;
    size_t n_floats = 2 * op->n_groups * op->width;
    enum status status = kern_cpu_scratch(cpu, &memory, n_floats * sizeof(float), why);
    if (status)
        return status;
    float *free_floats = memory;
    struct norm n = {.op = op, .fn = ops_of(b)->norm};
    n.gain = take_vector(cpu, op->gain, &free_floats);
    n.bias = take_vector(cpu, op->bias, &free_floats);
    return run_rows(b, op->n_rows, grain_of(op->width), norm_rows, &n);
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

struct activation {
    const struct kern_activate *op;
    kern_op_activate_fn *fn;
};

static void activate_elements(const void *context, size_t begin, size_t end)
{
    const struct activation *a = context;
    const float *up = a->op->up;
    a->fn(a->op->kind, &a->op->curve, a->op->gate + begin, up ? up + begin : NULL, end - begin);
}

enum status kern_cpu_activate(struct kern_backend *b, const struct kern_activate *op,
                              struct status_why *why)
{
    (void)why;
    struct activation a = {op, ops_of(b)->activate};
    return run_rows(b, op->n, ELEMENTS, activate_elements, &a);
}

struct routing {
    const struct kern_route *op;
    const float *bias;
    double *memory; /* kern_route_doubles() of each thread */
};

static void route_tokens(void *context, size_t index, unsigned thread)
{
    const struct routing *r = context;
    size_t n = r->op->n_experts, end = base_min((index + 1) * ROWS, r->op->n_tokens);
    for (size_t t = index * ROWS; t < end; t++)
        kern_route_token(r->op, t, r->op->logits + t * n, r->bias,
                         r->memory + thread * kern_route_doubles(n));
}

enum status kern_cpu_route(struct kern_backend *b, const struct kern_route *op,
                           struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    size_t n_doubles = kern_route_doubles(op->n_experts) * base_pool_n_threads(cpu->pool);
    void *memory;
    enum status status = kern_cpu_scratch(
        cpu, &memory, n_doubles * sizeof(double) + op->n_experts * sizeof(float), why);
    if (status)
        return status;
    struct routing r = {.op = op, .memory = memory};
    float *bias = (float *)(void *)(r.memory + n_doubles);
    r.bias = take_vector(cpu, op->selection_bias, &bias);
    return kern_cpu_run(cpu, base_div_up(op->n_tokens, ROWS), route_tokens, &r);
}

struct scaling {
    float *x;
    size_t width;
    const float *factors;
};

static void scale_rows(const void *context, size_t begin, size_t end)
{
    const struct scaling *s = context;
    for (size_t r = begin; r < end; r++)
        for (size_t i = 0; i < s->width; i++)
            s->x[r * s->width + i] *= s->factors[r];
}

enum status kern_cpu_scale_rows(struct kern_backend *b, float *x, size_t width, size_t n_rows,
                                const float *factors, struct status_why *why)
{
    (void)why;
    struct scaling s = {x, width, factors};
    return run_rows(b, n_rows, grain_of(width), scale_rows, &s);
}

static void copy_rows(const void *context, size_t begin, size_t end)
{
    const struct kern_copy *op = context;
    for (size_t r = begin; r < end; r++) {
        const float *x = op->x + r * op->x_stride;
        float *y = op->y + r * op->y_stride;
        if (op->spread <= 1)
            memcpy(y, x, op->width * sizeof(float));
        else
            for (size_t i = 0; i < op->width; i++)
                y[i] = x[i / op->spread];
    }
}

enum status kern_cpu_copy_rows(struct kern_backend *b, const struct kern_copy *op,
                               struct status_why *why)
{
    (void)why;
    return run_rows(b, op->n_rows, grain_of(op->width), copy_rows, op);
}

static void turn(float *x, size_t n)
{
    for (size_t half = 1; half < n; half *= 2) {
        float scale = 2 * half == n ? 1.0f / sqrtf((float)n) : 1.0f;
        for (size_t i = 0; i < n; i += 2 * half)
            for (size_t k = i; k < i + half; k++)
                kern_turn_pair(x + k, half, scale);
    }
}

static void round_elements(const void *context, size_t begin, size_t end)
{
    const struct kern_round *op = context;
    size_t step = kern_round_step(op->type), n_run = base_max(op->n_turn, step);
    for (size_t i = begin; i < end; i += n_run) {
        size_t n = base_min(end - i, n_run);
        turn(op->x + i, op->n_turn);
        for (size_t k = 0; k < n; k += step)
            kern_round_scaled(op->type, op->x + i + k, base_min(n - k, step), op->scale);
        turn(op->x + i, op->n_turn);
    }
}

static void round_whole_rows(const void *context, size_t begin, size_t end)
{
    const struct kern_round *op = context;
    for (size_t i = begin; i < end; i++)
        kern_round_q8_kv(op->x + i * op->row, op->row);
}

enum status kern_cpu_round(struct kern_backend *b, const struct kern_round *op,
                           struct status_why *why)
{
    (void)why;
    if (op->type == GGUF_TYPE_Q8_KV)
        return run_rows(b, op->n / op->row, grain_of(op->row), round_whole_rows, op);
    return run_rows(b, op->n, ELEMENTS, round_elements, op);
}

static void gather_rows(const void *context, size_t begin, size_t end)
{
    const struct kern_gather *g = context;
    for (size_t i = begin; i < end; i++)
        memcpy(g->y + i * g->width, g->x + g->rows[i] * g->width, g->width * sizeof(float));
}

enum status kern_cpu_gather(struct kern_backend *b, const struct kern_gather *op,
                            struct status_why *why)
{
    (void)why;
    return run_rows(b, op->n, ROWS, gather_rows, op);
}

struct scattering {
    kern_op_add_scaled_fn *add_scaled;
    const struct kern_scatter *op;
};

/* All that is added to one row, of which i is the first. */
static void scatter_row(const struct scattering *s, size_t i)
{
    const struct kern_scatter *op = s->op;
    float *y = op->y + op->rows[i] * op->width;
    for (size_t k = i; k < op->n && op->rows[k] == op->rows[i]; k++) {
        size_t from = op->from ? op->from[k] : k;
        s->add_scaled(y, op->x + from * op->width, op->shares[k], op->width);
    }
}

static void scatter_rows(const void *context, size_t begin, size_t end)
{
    const struct scattering *s = context;
    for (size_t i = begin; i < end; i++)
        if (i == 0 || s->op->rows[i] != s->op->rows[i - 1])
            scatter_row(s, i);
}

enum status kern_cpu_scatter_add(struct kern_backend *b, const struct kern_scatter *op,
                                 struct status_why *why)
{
    (void)why;
    struct scattering s = {ops_of(b)->add_scaled, op};
    return run_rows(b, op->n, ROWS, scatter_rows, &s);
}
