/** Floats of 8 bits by the definition of their codes, in double precision. */
#ifndef TESTS_KERNELS_NEAREST_SMALL_H
#define TESTS_KERNELS_NEAREST_SMALL_H

#include <math.h>

/** A float of `mantissa` bits and an exponent with this bias, of 7 bits together. */
static inline double small_float(int code, int mantissa, int bias)
{
    int e = code >> mantissa, m = code & ((1 << mantissa) - 1), one = 1 << mantissa;
    return e ? ldexp(one + m, e - bias - mantissa) : ldexp(m, 1 - bias - mantissa);
}

/** The nearest one that is not above `most`, of two as near the one with an even code. */
static inline double nearest_small(double x, int mantissa, int bias, int most)
{
    int best = 0;
    for (int code = 1; code <= most; code++) {
        double now = fabs(fabs(x) - small_float(code, mantissa, bias)),
               before = fabs(fabs(x) - small_float(best, mantissa, bias));
        best = now < before || (now == before && code % 2 == 0) ? code : best;
    }
    return copysign(small_float(best, mantissa, bias), x);
}

#endif
