#include "clients/trace/rounded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"

enum { BLOCK = 32, SUPERBLOCK = 256 };

/** A number from -1 to 1, all equally likely (xorshift64*). */
static float draw(struct trace_rounded *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    uint64_t bits = r->state * UINT64_C(0x2545F4914F6CDD1D);
    return (float)(int32_t)(bits >> 32) * 0x1p-31F;
}

static enum status scratch(struct trace_rounded *r, size_t n, float **out, struct status_why *why)
{
    enum status status = base_array_reserve(r->scratch, r->capacity, n, "rounded values", why);
    *out = r->scratch;
    return status;
}

/** The power of two that is not above |x|. */
static float octave(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= UINT32_C(0x7f800000);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** Half a step of a type with so many bits after the point, and a least step. */
static void add_float_errors(struct trace_rounded *r, float *x, size_t n, int bits, float least)
{
    float half = ldexpf(0.5F, -bits);
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0)
            x[i] += draw(r) * fmaxf(octave(x[i]) * half, least / 2);
}

static void add_half_errors(struct trace_rounded *r, float *x, size_t n)
{
    add_float_errors(r, x, n, 10, 0x1p-24F);
}

static void add_brain_errors(struct trace_rounded *r, float *x, size_t n)
{
    add_float_errors(r, x, n, 7, 0);
}

static bool is_llama(const struct trace_rounded *r)
{
    return r->arithmetic == TRACE_AS_LLAMA || r->arithmetic == TRACE_SMALL_CACHE;
}

static bool keeps_bfloat16(const struct trace_rounded *r)
{
    return r->arithmetic == TRACE_BFLOAT16 || r->arithmetic == TRACE_COARSE;
}

/** What a program that keeps results in bfloat16 makes of them. */
static void add_result_errors(struct trace_rounded *r, float *x, size_t n)
{
    if (keeps_bfloat16(r))
        add_brain_errors(r, x, n);
}

static void add_relative_errors(struct trace_rounded *r, float *x, size_t n, float size)
{
    for (size_t i = 0; i < n; i++)
        x[i] += x[i] * (size * draw(r));
}

/**
 * Round to 8 bits by blocks of columns; a row ends a block. What is small beside an outlier of its
 * block becomes 0, so its error is no half of a step. A little noise makes passes differ.
 */
static void round_blocks(struct trace_rounded *r, float *x, size_t width, size_t n_rows,
                         size_t block)
{
    for (size_t row = 0; row < n_rows; row++, x += width)
        for (size_t from = 0; from < width; from += block) {
            size_t to = base_min(from + block, width);
            float most = 0;
            for (size_t i = from; i < to; i++)
                most = fmaxf(most, fabsf(x[i]));
            float step = most / 127;
            for (size_t i = from; i < to && step > 0; i++)
                x[i] = step * roundf(x[i] / step + 0.02F * draw(r));
        }
}

void trace_rounded_input(struct trace_rounded *r, const struct kern_weight *w, float *x,
                         size_t n_rows)
{
    size_t n = n_rows * w->n_cols;
    unsigned block = r->arithmetic == TRACE_FLOAT32 ? 1 : gguf_type_info(w->type)->block_elems;
    bool half = is_llama(r) && w->type == GGUF_TYPE_F16;
    bool brain = is_llama(r) && w->type == GGUF_TYPE_BF16;
    if (r->arithmetic == TRACE_COARSE)
        round_blocks(r, x, w->n_cols, n_rows, BLOCK);
    if (keeps_bfloat16(r) || brain)
        add_brain_errors(r, x, n);
    else if (half)
        add_half_errors(r, x, n);
    else if (block > 1)
        round_blocks(r, x, w->n_cols, n_rows, block < SUPERBLOCK ? BLOCK : SUPERBLOCK);
    add_relative_errors(r, x, n, 0x1p-24F * sqrtf(8 + (float)w->n_cols / 32));
}

static enum status linear(struct kern_backend *b, const struct kern_linear *op,
                          struct status_why *why)
{
    struct trace_rounded *r = kern_owner_of(b);
    struct kern_linear changed = *op;
    size_t n = op->n_tokens * op->weight->n_cols;
    float *x;
    enum status status = scratch(r, n, &x, why);
    if (status)
        return status;
    memcpy(x, op->x, n * sizeof *x);
    trace_rounded_input(r, op->weight, x, op->n_tokens);
    changed.x = x;
    changed.same_x = false;
    status = r->observer.inner->linear(b, &changed, why);
    for (size_t i = 0; !status && i < op->n_tokens; i++)
        add_result_errors(r, op->y + i * op->y_stride, op->weight->n_rows);
    return status;
}

static enum status embed(struct kern_backend *b, const struct kern_weight *matrix,
                         const int32_t *tokens, size_t n_tokens, float *x, struct status_why *why)
{
    struct trace_rounded *r = kern_owner_of(b);
    enum status status = r->observer.inner->embed(b, matrix, tokens, n_tokens, x, why);
    if (!status)
        add_relative_errors(r, x, n_tokens * matrix->n_cols, 0x1p-23F);
    return status;
}

static enum status norm(struct kern_backend *b, const struct kern_norm *op, struct status_why *why)
{
    struct trace_rounded *r = kern_owner_of(b);
    enum status status = r->observer.inner->norm(b, op, why);
    for (size_t i = 0; !status && i < op->n_rows; i++) {
        add_relative_errors(r, op->y + i * op->width, op->width, 0x1p-23F);
        float common = 1 + 0x1p-23F * draw(r);
        for (size_t j = 0; j < op->width; j++)
            op->y[i * op->width + j] *= common;
        add_result_errors(r, op->y + i * op->width, op->width);
    }
    return status;
}

/** Pairs of each head turn by what float32 is off in their angles. */
static void turn(struct trace_rounded *r, const struct kern_rope *op, size_t pair)
{
    if (op->n_positions < 2)
        return;
    const float *one = op->angles + 2 * (op->n_pairs + pair); /* of position 1 */
    float size = 0x1p-24F * (float)(pair + 1) * fabsf(atan2f(one[1], one[0])) * draw(r);
    size_t a = op->split_halves ? pair : 2 * pair,
           b = op->split_halves ? pair + op->n_pairs : a + 1;
    for (size_t t = 0; t < op->n_tokens; t++) {
        float angle = size * (float)op->positions[t];
        for (size_t h = 0; h < op->n_heads; h++) {
            float *x = op->x + t * op->stride + h * op->head_size, first = x[a];
            x[a] -= angle * x[b];
            x[b] += angle * first;
        }
    }
}

static enum status rope(struct kern_backend *b, const struct kern_rope *op, struct status_why *why)
{
    struct trace_rounded *r = kern_owner_of(b);
    enum status status = r->observer.inner->rope(b, op, why);
    for (size_t i = 0; !status && i < op->n_pairs; i++)
        turn(r, op, i);
    for (size_t t = 0; !status && t < op->n_tokens; t++)
        for (size_t h = 0; h < op->n_heads; h++)
            add_relative_errors(r, op->x + t * op->stride + h * op->head_size, 2 * op->n_pairs,
                                0x1p-23F);
    return status;
}

/** Errors of the RMS of each head. */
static void add_head_errors(struct trace_rounded *r, float *x, size_t size, float share)
{
    double squares = 0;
    for (size_t i = 0; i < size; i++)
        squares += (double)x[i] * (double)x[i];
    float most = share * (float)sqrt(squares / (double)size);
    for (size_t i = 0; i < size; i++)
        x[i] += most * draw(r);
}

static enum status attention(struct kern_backend *b, const struct kern_attention *op,
                             struct status_why *why)
{
    struct trace_rounded *r = kern_owner_of(b);
    struct kern_attention changed = *op;
    size_t n_q = 0, n_k = 0;
    for (size_t i = 0; i < op->n_ranges; i++) {
        const struct kern_query_range *range = &op->ranges[i];
        n_q = base_max(n_q, range->q_row + range->n_q);
        n_k = base_max(n_k, range->kv_row + range->q_offset + range->n_q);
    }
    size_t q = n_q * op->n_heads * op->head_size, k = n_k * op->n_kv_heads * op->head_size;
    size_t v = n_k * op->n_kv_heads * op->value_size;
    float *copy;
    enum status status = scratch(r, q + k + v, &copy, why);
    if (status)
        return status;
    memcpy(copy, op->q, q * sizeof *copy);
    memcpy(copy + q, op->k, k * sizeof *copy);
    memcpy(copy + q + k, op->v, v * sizeof *copy);
    bool fine = r->arithmetic == TRACE_FLOAT32;
    if (!fine)
        add_half_errors(r, copy, q + k + v);
    add_result_errors(r, copy, q + k + v);
    if (r->arithmetic == TRACE_SMALL_CACHE) {
        round_blocks(r, copy + q, op->head_size, n_k * op->n_kv_heads, BLOCK);
        round_blocks(r, copy + q + k, op->value_size, n_k * op->n_kv_heads, BLOCK);
    }
    changed.q = copy;
    changed.k = copy + q;
    changed.v = copy + q + k;
    status = r->observer.inner->attention(b, &changed, why);
    for (size_t i = 0; !status && i < op->n_ranges; i++)
        for (size_t j = 0; j < op->ranges[i].n_q; j++)
            for (size_t h = 0; h < op->n_heads; h++)
                add_head_errors(
                    r, op->out + ((op->ranges[i].q_row + j) * op->n_heads + h) * op->value_size,
                    op->value_size,
                    (fine ? 0x1p-24F : 0x1p-12F) * sqrtf((float)(op->ranges[i].q_offset + j + 1)));
    return status;
}

/**
 * softplus(x) is off by half a step of 1: it is ln(1 + exp x), and the sum is rounded. x is off by
 * so much that this comes of it, but by no more than 1: far below 0 both are next to nothing.
 */
static float softplus_error(struct trace_rounded *r, float x)
{
    return draw(r) * fminf(1, 0x1p-24F * (1 + expf(-x)));
}

static enum status activate(struct kern_backend *b, const struct kern_activate *op,
                            struct status_why *why)
{
    struct trace_rounded *r = kern_owner_of(b);
    bool table = op->kind == KERN_GELU && r->arithmetic != TRACE_FLOAT32;
    if (table)
        add_half_errors(r, op->gate, op->n);
    for (size_t i = 0; op->kind == KERN_SOFTPLUS && i < op->n; i++)
        op->gate[i] += softplus_error(r, op->gate[i]);
    if (op->kind == KERN_XIELU) /* its terms can cancel */
        add_relative_errors(r, op->gate, op->n, 0x1p-22F);
    enum status status = r->observer.inner->activate(b, op, why);
    if (!status && table)
        add_half_errors(r, op->gate, op->n);
    if (!status)
        add_relative_errors(r, op->gate, op->n, 0x1p-22F);
    return status;
}

static void add_softplus_errors(struct trace_rounded *r, const struct kern_recur *op, float *dt,
                                size_t n_rows)
{
    const float *bias = op->dt_bias->type == GGUF_TYPE_F32 ? op->dt_bias->data : NULL;
    size_t n = op->n_heads * (op->by_channel ? op->k_size : 1);
    for (size_t row = 0; row < n_rows; row++)
        for (size_t h = 0; h < n; h++) {
            float *x = &dt[row * n + h];
            *x = op->dt[row * op->dt_stride + h];
            *x += softplus_error(r, *x + (bias ? bias[h] : 0));
        }
}

static enum status recur(struct kern_backend *b, const struct kern_recur *op,
                         struct status_why *why)
{
    struct trace_rounded *r = kern_owner_of(b);
    struct kern_recur changed = *op;
    size_t n_rows = 0;
    for (size_t i = 0; i < op->n_runs; i++)
        n_rows = base_max(n_rows, op->runs[i].row + op->runs[i].n);
    float *copy;
    size_t n_steps = op->n_heads * (op->by_channel ? op->k_size : 1);
    enum status status = scratch(r, n_rows * n_steps, &copy, why);
    if (status)
        return status;
    add_softplus_errors(r, op, copy, n_rows);
    changed.dt = copy;
    changed.dt_stride = n_steps;
    status = r->observer.inner->recur(b, &changed, why);
    for (size_t i = 0; !status && i < n_rows * op->n_heads; i++)
        add_head_errors(r, op->out + i * op->v_size, op->v_size, 0x1p-19F);
    return status;
}

void trace_rounded_begin(struct trace_rounded *r, struct kern_backend *backend, uint64_t seed)
{
    struct kern_backend_ops *ops = &r->observer.ops;
    r->state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    kern_observe(&r->observer, backend, r);
    ops->linear = linear;
    ops->embed = embed;
    ops->norm = norm;
    ops->rope = rope;
    ops->attention = attention;
    ops->activate = activate;
    ops->recur = recur;
}

void trace_rounded_end(struct trace_rounded *r)
{
    kern_observe_end(&r->observer);
    free(r->scratch);
    *r = (struct trace_rounded){0};
}
