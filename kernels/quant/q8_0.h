/**
 * Q8_0: 32 elements in 34 bytes, 8.5 bits per weight. y = d * q, q a signed byte.
 */
#ifndef KERNELS_QUANT_Q8_0_H
#define KERNELS_QUANT_Q8_0_H

#include "kernels/quant/bytes.h"

struct kern_block_q8_0 {
    uint8_t d[2];   /* half */
    uint8_t qs[32]; /* signed */
};

/** Decode the block: 32 elements; group is 0. */
KERN_INLINE void kern_q8_0_group(const struct kern_block_q8_0 *block, unsigned group, float *y)
{
    (void)group;
    float d = kern_load_half(block->d);
    for (int j = 0; j < 32; j++)
        y[j] = d * (float)(int8_t)block->qs[j];
}

KERN_FORMAT_ONE_SCALE(q8_0, 1)
KERN_FORMAT_ROW(q8_0, 32)

#endif
