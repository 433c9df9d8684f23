/**
 * IQ4_XS: 256 elements in 136 bytes, 4.25 bits per weight. y = d * (scale - 32) *
 * kern_iq4_values[q], q of 4 bits, a 6-bit scale per group of 32.
 * In a group's 16 bytes of qs low nibbles are elements 0..15, high nibbles 16..31.
 */
#ifndef KERNELS_QUANT_IQ4_XS_H
#define KERNELS_QUANT_IQ4_XS_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_4bit.h"

struct kern_block_iq4_xs {
    uint8_t d[2];        /* half */
    uint8_t scales_h[2]; /* upper two bits of the scale of group g: bits 2g, 2g + 1 */
    uint8_t scales_l[4]; /* lower four, two groups in a byte, the even one low */
    uint8_t qs[128];
};

/** Scale of group 0..7: -32..31. */
KERN_INLINE int kern_iq4_xs_scale(const struct kern_block_iq4_xs *block, unsigned group)
{
    unsigned high = kern_load_u16(block->scales_h) >> 2 * group & 3;
    return (int)(kern_load_nibble(block->scales_l, group) | high << 4) - 32;
}

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_iq4_xs_group(const struct kern_block_iq4_xs *block, unsigned group, float *y)
{
    float scale = kern_load_half(block->d) * (float)kern_iq4_xs_scale(block, group);
    const uint8_t *qs = block->qs + 16 * group;
    for (int j = 0; j < 16; j++) {
        y[j] = scale * (float)kern_iq4_values[qs[j] & 15];
        y[j + 16] = scale * (float)kern_iq4_values[qs[j] >> 4];
    }
}

/** The block's scale. */
KERN_INLINE float kern_iq4_xs_block_scale(const struct kern_block_iq4_xs *block)
{
    return kern_load_half(block->d);
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_iq4_xs_neutralise_block(struct kern_block_iq4_xs *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

/** The scale of each run of 32 elements. */
KERN_INLINE void kern_iq4_xs_scales(const struct kern_block_iq4_xs *block, float *scales)
{
    float d = kern_iq4_xs_block_scale(block);
    for (unsigned group = 0; group < 8; group++)
        scales[group] = d * (float)kern_iq4_xs_scale(block, group);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq4_xs_neutralise(struct kern_block_iq4_xs *block)
{
    memset(block->scales_l, 0x11, sizeof block->scales_l); /* each scale 33 */
    memset(block->scales_h, 0xaa, sizeof block->scales_h);
    kern_iq4_xs_neutralise_block(block);
}

KERN_FORMAT_ROW(iq4_xs, 256)

#endif
