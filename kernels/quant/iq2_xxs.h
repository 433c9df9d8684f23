/**
 * IQ2_XXS: 256 elements in 66 bytes, 2.0625 bits per weight.
 * y = d * (0.5 + scale) * 0.25 * magnitude * sign. Per group of 32: four 8-bit indices of 8
 * magnitudes each, then 32 bits: four 7-bit sign indices (bits 0..27) and the scale (28..31).
 */
#ifndef KERNELS_QUANT_IQ2_XXS_H
#define KERNELS_QUANT_IQ2_XXS_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_iq2.h"
#include "kernels/quant/octet.h"

struct kern_block_iq2_xxs {
    uint8_t d[2]; /* half */
    uint8_t qs[64];
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_iq2_xxs_group(const struct kern_block_iq2_xxs *block, unsigned group,
                                    float *y)
{
    const uint8_t *indices = block->qs + 8 * group;
    uint32_t signs = kern_load_u32(indices + 4);
    float scale = kern_iq2_scale(kern_load_half(block->d), signs >> 28);
    for (unsigned l = 0; l < 4; l++)
        kern_iq2_octet(kern_iq2_xxs_codes[indices[l]], kern_sign_byte(signs >> 7 * l & 127), scale,
                       y + 8 * l);
}

/** The block's scale, for integers 1 + 2 * scale times magnitudes. */
KERN_INLINE float kern_iq2_xxs_block_scale(const struct kern_block_iq2_xxs *block)
{
    return kern_load_half(block->d) * 0.125f;
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_iq2_xxs_neutralise_block(struct kern_block_iq2_xxs *block)
{
    kern_store_u16(block->d, KERN_HALF_8);
}

/** The scale of each run of 32 elements. */
KERN_INLINE void kern_iq2_xxs_scales(const struct kern_block_iq2_xxs *block, float *scales)
{
    float d = kern_load_half(block->d);
    for (int group = 0; group < 8; group++)
        scales[group] = kern_iq2_scale(d, block->qs[8 * group + 7] >> 4);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq2_xxs_neutralise(struct kern_block_iq2_xxs *block)
{
    for (int group = 0; group < 8; group++)
        block->qs[8 * group + 7] &= 15; /* 0.5 * 0.25 */
    kern_iq2_xxs_neutralise_block(block);
}

KERN_FORMAT_ROW(iq2_xxs, 256)

#endif
