/**
 * Results that wait for what comes next.
 *
 * Sums of a product stay where its results belong, as the library left them, and a norm is not
 * computed at all, until the operation after them is known. If one kernel does both, it runs: an
 * activation and a product make halves of the sums, which never become results; a rotation makes
 * rotated results of them; a product takes the norm's results as halves. If not, the kernels of
 * every other product and norm run before anything else is queued. Either way all bits are the
 * same.
 */
#ifndef KERNELS_CUDA_GATED_DEFERRED_H
#define KERNELS_CUDA_GATED_DEFERRED_H

#include "base/status.h"
#include "kernels/cuda/kernels/gated/gated.h"
#include "kernels/cuda/kernels/rows.h"
#include "kernels/types.h"

enum { KERN_CUDA_DEFERRED_MOST = 3 /* as queries, keys, values */ };

struct kern_activate;
struct kern_cuda;
struct kern_linear;

/** Sums of one product. */
struct kern_cuda_waiting {
    struct kern_sums sums;
    float *y; /* where they are: [n_rows, n_cols] */
    size_t n_cols;
    bool passing; /* as the product said */
};

/** A norm, or sums of products of the same tokens. */
struct kern_cuda_deferred {
    struct kern_norm_args norm; /* y: NULL if none waits */
    size_t norm_rows;
    struct kern_cuda_waiting of[KERN_CUDA_DEFERRED_MOST];
    size_t n;
    const float *x; /* what they are products of */
    size_t n_rows;
    bool activated; /* the activation of the first ones is waiting, too: */
    enum kern_activation kind;
    struct kern_curve curve;
    bool held;    /* the operation that runs takes care of them */
    void *memory; /* of powers */
    size_t n_bytes, used;
};

/** Bytes of device memory for the powers of products that wait, the first of this size. */
size_t kern_cuda_deferred_bytes(size_t n_rows, size_t n_cols);

/**
 * Make results of all that waits, unless an operation holds it. Everything that queues work asks
 * for it first.
 */
enum status kern_cuda_settle(struct kern_cuda *cuda, struct status_why *why);

/** A product begins: what it may go on from is held, anything else is settled. */
enum status kern_cuda_hold(struct kern_cuda *cuda, const struct kern_linear *op,
                           struct status_why *why);
/** It has ended, with this status. After a failure nothing waits. */
enum status kern_cuda_release(struct kern_cuda *cuda, enum status status);

/** Begin to defer a product whose tokens were scaled by `tokens`; *deferred: there was room. */
enum status kern_cuda_defer(struct kern_cuda *cuda, const struct kern_linear *op, const float *bias,
                            const uint32_t *tokens, bool *deferred, struct status_why *why);
/** Its columns from `col` on have their sums, of n rows of the weight that were scaled by these. */
enum status kern_cuda_defer_columns(struct kern_cuda *cuda, size_t col, size_t n,
                                    const uint32_t *largest, struct status_why *why);

/** Whether the activation is of what waits, and now waits itself. */
bool kern_cuda_defer_activation(struct kern_cuda *cuda, const struct kern_activate *op);
/** Whether the norm waits now. Nothing else does. */
bool kern_cuda_defer_norm(struct kern_cuda *cuda, const struct kern_norm_args *args, size_t n_rows);

/** Whether a product is of what waits; then its tokens come from kern_cuda_split_waiting(). */
bool kern_cuda_is_waiting(const struct kern_cuda *cuda, const struct kern_linear *op);
/** The gate or the norm that waits, in halves; it no longer waits after that. */
enum status kern_cuda_split_waiting(struct kern_cuda *cuda, const struct kern_half_out *out,
                                    size_t n_padded, struct status_why *why);

/** The sums that a rotation is of, if one kernel can take them; or NULL. The rotation holds all. */
struct kern_cuda_waiting *kern_cuda_rotates(struct kern_cuda *cuda,
                                            const struct kern_rope_args *args);
/** Rotate them, in one kernel; they no longer wait. Ends as a product does. */
enum status kern_cuda_finish_rope(struct kern_cuda *cuda, struct kern_cuda_waiting *waiting,
                                  const struct kern_rope_args *args, struct status_why *why);

#endif
