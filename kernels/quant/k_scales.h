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

#endif
