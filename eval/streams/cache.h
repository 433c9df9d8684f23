/**
 * Residual streams of earlier passes. When tensors of a model have been swapped (model/swap.h), the
 * layers below the first of them give what they gave before: a pass begins with the stream that
 * entered a layer at or below it, with the same bits as a whole pass.
 *
 * A cache belongs to one model, and to what its tensors are when the cache is opened. Streams are
 * known by the tokens and segments of their batch: another batch finds none. Threads may share it.
 */
#ifndef EVAL_STREAMS_CACHE_H
#define EVAL_STREAMS_CACHE_H

#include "model/forward/forward.h"

struct eval_cache;

struct eval_cache_options {
    double n_bytes;  /* of streams at most */
    size_t n_tokens; /* of all batches: as many layers are kept, evenly, as n_bytes hold of them */
    const char
        *path; /* a file there has the streams; it has no name once it is open. NULL: memory */
    /* For stages that never fall while the batch is the same: one stream, that of the last stage.
       n_bytes, n_tokens and path are not used. */
    bool ascending;
};

/** model must outlive it. Fails: STATUS_MEMORY, STATUS_IO. */
enum status eval_cache_open(struct eval_cache **out, const struct model *model,
                            const struct eval_cache_options *options, struct status_why *why);
/** NULL is allowed. */
void eval_cache_close(struct eval_cache *cache);

/** What it holds in memory at most; NULL: 0. */
double eval_cache_bytes(const struct eval_cache *cache);

/** A pass over a batch. The model is as it was opened with, but for tensors that were swapped. */
struct eval_cache_pass {
    struct eval_cache *cache; /* NULL: nothing is kept */
    const struct model *model;
    struct kern_backend *backend;
    float *x;        /* [n_tokens, D] */
    size_t n_floats; /* of x */
    size_t n_layers; /* L */
    size_t stage;    /* streams that enter layers up to this one may be kept */
    uint8_t key[32]; /* of the batch */
};

/**
 * Begin a pass: x is what enters layer *layer. *found false: nothing is kept, x is undefined and
 * *layer is 0. cache, model, backend and x are set.   Fails: STATUS_IO, STATUS_MEMORY,
 * STATUS_DEVICE.
 */
enum status eval_cache_begin(struct eval_cache_pass *pass, const struct model_batch *batch,
                             size_t *layer, bool *found, struct status_why *why);
/** The layer after `layer` at which x is to be kept next; L: the pass may go on to its end. */
size_t eval_cache_next(const struct eval_cache_pass *pass, size_t layer);
/** x is what enters `layer`: keep it, if it is to be kept. Fails: as eval_cache_begin. */
enum status eval_cache_keep(const struct eval_cache_pass *pass, size_t layer,
                            struct status_why *why);

#endif
