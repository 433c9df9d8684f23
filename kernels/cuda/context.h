/** The CUDA backend's own struct: what every file in kernels/cuda works with. */
#ifndef KERNELS_CUDA_CONTEXT_H
#define KERNELS_CUDA_CONTEXT_H

#include "base/arithmetic.h"
#include "kernels/backend.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/kernels.h"
#include "kernels/cuda/gated/deferred.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/tables/tables.h"
#include "kernels/cuda/weights/cache.h"

/** Tokens that are split into halves; from n_tokens to n_padded they are zeros. */
struct kern_cuda_split_tokens {
    const float *x; /* NULL: none */
    size_t n_tokens, n_padded, n_cols;
    struct kern_cuda_operand operand;
    uint64_t scratch_uses; /* the backend's count when scratch memory held them last */
};

/** Tokens as records of integers (kernels/integers/records.h), in scratch memory. */
struct kern_cuda_packed_tokens {
    const float *x; /* NULL: none */
    size_t n_tokens, n_cols;
    int largest;           /* integer that they are rounded to */
    uint64_t scratch_uses; /* the backend's count when scratch memory held them last */
};

/* Marks: two of trials, then two for each operation whose time is not known yet. */
enum { KERN_CUDA_MARK_TRIAL = 0, KERN_CUDA_MARK_PHASES = 2, KERN_CUDA_N_TIMED = 500 };

/** Operations that are timed on the device: a ring, of which the first that began is the oldest. */
struct kern_cuda_phases {
    enum kern_phase phase[KERN_CUDA_N_TIMED];
    bool marked[KERN_CUDA_N_TIMED];
    size_t n_begun, n_counted;
};

struct kern_cuda {
    struct kern_backend base; /* first: a kern_backend of this kind is a kern_cuda */
    struct kern_clock clock;
    struct kern_cuda_phases phases;
    struct kern_cuda_device *device;
    struct kern_cuda_options options; /* nothing in it is 0 */
    struct kern_cuda_cache cache;
    struct kern_cuda_products products;
    struct kern_cuda_tables tables;
    void *scratch;
    size_t scratch_bytes;
    uint64_t scratch_uses; /* calls of kern_cuda_scratch(), and times that it gave new memory */
    struct kern_cuda_split_tokens split; /* by the last product, in scratch memory */
    struct kern_cuda_deferred deferred;
    struct kern_cuda_packed_tokens packed;
    bool in_integers;        /* products of quantised weights, of 16 bits */
    char plan[512];          /* for the user: how much memory weights may take */
    char products_name[288]; /* as docs/json.md has it */
};

static inline struct kern_cuda *kern_cuda_of(struct kern_backend *b)
{
    return (struct kern_cuda *)b;
}

/** Whether products multiply halves, on tensor cores. */
static inline bool kern_cuda_uses_halves(const struct kern_cuda *cuda)
{
    return cuda->options.precision != KERN_PRECISION_EXACT;
}

/* Events: the cache has the first ones, one and two for each slot. Scores and recording have the
 * last ones. */
enum {
    KERN_CUDA_EVENT_CODES = KERN_CUDA_MAX_EVENTS - 4, /* two for each of two buffers */
    KERN_CUDA_EVENT_ENCODED = KERN_CUDA_EVENT_CODES - 1
};

/** A piece of memory to be divided. Without a base it only counts bytes. */
struct kern_cuda_arena {
    char *base;
    size_t used;
};

/** The next n_bytes, aligned to 256. */
void *kern_cuda_take(struct kern_cuda_arena *arena, size_t n_bytes);

/** Device memory. Decoded copies of weights are freed where there is too little. */
enum status kern_cuda_memory(struct kern_cuda *cuda, void **out, size_t n_bytes,
                             struct status_why *why);

/**
 * Working memory for the current operation, as in the CPU backend: valid until the next call.
 * What earlier operations queued may still use it, in the order of the stream.
 */
enum status kern_cuda_scratch(struct kern_cuda *cuda, void **out, size_t n_bytes,
                              struct status_why *why);

/** An array of the host, and where it is on the device. */
struct kern_cuda_array {
    const void *from;
    size_t n_bytes;
    void *to;
};

/** Copy arrays to scratch memory, one after the other; those without `from` get room there. */
enum status kern_cuda_scratch_put(struct kern_cuda *cuda, struct kern_cuda_array *arrays,
                                  size_t n_arrays, struct status_why *why);

/** STATUS_CANCELLED once the caller has asked for the operation to stop. */
enum status kern_cuda_cancelled(const struct kern_cuda *cuda);

/** Launch a kernel with the shared memory of its row in the list, unless cancelled. */
enum status kern_cuda_run(struct kern_cuda *cuda, enum kern_cuda_kernel kernel, size_t n_blocks,
                          const void *args, struct status_why *why);

/** Launch any kernel, unless cancelled. */
enum status kern_cuda_run_launch(struct kern_cuda *cuda, const struct kern_cuda_launch *launch,
                                 struct status_why *why);

/** Host to device on the compute stream. */
enum status kern_cuda_put(struct kern_cuda *cuda, void *to, const void *from, size_t n_bytes,
                          struct status_why *why);

/** Device to host, after all that was queued on the compute stream. */
enum status kern_cuda_get(struct kern_cuda *cuda, void *to, const void *from, size_t n_bytes,
                          struct status_why *why);

/** The kernel of kern_activate(), at once. */
enum status kern_cuda_gate(struct kern_cuda *cuda, const struct kern_activate *op,
                           struct status_why *why);

/* The arguments are as in kernels/backend.h. */
enum status kern_cuda_preload(struct kern_backend *b, const struct kern_weight *weight,
                              struct status_why *why);
void kern_cuda_forget(struct kern_backend *b, const void *data, size_t n_bytes);
enum status kern_cuda_preload_heads(struct kern_backend *b, const struct kern_head *heads,
                                    size_t n_heads, struct status_why *why);

#endif
