/**
 * What flash.h has in shared memory, and how it gets there.
 *
 * Queries, keys and values are in the layout of the tensor cores' instruction (mma.h): a lane's
 * fragment beside the next lane's, each number in its parts. Which number is which row or column of
 * a tile is free, as long as both sides of a product agree. For scores lane q of a quad has four
 * neighbouring elements of its queries and keys. For values tile i of a group of four has elements
 * i, i + 4, i + 8 ... of 32. So a thread that has loaded four neighbouring elements stores one of
 * each tile, and a lane ends up with eight neighbouring elements of an output.
 *
 * Keys and values are split into parts by a kernel of its own, once for all queries and heads that
 * see them: for KERN_FLASH_KEYS of a head all fragments of the keys, then those of the values. They
 * are copied to shared memory as they are.
 *
 * All loads and stores of global memory are of 16 bytes where rows are aligned to that. Those of
 * shared memory are free of bank conflicts.
 */
#ifndef KERNELS_CUDA_KERNELS_FLASH_LOAD_H
#define KERNELS_CUDA_KERNELS_FLASH_LOAD_H

#include "kernels/cuda/kernels/attention_view.h"
#include "kernels/cuda/kernels/copies.h"
#include "kernels/cuda/kernels/mma.h"

enum {
    KERN_FLASH_THREADS = 128,
    KERN_FLASH_WARPS = KERN_FLASH_THREADS / KERN_WARP,
    KERN_FLASH_MAX_DIMS = 256,
    KERN_FLASH_MAX_TILES = 2,                            /* of 16 queries, that a warp has */
    KERN_FLASH_KEYS = 32,                                /* at a time */
    KERN_FLASH_GROUP = KERN_MMA_GROUP * KERN_MMA_COLUMNS /* columns multiplied at a time */
};

/** Pieces of 16 bytes that the keys of a block take in parts; its values take as many. */
KERN_INLINE unsigned kern_flash_pieces(unsigned dims, unsigned parts)
{
    return KERN_FLASH_KEYS * dims * parts / 8;
}

/** Whether keys and values have places of their own, so that one is copied as the other is used. */
KERN_INLINE bool kern_flash_is_double(unsigned dims)
{
    return dims <= 128;
}

/** In shared memory, followed by the fragments of queries, of keys and of values. */
struct kern_flash_shared {
    struct kern_attention_view view;  /* but for `a`; here, since registers are short */
    const struct kern_bytes16 *parts; /* of the block's first keys and values */
    uint32_t not_finite, any_chosen;
} __attribute__((aligned(16)));

/** What all threads of a block know. dims, parts and tiles are constants once all is inlined. */
struct kern_flash_block {
    const struct kern_attention_args *a;
    struct kern_flash_shared *s;
    unsigned dims, parts, tiles;
    struct kern_mma_a *q; /* fragments of queries: [warp][tile][k][part][lane] */
    /* Fragments of these: [k][two tiles][part][lane]. Both may be one place. */
    struct kern_mma_b2 *keys, *values;
    bool aligned; /* rows of q and out, to 16 bytes */
    bool careful; /* zeros for values that are not finite */
};

/** What a warp's tile sees: tiles have neighbouring queries, or the same ones under two heads. */
KERN_INLINE struct kern_attention_view kern_flash_view(const struct kern_flash_block *b,
                                                       unsigned tile)
{
    struct kern_attention_view view = b->s->view;
    view.a = b->a;
    view.run = 0; /* further keys are for attention.h */
    view.head += b->tiles > 1 && b->a->group_heads > 1 ? tile : 0;
    return view;
}

/** The first query of a warp's tile, among the block's. */
KERN_INLINE unsigned kern_flash_first(const struct kern_flash_block *b, unsigned w, unsigned tile)
{
    bool apart = b->tiles > 1 && b->a->group_heads == 1;
    return (apart ? w * b->tiles + tile : w) * KERN_MMA_ROWS;
}

/** That of a lane's r-th row. */
KERN_INLINE unsigned kern_flash_query(const struct kern_flash_block *b, unsigned w, unsigned tile,
                                      unsigned lane, unsigned r)
{
    return kern_flash_first(b, w, tile) + lane / KERN_QUAD + 8 * r;
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

/** The fragments of a warp's tile of queries. */
KERN_INLINE struct kern_mma_a *kern_flash_queries(const struct kern_flash_block *b, unsigned w,
                                                  unsigned tile)
{
    return b->q + (size_t)(w * b->tiles + tile) * b->dims / KERN_MMA_DEPTH * b->parts * KERN_WARP;
}

/** Each lane writes, and later reads, its own fragments only: no barrier. */
KERN_INLINE void kern_flash_load_queries(const struct kern_flash_block *b, unsigned tile)
{
    struct kern_attention_view view = kern_flash_view(b, tile);
    for (unsigned t = kern_thread_begin(); t < KERN_FLASH_THREADS;
         t += kern_thread_step(KERN_FLASH_THREADS)) {
        unsigned w = t / KERN_WARP, lane = t % KERN_WARP;
        struct kern_mma_a *to = kern_flash_queries(b, w, tile) + lane;
        for (unsigned k = 0; k < b->dims / KERN_MMA_DEPTH; k++) {
            struct kern_vec4 rows[2];
            KERN_UNROLL
            for (unsigned r = 0; r < 2; r++) {
                unsigned query = kern_flash_query(b, w, tile, lane, r);
                bool real = query < view.n_queries;
                size_t row = kern_attention_query_row(&view, real ? query : 0), d = b->a->head_size;
                rows[r] =
                    kern_attention_four(b->a->q + row * d, (unsigned)d, real,
                                        k * KERN_MMA_DEPTH + lane % KERN_QUAD * 4, b->aligned);
            }
            kern_flash_store_queries(rows, b->parts, to + (size_t)k * b->parts * KERN_WARP);
        }
    }
}

/** Begin to copy the keys of a block, or its values. */
KERN_INLINE void kern_flash_fetch(const struct kern_flash_block *b, size_t key, bool values)
{
    unsigned n = kern_flash_pieces(b->dims, b->parts);
    /* A few at a time: addresses of all of them would be kept in registers. */
    const unsigned n_side = n / KERN_FLASH_THREADS % 4 == 0 ? 4 : 2;
    const struct kern_bytes16 *from =
        b->s->parts + (key - b->s->view.key_begin) / KERN_FLASH_KEYS * (2 * n) + (values ? n : 0);
    struct kern_bytes16 *to = (struct kern_bytes16 *)(void *)(values ? b->values : b->keys);
    for (unsigned t = kern_thread_begin(); t < KERN_FLASH_THREADS;
         t += kern_thread_step(KERN_FLASH_THREADS)) {
        KERN_ROLLED
        for (unsigned i = t; i < n; i += n_side * KERN_FLASH_THREADS) {
            KERN_UNROLL
            for (unsigned k = 0; k < n_side; k++)
                kern_copy16(to + i + k * KERN_FLASH_THREADS, from + i + k * KERN_FLASH_THREADS);
        }
    }
}

/** Two bfloat16 side by side: bits of those whose first part is not finite. */
KERN_INLINE uint32_t kern_flash_spoilt(uint32_t first)
{
    uint32_t low = (first & 0x7f80u) == 0x7f80u ? 0xffffu : 0;
    return low | ((first & 0x7f800000u) == 0x7f800000u ? 0xffff0000u : 0);
}

/** Zeros instead of values that are not finite. The caller has a barrier before and after. */
KERN_INLINE void kern_flash_clean(const struct kern_flash_block *b)
{
    unsigned n = kern_flash_pieces(b->dims, b->parts) / b->parts;
    for (unsigned t = kern_thread_begin(); t < KERN_FLASH_THREADS;
         t += kern_thread_step(KERN_FLASH_THREADS)) {
        for (unsigned i = t; i < n; i += KERN_FLASH_THREADS) {
            struct kern_bytes16 *x = (struct kern_bytes16 *)(void *)b->values +
                                     i / KERN_WARP * b->parts * KERN_WARP + i % KERN_WARP;
            struct kern_bytes16 first = x[0];
            for (unsigned k = 0; k < b->parts * 4; k++)
                x[k / 4 * KERN_WARP].v[k % 4] &= ~kern_flash_spoilt(first.v[k % 4]);
        }
    }
}

#endif
