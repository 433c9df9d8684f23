/**
 * What ik_llama.cpp's K, KS and KL formats share: where the codes of 256 elements lie, and the
 * values that they stand for. A bit that belongs to the scale picks one of two tables of values;
 * the second is the first plus a constant.
 *
 * A format says what its scales are (kern_<name>_scale: of a run of elements) and its integers
 * (kern_<name>_value: of an element). KERN_FORMAT makes of these the functions that every format
 * has.
 */
#ifndef KERNELS_QUANT_IK_CODES_H
#define KERNELS_QUANT_IK_CODES_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_4bit.h"

/** The float32 stored at p: the scale of a row. */
KERN_INLINE float kern_load_float(const uint8_t *p)
{
    return kern_float_from_bits(kern_load_u32(p));
}

KERN_INLINE void kern_store_float(uint8_t *p, float value)
{
    kern_store_u16(p, kern_bits_of(value));
    kern_store_u16(p + 2, kern_bits_of(value) >> 16);
}

/** Values of codes of 2, 3, 5 and 6 bits; of 4 bits they are kern_iq4_values. */
KERN_CONSTANT int8_t kern_ik2_values[4] = {-31, -13, 1, 17};
KERN_CONSTANT int8_t kern_ik3_values[8] = {-63, -40, -23, -10, 1, 13, 28, 47};
KERN_CONSTANT int8_t kern_ik5_values[32] = {
    -126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36, -30, -24, -18, -12, -6,
    -1,   5,    11,   17,  23,  29,  36,  43,  51,  59,  68,  77,  87,  97,  109, 121};
KERN_CONSTANT int8_t kern_ik6_values[64] = {
    -127, -121, -115, -109, -104, -98, -93, -88, -84, -79, -74, -70, -66, -62, -58, -54,
    -51,  -47,  -44,  -40,  -37,  -34, -31, -28, -25, -22, -19, -16, -13, -11, -8,  -5,
    -2,   0,    3,    6,    9,    12,  14,  17,  20,  23,  27,  30,  33,  36,  40,  44,
    47,   51,   55,   59,   63,   68,  72,  77,  82,  87,  92,  98,  103, 109, 115, 121};

/** What the second table is above the first. */
enum { KERN_IK2_SHIFT = 5, KERN_IK3_SHIFT = 4, KERN_IK4_SHIFT = 4, KERN_IK5_SHIFT = 2 };

/** IQ2_KL: a code of 5 bits is two neighbours. */
KERN_CONSTANT int8_t kern_ik_pairs[32][2] = {
    {-63, -23}, {-63, 13}, {-40, -63}, {-40, -10}, {-40, 13}, {-40, 47}, {-23, -40}, {-23, -23},
    {-23, 1},   {-23, 13}, {-23, 28},  {-10, -63}, {-10, 1},  {-10, 13}, {-10, 47},  {1, -23},
    {1, -10},   {1, 1},    {1, 13},    {1, 28},    {13, -40}, {13, -23}, {13, -10},  {13, 1},
    {13, 13},   {28, -63}, {28, -23},  {28, 1},    {28, 28},  {28, 47},  {47, -23},  {47, 13}};

/** Element e's two bits: two halves of 128 with 32 bytes each, as in Q2_K. */
KERN_INLINE unsigned kern_ik_code2(const uint8_t *qs, unsigned e)
{
    return qs[e / 128 * 32 + e % 32] >> 2 * (e / 32 % 4) & 3u;
}

/** Bit g of qh[j] is a bit more of element j of group g. */
KERN_INLINE unsigned kern_ik_high_bit(const uint8_t *qh, unsigned e)
{
    return qh[e % 32] >> e / 32 & 1u;
}

/** Four bits: each group has 16 bytes, low nibbles its first half. */
KERN_INLINE unsigned kern_ik_code4(const uint8_t *qs, unsigned e)
{
    return qs[e / 32 * 16 + e % 16] >> e % 32 / 16 * 4 & 15u;
}

/** Four bits: two groups have 32 bytes, low nibbles the even one. */
KERN_INLINE unsigned kern_ik_nibble(const uint8_t *qs, unsigned e)
{
    return qs[e / 64 * 32 + e % 32] >> e / 32 % 2 * 4 & 15u;
}

KERN_INLINE unsigned kern_ik_code5(const uint8_t *qs, const uint8_t *qh, unsigned e)
{
    return kern_ik_nibble(qs, e) | kern_ik_high_bit(qh, e) << 4;
}

/** Scale of run i (0..15) out of four bits and two above them: -32..31. */
KERN_INLINE int kern_ik_scale6(const uint8_t *low, const uint8_t *high, unsigned i)
{
    return (int)(kern_load_nibble(low, i) | (high[i / 4] >> 2 * (i % 4) & 3u) << 4) - 32;
}

/** Sixteen of them that are 1. */
KERN_INLINE void kern_ik_scale6_neutralise(uint8_t low[8], uint8_t high[4])
{
    memset(low, 0x11, 8);
    memset(high, 0xaa, 4);
}

/** Scale of run i out of four bits and a sign: 1, 3, .. 31, or the same below 0. */
KERN_INLINE int kern_ik_scale_odd(const uint8_t *low, const uint8_t *signs, unsigned i)
{
    int magnitude = 2 * (int)kern_load_nibble(low, i) + 1;
    return (kern_load_u16(signs) >> i & 1) != 0 ? -magnitude : magnitude;
}

/** kern_<name>_scales(): the scale of each run. */
#define KERN_FORMAT_SCALES(name, block_elems, run_elems)                                           \
    KERN_INLINE void kern_##name##_scales(const struct kern_block_##name *block, float *scales)    \
    {                                                                                              \
        for (unsigned run = 0; run < (block_elems) / (run_elems); run++)                           \
            scales[run] = kern_##name##_scale(block, run);                                         \
    }

/** Both, and kern_<name>_group(): elements 32 * group .. + 31 are scale * value. */
#define KERN_FORMAT(name, block_elems, run_elems)                                                  \
    KERN_INLINE void kern_##name##_group(const struct kern_block_##name *block, unsigned group,    \
                                         float *y)                                                 \
    {                                                                                              \
        for (unsigned e = 32 * group; e < 32 * group + 32; e += (run_elems)) {                     \
            float scale = kern_##name##_scale(block, e / (run_elems));                             \
            for (unsigned j = 0; j < (run_elems); j++)                                             \
                *y++ = scale * (float)kern_##name##_value(block, e + j);                           \
        }                                                                                          \
    }                                                                                              \
    KERN_FORMAT_SCALES(name, block_elems, run_elems)                                               \
    KERN_FORMAT_ROW(name, block_elems)

#endif
