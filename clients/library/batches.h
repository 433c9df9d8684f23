/** The windows of a call, some at a time, as the core takes them. */
#ifndef CLIENTS_LIBRARY_BATCHES_H
#define CLIENTS_LIBRARY_BATCHES_H

#include "clients/library/library.h"
#include "model/forward/forward.h"

/** Zero-initialise; filled by assay_own_batches_open. */
struct assay_own_batches {
    struct assay_model *model;
    const struct assay_windows *windows;
    size_t length;   /* tokens of a window that are evaluated: those up to the last position */
    size_t most;     /* windows of a batch */
    size_t first, n; /* the current windows */
    int32_t *tokens; /* [most, length] */
    struct model_segment *segments; /* [most] */
    uint32_t *rows;                 /* [most, n_positions]: tokens of the batch */
    struct model_batch batch;       /* of the current windows */
};

/**
 * Check the windows, and divide them. Close it in any case.
 * Fails: STATUS_USAGE, STATUS_MEMORY.
 */
enum status assay_own_batches_open(struct assay_own_batches *b, struct assay_model *model,
                                   const struct assay_windows *windows, struct status_why *why);
/** Also lets calls that come later begin, whether progress ended this one or not. */
void assay_own_batches_close(struct assay_own_batches *b);

/** Go to the first windows, or to the next; false: there are no more. */
bool assay_own_batches_next(struct assay_own_batches *b);

/** Positions of a batch: of the largest, of the current. */
static inline size_t assay_own_batches_most(const struct assay_own_batches *b)
{
    return b->most * b->windows->n_positions;
}

static inline size_t assay_own_batches_n(const struct assay_own_batches *b)
{
    return b->n * b->windows->n_positions;
}

/** Positions of the windows before the current ones. */
static inline size_t assay_own_batches_before(const struct assay_own_batches *b)
{
    return b->first * b->windows->n_positions;
}

/**
 * After the last windows.
 * Fails: STATUS_CANCELLED (a report that came after the last operation, too), STATUS_CHANGED.
 */
enum status assay_own_batches_end(const struct assay_own_batches *b, struct status_why *why);

/** Tell the caller; user: the batches. The second is for sessions. */
void assay_own_batches_progress(void *user, double fraction);
void assay_own_batches_steps(void *user, size_t done, size_t total);

/** Check n ids. what: "a token". Fails: STATUS_USAGE. */
enum status assay_own_check_ids(const struct assay_model *model, const int32_t *ids, size_t n,
                                const char *what, struct status_why *why);

#endif
