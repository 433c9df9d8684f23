/**
 * Numbers into floats of 8 and 4 bits, as the OCP Microscaling Formats (MX) Specification 1.0 has
 * them: to the nearest, halves to even; what is too large becomes the largest number. f8.h and
 * codebook_4bit.h have the way back. Common subset of C17 and CUDA C++.
 */
#ifndef KERNELS_QUANT_SMALL_FLOATS_H
#define KERNELS_QUANT_SMALL_FLOATS_H

#include <math.h>

#include "kernels/quant/bytes.h"

/** The largest numbers, and the exponents of their leading bits. */
#define KERN_E4M3_MAX 448.0f
#define KERN_E2M1_MAX 6.0f
enum { KERN_E4M3_EXPONENT = 8, KERN_E2M1_EXPONENT = 2 };

/** E4M3: sign, 4 bits of exponent (bias 7), 3 of mantissa. 0x7f for a NaN. */
KERN_INLINE uint8_t kern_e4m3_from_float(float x)
{
    uint32_t bits = kern_bits_of(x), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0x7f;
    if (magnitude >= 0x43e00000u) /* 448 */
        return (uint8_t)(sign | 0x7eu);
    if (magnitude < 0x3c800000u) { /* 2^-6: to a multiple of 2^-9, by adding 2^14 */
        float sum = kern_float_from_bits(magnitude) + 0x1p14f;
        return (uint8_t)(sign | (kern_bits_of(sum) - 0x46800000u));
    }
    uint32_t odd = magnitude >> 20 & 1, rounded = magnitude + 0x7ffffu + odd;
    return (uint8_t)(sign | ((rounded >> 20) - (120u << 3)));
}

/** E5M2: sign, 5 bits of exponent (bias 15), 2 of mantissa. 0x7f for a NaN. */
KERN_INLINE uint8_t kern_e5m2_from_float(float x)
{
    uint32_t bits = kern_bits_of(x), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0x7f;
    if (magnitude >= 0x47600000u) /* 57344 */
        return (uint8_t)(sign | 0x7bu);
    if (magnitude < 0x38800000u) { /* 2^-14: to a multiple of 2^-16, by adding 2^7 */
        float sum = kern_float_from_bits(magnitude) + 0x1p7f;
        return (uint8_t)(sign | (kern_bits_of(sum) - 0x43000000u));
    }
    uint32_t odd = magnitude >> 21 & 1, rounded = magnitude + 0xfffffu + odd;
    return (uint8_t)(sign | ((rounded >> 21) - (112u << 2)));
}

/** The nearest of 0, 0.5, 1, 1.5, 2, 3, 4 and 6, with the sign of x; as a code of 4 bits. */
KERN_INLINE uint8_t kern_e2m1_from_float(float x)
{
    float m = fabsf(x);
    unsigned code = (m > 0.25f) + (m >= 0.75f) + (m > 1.25f) + (m >= 1.75f) + (m > 2.5f) +
                    (m >= 3.5f) + (m > 5.0f);
    return (uint8_t)((kern_bits_of(x) >> 28 & 8u) | code);
}

/**
 * The scale of a block whose largest magnitude is given, finite, for elements whose largest number
 * has this exponent: 2^(floor(log2(largest)) - exponent), as E8M0; 0, which is 2^-127, where it is
 * smaller or the largest magnitude is 0.
 */
KERN_INLINE uint8_t kern_e8m0_for(float largest, int exponent)
{
    int of_largest = (int)(kern_bits_of(largest) >> 23 & 0xffu);
    return (uint8_t)(of_largest > exponent ? of_largest - exponent : 0);
}

#endif
