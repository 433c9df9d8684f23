/**
 * IQ2_S: 256 elements in 82 bytes, 2.5625 bits per weight.
 * y = d * (0.5 + scale) * 0.25 * magnitude * sign. Per group of 32: four 10-bit indices of 8
 * magnitudes each (low 8 bits in qs, upper two of index l in bits 2l, 2l + 1 of qh), four sign
 * bytes, and two scales of 4 bits, the low nibble first.
 */
#ifndef KERNELS_QUANT_IQ2_S_H
#define KERNELS_QUANT_IQ2_S_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_iq2.h"
#include "kernels/quant/octet.h"

struct kern_block_iq2_s {
    uint8_t d[2]; /* half */
    uint8_t qs[32];
    uint8_t signs[32];
    uint8_t qh[8];
    uint8_t scales[8];
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_iq2_s_group(const struct kern_block_iq2_s *block, unsigned group, float *y)
{
    float d = kern_load_half(block->d);
    for (unsigned l = 0; l < 4; l++) {
        unsigned index = block->qs[4 * group + l] | (block->qh[group] >> 2 * l & 3u) << 8;
        float scale = kern_iq2_scale(d, kern_load_nibble(block->scales, 2 * group + l / 2));
        kern_iq2_octet(kern_iq2_s_codes[index], block->signs[4 * group + l], scale, y + 8 * l);
    }
}

/** The block's scale, for integers 1 + 2 * scale times magnitudes. */
KERN_INLINE float kern_iq2_s_block_scale(const struct kern_block_iq2_s *block)
{
    return kern_load_half(block->d) * 0.125f;
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_iq2_s_neutralise_block(struct kern_block_iq2_s *block)
{
    kern_store_u16(block->d, KERN_HALF_8);
}

/** The scale of each run of 16 elements. */
KERN_INLINE void kern_iq2_s_scales(const struct kern_block_iq2_s *block, float *scales)
{
    float d = kern_load_half(block->d);
    for (unsigned run = 0; run < 16; run++)
        scales[run] = kern_iq2_scale(d, kern_load_nibble(block->scales, run));
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq2_s_neutralise(struct kern_block_iq2_s *block)
{
    memset(block->scales, 0, sizeof block->scales); /* 0.5 * 0.25 */
    kern_iq2_s_neutralise_block(block);
}

KERN_FORMAT_ROW(iq2_s, 256)

#endif
