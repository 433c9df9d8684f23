/**
 * IQ2_XS: 256 elements in 74 bytes, 2.3125 bits per weight.
 * y = d * (0.5 + scale) * 0.25 * magnitude * sign. Per 8 elements 16 bits: a 9-bit index (low) and
 * a 7-bit sign index; per 16 elements a scale of 4 bits, the low nibble first.
 */
#ifndef KERNELS_QUANT_IQ2_XS_H
#define KERNELS_QUANT_IQ2_XS_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_iq2.h"
#include "kernels/quant/octet.h"

struct kern_block_iq2_xs {
    uint8_t d[2];   /* half */
    uint8_t qs[64]; /* 32 numbers of 16 bits */
    uint8_t scales[8];
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_iq2_xs_group(const struct kern_block_iq2_xs *block, unsigned group, float *y)
{
    float d = kern_load_half(block->d);
    for (unsigned l = 0; l < 4; l++) {
        uint32_t code = kern_load_u16(block->qs + 8 * group + 2 * l);
        float scale = kern_iq2_scale(d, kern_load_nibble(block->scales, 2 * group + l / 2));
        kern_iq2_octet(kern_iq2_xs_codes[code & 511], kern_sign_byte(code >> 9), scale, y + 8 * l);
    }
}

/** The block's scale, for integers 1 + 2 * scale times magnitudes. */
KERN_INLINE float kern_iq2_xs_block_scale(const struct kern_block_iq2_xs *block)
{
    return kern_load_half(block->d) * 0.125f;
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_iq2_xs_neutralise_block(struct kern_block_iq2_xs *block)
{
    kern_store_u16(block->d, KERN_HALF_8);
}

/** The scale of each run of 16 elements. */
KERN_INLINE void kern_iq2_xs_scales(const struct kern_block_iq2_xs *block, float *scales)
{
    float d = kern_load_half(block->d);
    for (unsigned run = 0; run < 16; run++)
        scales[run] = kern_iq2_scale(d, kern_load_nibble(block->scales, run));
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq2_xs_neutralise(struct kern_block_iq2_xs *block)
{
    memset(block->scales, 0, sizeof block->scales); /* 0.5 * 0.25 */
    kern_iq2_xs_neutralise_block(block);
}

KERN_FORMAT_ROW(iq2_xs, 256)

#endif
