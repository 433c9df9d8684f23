/**
 * Sums of a product whose results are rotated: finish and rope in one pass, by the same operations,
 * so with the same bits. 4 bytes read and 4 written for an element, where it lies; angles come from
 * L2.
 */
#ifndef KERNELS_CUDA_KERNELS_GATED_ROTATED_H
#define KERNELS_CUDA_KERNELS_GATED_ROTATED_H

#include "kernels/cuda/kernels/gated/gated.h"
#include "kernels/cuda/kernels/rows.h"

enum { KERN_ROTATED_THREADS = 128, KERN_ROTATED_FOUR = 4 };

/**
 * The sums [rope.n_tokens, rope.stride] at rope.x become rotated results. A row is n_heads heads
 * and nothing beside them; head_size is a multiple of 4, with split_halves n_pairs, too. A block
 * per row.
 */
struct kern_rotated_args {
    struct kern_sums sums; /* at rope.x */
    struct kern_rope_args rope;
};

/** Elements i .. i + 3 of a row from its sums. */
KERN_INLINE struct kern_vec4 kern_rotated_four(const struct kern_rotated_args *a, size_t row,
                                               uint32_t i)
{
    return kern_sums_finish(&a->sums, row, a->rope.stride, i, 4, true);
}

/** Pairs whose elements lie n_pairs apart: four of `first`, four of `second`, with eight numbers of
 * `angle`. */
KERN_INLINE void kern_rotate_fours(struct kern_vec4 *first, struct kern_vec4 *second,
                                   const float *angle)
{
    const struct kern_vec4 low = kern_load4_whole(angle, 4, true);
    const struct kern_vec4 high = kern_load4_whole(angle + 4, 4, true);
    KERN_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        float cosine = k < 2 ? low.v[2 * k] : high.v[2 * k - 4];
        float sine = k < 2 ? low.v[2 * k + 1] : high.v[2 * k - 3];
        kern_rotate(&first->v[k], &second->v[k], cosine, sine);
    }
}

/** Number `part` of a head's parts: four pairs with split_halves, else four elements. */
KERN_INLINE void kern_rotated_part(const struct kern_rotated_args *a, size_t row, uint32_t head,
                                   uint32_t part)
{
    const struct kern_rope_args *r = &a->rope;
    uint32_t n_pairs = (uint32_t)r->n_pairs, i = KERN_ROTATED_FOUR * part;
    uint32_t at = head * (uint32_t)r->head_size;
    float *out = r->x + row * r->stride;
    const float *angles = r->angles + (size_t)r->positions[row] * n_pairs * 2;
    if (r->split_halves && i < n_pairs) {
        struct kern_vec4 first = kern_rotated_four(a, row, at + i);
        struct kern_vec4 second = kern_rotated_four(a, row, at + i + n_pairs);
        kern_rotate_fours(&first, &second, angles + 2 * i);
        kern_store4_whole(out + at + i, 4, true, &first);
        kern_store4_whole(out + at + i + n_pairs, 4, true, &second);
        return;
    }
    at += r->split_halves ? i + n_pairs : i;
    struct kern_vec4 y = kern_rotated_four(a, row, at);
    KERN_UNROLL
    for (unsigned k = 0; k < 4; k += 2) {
        if (!r->split_halves && i + k < 2 * n_pairs)
            kern_rotate(&y.v[k], &y.v[k + 1], angles[i + k], angles[i + k + 1]);
    }
    kern_store4_whole(out + at, 4, true, &y);
}

KERN_INLINE void kern_rotated_block(const struct kern_rotated_args *a, size_t block, void *shared)
{
    (void)shared;
    const struct kern_rope_args *r = &a->rope;
    size_t left_out = r->split_halves ? r->n_pairs : 0; /* the second ones go with the first */
    uint32_t per_head = (uint32_t)(r->head_size - left_out) / KERN_ROTATED_FOUR;
    uint32_t n = per_head * (uint32_t)r->n_heads;
    for (unsigned t = kern_thread_begin(); t < KERN_ROTATED_THREADS;
         t += kern_thread_step(KERN_ROTATED_THREADS)) {
        for (uint32_t i = t; i < n; i += KERN_ROTATED_THREADS)
            kern_rotated_part(a, block, i / per_head, i % per_head);
    }
}

#endif
