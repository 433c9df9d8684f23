/**
 * Numbers into blocks of the formats that a key/value cache may hold: the nearest of what a block
 * can say with its usual scale. The scale is the largest magnitude, or the range, over the largest
 * code. That is what llama.cpp's caches do, and its files without an importance matrix (but IQ4_NL
 * there, which searches longer).
 *
 * A scale is rounded to a half for the block, but codes are made with it as it was. Where its half
 * is 0, or no finite number, all codes are the one that stands for 0. A NaN or infinity among the
 * numbers makes the scale NaN, and so all that the block decodes to.
 *
 * Arithmetic is float32 in the order written, so host and device make the same bytes.
 */
#ifndef KERNELS_QUANT_PACK_H
#define KERNELS_QUANT_PACK_H

#include <float.h>
#include <math.h>

#include "kernels/quant/cache_types.h"
#include "kernels/quant/formats.h"
#include "kernels/quant/ik/plain.h"

/** Store a scale as a half. Returns what numbers are to be multiplied by: 1 / d, or 0. */
KERN_INLINE float kern_pack_scale(uint8_t *to, float d)
{
    uint32_t half = kern_half_from_float(d), magnitude = half & 0x7fff;
    kern_store_u16(to, half);
    return magnitude == 0 || magnitude >= 0x7c00 ? 0.0f : 1.0f / d;
}

/** Rounded down to a code from 0 to `most`; a NaN to 0. */
KERN_INLINE uint8_t kern_pack_code(float x, unsigned most)
{
    return (uint8_t)(x >= (float)most ? most : x > 0.0f ? (unsigned)x : 0);
}

/** The number of the largest magnitude, of equals the first; NaN if one of them is not finite. */
KERN_INLINE float kern_pack_largest(const float *x)
{
    float largest = 0.0f;
    for (int j = 0; j < KERN_PACK_ELEMS; j++) {
        if (!(fabsf(x[j]) <= FLT_MAX))
            return NAN;
        if (fabsf(x[j]) > fabsf(largest))
            largest = x[j];
    }
    return largest;
}

/** Codes q of d * (q - middle), q below 2 * middle; the number of the largest magnitude is -middle
 * times the scale. Returns what the numbers were multiplied by. */
KERN_INLINE float kern_pack_around(const float *x, unsigned middle, uint8_t *d, uint8_t *codes)
{
    float inverse = kern_pack_scale(d, kern_pack_largest(x) / -(float)middle);
    for (int j = 0; j < KERN_PACK_ELEMS; j++) {
        float scaled = x[j] * inverse;
        codes[j] = kern_pack_code(scaled + ((float)middle + 0.5f), 2 * middle - 1);
    }
    return inverse;
}

/** Codes q of q * d + m, q up to `most`; m is the smallest number, as a half. */
KERN_INLINE void kern_pack_above(const float *x, unsigned most, uint8_t *d, uint8_t *m,
                                 uint8_t *codes)
{
    float low = x[0], high = x[0];
    for (int j = 1; j < KERN_PACK_ELEMS; j++) {
        low = x[j] < low ? x[j] : low;
        high = x[j] > high ? x[j] : high;
    }
    float range = isnan(kern_pack_largest(x)) ? NAN : high - low;
    float inverse = kern_pack_scale(d, range / (float)most);
    kern_store_u16(m, kern_half_from_float(low));
    for (int j = 0; j < KERN_PACK_ELEMS; j++) {
        float scaled = (x[j] - low) * inverse;
        codes[j] = kern_pack_code(scaled + 0.5f, most);
    }
}

/** Low nibbles are elements 0..15, high nibbles 16..31; the fifth bits are left out. */
KERN_INLINE void kern_pack_nibbles(const uint8_t *codes, uint8_t *qs)
{
    for (int j = 0; j < 16; j++)
        qs[j] = (uint8_t)((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}

/** The fifth bits: bit j is element j's. */
KERN_INLINE void kern_pack_fifth_bits(const uint8_t *codes, uint8_t *qh)
{
    for (int i = 0; i < 4; i++) {
        unsigned bits = 0;
        for (int j = 0; j < 8; j++)
            bits |= (unsigned)(codes[8 * i + j] >> 4) << j;
        qh[i] = (uint8_t)bits;
    }
}

KERN_INLINE void kern_q4_0_pack(const float *x, struct kern_block_q4_0 *block)
{
    uint8_t codes[KERN_PACK_ELEMS];
    (void)kern_pack_around(x, 8, block->d, codes);
    kern_pack_nibbles(codes, block->qs);
}

KERN_INLINE void kern_q5_0_pack(const float *x, struct kern_block_q5_0 *block)
{
    uint8_t codes[KERN_PACK_ELEMS];
    (void)kern_pack_around(x, 16, block->d, codes);
    kern_pack_nibbles(codes, block->qs);
    kern_pack_fifth_bits(codes, block->qh);
}

/** The scale is then that of the least squares, of errors weighted by the numbers' squares. */
KERN_INLINE void kern_q6_0_pack(const float *x, struct kern_block_q6_0 *block)
{
    uint8_t codes[KERN_PACK_ELEMS];
    float inverse = kern_pack_around(x, 32, block->d, codes), numerator = 0.0f, denominator = 0.0f;
    for (int j = 0; j < 16; j++) {
        float q0 = (float)codes[j] - 32.0f, q1 = (float)codes[j + 16] - 32.0f;
        float x0 = x[j] * inverse, x1 = x[j + 16] * inverse, w0 = x0 * x0, w1 = x1 * x1;
        numerator += w0 * x[j] * q0 + w1 * x[j + 16] * q1;
        denominator += w0 * q0 * q0 + w1 * q1 * q1;
    }
    if (denominator > 0.0f)
        (void)kern_pack_scale(block->d, numerator / denominator);
    kern_pack_nibbles(codes, block->qs);
    for (int j = 0; j < 8; j++) {
        int low = codes[j] >> 4 | codes[j + 16] >> 4 << 2;
        int high = codes[j + 8] >> 4 | codes[j + 24] >> 4 << 2;
        block->qh[j] = (uint8_t)(low | high << 4);
    }
}

KERN_INLINE void kern_q4_1_pack(const float *x, struct kern_block_q4_1 *block)
{
    uint8_t codes[KERN_PACK_ELEMS];
    kern_pack_above(x, 15, block->d, block->m, codes);
    kern_pack_nibbles(codes, block->qs);
}

KERN_INLINE void kern_q5_1_pack(const float *x, struct kern_block_q5_1 *block)
{
    uint8_t codes[KERN_PACK_ELEMS];
    kern_pack_above(x, 31, block->d, block->m, codes);
    kern_pack_nibbles(codes, block->qs);
    kern_pack_fifth_bits(codes, block->qh);
}

/** Codes from -127 to 127; halves away from 0. */
KERN_INLINE void kern_q8_0_pack(const float *x, struct kern_block_q8_0 *block)
{
    float inverse = kern_pack_scale(block->d, fabsf(kern_pack_largest(x)) / 127.0f);
    for (int j = 0; j < KERN_PACK_ELEMS; j++) {
        float code = roundf(x[j] * inverse);
        block->qs[j] = (uint8_t)(fabsf(code) <= 127.0f ? (int)code : 0);
    }
}

/** The nearest of the format's values; halfway the larger one. */
KERN_INLINE uint8_t kern_iq4_nl_code(float x)
{
    unsigned code = 0;
    while (code < 15 && x - (float)kern_iq4_values[code] >= (float)kern_iq4_values[code + 1] - x)
        code++;
    return (uint8_t)code;
}

/**
 * The number of the largest magnitude becomes the first value; then the scale is that of the least
 * squares, of errors weighted by the numbers' squares. Numbers below 1e-15 become 0.
 */
KERN_INLINE void kern_iq4_nl_pack(const float *x, struct kern_block_iq4_nl *block)
{
    uint8_t codes[KERN_PACK_ELEMS];
    float largest = kern_pack_largest(x), numerator = 0.0f, denominator = 0.0f;
    float inverse = 1.0f / (largest / (float)kern_iq4_values[0]);
    if (!(fabsf(largest) >= 1e-15f)) /* so small, or NaN */
        inverse = 0.0f;
    for (int j = 0; j < KERN_PACK_ELEMS; j++) {
        codes[j] = kern_iq4_nl_code(x[j] * inverse);
        float value = (float)kern_iq4_values[codes[j]], weighted = x[j] * x[j] * value;
        numerator += weighted * x[j];
        denominator += weighted * value;
    }
    float d = inverse != 0.0f && denominator > 0.0f ? numerator / denominator : 0.0f;
    (void)kern_pack_scale(block->d, isnan(largest) ? largest : d);
    kern_pack_nibbles(codes, block->qs);
}

#endif
