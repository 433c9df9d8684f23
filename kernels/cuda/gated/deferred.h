/**
 * Products whose sums wait for what comes next. Sums of a `passing` product (kernels/operations.h)
 * stay where its results belong, as the library left them. If the operations that come next are the
 * ones that were promised, one kernel makes halves of the sums for the last of them, and the
 * results never exist. If not, the sums become results, by the kernels of every other product,
 * before anything else is queued. Either way the next product has the same bits.
 */
#ifndef KERNELS_CUDA_GATED_DEFERRED_H
#define KERNELS_CUDA_GATED_DEFERRED_H

#include "base/status.h"
#include "kernels/cuda/kernels/gated/gated.h"
#include "kernels/types.h"

struct kern_activate;
struct kern_cuda;
struct kern_cuda_operand;
struct kern_cuda_split_tokens;
struct kern_linear;

/** At most a gate and its `up`, sums of the same tokens and of one size. */
struct kern_cuda_deferred {
    struct kern_sums sums[2];
    float *y[2];    /* where they are: [n_rows, n_cols] */
    size_t n;       /* of them */
    const float *x; /* what they are products of */
    size_t n_rows, n_cols;
    bool activated; /* their activation is waiting, too: */
    enum kern_activation kind;
    struct kern_curve curve;
    bool held;    /* the operation that runs takes care of them */
    void *memory; /* of powers */
    size_t n_bytes;
};

/** Bytes of device memory for the powers of a pair of products. */
size_t kern_cuda_deferred_bytes(size_t n_rows, size_t n_cols);

/**
 * Make results of all sums, and run the activation that waits, unless an operation holds them.
 * Everything that queues work asks for it first.
 */
enum status kern_cuda_settle(struct kern_cuda *cuda, struct status_why *why);

/** A product begins: what it may go on from is held, anything else is settled. */
enum status kern_cuda_hold(struct kern_cuda *cuda, const struct kern_linear *op,
                           struct status_why *why);
/** It has ended, with this status. After a failure nothing waits. */
enum status kern_cuda_release(struct kern_cuda *cuda, enum status status);

/** Begin to defer a product whose tokens were scaled by `tokens`. */
enum status kern_cuda_defer(struct kern_cuda *cuda, const struct kern_linear *op, const float *bias,
                            const uint32_t *tokens, struct status_why *why);
/** Its columns from `col` on have their sums, of n rows of the weight that were scaled by these. */
enum status kern_cuda_defer_columns(struct kern_cuda *cuda, size_t col, size_t n,
                                    const uint32_t *largest, struct status_why *why);

/** Whether the activation is of what waits, and now waits itself. */
bool kern_cuda_defer_activation(struct kern_cuda *cuda, const struct kern_activate *op);

/** Whether a product is of the gate that waits; then its tokens come from kern_cuda_split_gate().
 */
bool kern_cuda_is_of_gate(const struct kern_cuda *cuda, const struct kern_linear *op);
/** The gate that waits, in halves; nothing waits after that. */
enum status kern_cuda_split_gate(struct kern_cuda *cuda,
                                 const struct kern_cuda_split_tokens *tokens,
                                 const struct kern_half_rows *to, struct status_why *why);

#endif
