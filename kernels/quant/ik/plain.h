/**
 * Codes that are their own values: Q6_0, Q8_KV, and what rows of Q8_K_R8 and Q8_K_R16 become.
 * Three of the formats with bundles are computed as d * q + -16 * d, and the like, where the zero
 * is +0 whatever the sign of d: Q5_0_R4, Q6_0_R4, Q8_K_R16. Else they are Q5_0, Q6_0, Q8_K_R8.
 */
#ifndef KERNELS_QUANT_IK_PLAIN_H
#define KERNELS_QUANT_IK_PLAIN_H

#include "kernels/quant/ik/codes.h"
#include "kernels/quant/q5_0.h"

/** Q6_0: 32 elements in 26 bytes, 6.5 bits per weight. y = d * (q - 32). */
struct kern_block_q6_0 {
    uint8_t d[2];   /* half */
    uint8_t qh[8];  /* two upper bits of elements j, j + 16, j + 8, j + 24 */
    uint8_t qs[16]; /* low nibbles are elements 0..15 */
};

KERN_INLINE float kern_q6_0_scale(const struct kern_block_q6_0 *block, unsigned run)
{
    (void)run;
    return kern_load_half(block->d);
}

KERN_INLINE int kern_q6_0_value(const struct kern_block_q6_0 *block, unsigned e)
{
    unsigned high = block->qh[e % 8] >> (e / 8 % 2 * 4 + e / 16 * 2) & 3u;
    return (int)((block->qs[e % 16] >> e / 16 * 4 & 15u) | high << 4) - 32;
}

/** Overwrite the scale: the block then decodes to its integers. */
KERN_INLINE void kern_q6_0_neutralise(struct kern_block_q6_0 *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(q6_0, 32, 32)

/** Q8_KV: rows of a float32 and a byte per element. 4 of its 8 bytes before a row are not used. */
struct kern_block_q8_kv {
    uint8_t d[4];
    uint8_t qs[32]; /* signed */
};

KERN_INLINE float kern_q8_kv_scale(const struct kern_block_q8_kv *block, unsigned run)
{
    (void)run;
    return kern_load_float(block->d);
}

KERN_INLINE int kern_q8_kv_value(const struct kern_block_q8_kv *block, unsigned e)
{
    return (int8_t)block->qs[e];
}

KERN_INLINE void kern_q8_kv_neutralise(struct kern_block_q8_kv *block)
{
    kern_store_float(block->d, 1.0f);
}

KERN_FORMAT(q8_kv, 32, 32)

/** Q8_K_R8: 256 elements in 258 bytes, 8.0625 bits per weight. y = d * q. */
struct kern_block_q8_k_r8 {
    uint8_t d[2];    /* half */
    uint8_t qs[256]; /* signed */
};

KERN_INLINE float kern_q8_k_r8_scale(const struct kern_block_q8_k_r8 *block, unsigned run)
{
    (void)run;
    return kern_load_half(block->d);
}

KERN_INLINE int kern_q8_k_r8_value(const struct kern_block_q8_k_r8 *block, unsigned e)
{
    return (int8_t)block->qs[e];
}

KERN_INLINE void kern_q8_k_r8_neutralise(struct kern_block_q8_k_r8 *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(q8_k_r8, 256, 32)

/** A format that is another one but for the sign of its zeros. */
#define KERN_FORMAT_POSITIVE_ZERO(name, other, block_elems)                                        \
    KERN_INLINE void kern_##name##_group(const struct kern_block_##other *block, unsigned group,   \
                                         float *y)                                                 \
    {                                                                                              \
        kern_##other##_group(block, group, y);                                                     \
        for (int j = 0; j < 32; j++)                                                               \
            y[j] += 0.0f;                                                                          \
    }                                                                                              \
    KERN_FORMAT_ROW(name, block_elems)

#define kern_block_q5_0_r4  kern_block_q5_0
#define kern_block_q6_0_r4  kern_block_q6_0
#define kern_block_q8_k_r16 kern_block_q8_k_r8
KERN_FORMAT_POSITIVE_ZERO(q5_0_r4, q5_0, 32)
KERN_FORMAT_POSITIVE_ZERO(q6_0_r4, q6_0, 32)
KERN_FORMAT_POSITIVE_ZERO(q8_k_r16, q8_k_r8, 256)

#endif
