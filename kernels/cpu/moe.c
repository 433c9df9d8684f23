/* Mixture of experts: choosing them, and moving rows to them and back. */
#include <string.h>

#include "kernels/cpu/context.h"
#include "kernels/numerics/ops_scalar.h"

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
