/** The CPU backend's own struct: what every operation in kernels/cpu works with. */
#ifndef KERNELS_CPU_CONTEXT_H
#define KERNELS_CPU_CONTEXT_H

#include "base/arithmetic.h"
#include "base/pool.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm/product.h"
#include "kernels/cpu/table.h"

/** A foreign matrix multiplication; see blas.h. */
struct kern_sgemm;
typedef void kern_sgemm_fn(const struct kern_sgemm *op);

/** Tokens that linear.c has packed. */
struct kern_packed {
    const float *x;
    size_t n_tokens, n_cols;
    size_t scratch_bytes; /* of the memory that they are in: another size is another memory */
};

struct kern_cpu {
    struct kern_backend base; /* first: a kern_backend of this kind is a kern_cpu */
    struct base_pool *pool;
    struct kern_table table;
    enum kern_isa isa;
    struct kern_product product;           /* how our own products are computed */
    struct kern_product attention_product; /* and those of attention: in `high` at least */
    const char *remarks;
    kern_sgemm_fn *sgemm; /* NULL: the products are our own */
    size_t l2_bytes;      /* of one core; decides how products are cut, never what they give */
    void *scratch;
    size_t scratch_bytes;
    struct kern_packed packed; /* what the scratch memory begins with; n_tokens 0: nothing */
    struct kern_clock clock;   /* base.clock points here */
};

static inline struct kern_cpu *kern_cpu_of(struct kern_backend *b)
{
    return (struct kern_cpu *)b;
}

/** Whether the caller wants the operation to end. */
static inline bool kern_cpu_cancelled(const struct kern_cpu *cpu)
{
    const atomic_bool *cancel = cpu->base.cancel;
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

/** base_pool_run() on the backend's pool and cancel flag. */
enum status kern_cpu_run(struct kern_cpu *cpu, size_t n, base_pool_fn *fn, void *context);

/**
 * Working memory for the operation at hand: at least n_bytes, aligned to 64, contents
 * undefined. It stays the backend's and is valid until the next call, by this or another
 * operation; an operation that needs several arrays asks once and divides. Call it outside
 * loops of the pool.   Fails: STATUS_MEMORY, *out = NULL.
 */
enum status kern_cpu_scratch(struct kern_cpu *cpu, void **out, size_t n_bytes,
                             struct status_why *why);

/* The operations, one file each; arguments as in kernels/backend.h. */
enum status kern_cpu_embed(struct kern_backend *b, const struct kern_weight *table,
                           const int32_t *tokens, size_t n_tokens, float *x,
                           struct status_why *why);
enum status kern_cpu_rmsnorm(struct kern_backend *b, const struct kern_weight *gain, float eps,
                             const float *x, size_t n_tokens, float *y, struct status_why *why);
enum status kern_cpu_linear(struct kern_backend *b, const struct kern_linear *op,
                            struct status_why *why);
enum status kern_cpu_rope(struct kern_backend *b, const struct kern_rope *op,
                          struct status_why *why);
enum status kern_cpu_attention(struct kern_backend *b, const struct kern_attention *op,
                               struct status_why *why);
enum status kern_cpu_gate(struct kern_backend *b, float *gate, const float *up, size_t n,
                          struct status_why *why);
enum status kern_cpu_route(struct kern_backend *b, const float *logits, size_t n_tokens,
                           size_t n_experts, size_t n_used, int32_t *experts, float *shares,
                           struct status_why *why);
enum status kern_cpu_gather(struct kern_backend *b, const float *x, size_t width,
                            const uint32_t *rows, size_t n_rows, float *y, struct status_why *why);
enum status kern_cpu_scatter_add(struct kern_backend *b, const float *x, size_t width,
                                 const uint32_t *rows, const float *shares, size_t n_rows, float *y,
                                 struct status_why *why);
enum status kern_cpu_score(struct kern_backend *b, const struct kern_score *op,
                           struct status_why *why);
size_t kern_cpu_linear_bytes(struct kern_backend *b, const struct kern_linear *op);
size_t kern_cpu_score_bytes(struct kern_backend *b, const struct kern_score *op);
enum status kern_cpu_record(struct kern_backend *b, const struct kern_record *op,
                            struct status_why *why);
size_t kern_cpu_record_bytes(struct kern_backend *b, const struct kern_record *op);
size_t kern_cpu_record_rows(struct kern_backend *b, const struct kern_weight *matrix);

#endif
