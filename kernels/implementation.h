/** What a backend implements, and kernels/backend.c calls. */
#ifndef KERNELS_IMPLEMENTATION_H
#define KERNELS_IMPLEMENTATION_H

#include "kernels/backend.h"
#include "kernels/mixing.h"
#include "kernels/operations.h"
#include "kernels/recurrent.h"
#include "kernels/scoring.h"

/** All operations: X(name) for each. */
#define KERN_BACKEND_OPERATIONS(X)                                                                 \
    KERN_OPERATIONS(X)                                                                             \
    KERN_SCORING_OPERATIONS(X) KERN_RECURRENT_OPERATIONS(X) KERN_MIXING_OPERATIONS(X)

#define KERN_OPERATION_MEMBER(name) kern_##name##_fn *(name);
/** What an implementation has. The arguments have been checked. */
struct kern_backend_ops {
    const char *name;
    void (*close)(struct kern_backend *b);
    enum status (*alloc)(struct kern_backend *b, void **out, size_t n_bytes,
                         struct status_why *why);
    void (*free)(struct kern_backend *b, void *memory);
    enum status (*upload)(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                          struct status_why *why);
    enum status (*download)(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                            struct status_why *why);
    /* These three are NULL where there is nothing to do. */
    enum status (*preload)(struct kern_backend *b, const struct kern_weight *weight,
                           struct status_why *why);
    enum status (*preload_heads)(struct kern_backend *b, const struct kern_head *heads,
                                 size_t n_heads, struct status_why *why);
    void (*forget)(struct kern_backend *b, const void *data, size_t n_bytes);
    struct kern_description (*describe)(const struct kern_backend *b);
    KERN_BACKEND_OPERATIONS(KERN_OPERATION_MEMBER)
    /* NULL where operations end when their calls return. Else: an operation begins, it ends (it may
     * have failed), and those that ended are to be counted into the clock. */
    void (*begin_phase)(struct kern_backend *b);
    void (*end_phase)(struct kern_backend *b, enum kern_phase phase);
    void (*collect_times)(struct kern_backend *b);
};

/** An operation begins: when, on the host's clock. */
uint64_t kern_begin(struct kern_backend *b);
/** The end of an operation that began at `begun`: passes its status on. */
enum status kern_end(struct kern_backend *b, enum kern_phase phase, uint64_t begun,
                     enum status status);

#endif
