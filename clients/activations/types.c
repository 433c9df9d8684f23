#include "clients/activations/types.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "base/arithmetic.h"
#include "kernels/kernels.h"
#include "kernels/quant/round.h"

/* What a block is rounded with. */
typedef void round_fn(float *x, size_t n, float scale);

/** The number of the largest magnitude, of equals the first; NaN if one is not finite. */
static float largest_of(const float *x, size_t n)
{
    float largest = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(x[i]) <= FLT_MAX))
            return NAN;
        if (fabsf(x[i]) > fabsf(largest))
            largest = x[i];
    }
    return largest;
}

static void fill(float *x, size_t n, float value)
{
    for (size_t i = 0; i < n; i++)
        x[i] = value;
}

/** Codes, whole numbers of at most 127, times d; factor: about 1 / d. Halves become even. */
static void round_codes(float *x, size_t n, float factor, float d)
{
    const float whole = 0x1.8p23f; /* adding it leaves no room for a fraction */
    for (size_t i = 0; i < n; i++) {
        float code = x[i] * factor + whole - whole;
        code = code > 127 ? 127 : code < -127 ? -127 : code;
        x[i] = d * code;
    }
}

static void round_f32(float *x, size_t n, float scale)
{
    (void)x, (void)n, (void)scale;
}

static void round_f16(float *x, size_t n, float scale)
{
    (void)scale;
    kern_round_numbers(GGUF_TYPE_F16, x, n);
}

static void round_bf16(float *x, size_t n, float scale)
{
    (void)scale;
    kern_round_numbers(GGUF_TYPE_BF16, x, n);
}

/** The scale of a block, amax / 127: as a half, or as it is. */
static void round_8_bits(float *x, size_t n, bool half)
{
    float amax = fabsf(largest_of(x, n)), d = amax / 127;
    if (half)
        d = kern_half_to_float(kern_half_from_float(d));
    if (!(amax > 0)) /* 0, or NaN */
        fill(x, n, amax);
    else
        round_codes(x, n, 127 / amax, d);
}

static void round_q8_0(float *x, size_t n, float scale)
{
    (void)scale;
    round_8_bits(x, n, true);
}

static void round_mmq(float *x, size_t n, float scale)
{
    (void)scale;
    round_8_bits(x, n, false);
}

static void round_q8_k(float *x, size_t n, float scale)
{
    (void)scale;
    float largest = largest_of(x, n), factor = -127 / largest;
    if (largest == 0 || isnan(largest))
        fill(x, n, largest);
    else
        round_codes(x, n, factor, 1 / factor);
}

static void round_e2m1(float *x, size_t n, float d)
{
    for (size_t i = 0; i < n; i++)
        x[i] = d / 2 * (float)kern_fp4_values[kern_e2m1_from_float(x[i] / d)];
}

static void round_fp8(float *x, size_t n, float scale)
{
    const float least = 1 / (KERN_E4M3_MAX * 512);
    (void)scale;
    float amax = fabsf(largest_of(x, n));
    if (isnan(amax))
        fill(x, n, amax);
    else
        kern_round_e4m3(x, n, fmaxf(amax / KERN_E4M3_MAX, least));
}

static void round_mxfp8(float *x, size_t n, float scale)
{
    (void)n, (void)scale;
    kern_round_mxfp8(x);
}

static void round_mxfp4(float *x, size_t n, float scale)
{
    (void)scale;
    float amax = fabsf(largest_of(x, n));
    if (isnan(amax))
        fill(x, n, amax);
    else
        round_e2m1(x, n, kern_e8m0_to_float(kern_e8m0_for(amax, KERN_E2M1_EXPONENT)));
}

static void round_nvfp4(float *x, size_t n, float scale)
{
    (void)n;
    kern_round_nvfp4(x, scale);
}

#define round_q8_1       round_q8_0 /* beside its sum of codes, which is no input */
#define round_mmq_64     round_mmq
#define round_fp8_tensor kern_round_e4m3

static const struct {
    const char *name;
    size_t elems;
    round_fn *round;
} types[] = {
#define TYPE_ROW(TYPE, type, name, elems) [ACT_##TYPE] = {name, elems, round_##type},
    ACT_EACH_TYPE(TYPE_ROW)
#undef TYPE_ROW
};

const char *act_type_name(enum act_type type)
{
    return types[type].name;
}

size_t act_type_elems(enum act_type type)
{
    return base_max(types[type].elems, 1);
}

void act_round_row(enum act_type type, float *x, size_t n, float scale)
{
    size_t elems = types[type].elems > 1 ? types[type].elems : n;
    for (size_t i = 0; i + elems <= n && n; i += elems)
        types[type].round(x + i, elems, scale);
}
