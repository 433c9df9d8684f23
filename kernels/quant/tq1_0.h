/**
 * TQ1_0: 256 elements in 54 bytes, 1.6875 bits per weight. y = d * (trit - 1).
 * A byte holds five base-3 digits (of qh four) as a fraction of 256: digit n is the integer part
 * of 3 * frac(byte * 3^n / 256). Elements in order: digit 0 of qs[0..31], digit 1 of those, ...
 * digit 4; then the digits of qs[32..47], 16 elements each; then of qh, 4 elements each.
 */
#ifndef KERNELS_QUANT_TQ1_0_H
#define KERNELS_QUANT_TQ1_0_H

#include "kernels/quant/bytes.h"

struct kern_block_tq1_0 {
    uint8_t qs[48];
    uint8_t qh[4];
    uint8_t d[2]; /* half */
};

/** Digit n (0..4) of a packed byte. */
KERN_INLINE unsigned kern_tq1_0_digit(uint8_t byte, unsigned n)
{
    unsigned fraction = byte;
    for (unsigned i = 0; i < n; i++)
        fraction = fraction * 3 & 255;
    return fraction * 3 >> 8;
}

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_tq1_0_group(const struct kern_block_tq1_0 *block, unsigned group, float *y)
{
    float d = kern_load_half(block->d);
    for (unsigned j = 0; j < 32; j++) {
        unsigned i = 32 * group + j;
        unsigned trit;
        if (i < 160)
            trit = kern_tq1_0_digit(block->qs[i % 32], i / 32);
        else if (i < 240)
            trit = kern_tq1_0_digit(block->qs[32 + i % 16], (i - 160) / 16);
        else
            trit = kern_tq1_0_digit(block->qh[i % 4], (i - 240) / 4);
        y[j] = d * (float)((int)trit - 1);
    }
}

/** The scale of the whole block, without sub-scales. */
KERN_INLINE float kern_tq1_0_block_scale(const struct kern_block_tq1_0 *block)
{
    return kern_load_half(block->d);
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_tq1_0_neutralise_block(struct kern_block_tq1_0 *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

/** The scale of each run of 32 elements. */
KERN_INLINE void kern_tq1_0_scales(const struct kern_block_tq1_0 *block, float *scales)
{
    float d = kern_tq1_0_block_scale(block);
    for (int run = 0; run < 8; run++)
        scales[run] = d;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_tq1_0_neutralise(struct kern_block_tq1_0 *block)
{
    kern_tq1_0_neutralise_block(block);
}

KERN_FORMAT_ROW(tq1_0, 256)

#endif
