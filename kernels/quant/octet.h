/** What the IQ formats share: runs of elements out of a codebook entry, a scale and sign bits. */
#ifndef KERNELS_QUANT_OCTET_H
#define KERNELS_QUANT_OCTET_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_iq2.h"

/** The sign byte of a 7-bit sign index: the index, and a top bit that makes the parity even. */
KERN_INLINE uint32_t kern_sign_byte(uint32_t index)
{
    uint32_t parity = index ^ index >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return index | (parity & 1) << 7;
}

/** Scale of IQ2 elements from the block's and a code of 4 bits. */
KERN_INLINE float kern_iq2_scale(float d, unsigned code)
{
    return d * (0.5f + (float)code) * 0.25f;
}

/** Eight elements of an IQ2 entry; bit j of signs set: element j is negative. */
KERN_INLINE void kern_iq2_octet(uint32_t codes, uint32_t signs, float scale, float *y)
{
    for (int j = 0; j < 8; j++) {
        float magnitude = (float)kern_iq2_values[codes >> 2 * j & 3];
        y[j] = scale * magnitude * ((signs >> j & 1) != 0 ? -1.0f : 1.0f);
    }
}

/** Four elements of an IQ3 entry; bit j of signs set: element j is negative. */
KERN_INLINE void kern_iq3_quartet(uint32_t codes, const uint8_t *values, uint32_t signs,
                                  float scale, float *y)
{
    for (int j = 0; j < 4; j++) {
        float magnitude = (float)values[codes >> 3 * j & 7];
        y[j] = scale * magnitude * ((signs >> j & 1) != 0 ? -1.0f : 1.0f);
    }
}

/** Eight elements of an IQ1 entry. */
KERN_INLINE void kern_iq1_octet(uint32_t codes, float scale, float delta, float *y)
{
    for (int j = 0; j < 8; j++)
        y[j] = scale * ((float)((int)(codes >> 2 * j & 3) - 1) + delta);
}

#endif
