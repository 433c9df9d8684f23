/**
 * IQ3_S: 256 elements in 110 bytes, 3.4375 bits per weight.
 * y = d * (1 + 2 * scale) * magnitude * sign. Per group of 32: eight 9-bit indices of 4 magnitudes
 * each (low 8 bits in qs, the ninth of index l is bit l of qh), four sign bytes, and a scale of
 * 4 bits, two groups in a byte, the even one low.
 */
#ifndef KERNELS_QUANT_IQ3_S_H
#define KERNELS_QUANT_IQ3_S_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_iq3.h"
#include "kernels/quant/octet.h"

struct kern_block_iq3_s {
    uint8_t d[2]; /* half */
    uint8_t qs[64];
    uint8_t qh[8];
    uint8_t signs[32];
    uint8_t scales[4];
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_iq3_s_group(const struct kern_block_iq3_s *block, unsigned group, float *y)
{
    unsigned code = kern_load_nibble(block->scales, group);
    float scale = kern_load_half(block->d) * (float)(1 + 2 * code);
    for (unsigned l = 0; l < 8; l++) {
        unsigned index = block->qs[8 * group + l] | (block->qh[group] >> l & 1u) << 8;
        uint32_t sign_byte = block->signs[4 * group + l / 2];
        kern_iq3_quartet(kern_iq3_s_codes[index], kern_iq3_s_values, sign_byte >> 4 * (l % 2),
                         scale, y + 4 * l);
    }
}

/** The scale of the whole block, without sub-scales. */
KERN_INLINE float kern_iq3_s_block_scale(const struct kern_block_iq3_s *block)
{
    return kern_load_half(block->d);
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_iq3_s_neutralise_block(struct kern_block_iq3_s *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

/** The scale of each run of 32 elements. */
KERN_INLINE void kern_iq3_s_scales(const struct kern_block_iq3_s *block, float *scales)
{
    float d = kern_iq3_s_block_scale(block);
    for (unsigned group = 0; group < 8; group++)
        scales[group] = d * (float)(1 + 2 * kern_load_nibble(block->scales, group));
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq3_s_neutralise(struct kern_block_iq3_s *block)
{
    memset(block->scales, 0, sizeof block->scales);
    kern_iq3_s_neutralise_block(block);
}

KERN_FORMAT_ROW(iq3_s, 256)

#endif
