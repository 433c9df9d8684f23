/** IQ1_BN, IQ2_BN and I2_S, for BitNet: y = d * q, q -1, 0 or 1; the scale is the row's, that of
 * I2_S the tensor's. */
#ifndef KERNELS_QUANT_IK_BN_H
#define KERNELS_QUANT_IK_BN_H

#include "kernels/quant/ik/codes.h"

/** IQ1_BN: 64 elements in 13 bytes, 1.625 bits per weight; five base-3 digits in a byte. */
struct kern_block_iq1_bn {
    uint8_t d[2];   /* half */
    uint8_t ql[12]; /* three bytes for the first 15 elements of each run of 16 */
    uint8_t extra;  /* digit a is the last element of run a */
};

KERN_INLINE float kern_iq1_bn_scale(const struct kern_block_iq1_bn *block, unsigned run)
{
    (void)run;
    return kern_load_half(block->d);
}

KERN_INLINE int kern_iq1_bn_value(const struct kern_block_iq1_bn *block, unsigned e)
{
    unsigned run = e / 16, i = e % 16;
    unsigned digit = i == 15 ? run : i % 5;
    unsigned byte = i == 15 ? block->extra : block->ql[3 * run + i / 5];
    for (; digit < 4; digit++) /* the byte is a fraction, its last digit the highest */
        byte = 3 * byte & 255;
    return (int)((byte + (byte >> 1)) >> 7) - 1;
}

/** Overwrite the scale: the block then decodes to its integers. */
KERN_INLINE void kern_iq1_bn_neutralise(struct kern_block_iq1_bn *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(iq1_bn, 64, 32)

/** IQ2_BN: 64 elements in 16 bytes, 2 bits per weight: bits 2m, 2m + 1 of byte j: 16 * m + j. */
struct kern_block_iq2_bn {
    uint8_t d[4]; /* float32 */
    uint8_t qs[16];
};

KERN_INLINE float kern_iq2_bn_scale(const struct kern_block_iq2_bn *block, unsigned run)
{
    (void)run;
    return kern_load_float(block->d);
}

KERN_INLINE int kern_iq2_bn_value(const struct kern_block_iq2_bn *block, unsigned e)
{
    return (int)(block->qs[e % 16] >> 2 * (e / 16) & 3u) - 1;
}

KERN_INLINE void kern_iq2_bn_neutralise(struct kern_block_iq2_bn *block)
{
    kern_store_float(block->d, 1.0f);
}

KERN_FORMAT(iq2_bn, 64, 32)

/** I2_S: 128 elements in 32 bytes, 2 bits per weight: element 32 * m + j is bits 6 - 2m, 7 - 2m of
 * byte j. */
struct kern_block_i2_s {
    uint8_t d[4]; /* float32, which lies apart */
    uint8_t qs[32];
};

KERN_INLINE float kern_i2_s_scale(const struct kern_block_i2_s *block, unsigned run)
{
    (void)run;
    return kern_load_float(block->d);
}

KERN_INLINE int kern_i2_s_value(const struct kern_block_i2_s *block, unsigned e)
{
    return (int)(block->qs[e % 32] >> (6 - 2 * (e / 32)) & 3u) - 1;
}

KERN_INLINE void kern_i2_s_neutralise(struct kern_block_i2_s *block)
{
    kern_store_float(block->d, 1.0f);
}

KERN_FORMAT(i2_s, 128, 32)

#endif
