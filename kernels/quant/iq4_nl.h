/**
 * IQ4_NL: 32 elements in 18 bytes, 4.5 bits per weight. y = d * kern_iq4_values[q], q of 4 bits.
 * Low nibbles are elements 0..15, high nibbles 16..31.
 */
#ifndef KERNELS_QUANT_IQ4_NL_H
#define KERNELS_QUANT_IQ4_NL_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_4bit.h"

struct kern_block_iq4_nl {
    uint8_t d[2]; /* half */
    uint8_t qs[16];
};

/** Decode the block: 32 elements; group is 0. */
KERN_INLINE void kern_iq4_nl_group(const struct kern_block_iq4_nl *block, unsigned group, float *y)
{
    (void)group;
    float d = kern_load_half(block->d);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)kern_iq4_values[block->qs[j] & 15];
        y[j + 16] = d * (float)kern_iq4_values[block->qs[j] >> 4];
    }
}

KERN_FORMAT_ONE_SCALE(iq4_nl, 1)
KERN_FORMAT_ROW(iq4_nl, 32)

#endif
