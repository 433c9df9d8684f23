/**
 * What the 32 threads of a warp do together, so that a device and the host both run it. thread.h
 * says how a block is written.
 *
 * A kernel of warps is a loop over the block's warps. Within it, what a lane does alone is in a
 * loop over the lanes. Between such loops are operations of the whole warp:
 *
 *     for (unsigned w = kern_warp_begin(); w < WARPS; w = kern_warp_next(w, WARPS)) {
 *         for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane))
 *             x[kern_slot(lane)] = ... what this lane does ...
 *         kern_quad_max(x);
 *     }
 *
 * What a lane keeps is an array with KERN_WARP_SLOTS entries, of which it uses kern_slot(lane). An
 * operation of the warp takes such arrays whole. On a device each lane has one entry, in registers,
 * and the instruction combines those of all lanes. On the host the entries of all lanes are side by
 * side. Every lane must come to an operation of its warp. What a warp keeps is an array with
 * KERN_SLOTS(WARPS) entries, of which it uses kern_slot(w).
 */
#ifndef KERNELS_CUDA_KERNELS_WARP_H
#define KERNELS_CUDA_KERNELS_WARP_H

#include "kernels/cuda/kernels/thread.h"

enum {
    KERN_WARP = 32,
    KERN_WARP_SLOTS = KERN_SLOTS(KERN_WARP),
    KERN_QUAD = 4 /* neighbours that share the columns of a row of a product */
};

KERN_INLINE unsigned kern_warp_begin(void)
{
    return kern_thread_begin() / KERN_WARP;
}

/** The next of n_warps that this thread plays; n_warps if there is none. */
KERN_INLINE unsigned kern_warp_next(unsigned w, unsigned n_warps)
{
#ifdef __CUDACC__
    (void)w;
    return n_warps; /* a constant, so that the compiler sees that there is no second round */
#else
    (void)n_warps;
    return w + 1;
#endif
}

KERN_INLINE unsigned kern_lane_begin(void)
{
    return kern_thread_begin() % KERN_WARP;
}

/** The next lane that this thread plays; KERN_WARP if there is none. */
KERN_INLINE unsigned kern_lane_next(unsigned lane)
{
    return kern_warp_next(lane, KERN_WARP);
}

/** x: the largest of each quad, in all of its lanes. No NaN. */
KERN_INLINE void kern_quad_max(float *x)
{
#ifdef __CUDACC__
    KERN_UNROLL
    for (int mask = 1; mask < KERN_QUAD; mask *= 2) {
        float other = __shfl_xor_sync(0xffffffffu, x[0], mask);
        x[0] = other > x[0] ? other : x[0];
    }
#else
    for (unsigned quad = 0; quad < KERN_WARP; quad += KERN_QUAD) {
        float max = x[quad];
        for (unsigned i = 1; i < KERN_QUAD; i++)
            max = x[quad + i] > max ? x[quad + i] : max;
        for (unsigned i = 0; i < KERN_QUAD; i++)
            x[quad + i] = max;
    }
#endif
}

/** x: the sum of each quad, (x0 + x1) + (x2 + x3), in all of its lanes. */
KERN_INLINE void kern_quad_sum(float *x)
{
#ifdef __CUDACC__
    KERN_UNROLL
    for (int mask = 1; mask < KERN_QUAD; mask *= 2)
        x[0] += __shfl_xor_sync(0xffffffffu, x[0], mask);
#else
    for (unsigned quad = 0; quad < KERN_WARP; quad += KERN_QUAD) {
        float sum = (x[quad] + x[quad + 1]) + (x[quad + 2] + x[quad + 3]);
        for (unsigned i = 0; i < KERN_QUAD; i++)
            x[quad + i] = sum;
    }
#endif
}

#endif
