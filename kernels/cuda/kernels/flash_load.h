/**
 * What flash.h has in shared memory, and how it gets there.
 *
 * Queries, and keys or values, are in the layout of the tensor cores' instruction (mma.h): a lane's
 * fragment beside the next lane's, each number in its parts. Which number is which row or column of
 * a tile is free, as long as both sides of a product agree. For scores lane q of a quad has four
 * neighbouring elements of its queries and keys. For values tile i of a group of four has elements
 * i, i + 4, i + 8 ... of 32. So a thread that has loaded four neighbouring elements stores one of
 * each tile, and a lane ends up with eight neighbouring elements of an output.
 *
 * All loads and stores of global memory are of 16 bytes where rows are aligned to that. Those of
 * shared memory are free of bank conflicts.
 */
#ifndef KERNELS_CUDA_KERNELS_FLASH_LOAD_H
#define KERNELS_CUDA_KERNELS_FLASH_LOAD_H

#include "kernels/cuda/kernels/attention_view.h"
#include "kernels/cuda/kernels/mma.h"

enum {
    KERN_FLASH_THREADS = 128,
    KERN_FLASH_WARPS = KERN_FLASH_THREADS / KERN_WARP,
    KERN_FLASH_QUERIES = KERN_FLASH_WARPS * KERN_MMA_ROWS,
    KERN_FLASH_MAX_DIMS = 256,
    KERN_FLASH_MAX_KEYS = 64,
    KERN_FLASH_GROUP = KERN_MMA_GROUP * KERN_MMA_COLUMNS, /* columns multiplied at a time */
    KERN_FLASH_LOADS = 8 /* of 16 bytes, that a thread has under way side by side */
};

/** Keys at a time, of heads that are padded to `dims` elements. */
KERN_INLINE unsigned kern_flash_keys(unsigned dims)
{
    return dims <= 128 ? 64 : 32;
}

/** In shared memory, followed by the fragments of queries, and of keys or values. */
struct kern_flash_shared {
    struct kern_attention_view view; /* but for `a`; here, since registers are short */
    uint32_t not_finite, any_chosen;
} __attribute__((aligned(16)));

/** What all threads of a block know. dims, keys and parts are constants once all is inlined. */
struct kern_flash_block {
    const struct kern_attention_args *a;
    struct kern_flash_shared *s;
    unsigned dims, keys, parts;
    struct kern_mma_b *kv; /* fragments of keys or values: [k][n][part][lane] in tiles */
    struct kern_mma_a *q;  /* of queries: [warp][k][part][lane] */
    bool aligned;          /* rows, to 16 bytes */
    bool careful;          /* zeros for values that are not finite */
};

KERN_INLINE struct kern_attention_view kern_flash_view(const struct kern_flash_block *b)
{
    struct kern_attention_view view = b->s->view;
    view.a = b->a;
    view.run = 0; /* further keys are for attention.h */
    return view;
}

/** The block's query of a lane's r-th row. */
KERN_INLINE unsigned kern_flash_query(unsigned w, unsigned lane, unsigned r)
{
    return w * KERN_MMA_ROWS + lane / KERN_QUAD + 8 * r;
}

/** A lane's fragments of two rows' parts, from four numbers of each. */
KERN_INLINE void kern_flash_store_queries(const struct kern_vec4 *rows, unsigned n_parts,
                                          struct kern_mma_a *to)
{
    uint32_t words[4][KERN_MAX_PARTS];
    KERN_UNROLL
    for (unsigned i = 0; i < 4; i++)
        kern_parts_of(rows[i % 2].v[i / 2 * 2], rows[i % 2].v[i / 2 * 2 + 1], n_parts, words[i]);
    KERN_UNROLL
    for (unsigned p = 0; p < n_parts; p++) {
        struct kern_mma_a a = {{words[0][p], words[1][p], words[2][p], words[3][p]}};
        to[p * KERN_WARP] = a;
    }
}

/** Each lane writes, and later reads, its own fragments only: no barrier. */
KERN_INLINE void kern_flash_load_queries(const struct kern_flash_block *b)
{
    struct kern_attention_view view = kern_flash_view(b);
    unsigned depth = b->dims / KERN_MMA_DEPTH;
    for (unsigned t = kern_thread_begin(); t < KERN_FLASH_THREADS;
         t += kern_thread_step(KERN_FLASH_THREADS)) {
        unsigned w = t / KERN_WARP, lane = t % KERN_WARP;
        for (unsigned k = 0; k < depth; k++) {
            struct kern_vec4 rows[2];
            KERN_UNROLL
            for (unsigned r = 0; r < 2; r++) {
                unsigned query = kern_flash_query(w, lane, r);
                bool real = query < view.n_queries;
                size_t row = kern_attention_query_row(&view, real ? query : 0), d = b->a->head_size;
                rows[r] =
                    kern_attention_four(b->a->q + row * d, (unsigned)d, real,
                                        k * KERN_MMA_DEPTH + lane % KERN_QUAD * 4, b->aligned);
            }
            kern_flash_store_queries(rows, b->parts,
                                     b->q + (size_t)(w * depth + k) * b->parts * KERN_WARP + lane);
        }
    }
}

/** Where tile (k, n) of n_tiles side by side begins in kv. */
KERN_INLINE struct kern_mma_b *kern_flash_tile(const struct kern_flash_block *b, unsigned k,
                                               unsigned n_tiles, unsigned n)
{
    return b->kv + (size_t)(k * n_tiles + n) * b->parts * KERN_WARP;
}

/** The row of the j-th of n_keys current keys; some other row if there is none. */
KERN_INLINE size_t kern_flash_row(const struct kern_flash_block *b, size_t key, unsigned j,
                                  unsigned n_keys)
{
    struct kern_attention_view view = kern_flash_view(b);
    return kern_attention_row(&view, key + (j < n_keys ? j : 0));
}

/** A thread's part of the keys: first all loads of some tiles, then splitting and storing. */
KERN_INLINE void kern_flash_take_keys(const struct kern_flash_block *b, size_t key, unsigned n_keys,
                                      unsigned t, bool aligned)
{
    unsigned n_tiles = b->keys / KERN_MMA_COLUMNS, lane = t % KERN_WARP;
    for (unsigned n = t / KERN_WARP; n < n_tiles; n += KERN_FLASH_WARPS) {
        unsigned j = n * KERN_MMA_COLUMNS + lane / KERN_QUAD;
        unsigned d = (unsigned)b->a->head_size;
        const float *row = b->a->k + kern_flash_row(b, key, j, n_keys) * d;
        KERN_UNROLL
        for (unsigned k = 0; k < b->dims / KERN_MMA_DEPTH; k += KERN_FLASH_LOADS) {
            struct kern_vec4 x[KERN_FLASH_LOADS];
            KERN_UNROLL
            for (unsigned i = 0; i < KERN_FLASH_LOADS && k + i < b->dims / KERN_MMA_DEPTH; i++)
                x[i] = kern_attention_four(
                    row, d, j < n_keys, (k + i) * KERN_MMA_DEPTH + lane % KERN_QUAD * 4, aligned);
            KERN_UNROLL
            for (unsigned i = 0; i < KERN_FLASH_LOADS && k + i < b->dims / KERN_MMA_DEPTH; i++)
                kern_parts_store_b(x[i], b->parts, kern_flash_tile(b, k + i, n_tiles, n) + lane);
        }
    }
}

KERN_INLINE void kern_flash_load_keys(const struct kern_flash_block *b, size_t key, unsigned n_keys)
{
    for (unsigned t = kern_thread_begin(); t < KERN_FLASH_THREADS;
         t += kern_thread_step(KERN_FLASH_THREADS)) {
        if (b->aligned)
            kern_flash_take_keys(b, key, n_keys, t, true);
        else
            kern_flash_take_keys(b, key, n_keys, t, false);
    }
}

/** Turn four elements of the four keys that a lane wants: a fragment for each of four tiles. */
KERN_INLINE void kern_flash_turn(const struct kern_flash_block *b, const struct kern_vec4 *x,
                                 struct kern_mma_b *to)
{
    KERN_UNROLL
    for (unsigned e = 0; e < 4; e++) {
        struct kern_vec4 column;
        KERN_UNROLL
        for (unsigned i = 0; i < 4; i++)
            column.v[i] = b->careful && !kern_bf16_holds(x[i].v[e]) ? 0.0f : x[i].v[e];
        kern_parts_store_b(column, b->parts, to + (size_t)e * b->parts * KERN_WARP);
    }
}

/** A thread's part of the values, two groups of columns at a time: KERN_FLASH_LOADS loads. */
KERN_INLINE void kern_flash_take_values(const struct kern_flash_block *b, size_t key,
                                        unsigned n_keys, unsigned t, bool aligned)
{
    unsigned depth = b->keys / KERN_MMA_DEPTH, n_tiles = b->dims / KERN_MMA_COLUMNS;
    unsigned lane = t % KERN_WARP, w = t / KERN_WARP, k = w % depth;
    unsigned step = KERN_FLASH_WARPS / depth; /* warps that share 16 keys */
    unsigned d = (unsigned)b->a->value_size;
    const float *rows[4];
    bool real[4];
    KERN_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        unsigned j = k * KERN_MMA_DEPTH + lane % KERN_QUAD * 2 + i / 2 * 8 + i % 2;
        real[i] = j < n_keys;
        rows[i] = b->a->v + kern_flash_row(b, key, j, n_keys) * d;
    }
    for (unsigned group = w / depth; group < b->dims / KERN_FLASH_GROUP; group += 2 * step) {
        struct kern_vec4 x[2][4];
        KERN_UNROLL
        for (unsigned i = 0; i < 8; i++)
            x[i / 4][i % 4] = kern_attention_four(
                rows[i % 4], d, real[i % 4],
                (group + i / 4 * step) * KERN_FLASH_GROUP + lane / KERN_QUAD * 4, aligned);
        KERN_UNROLL
        for (unsigned i = 0; i < 2; i++)
            kern_flash_turn(b, x[i],
                            kern_flash_tile(b, k, n_tiles, (group + i * step) * KERN_MMA_GROUP) +
                                lane);
    }
}

KERN_INLINE void kern_flash_load_values(const struct kern_flash_block *b, size_t key,
                                        unsigned n_keys)
{
    for (unsigned t = kern_thread_begin(); t < KERN_FLASH_THREADS;
         t += kern_thread_step(KERN_FLASH_THREADS)) {
        if (b->aligned)
            kern_flash_take_values(b, key, n_keys, t, true);
        else
            kern_flash_take_values(b, key, n_keys, t, false);
    }
}

#endif
