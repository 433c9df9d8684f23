/* Mixture of experts: choosing them, and moving rows to them and back. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/context.h"
#include "kernels/cpu/fmath.h"
#include "kernels/cpu/ops_scalar.h"

void kern_scalar_add_scaled(float *y, const float *x, float share, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = fmaf(share, x[i], y[i]);
    }
}

enum { MOE_ROWS = 8 }; /* per iteration of the pool */

static size_t n_chunks(size_t n_rows)
{
    return (n_rows + MOE_ROWS - 1) / MOE_ROWS;
}

static size_t chunk_end(size_t index, size_t n_rows)
{
    size_t end = (index + 1) * MOE_ROWS;
    return end < n_rows ? end : n_rows;
}

struct route_job {
    const float *logits;
    size_t n_tokens, n_experts, n_used;
    int32_t *experts;
    float *shares;
};

/* The largest logit that comes after expert `last` in the order (larger first, lower id first). */
static size_t next_best(const float *logits, size_t n, size_t last)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
        bool behind =
            last == n || logits[i] < logits[last] || (logits[i] == logits[last] && i > last);
        if (behind && (best == n || logits[i] > logits[best])) {
            best = i;
        }
    }
    return best;
}

/* Whether the logits define a distribution: no NaN, no +infinity, one at least finite. */
static bool is_distribution(const float *logits, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!(logits[i] < INFINITY)) {
            return false;
        }
        any = any || logits[i] > -INFINITY;
    }
    return any;
}

/*
 * The sum of the softmax over all experts cancels when the chosen ones are renormalised, so
 * only their exponentials are taken. Without a distribution: the first experts, shares NaN.
 */
void kern_scalar_route(const float *logits, size_t n_experts, size_t n_used, int32_t *experts,
                       float *shares)
{
    if (!is_distribution(logits, n_experts)) {
        for (size_t j = 0; j < n_used; j++) {
            experts[j] = (int32_t)j;
            shares[j] = NAN;
        }
        return;
    }
    size_t last = n_experts;
    double sum = 0.0;
    for (size_t j = 0; j < n_used; j++) {
        last = next_best(logits, n_experts, last);
        experts[j] = (int32_t)last;
        sum += fmath_exp_f64((double)logits[last] - (double)logits[experts[0]]);
    }
    for (size_t j = 0; j < n_used; j++) {
        double gap = (double)logits[experts[j]] - (double)logits[experts[0]];
        shares[j] = (float)(fmath_exp_f64(gap) / sum);
    }
}

static void route_tokens(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct route_job *job = context;
    size_t end = chunk_end(index, job->n_tokens);
    for (size_t t = index * MOE_ROWS; t < end; t++) {
        kern_scalar_route(job->logits + t * job->n_experts, job->n_experts, job->n_used,
                          job->experts + t * job->n_used, job->shares + t * job->n_used);
    }
}

enum status kern_cpu_route(struct kern_backend *b, const float *logits, size_t n_tokens,
                           size_t n_experts, size_t n_used, int32_t *experts, float *shares,
                           struct status_why *why)
{
    (void)why;
    struct route_job job = {logits, n_tokens, n_experts, n_used, experts, shares};
    return kern_cpu_run(kern_cpu_of(b), n_chunks(n_tokens), route_tokens, &job);
}

struct rows_job {
    const struct kern_ops *ops;
    const float *x;
    size_t width;
    const uint32_t *rows;
    const float *shares; /* NULL for gather */
    size_t n_rows;
    float *y;
};

static void gather_rows(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct rows_job *job = context;
    size_t end = chunk_end(index, job->n_rows);
    for (size_t i = index * MOE_ROWS; i < end; i++) {
        memcpy(job->y + i * job->width, job->x + job->rows[i] * job->width,
               job->width * sizeof(float));
    }
}

enum status kern_cpu_gather(struct kern_backend *b, const float *x, size_t width,
                            const uint32_t *rows, size_t n_rows, float *y, struct status_why *why)
{
    (void)why;
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct rows_job job = {&cpu->table.ops, x, width, rows, NULL, n_rows, y};
    return kern_cpu_run(cpu, n_chunks(n_rows), gather_rows, &job);
}

static void scatter_rows(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct rows_job *job = context;
    size_t end = chunk_end(index, job->n_rows);
    for (size_t i = index * MOE_ROWS; i < end; i++) {
        job->ops->add_scaled(job->y + job->rows[i] * job->width, job->x + i * job->width,
                             job->shares[i], job->width);
    }
}

enum status kern_cpu_scatter_add(struct kern_backend *b, const float *x, size_t width,
                                 const uint32_t *rows, const float *shares, size_t n_rows, float *y,
                                 struct status_why *why)
{
    (void)why;
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct rows_job job = {&cpu->table.ops, x, width, rows, shares, n_rows, y};
    return kern_cpu_run(cpu, n_chunks(n_rows), scatter_rows, &job);
}
