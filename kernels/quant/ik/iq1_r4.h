/**
 * IQ1_S_R4 and IQ1_M_R4: blocks of 32 elements in bundles of four rows; here is what a row of a
 * bundle becomes. The codebook is that of IQ1_S, the rest is not: y = d * s * (value + delta), d
 * the row's.
 */
#ifndef KERNELS_QUANT_IK_IQ1_R4_H
#define KERNELS_QUANT_IK_IQ1_R4_H

#include "kernels/quant/codebook_iq1.h"
#include "kernels/quant/ik/codes.h"
#include "kernels/quant/octet.h"

/** IQ1_S_R4: 1.5 bits per weight. */
struct kern_block_iq1_s_r4 {
    uint8_t d[2];  /* half */
    uint8_t qs[4]; /* an octet each: the low eight bits of the index */
    uint8_t qh[2]; /* as in IQ1_S: the upper three of octet l at 3l, the scale, the sign of delta */
};

/** The scale of the integers, which are eighths. */
KERN_INLINE float kern_iq1_s_r4_scale(const struct kern_block_iq1_s_r4 *block, unsigned run)
{
    (void)run;
    return kern_load_half(block->d) * (float)(2 * (block->qh[1] >> 4 & 7) + 1) * 0.125f;
}

KERN_INLINE void kern_iq1_s_r4_group(const struct kern_block_iq1_s_r4 *block, unsigned group,
                                     float *y)
{
    (void)group;
    uint32_t high = kern_load_u16(block->qh);
    float scale = kern_load_half(block->d) * (float)(2 * (high >> 12 & 7) + 1);
    float delta = (high & 0x8000) != 0 ? -0.125f : 0.125f;
    for (unsigned l = 0; l < 4; l++)
        kern_iq1_octet(kern_iq1_codes[block->qs[l] | (high >> 3 * l & 7) << 8], scale, delta,
                       y + 8 * l);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq1_s_r4_neutralise(struct kern_block_iq1_s_r4 *block)
{
    block->qh[1] &= 0x8f;
    kern_store_u16(block->d, KERN_HALF_8);
}

KERN_FORMAT_SCALES(iq1_s_r4, 32, 32)
KERN_FORMAT_ROW(iq1_s_r4, 32)

/** IQ1_M_R4: 1.75 bits per weight. */
struct kern_block_iq1_m_r4 {
    uint8_t d[2];  /* half */
    uint8_t qs[4]; /* an octet each: the low eight bits of the index */
    uint8_t qh[2]; /* a nibble per octet: three more bits, and the sign of delta */
    uint8_t scale; /* of the first 16 elements in the low nibble */
};

KERN_INLINE float kern_iq1_m_r4_scale(const struct kern_block_iq1_m_r4 *block, unsigned run)
{
    return kern_load_half(block->d) * (float)(block->scale >> 4 * run & 15) * 0.125f;
}

KERN_INLINE void kern_iq1_m_r4_group(const struct kern_block_iq1_m_r4 *block, unsigned group,
                                     float *y)
{
    (void)group;
    for (unsigned l = 0; l < 4; l++) {
        unsigned high = kern_load_nibble(block->qh, l);
        float scale = kern_load_half(block->d) * (float)(block->scale >> l / 2 * 4 & 15);
        kern_iq1_octet(kern_iq1_codes[block->qs[l] | (high & 7) << 8], scale,
                       (high & 8) != 0 ? -0.125f : 0.125f, y + 8 * l);
    }
}

KERN_INLINE void kern_iq1_m_r4_neutralise(struct kern_block_iq1_m_r4 *block)
{
    block->scale = 0x11;
    kern_store_u16(block->d, KERN_HALF_8);
}

KERN_FORMAT_SCALES(iq1_m_r4, 32, 16)
KERN_FORMAT_ROW(iq1_m_r4, 32)

#endif
