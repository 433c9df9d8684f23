/**
 * IQ3_XXS: 256 elements in 98 bytes, 3.0625 bits per weight.
 * y = d * (0.5 + scale) * 0.5 * magnitude * sign. Per group of 32: eight 8-bit indices of 4
 * magnitudes each, and 32 bits of signs_scale: four 7-bit sign indices (bits 0..27), one per 8
 * elements, and the scale (28..31).
 */
#ifndef KERNELS_QUANT_IQ3_XXS_H
#define KERNELS_QUANT_IQ3_XXS_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_iq3.h"
#include "kernels/quant/octet.h"

struct kern_block_iq3_xxs {
    uint8_t d[2]; /* half */
    uint8_t qs[64];
    uint8_t signs_scale[32]; /* 8 numbers of 32 bits */
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_iq3_xxs_group(const struct kern_block_iq3_xxs *block, unsigned group,
                                    float *y)
{
    uint32_t signs = kern_load_u32(block->signs_scale + 4 * group);
    float scale = kern_load_half(block->d) * (0.5f + (float)(signs >> 28)) * 0.5f;
    for (unsigned l = 0; l < 8; l++) {
        uint32_t sign_byte = kern_sign_byte(signs >> 7 * (l / 2) & 127);
        kern_iq3_quartet(kern_iq3_xxs_codes[block->qs[8 * group + l]], kern_iq3_xxs_values,
                         sign_byte >> 4 * (l % 2), scale, y + 4 * l);
    }
}

/** The block's scale, for integers 1 + 2 * scale times magnitudes. */
KERN_INLINE float kern_iq3_xxs_block_scale(const struct kern_block_iq3_xxs *block)
{
    return kern_load_half(block->d) * 0.25f;
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_iq3_xxs_neutralise_block(struct kern_block_iq3_xxs *block)
{
    kern_store_u16(block->d, KERN_HALF_4);
}

/** The scale of each run of 32 elements. */
KERN_INLINE void kern_iq3_xxs_scales(const struct kern_block_iq3_xxs *block, float *scales)
{
    float d = kern_load_half(block->d);
    for (int group = 0; group < 8; group++)
        scales[group] = d * (0.5f + (float)(block->signs_scale[4 * group + 3] >> 4)) * 0.5f;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq3_xxs_neutralise(struct kern_block_iq3_xxs *block)
{
    for (int group = 0; group < 8; group++)
        block->signs_scale[4 * group + 3] &= 15; /* 0.5 * 0.5 */
    kern_iq3_xxs_neutralise_block(block);
}

KERN_FORMAT_ROW(iq3_xxs, 256)

#endif
