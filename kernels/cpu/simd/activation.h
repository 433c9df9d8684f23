/** The activations of kernels/numerics/activation.h: the same operations, the same bits. A body. */
#ifndef KERNELS_CPU_SIMD_ACTIVATION_H
#define KERNELS_CPU_SIMD_ACTIVATION_H

#include "kernels/cpu/simd/fmath.h"
#include "kernels/numerics/activation.h"

static inline vec_f minus_f(vec_f x)
{
    return V(xor_ps)(x, V(set1_ps)(-0.0f));
}

/** The smaller and the larger of x and a constant; x where it is NaN. */
static inline vec_f at_most(vec_f x, float limit)
{
    return V(min_ps)(V(set1_ps)(limit), x);
}

static inline vec_f at_least(vec_f x, float limit)
{
    return V(max_ps)(V(set1_ps)(limit), x);
}

/** x within -limit .. limit. */
static inline vec_f within(vec_f x, float limit)
{
    return at_least(at_most(x, limit), -limit);
}

/** z / (1 + e^-w) */
static inline vec_f sigmoid_times(vec_f z, vec_f w)
{
    return V(div_ps)(z, V(add_ps)(V(set1_ps)(1.0f), exp_f(minus_f(w))));
}

/** z / (1 + e^-w) with w = hi + lo. */
static inline vec_f logistic(vec_f z, vec_f hi, vec_f lo)
{
    vec_f e = exp_f(minus_f(hi));
    vec_f sum = V(add_ps)(V(set1_ps)(1.0f), e);
    return V(div_ps)(z, V(fnmadd_ps)(lo, at_most(e, FLT_MAX), sum));
}

static inline vec_f gelu(vec_f z)
{
    vec_d wide[2], rest[2];
    widen(z, wide);
    for (size_t j = 0; j < 2; j++) {
        vec_d square = V(mul_pd)(wide[j], wide[j]);
        vec_d cube = horner_d(square, V(set1_pd)(KERN_GELU_CUBE), 1.0);
        wide[j] = V(mul_pd)(V(mul_pd)(wide[j], V(set1_pd)(KERN_GELU_SCALE)), cube);
        wide[j] = V(min_pd)(V(set1_pd)(KERN_GELU_LIMIT), wide[j]);
        wide[j] = V(max_pd)(V(set1_pd)(-KERN_GELU_LIMIT), wide[j]);
    }
    vec_f hi = narrow(wide);
    widen(hi, rest);
    for (size_t j = 0; j < 2; j++)
        rest[j] = V(sub_pd)(wide[j], rest[j]);
    return logistic(z, hi, narrow(rest));
}

static inline vec_f gelu_exact(vec_f z)
{
    const vec_d zero = V(setzero_pd)(), one = V(set1_pd)(1.0);
    vec_d wide[2];
    widen(z, wide);
    for (size_t j = 0; j < 2; j++) {
        vec_d size = V(max_pd)(wide[j], V(sub_pd)(zero, wide[j]));
        vec_d below = normal_d(V(min_pd)(size, V(set1_pd)(KERN_GELU_EXACT_LIMIT)));
        lanes_d above = COMPARE_D(wide[j], zero, _CMP_GT_OQ);
        wide[j] = V(mul_pd)(wide[j], select_d(above, V(sub_pd)(one, below), below));
    }
    return narrow(wide);
}

static inline vec_f swiglu_oai(vec_f z, vec_f up)
{
    z = at_most(z, KERN_SWIGLU_LIMIT);
    up = within(up, KERN_SWIGLU_LIMIT);
    vec_f x = at_least(z, KERN_SWIGLU_LOWEST), slope = V(set1_ps)(KERN_SWIGLU_SLOPE);
    vec_f hi = V(mul_ps)(x, slope);
    vec_f lo = V(fmsub_ps)(x, slope, hi);
    lo = V(fmadd_ps)(x, V(set1_ps)(KERN_SWIGLU_SLOPE_LOW), lo);
    return V(mul_ps)(logistic(z, hi, lo), V(add_ps)(up, V(set1_ps)(1.0f)));
}

static inline vec_f relu_squared(vec_f z)
{
    z = at_least(z, 0.0f);
    return V(mul_ps)(z, z);
}

static inline vec_f softplus(vec_f z)
{
    vec_d wide[2];
    widen(z, wide);
    for (size_t j = 0; j < 2; j++)
        wide[j] = softplus_d(wide[j]);
    return narrow(wide);
}

static inline vec_d xielu_d(const struct kern_curve *c, vec_d x)
{
    const vec_d one = V(set1_pd)(1.0);
    vec_d down = V(sub_pd)(V(sub_pd)(exp_d(V(min_pd)(V(set1_pd)(c->eps), x)), one), x);
    vec_d curved = select_d(COMPARE_D(x, V(setzero_pd)(), _CMP_GT_OQ),
                            V(mul_pd)(V(set1_pd)(c->rise), V(mul_pd)(x, x)),
                            V(mul_pd)(V(set1_pd)(c->fall), down));
    return V(fmadd_pd)(V(set1_pd)(c->slope), x, curved);
}

static inline vec_f xielu(const struct kern_curve *c, vec_f z)
{
    vec_d wide[2];
    widen(z, wide);
    for (size_t j = 0; j < 2; j++)
        wide[j] = xielu_d(c, wide[j]);
    return narrow(wide);
}

static inline vec_f soft_limit(vec_f x, float limit)
{
    return V(mul_ps)(V(set1_ps)(limit), tanh_f(V(div_ps)(x, V(set1_ps)(limit))));
}

static inline vec_f situ(const struct kern_curve *c, vec_f z, vec_f up)
{
    vec_f y = V(mul_ps)(soft_limit(z, c->beta), sigmoid_times(V(set1_ps)(1.0f), z));
    return V(mul_ps)(y, c->up_beta > 0.0f ? soft_limit(up, c->up_beta) : up);
}

static inline __attribute__((always_inline)) vec_f
activation(enum kern_activation kind, const struct kern_curve *curve, vec_f z, vec_f up)
{
    if (kind == KERN_SWIGLU_OAI)
        return swiglu_oai(z, up);
    if (kind == KERN_SITU)
        return situ(curve, z, up);
    bool before = kind == KERN_SWIGLU_CLAMP_BEFORE, after = kind == KERN_SWIGLU_CLAMP_AFTER;
    if (before)
        z = at_most(z, curve->clamp);
    vec_f y = kind == KERN_GELU           ? gelu(z)
              : kind == KERN_GELU_EXACT   ? gelu_exact(z)
              : kind == KERN_SIGMOID      ? sigmoid_times(V(set1_ps)(1.0f), z)
              : kind == KERN_RELU_SQUARED ? relu_squared(z)
              : kind == KERN_TANH         ? tanh_f(z)
              : kind == KERN_RELU         ? at_least(z, 0.0f)
              : kind == KERN_SOFTPLUS     ? softplus(z)
              : kind == KERN_XIELU        ? xielu(curve, z)
              : kind == KERN_IDENTITY     ? z
                                          : sigmoid_times(z, z);
    if (after)
        y = at_most(y, curve->clamp);
    return V(mul_ps)(y, before || after ? within(up, curve->clamp) : up);
}

/** kind: a constant at every call. */
static inline __attribute__((always_inline)) void activate_all(enum kern_activation kind,
                                                               const struct kern_curve *curve,
                                                               float *gate, const float *up,
                                                               size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f factor = up ? load_first(up + i, n - i) : V(set1_ps)(1.0f);
        vec_f z = load_first(gate + i, n - i);
        store_first(gate + i, n - i, activation(kind, curve, z, factor));
    }
}

static void activate(enum kern_activation kind, const struct kern_curve *curve, float *gate,
                     const float *up, size_t n)
{
#define CASE(name)                                                                                 \
    case name:                                                                                     \
        activate_all(name, curve, gate, up, n);                                                    \
        return;
    switch (kind) {
        CASE(KERN_GELU)
        CASE(KERN_GELU_EXACT)
        CASE(KERN_SIGMOID)
        CASE(KERN_RELU_SQUARED)
        CASE(KERN_TANH)
        CASE(KERN_SWIGLU_OAI)
        CASE(KERN_RELU)
        CASE(KERN_SOFTPLUS)
        CASE(KERN_SWIGLU_CLAMP_BEFORE)
        CASE(KERN_SWIGLU_CLAMP_AFTER)
        CASE(KERN_XIELU)
        CASE(KERN_SITU)
        CASE(KERN_IDENTITY)
    case KERN_SILU:
    case KERN_N_ACTIVATIONS:
        break;
    }
#undef CASE
    activate_all(KERN_SILU, curve, gate, up, n);
}

#endif
