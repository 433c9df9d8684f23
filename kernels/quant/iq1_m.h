/**
 * IQ1_M: 256 elements in 56 bytes, 1.75 bits per weight.
 * y = d * (2 * scale + 1) * (value + delta), value -1, 0 or 1. Per 8 elements an 11-bit index (low
 * 8 bits in qs, upper three in the low bits of a nibble of qh, the low nibble first) and in bit 3
 * of that nibble the sign of delta, an eighth. Per 16 elements a scale of 3 bits. The four 16-bit
 * numbers of scales hold four scales each, and in their top nibbles the half d, lowest first.
 */
#ifndef KERNELS_QUANT_IQ1_M_H
#define KERNELS_QUANT_IQ1_M_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_iq1.h"
#include "kernels/quant/octet.h"

struct kern_block_iq1_m {
    uint8_t qs[32];
    uint8_t qh[16];
    uint8_t scales[8]; /* 4 numbers of 16 bits */
};

/** The half whose nibbles are the top nibbles of the four numbers. */
KERN_INLINE float kern_iq1_m_scale(const uint8_t *scales)
{
    return kern_half_to_float(scales[1] >> 4 | (scales[3] & 0xf0u) | (scales[5] & 0xf0u) << 4 |
                              (scales[7] & 0xf0u) << 8);
}

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_iq1_m_group(const struct kern_block_iq1_m *block, unsigned group, float *y)
{
    float d = kern_iq1_m_scale(block->scales);
    uint32_t scales = kern_load_u16(block->scales + 2 * (group / 2)) >> 6 * (group % 2);
    for (unsigned l = 0; l < 4; l++) {
        uint32_t nibble = block->qh[2 * group + l / 2] >> 4 * (l % 2) & 15u;
        uint32_t index = block->qs[4 * group + l] | (nibble & 7) << 8;
        float scale = d * (float)(2 * (scales >> 3 * (l / 2) & 7) + 1);
        kern_iq1_octet(kern_iq1_codes[index], scale, (nibble & 8) != 0 ? -0.125f : 0.125f,
                       y + 8 * l);
    }
}

/** The scale of the whole block, without sub-scales. */
KERN_INLINE float kern_iq1_m_block_scale(const struct kern_block_iq1_m *block)
{
    return kern_iq1_m_scale(block->scales) * 0.125f; /* the integers are eighths */
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_iq1_m_neutralise_block(struct kern_block_iq1_m *block)
{
    for (int i = 1; i < 8; i += 2)
        block->scales[i] &= 0x0f;
    block->scales[5] |= 0x80; /* d = 8, 0x4800 */
    block->scales[7] |= 0x40;
}

/** The scale of each run of 16 elements. */
KERN_INLINE void kern_iq1_m_scales(const struct kern_block_iq1_m *block, float *scales)
{
    float d = kern_iq1_m_block_scale(block);
    for (unsigned run = 0; run < 16; run++) {
        uint32_t codes = kern_load_u16(block->scales + 2 * (run / 4));
        scales[run] = d * (float)(2 * (codes >> 3 * (run % 4) & 7) + 1);
    }
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq1_m_neutralise(struct kern_block_iq1_m *block)
{
    memset(block->scales, 0, sizeof block->scales);
    kern_iq1_m_neutralise_block(block);
}

KERN_FORMAT_ROW(iq1_m, 256)

#endif
