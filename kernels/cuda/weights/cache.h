/**
 * Copies of weights on the device.
 *
 * A weight is handled in panels of rows. Packed panels stay on the device while there is room. The
 * others are streamed: each passes through one of a few slots every time that it is used. The cache
 * remembers which panel came after each the last time, so the next ones are uploaded while this one
 * is computed with. Decoded panels are kept in the room that is left, in a few large allocations
 * (kept.c), and are freed first.
 */
#ifndef KERNELS_CUDA_WEIGHTS_CACHE_H
#define KERNELS_CUDA_WEIGHTS_CACHE_H

#include "kernels/cuda/device/device.h"
#include "kernels/quant/rows.h"
#include "kernels/types.h"

enum { KERN_CUDA_CACHE_BUCKETS = 4096 };

/** Rows of a weight. */
struct kern_cuda_panel {
    const uint8_t *data; /* host: the first row */
    const int32_t *rows; /* which rows from `data` on; NULL: all in their order */
    size_t row_bytes;    /* host: from row to row */
    struct gguf_scales scales;
    size_t col_step;  /* host: from one element of a row to the next; 0: they touch */
    size_t in_bundle; /* the number of its first row in a bundle */
    size_t n_rows, n_cols;
    enum gguf_type type;
    uint64_t generation;
    bool forgotten; /* not to be uploaded ahead of its use */
    bool preloaded; /* for products: decoded as soon as all packed panels are there */

    void *packed;  /* device: rows without gaps, its own memory or that of a slot; or NULL */
    int slot;      /* -1: its own */
    bool awaited;  /* the upload into the slot has been waited for */
    void *place;   /* device: where it is decoded to, in a chunk, or NULL */
    size_t chunk;  /* which */
    void *decoded; /* its place, if that holds the operand, which weights.c lays out, or NULL */
    size_t decoded_bytes; /* of an operand; known when it is preloaded, or first kept */
    float *vector;      /* device: the row in float32 for good, if it is a bias or gain; or NULL */
    float vector_scale; /* that is in it */
    size_t next;        /* in the bucket: index + 1, or 0 */
    size_t after;       /* what was used after it last time: index + 1, or 0 */
};

struct kern_cuda_slot {
    void *memory;
    size_t panel; /* that it holds: index + 1, or 0 */
    uint64_t last_used;
};

/** Memory for several decoded panels. */
struct kern_cuda_chunk {
    void *memory; /* NULL: not in use */
    size_t n_bytes, n_panels;
    uint64_t last_used;
};

struct kern_cuda_cache {
    struct kern_cuda_panel *panels;
    size_t n_panels, capacity;
    size_t buckets[KERN_CUDA_CACHE_BUCKETS]; /* index + 1 of the first, or 0 */
    struct kern_cuda_slot *slots;
    size_t n_slots, slot_bytes;
    struct kern_cuda_chunk *chunks;
    size_t n_chunks, chunk_capacity, chunk_bytes; /* at most, unless a panel is larger */
    size_t limit, resident_limit;         /* bytes: of everything; of packed panels that stay */
    size_t resident_bytes, decoded_bytes; /* of packed panels; of chunks */
    size_t last;                          /* panel used last: index + 1, or 0 */
    size_t held; /* panel whose decoded rows are about to be used: index + 1, or 0 */
    uint64_t n_uses;
    size_t n_uploads; /* panels copied to the device so far; for tests */
};

struct kern_cuda;

/** Sizes from cuda->options. Fails: STATUS_MEMORY. Close it in any case. */
enum status kern_cuda_cache_open(struct kern_cuda *cuda, struct status_why *why);
void kern_cuda_cache_close(struct kern_cuda *cuda);

/**
 * The panel of n_rows rows of a weight from `row` on, known from now on. *index: valid for good.
 * What it had of other generations is freed.   Fails: STATUS_MEMORY.
 */
enum status kern_cuda_cache_find(struct kern_cuda *cuda, const struct kern_weight *weight,
                                 size_t row, size_t n_rows, size_t *index, struct status_why *why);

/** The n_cols of struct kern_cuda_rows for rows of a type. */
static inline size_t kern_cuda_copied_cols(enum gguf_type type, size_t col_step, size_t n_cols)
{
    return col_step || kern_rows_are_copied(type) ? n_cols : 0;
}

/** Bytes of the packed panel. */
size_t kern_cuda_panel_bytes(const struct kern_cuda_panel *panel);

/** Upload the panel if there is room for it to stay; *stays says whether it is there now. */
enum status kern_cuda_cache_settle(struct kern_cuda *cuda, size_t index, bool *stays,
                                   struct status_why *why);

/**
 * The packed panel on the device, ready for what is queued on the compute stream next. It stays
 * until kern_cuda_cache_done(), which follows when all that reads it is queued; between the two
 * no other panel is asked for.   Uploads of the panels to come begin.
 */
enum status kern_cuda_cache_packed(struct kern_cuda *cuda, size_t index, const uint8_t **packed,
                                   struct status_why *why);
enum status kern_cuda_cache_done(struct kern_cuda *cuda, size_t index, struct status_why *why);

/**
 * Memory to keep the panel decoded in, or NULL if there is no room. The first panel of a chunk
 * allocates it, with places for the preloaded ones that come after this one.
 */
void *kern_cuda_cache_keep(struct kern_cuda *cuda, size_t index, size_t n_bytes);

/** Give up the panel's place, if it has one. */
void kern_cuda_cache_forget(struct kern_cuda *cuda, size_t index);

/** Note that a panel that is kept decoded was used. */
void kern_cuda_cache_touch(struct kern_cuda *cuda, size_t index);

/** Free the chunk that has not been used for longest, never that of a panel that cache_done() is
 * called for; false if there is none. */
bool kern_cuda_cache_shrink(struct kern_cuda *cuda);

#endif
