/**
 * Products of bytes on tensor cores.
 *
 * One instruction, mma.sync.m16n8k32 (or k16), multiplies 16 x 32 signed bytes by 32 x 8 and adds
 * to 32-bit integers, modulo 2^32. Fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16" and
 * "... m16n8k32" of .s8), with g = lane / 4 and q = lane % 4, a word being four columns:
 *
 *     c.v[2 r + i]     row g + 8 r, column 2 q + i                          r, i: 0, 1
 *     a, word r + 2 h  row g + 8 r, columns 16 h + 4 q .. 16 h + 4 q + 3    h: 0; with k32 0, 1
 *     b, word h        rows 16 h + 4 q .. 16 h + 4 q + 3, column g
 *
 * Records (records.h) have a lane's words together, a's in the order 2 r + h.
 */
#ifndef KERNELS_CUDA_KERNELS_INTEGERS_MMA_H
#define KERNELS_CUDA_KERNELS_INTEGERS_MMA_H

#include <string.h>

#include "kernels/cuda/kernels/warp.h"

struct kern_mma_sums {
    int32_t v[4];
};

#ifndef __CUDACC__

static inline void kern_bytes_of(int8_t *to, uint32_t word)
{
    memcpy(to, &word, sizeof word); /* the host's order of bytes is the device's */
}

/** d = begin + a b, of 16 columns, with words `half` of the fragments. */
static inline void kern_mma_bytes_on_host(struct kern_mma_sums *d, const struct kern_bytes16 *a,
                                          const struct kern_bytes16 *b, unsigned part,
                                          unsigned half)
{
    int8_t x[16][16], y[8][16];
    for (unsigned lane = 0; lane < KERN_WARP; lane++) {
        unsigned g = lane / KERN_QUAD, q = lane % KERN_QUAD;
        kern_bytes_of(&x[g][4 * q], a[lane].v[half]);
        kern_bytes_of(&x[g + 8][4 * q], a[lane].v[2 + half]);
        kern_bytes_of(&y[g][4 * q], b[lane].v[2 * part + half]);
    }
    for (unsigned lane = 0; lane < KERN_WARP; lane++) {
        for (unsigned i = 0; i < 4; i++) {
            const int8_t *row = x[lane / KERN_QUAD + i / 2 * 8];
            const int8_t *column = y[lane % KERN_QUAD * 2 + i % 2];
            int32_t sum = 0;
            for (unsigned k = 0; k < 16; k++)
                sum += row[k] * column[k];
            d[lane].v[i] = (int32_t)((uint32_t)d[lane].v[i] + (uint32_t)sum);
        }
    }
}

#endif

/** d = begin + a b, of 32 columns. part: 0 b's words 0 and 1, 1 its words 2 and 3. */
KERN_INLINE void kern_mma_bytes32(struct kern_mma_sums *d, int32_t begin,
                                  const struct kern_bytes16 *a, const struct kern_bytes16 *b,
                                  unsigned part)
{
#ifdef __CUDACC__
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
                 : "=r"(d->v[0]), "=r"(d->v[1]), "=r"(d->v[2]), "=r"(d->v[3])
                 : "r"(a->v[0]), "r"(a->v[2]), "r"(a->v[1]), "r"(a->v[3]), "r"(b->v[2 * part]),
                   "r"(b->v[2 * part + 1]), "r"(begin));
#else
    for (unsigned i = 0; i < KERN_WARP * 4; i++)
        d[i / 4].v[i % 4] = begin;
    kern_mma_bytes_on_host(d, a, b, part, 0);
    kern_mma_bytes_on_host(d, a, b, part, 1);
#endif
}

/** The product of 16 columns, which are words `half` and 2 + half of a. */
KERN_INLINE void kern_mma_bytes16(struct kern_mma_sums *d, int32_t begin,
                                  const struct kern_bytes16 *a, const struct kern_bytes16 *b,
                                  unsigned part, unsigned half)
{
#ifdef __CUDACC__
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
                 : "=r"(d->v[0]), "=r"(d->v[1]), "=r"(d->v[2]), "=r"(d->v[3])
                 : "r"(a->v[half]), "r"(a->v[2 + half]), "r"(b->v[2 * part + half]), "r"(begin));
#else
    for (unsigned i = 0; i < KERN_WARP * 4; i++)
        d[i / 4].v[i % 4] = begin;
    kern_mma_bytes_on_host(d, a, b, part, half);
#endif
}

#endif
