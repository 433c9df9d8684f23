/**
 * The terms of the sums over the vocabulary, one token of one row at a time: what the scalar
 * kernels of score_lanes.c, pair_lanes.c and code_lanes.c and the device's kernels have in common.
 */
#ifndef KERNELS_NUMERICS_TERMS_H
#define KERNELS_NUMERICS_TERMS_H

#include "kernels/numerics/code_lanes.h"
#include "kernels/numerics/fmath.h"
#include "kernels/numerics/lanes.h"
#include "kernels/numerics/pair_lanes.h"

/** What exponents are taken against: the maximum, or the fallback while that is -infinity. */
KERN_INLINE double kern_reference_of(float max, float fallback)
{
    return (double)(max == -INFINITY ? fallback : max);
}

/** logit - reference, but not below KERN_LOWEST_DIFFERENCE. */
KERN_INLINE double kern_difference(float logit, double reference)
{
    double d = (double)logit - reference;
    return KERN_LOWEST_DIFFERENCE > d ? KERN_LOWEST_DIFFERENCE : d;
}

/** ln p, but neither so low that e^x x were NaN nor so high that e^x were infinite. */
KERN_INLINE double kern_log_prob(float logit, double shift)
{
    double x = (double)logit - shift;
    x = KERN_LOWEST_DIFFERENCE > x ? KERN_LOWEST_DIFFERENCE : x;
    return KERN_HIGHEST_LOG_PROB < x ? KERN_HIGHEST_LOG_PROB : x;
}

/** What a token adds to the sums of struct kern_js_lanes. */
struct kern_js_terms {
    double divergence, distance;
};

/*
 * p ln(p / m) + q ln(q / m) with m = (p + q) / 2. With t = |p - q| / (p + q) this is m f(t),
 * f(t) = (1 + t) ln(1 + t) + (1 - t) ln(1 - t), and no term is negative. In d = |ln p - ln q|:
 * t = (1 - x) / (1 + x) with x = e^-d, and
 *   f(t) = t d + ln(1 - t^2)         an error of t hardly matters, so good where t is small
 *        = 2 ln(1 + t) - (1 - t) d   good where t is near 1
 * The distance |p - q| / 2 is m t.
 */
KERN_INLINE struct kern_js_terms kern_js_terms_of(double log_p, double log_q)
{
    double d = fabs(log_p - log_q);
    double x = fmath_exp_f64(-d);
    double r = 1.0 / (1.0 + x);
    double t = (1.0 - x) * r;
    double mean = (0.5 + 0.5 * x) * fmath_exp_f64(log_p > log_q ? log_p : log_q);
    bool far = t > KERN_JS_FAR;
    double log = fmath_log_near_one(far ? fma(t, 0.5, -0.5) : -(t * t));
    double near_f = fma(t, d, log);
    double far_f = fma(-d, (x + x) * r, 2.0 * (log + FMATH_LN2_HIGH_F64));
    return (struct kern_js_terms){mean * (far ? far_f : near_f), mean * t};
}

/** A logit's code; see struct kern_encoded_rows. */
KERN_INLINE uint16_t kern_encode(float logit, float floor, float scale)
{
    if (!(logit > floor && scale != 0.0f))
        return 0;
    double code = ((double)logit - (double)floor) / (double)scale;
    code = code < KERN_CODE_MAX ? code : KERN_CODE_MAX;
    return (uint16_t)((code + FMATH_ROUND_F64) - FMATH_ROUND_F64);
}

#endif
