/** The eight 6-bit scales and eight 6-bit minima that Q4_K and Q5_K pack into 12 bytes. */
#ifndef KERNELS_QUANT_K_SCALES_H
#define KERNELS_QUANT_K_SCALES_H

#include "kernels/quant/bytes.h"

/** Scale of group 0..7: 0..63. */
KERN_INLINE int kern_k_scale(const uint8_t *scales, unsigned group)
{
    if (group < 4)
        return scales[group] & 63;
    return (scales[group + 4] & 15) | (scales[group - 4] >> 6) << 4;
}

/** Minimum of group 0..7: 0..63. */
KERN_INLINE int kern_k_min(const uint8_t *scales, unsigned group)
{
    if (group < 4)
        return scales[group + 4] & 63;
    return scales[group + 4] >> 4 | (scales[group] >> 6) << 4;
}

/** The scales and minima of the eight groups of a block. d, dmin: its halves. */
KERN_INLINE void kern_k_scales(const uint8_t *packed, const uint8_t *d, const uint8_t *dmin,
                               float *scales, float *mins)
{
    float scale = kern_load_half(d), min = kern_load_half(dmin);
    for (unsigned group = 0; group < 8; group++) {
        scales[group] = scale * (float)kern_k_scale(packed, group);
        mins[group] = -(min * (float)kern_k_min(packed, group));
    }
}

/** Make every scale 1 and every minimum 0. */
KERN_INLINE void kern_k_neutralise(uint8_t *packed, uint8_t *d, uint8_t *dmin)
{
    memset(packed, 1, 4);
    memset(packed + 4, 0, 4);
    memset(packed + 8, 1, 4);
    kern_store_u16(d, KERN_HALF_1);
    kern_store_u16(dmin, 0);
}

#endif
