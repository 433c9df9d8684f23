/**
 * Keys and values to parts, for flash.h: a block of threads takes KERN_FLASH_KEYS keys of one head
 * and writes what load.h says, zeros for keys after the last one. A thread has four
 * neighbouring elements of two keys, or of four values, and stores fragments of two tiles at a
 * time.
 *
 * It must read a key and its value once and write 4 (`fast`) or 6 bytes (`high`) for each of their
 * elements.
 */
#ifndef KERNELS_CUDA_KERNELS_FLASH_PARTS_H
#define KERNELS_CUDA_KERNELS_FLASH_PARTS_H

#include "kernels/cuda/kernels/flash/load.h"

struct kern_parts_args {
    struct kern_attention_args of;           /* k and v, their sizes, ranges */
    const struct kern_attention_task *tasks; /* n_blocks: keys first .. of a range */
    struct kern_bytes16 *to;                 /* [heads][n_blocks], of keys and values */
    size_t first_head, n_blocks;
    uint32_t dims, n_parts; /* constants of the kernel that reads them */
};

/** What the threads of a block know. n_parts is a constant once all is inlined. */
struct kern_parts_block {
    const struct kern_parts_args *a;
    struct kern_attention_view view;
    size_t first;
    struct kern_mma_b2 *to;
    unsigned n_parts;
};

/** Elements e .. e + 3 of the block's key j, or of its value. */
KERN_INLINE struct kern_vec4 kern_parts_four(const struct kern_parts_block *b, bool values,
                                             unsigned j, unsigned e)
{
    const struct kern_attention_args *of = &b->a->of;
    size_t d = values ? of->value_size : of->head_size, key = b->first + j;
    bool real = key < b->view.key_end, aligned = d % 4 == 0;
    const float *all = values ? of->v : of->k;
    const float *row = all + kern_attention_row(&b->view, real ? key : b->first) * d;
    return kern_attention_four(row, (unsigned)d, real, e, aligned && (uintptr_t)all % 16 == 0);
}

/** Fragments of 16 keys along 16 elements. */
KERN_INLINE void kern_parts_of_keys(const struct kern_parts_block *b, unsigned at, unsigned lane)
{
    unsigned pair = at % 2, k = at / 2;
    struct kern_vec4 x[2];
    KERN_UNROLL
    for (unsigned i = 0; i < 2; i++)
        x[i] = kern_parts_four(b, false, (2 * pair + i) * KERN_MMA_COLUMNS + lane / KERN_QUAD,
                               k * KERN_MMA_DEPTH + lane % KERN_QUAD * 4);
    kern_parts_store_b(x, b->n_parts, b->to + (size_t)at * b->n_parts * KERN_WARP + lane);
}

/** Fragments of 32 elements along 16 values. */
KERN_INLINE void kern_parts_of_values(const struct kern_parts_block *b, unsigned at, unsigned lane)
{
    unsigned n_groups = b->a->dims / KERN_FLASH_GROUP, k = at / n_groups, group = at % n_groups;
    struct kern_mma_b2 *to = b->to + kern_flash_pieces(b->a->dims, b->n_parts) + lane;
    struct kern_vec4 x[4];
    KERN_UNROLL
    for (unsigned i = 0; i < 4; i++)
        x[i] =
            kern_parts_four(b, true, k * KERN_MMA_DEPTH + lane % KERN_QUAD * 2 + i / 2 * 8 + i % 2,
                            group * KERN_FLASH_GROUP + lane / KERN_QUAD * 4);
    KERN_UNROLL
    for (unsigned pair = 0; pair < 2; pair++) {
        struct kern_vec4 turned[2];
        KERN_UNROLL
        for (unsigned i = 0; i < 8; i++)
            turned[i / 4].v[i % 4] = x[i % 4].v[2 * pair + i / 4];
        kern_parts_store_b(turned, b->n_parts,
                           to + ((size_t)at * 2 + pair) * b->n_parts * KERN_WARP);
    }
}

KERN_INLINE void kern_parts_run(const struct kern_parts_block *b)
{
    for (unsigned t = kern_thread_begin(); t < KERN_FLASH_THREADS;
         t += kern_thread_step(KERN_FLASH_THREADS)) {
        KERN_ROLLED
        for (unsigned i = t / KERN_WARP; i < b->a->dims / 8; i += KERN_FLASH_WARPS)
            kern_parts_of_keys(b, i, t % KERN_WARP);
        KERN_ROLLED
        for (unsigned i = t / KERN_WARP; i < b->a->dims / 16; i += KERN_FLASH_WARPS)
            kern_parts_of_values(b, i, t % KERN_WARP);
    }
}

KERN_INLINE void kern_parts_block_of(const struct kern_parts_args *a, size_t block, void *shared)
{
    (void)shared;
    struct kern_attention_task task = a->tasks[block % a->n_blocks];
    struct kern_parts_block b = {0};
    b.a = a;
    b.view.a = &a->of;
    b.view.range = a->of.ranges[task.range];
    b.view.kv_head = a->first_head + block / a->n_blocks;
    b.view.key_end = b.view.range.n_parent + b.view.range.q_offset + b.view.range.n_q;
    b.first = task.first;
    b.n_parts = a->n_parts == 2 ? 2 : 3;
    b.to = (struct kern_mma_b2 *)(void *)a->to + block * 2 * kern_flash_pieces(a->dims, b.n_parts);
    if (b.n_parts == 2) {
        b.n_parts = 2;
        kern_parts_run(&b);
    } else {
        b.n_parts = 3;
        kern_parts_run(&b);
    }
}

#endif
