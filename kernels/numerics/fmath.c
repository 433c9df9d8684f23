#include "kernels/numerics/fmath.h"

#include <float.h>

double kern_log(double x)
{
    if (!(x >= DBL_MIN && x <= DBL_MAX)) {
        if (x > DBL_MAX)
            return x;
        return x >= 0.0 ? -(double)INFINITY : (double)NAN;
    }
    /* x = 2^k m with m in [sqrt(1/2), sqrt(2)) */
    uint64_t above = fmath_bits_f64(x) - fmath_bits_f64(0x1.6a09e667f3bcdp-1);
    int k = (int)((int64_t)above >> 52);
    double m = fmath_from_bits_f64(fmath_bits_f64(x) - ((uint64_t)(int64_t)k << 52));
    double low = fma((double)k, FMATH_LN2_LOW_F64, fmath_log_near_one(m - 1.0));
    return fma((double)k, FMATH_LN2_HIGH_F64, low);
}

double kern_log1p(double x)
{
    if (x > -0.25 && x < 0.4)
        return fmath_log_near_one(x);
    double sum = 1.0 + x;
    if (!(sum > 0.0 && sum <= DBL_MAX))
        return kern_log(sum);
    /* What the sum lost of x, to first order. */
    return kern_log(sum) + (x - (sum - 1.0)) / sum;
}

void kern_sincos(double x, double *sin_x, double *cos_x)
{
    /* x = n pi/2 + r; the low bits of the shifted quotient are n. */
    double shifted = fma(x, FMATH_TWO_OVER_PI, FMATH_ROUND_F64);
    double n = shifted - FMATH_ROUND_F64;
    double r = fma(n, -FMATH_HALF_PI_HIGH, x);
    r = fma(n, -FMATH_HALF_PI_LOW, r);
    double z = r * r;
    double p = FMATH_SIN_F64_S5;
    p = fma(p, z, FMATH_SIN_F64_S4);
    p = fma(p, z, FMATH_SIN_F64_S3);
    p = fma(p, z, FMATH_SIN_F64_S2);
    p = fma(p, z, FMATH_SIN_F64_S1);
    p = fma(p, z, FMATH_SIN_F64_S0);
    double sine = fma(p * z, r, r);
    double q = FMATH_COS_F64_C5;
    q = fma(q, z, FMATH_COS_F64_C4);
    q = fma(q, z, FMATH_COS_F64_C3);
    q = fma(q, z, FMATH_COS_F64_C2);
    q = fma(q, z, FMATH_COS_F64_C1);
    q = fma(q, z, FMATH_COS_F64_C0);
    double cosine = fma(q, z * z, fma(z, -0.5, 1.0));

    unsigned quadrant = (unsigned)fmath_bits_f64(shifted) & 3u;
    double s = quadrant & 1u ? cosine : sine;
    double c = quadrant & 1u ? sine : cosine;
    *sin_x = quadrant & 2u ? -s : s;
    *cos_x = (quadrant + 1u) & 2u ? -c : c;
}
