/**
 * How a kernel is written so that a device and the host both run it.
 *
 * A kernel is an inline function of one *block* of threads: block(arguments, number, shared). It
 * is a sequence of loops over the block's threads with barriers between them:
 *
 *     for (unsigned t = kern_thread_begin(); t < THREADS; t += kern_thread_step(THREADS))
 *         ... what thread t does ...
 *     kern_barrier();
 *
 * On a device each thread passes once through each loop, as itself. On the host one thread plays
 * all of them in turn, and a barrier does nothing. What a thread keeps from one loop to the next
 * is an array with KERN_SLOTS(THREADS) entries, of which it uses kern_slot(t). On a device that is
 * one entry, in registers. Within a loop no thread may read what another one writes.
 */
#ifndef KERNELS_CUDA_KERNELS_THREAD_H
#define KERNELS_CUDA_KERNELS_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/portable/portable.h"

#ifdef __CUDACC__

#define KERN_SLOTS(n_threads) 1
/** In front of a loop whose index must be a constant, so that an array stays in registers. */
#define KERN_UNROLL _Pragma("unroll")

KERN_INLINE unsigned kern_thread_begin(void)
{
    return threadIdx.x;
}

KERN_INLINE unsigned kern_thread_step(unsigned n_threads)
{
    return n_threads;
}

KERN_INLINE unsigned kern_slot(unsigned t)
{
    (void)t;
    return 0;
}

KERN_INLINE void kern_barrier(void)
{
    __syncthreads();
}

/** Add to, and raise, integers that several threads change. The order makes no difference. */
KERN_INLINE void kern_atomic_add(uint32_t *sum, uint32_t n)
{
    atomicAdd(sum, n);
}

KERN_INLINE void kern_atomic_max(uint32_t *most, uint32_t n)
{
    atomicMax(most, n);
}

#else

#define KERN_SLOTS(n_threads) (n_threads)
#define KERN_UNROLL

KERN_INLINE unsigned kern_thread_begin(void)
{
    return 0;
}

KERN_INLINE unsigned kern_thread_step(unsigned n_threads)
{
    (void)n_threads;
    return 1;
}

KERN_INLINE unsigned kern_slot(unsigned t)
{
    return t;
}

KERN_INLINE void kern_barrier(void)
{
}

KERN_INLINE void kern_atomic_add(uint32_t *sum, uint32_t n)
{
    *sum += n;
}

KERN_INLINE void kern_atomic_max(uint32_t *most, uint32_t n)
{
    if (n > *most)
        *most = n;
}

#endif

/** 16 bytes at an address that is a multiple of 16: one load or store of a device. */
struct kern_vec4 {
    float v[4];
} __attribute__((aligned(16)));

struct kern_bytes16 {
    uint32_t v[4];
} __attribute__((aligned(16)));

/** 8 bytes at an address that is a multiple of 8. */
struct kern_bytes8 {
    uint32_t v[2];
} __attribute__((aligned(8)));

/** n of four neighbouring floats; else 0. One load if they are `whole`: n is 4, and they are
 * aligned. */
KERN_INLINE struct kern_vec4 kern_load4_whole(const float *x, unsigned n, bool whole)
{
    if (whole)
        return *(const struct kern_vec4 *)(const void *)x;
    struct kern_vec4 y;
    KERN_UNROLL
    for (unsigned i = 0; i < 4; i++)
        y.v[i] = i < n ? x[i] : 0.0f;
    return y;
}

/** Load n floats, in one load where that is possible. */
KERN_INLINE struct kern_vec4 kern_load4(const float *x, unsigned n)
{
    return kern_load4_whole(x, n, n == 4 && ((uintptr_t)x & 15) == 0);
}

/** The first n of four floats, in one store if they are `whole`, as with loads. */
KERN_INLINE void kern_store4_whole(float *to, unsigned n, bool whole, const struct kern_vec4 *x)
{
    if (whole) {
        *(struct kern_vec4 *)(void *)to = *x;
        return;
    }
    KERN_UNROLL /* so that x is in registers */
        for (unsigned i = 0; i < 4; i++)
    {
        if (i < n)
            to[i] = x->v[i];
    }
}

/** Store n floats, in one store where that is possible. */
KERN_INLINE void kern_store4(float *to, unsigned n, const struct kern_vec4 *x)
{
    kern_store4_whole(to, n, n == 4 && ((uintptr_t)to & 15) == 0, x);
}

/** Four halves, as their bits. */
struct kern_half4 {
    uint16_t v[4];
} __attribute__((aligned(8)));

#endif
