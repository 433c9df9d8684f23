/**
 * IQ1_S: 256 elements in 50 bytes, 1.5625 bits per weight.
 * y = d * (2 * scale + 1) * (value + delta), value -1, 0 or 1. Per group of 32: four 11-bit
 * indices of 8 values each (low 8 bits in qs, upper three of index l in bits 3l..3l + 2 of qh),
 * the scale in bits 12..14 of qh, and in bit 15 the sign of delta, an eighth.
 */
#ifndef KERNELS_QUANT_IQ1_S_H
#define KERNELS_QUANT_IQ1_S_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_iq1.h"
#include "kernels/quant/octet.h"

struct kern_block_iq1_s {
    uint8_t d[2]; /* half */
    uint8_t qs[32];
    uint8_t qh[16]; /* 8 numbers of 16 bits */
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_iq1_s_group(const struct kern_block_iq1_s *block, unsigned group, float *y)
{
    uint32_t high = kern_load_u16(block->qh + 2 * group);
    float scale = kern_load_half(block->d) * (float)(2 * (high >> 12 & 7) + 1);
    float delta = (high & 0x8000) != 0 ? -0.125f : 0.125f;
    for (unsigned l = 0; l < 4; l++) {
        uint32_t index = block->qs[4 * group + l] | (high >> 3 * l & 7) << 8;
        kern_iq1_octet(kern_iq1_codes[index], scale, delta, y + 8 * l);
    }
}

/** The scale of the whole block, without sub-scales. */
KERN_INLINE float kern_iq1_s_block_scale(const struct kern_block_iq1_s *block)
{
    return kern_load_half(block->d) * 0.125f; /* the integers are eighths */
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_iq1_s_neutralise_block(struct kern_block_iq1_s *block)
{
    kern_store_u16(block->d, KERN_HALF_8);
}

/** The scale of each run of 32 elements. */
KERN_INLINE void kern_iq1_s_scales(const struct kern_block_iq1_s *block, float *scales)
{
    float d = kern_iq1_s_block_scale(block);
    for (int group = 0; group < 8; group++)
        scales[group] = d * (float)(2 * (block->qh[2 * group + 1] >> 4 & 7) + 1);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq1_s_neutralise(struct kern_block_iq1_s *block)
{
    for (int group = 0; group < 8; group++)
        block->qh[2 * group + 1] &= 0x8f;
    kern_iq1_s_neutralise_block(block);
}

KERN_FORMAT_ROW(iq1_s, 256)

#endif
