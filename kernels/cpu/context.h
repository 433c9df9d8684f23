/** The CPU backend's own struct: what every operation in kernels/cpu works with. */
#ifndef KERNELS_CPU_CONTEXT_H
#define KERNELS_CPU_CONTEXT_H

#include "base/arithmetic.h"
#include "base/pool.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm/product.h"
#include "kernels/cpu/kernels.h"

/** cblas_sgemm() of a library that is loaded at run time; see blas.h. */
typedef void kern_cblas_sgemm_fn(int order, int transpose_a, int transpose_b, int n_rows,
                                 int n_cols, int n_k, float alpha, const float *a, int a_stride,
                                 const float *b, int b_stride, float beta, float *c, int c_stride);

/** Tokens that linear.c has packed. */
struct kern_packed {
    const struct kern_product *product;
    const float *x;
    size_t n_tokens, n_cols;
    size_t scratch_bytes; /* of the memory that they are in: another size is another memory */
};

struct kern_cpu {
    struct kern_backend base; /* first: a kern_backend of this kind is a kern_cpu */
    struct base_pool *pool;
    struct kern_kernels kernels;
    enum kern_isa isa;
    struct kern_product product; /* how our own products are computed */
    /* And those of quantised weights, by the room that they want, where activations have 8 bits;
     * else all as the first. No `multiply`: as others. */
    struct kern_product integers[KERN_ROOMS];
    struct kern_product words; /* with 8 bits: of weights that bytes do not take */
    /* What has 16 bits in `fast`, or triples as with `high`: a score is an exponent, a logit is the
     * result. Attention is in float32 with `high`, where there are no triples. */
    struct kern_product attention_product, head_integers;
    struct kern_product long_integers; /* those of 16 bits for long formats */
    const char *remarks;
    kern_cblas_sgemm_fn *sgemm; /* NULL: the products are our own */
    size_t l2_bytes; /* of one core; decides how products are cut, never what they give */
    void *scratch;
    size_t scratch_bytes;
    struct kern_packed packed; /* what the scratch memory begins with; n_tokens 0: nothing */
    struct kern_clock clock;   /* base.clock points here */
};

static inline struct kern_cpu *kern_cpu_of(struct kern_backend *b)
{
    return (struct kern_cpu *)b;
}

/** How products with weights of this type are computed. */
static inline const struct kern_product *kern_cpu_product_of(const struct kern_cpu *cpu,
                                                             enum gguf_type type)
{
    const struct kern_product *integers = cpu->integers;
    const struct kern_integers *format = kern_integers_find(type, kern_product_bits(integers));
    if (!integers->multiply || !format)
        return &cpu->product;
    if (integers->kind != KERN_PRODUCTS_INT8)
        return format->is_long ? &cpu->long_integers : integers;
    return format->largest > cpu->kernels.bytes_most ? &cpu->words : &integers[format->room];
}

/** The product of a head: its rounding errors are errors of logits, with nothing to average them.
 */
static inline const struct kern_product *kern_cpu_head_product_of(const struct kern_cpu *cpu,
                                                                  enum gguf_type type)
{
    const struct kern_product *product = kern_cpu_product_of(cpu, type);
    if (!kern_product_is_integer(product))
        return product;
    return kern_integers_find(type, 16)->is_long ? &cpu->long_integers : &cpu->head_integers;
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
 * Working memory for the current operation: at least n_bytes, aligned to 64, contents
 * undefined. The backend owns it. It is valid until the next call, by this or another
 * operation, so an operation that needs several arrays asks once and divides. Do not call it
 * inside loops of the pool.   Fails: STATUS_MEMORY, *out = NULL.
 */
enum status kern_cpu_scratch(struct kern_cpu *cpu, void **out, size_t n_bytes,
                             struct status_why *why);

#endif
