/**
 * A backend is THE interface between the model and the hardware. Here are its memory and what it
 * says of itself; kernels/operations.h has what it computes. Two implementations: cpu, cuda.
 */
#ifndef KERNELS_BACKEND_H
#define KERNELS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "kernels/atomic.h"
#include "kernels/times.h"

struct base_pool;
struct kern_backend_ops;
struct kern_head;
struct kern_observer;
struct kern_weight;

/** What computes (results name it), and which sizes suit it. */
struct kern_description {
    const char *device;     /* "cpu", "NVIDIA H200 (sm_90, CUDA 13.0)" */
    const char *isa;        /* "avx512", "cuda" */
    const char *products;   /* what products are made of, as docs/json.md lists them */
    const char *remarks;    /* sentences for the user, each ending with a newline */
    unsigned n_threads;     /* of the host */
    struct base_pool *pool; /* these, between operations; NULL: the caller's alone */
    bool own_memory;        /* what kern_alloc() gives is not the host's */
    size_t tile_tokens;     /* tokens of a tile of the forward pass; 0: the caller chooses */
    size_t batch_tokens;    /* tokens of a batch, likewise */
};

/** First member of every implementation's own struct. */
struct kern_backend {
    const struct kern_backend_ops *ops;
    const atomic_bool *cancel;      /* may be NULL; set by kern_set_cancel() */
    struct kern_clock *clock;       /* the implementation's; backend.c counts operations into it */
    struct kern_observer *observer; /* who stands between it and its caller; NULL: nobody */
};

/** Release the backend; its memory must have been freed. NULL is allowed. */
void kern_close(struct kern_backend *b);
/** The strings live as long as the backend. */
struct kern_description kern_describe(const struct kern_backend *b);
/** From now on operations end with STATUS_CANCELLED once *flag is true. NULL: never. */
void kern_set_cancel(struct kern_backend *b, const atomic_bool *flag);
/** Where the time of the operations so far went; waits for those of a device. */
void kern_times_read(struct kern_backend *b, struct kern_times *out);

/** Backend memory of at least n_bytes, aligned to 64; contents undefined. *out = NULL first. */
enum status kern_alloc(struct kern_backend *b, void **out, size_t n_bytes, struct status_why *why);
/** NULL is allowed. */
void kern_free(struct kern_backend *b, void *memory);
/** Host to backend, backend to host. Both end only when the bytes are there. */
enum status kern_upload(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                        struct status_why *why);
enum status kern_download(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                          struct status_why *why);

/**
 * Do in advance what the first kern_linear() of a weight would do: copy it to the device if there
 * is room for it to stay, and try the library's products. A CPU has nothing to do.
 */
enum status kern_preload(struct kern_backend *b, const struct kern_weight *weight,
                         struct status_why *why);
/** Do in advance what the first kern_score() of these heads would do; those without a matrix do not
 * count. */
enum status kern_preload_heads(struct kern_backend *b, const struct kern_head *heads,
                               size_t n_heads, struct status_why *why);
/**
 * Weights within these bytes of the host are not used for now: what a device has of them is freed,
 * and the bytes are not read again before an operation names them. Before they are unmapped.
 */
void kern_forget(struct kern_backend *b, const void *data, size_t n_bytes);

#endif
