/*
 * The elementary functions of kernels/numerics/fmath.h against the C library in long double: the
 * bounds that the header states, over the whole range, and the values at the edges.
 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "kernels/numerics/fmath.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

/* The size of the last place of a number of this magnitude with `digits` bits. */
static long double last_place(long double value, int digits)
{
    int exponent;
    frexpl(value, &exponent);
    return ldexpl(1.0L, exponent - digits);
}

struct worst {
    long double ulps;
    double at;
};

static void worst_add(struct worst *w, double x, double found, long double truth, int digits)
{
    long double ulps = fabsl((long double)found - truth) / last_place(truth, digits);
    if (!(ulps <= w->ulps)) {
        w->ulps = ulps;
        w->at = x;
    }
}

static void assert_within(const struct worst *w, double bound, const char *what)
{
    print_message("%s: at most %.3Lf ulp, at %a\n", what, w->ulps, w->at);
    if (!(w->ulps <= (long double)bound)) {
        fail_msg("%s: %Lf ulp at %a, bound %f", what, w->ulps, w->at, bound);
    }
}

/*
 * In units of the last place below 1, the worst case: 0.5 for the last addition, 0.25 for the
 * rounding of what is added to 1, 0.18 for the rounding of r, 0.08 for r^2 q, 0.07 for the
 * polynomial: 1.08. They never meet: over every float in the range it is 1.009.
 */
static void test_exp_f32(void **state)
{
    (void)state;
    struct worst w = {0};
    for (uint32_t i = 0; i < 0x43000000; i += 977) { /* 0 .. 128, both signs */
        for (int sign = 0; sign < 2; sign++) {
            float x = kern_float_from_bits(i | (uint32_t)sign << 31);
            float found = fmath_exp_f32(x);
            long double truth = expl((long double)x);
            if (x > FMATH_EXP_F32_MAX) {
                assert_true(found == INFINITY && truth > (long double)FLT_MAX);
            } else if (x < FMATH_EXP_F32_MIN) {
                assert_true(found == 0.0f && truth < (long double)FLT_MIN);
            } else {
                worst_add(&w, (double)x, (double)found, truth, 24);
            }
        }
    }
    assert_within(&w, 1.01, "exp, float");
}

/* In half ulps of a result below 1, whose ulp is half of that of what it is made of: 1 for the
 * quotient, 2 for e + 2, 1.1 + 1 for e itself. Over every float it is 2.498 ulp. */
static void test_tanh_f32(void **state)
{
    (void)state;
    struct worst w = {0};
    for (uint32_t i = 0x00800000; i < 0x41a00000; i += 977) { /* 2^-126 .. 20 */
        float x = kern_float_from_bits(i), found = fmath_tanh_f32(x);
        worst_add(&w, (double)x, (double)found, tanhl((long double)x), 24);
        assert_true(fmath_tanh_f32(-x) == -found && found <= 1.0f);
    }
    assert_within(&w, 2.5, "tanh, float");
    assert_true(fmath_tanh_f32(0x1.205368p+2f) < 1.0f); /* where the error is largest */
    assert_true(fmath_tanh_f32(FLT_MAX) == 1.0f && fmath_tanh_f32(INFINITY) == 1.0f);
    assert_true(fmath_tanh_f32(-INFINITY) == -1.0f && isnan(fmath_tanh_f32(NAN)));
    assert_true(kern_bits_of(fmath_tanh_f32(-0.0f)) == 0x80000000u);
    assert_true(kern_bits_of(fmath_tanh_f32(0.0f)) == 0);
}

static void test_exp_f64(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    struct worst w = {0};
    for (int i = 0; i < 1000000; i++) {
        double unit = (double)(rng_next(&r) >> 11) * 0x1p-53;
        static const double scale[] = {-708.396, 709.782, -1.0, 1.0, -20.0, -0x1p-20};
        double x = unit * scale[i % 6];
        worst_add(&w, x, fmath_exp_f64(x), expl((long double)x), 53);
    }
    assert_within(&w, 1.1, "exp, double");
}

/* Around each multiple of ln 2 / 2, where n changes and r is largest. */
static void test_exp_seams(void **state)
{
    (void)state;
    struct worst w32 = {0};
    struct worst w64 = {0};
    for (int n = -251; n <= 255; n++) {
        float x = (float)(n * 0.34657359027997265);
        double d = n * 0.34657359027997265;
        for (int step = -20; step <= 20; step++) {
            float near_x = kern_float_from_bits(kern_bits_of(x) + (uint32_t)step);
            double near_d = fmath_from_bits_f64(fmath_bits_f64(d) + (uint64_t)(int64_t)step);
            if (n == 0) {
                near_x = (float)step * 0x1p-149f;
                near_d = (double)step * 0x1p-1074;
            }
            worst_add(&w32, (double)near_x, (double)fmath_exp_f32(near_x),
                      expl((long double)near_x), 24);
            worst_add(&w64, near_d, fmath_exp_f64(near_d), expl((long double)near_d), 53);
        }
    }
    assert_within(&w32, 1.01, "exp, float, at seams");
    assert_within(&w64, 1.1, "exp, double, at seams");
}

static void test_exp_special(void **state)
{
    (void)state;
    assert_true(fmath_exp_f32(0.0f) == 1.0f && fmath_exp_f32(-0.0f) == 1.0f);
    assert_true(fmath_exp_f32(INFINITY) == INFINITY);
    assert_true(kern_bits_of(fmath_exp_f32(-INFINITY)) == 0);
    assert_true(isnan(fmath_exp_f32(NAN)));
    assert_true(isfinite(fmath_exp_f32(FMATH_EXP_F32_MAX)));
    assert_true(fmath_exp_f32(nextafterf(FMATH_EXP_F32_MAX, INFINITY)) == INFINITY);
    assert_true(fmath_exp_f32(FMATH_EXP_F32_MIN) >= FLT_MIN);
    assert_true(fmath_exp_f32(nextafterf(FMATH_EXP_F32_MIN, -INFINITY)) == 0.0f);
    assert_true(fmath_exp_f32(-FLT_MAX) == 0.0f && fmath_exp_f32(FLT_MAX) == INFINITY);

    assert_true(fmath_exp_f64(0.0) == 1.0 && fmath_exp_f64(-0.0) == 1.0);
    assert_true(fmath_exp_f64((double)INFINITY) == (double)INFINITY);
    assert_true(fmath_bits_f64(fmath_exp_f64(-(double)INFINITY)) == 0);
    assert_true(isnan(fmath_exp_f64((double)NAN)));
    assert_true(isfinite(fmath_exp_f64(FMATH_EXP_F64_MAX)));
    assert_true(fmath_exp_f64(nextafter(FMATH_EXP_F64_MAX, 1e9)) == (double)INFINITY);
    assert_true(fmath_exp_f64(FMATH_EXP_F64_MIN) >= DBL_MIN);
    assert_true(fmath_exp_f64(nextafter(FMATH_EXP_F64_MIN, -1e9)) == 0.0);
    assert_true(fmath_exp_f64(-DBL_MAX) == 0.0 && fmath_exp_f64(DBL_MAX) == (double)INFINITY);
}

static void test_log(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    struct worst w = {0};
    struct worst w1 = {0};
    for (int i = 0; i < 1000000; i++) {
        double unit = (double)(rng_next(&r) >> 11) * 0x1p-53;
        double x = i % 3 == 0 ? exp((unit - 0.5) * 1400) : i % 3 == 1 ? 1 + 3e5 * unit : 0.5 + unit;
        worst_add(&w, x, kern_log(x), logl((long double)x), 53);
        double y = i % 3 == 0 ? exp(-40 * unit) : i % 3 == 1 ? unit : 300 * unit;
        y = i % 2 == 1 && y < 1 ? -y : y;
        worst_add(&w1, y, kern_log1p(y), log1pl((long double)y), 53);
    }
    assert_within(&w, 2.0, "log");
    assert_within(&w1, 2.0, "log1p");
    assert_true(kern_log(1.0) == 0.0 && kern_log1p(0.0) == 0.0);
    assert_true(kern_log(0.0) == -(double)INFINITY && kern_log1p(-1.0) == -(double)INFINITY);
    assert_true(kern_log((double)INFINITY) == (double)INFINITY);
    assert_true(kern_log1p((double)INFINITY) == (double)INFINITY);
    assert_true(isnan(kern_log(-1.0)) && isnan(kern_log1p(-1.5)));
    assert_true(isnan(kern_log((double)NAN)) && isnan(kern_log1p((double)NAN)));
}

static void test_sincos(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3);
    double bound = 0x1p-52;
    for (int i = 0; i < 1000000; i++) {
        double unit = (double)(rng_next(&r) >> 11) * 0x1p-53;
        static const double scale[] = {131072.0, 3.2, 0x1p31, -100.0};
        double x = unit * scale[i % 4];
        double s, c;
        kern_sincos(x, &s, &c);
        if (!(fabsl((long double)s - sinl((long double)x)) <= (long double)bound &&
              fabsl((long double)c - cosl((long double)x)) <= (long double)bound)) {
            fail_msg("sin, cos of %a are %a, %a", x, s, c);
        }
    }
    double s, c;
    kern_sincos(0.0, &s, &c);
    assert_true(s == 0.0 && c == 1.0);
    kern_sincos((double)INFINITY, &s, &c);
    assert_true(isnan(s) && isnan(c));
}

/* FNV-1a over the bits of a result. */
static uint64_t hash_add(uint64_t hash, uint64_t bits)
{
    for (int i = 0; i < 64; i += 8) {
        hash = (hash ^ (bits >> i & 0xff)) * 0x100000001b3u;
    }
    return hash;
}

/*
 * The same bits from every compiler, at every level of optimisation, on every machine: the
 * number below was found with gcc 12 at -O2. Another one means that results have changed.
 */
static void test_bits_are_everywhere_the_same(void **state)
{
    (void)state;
    struct rng r = rng_open(1, 1);
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < 200000; i++) {
        double unit = (double)(rng_next(&r) >> 11) * 0x1p-53;
        double s, c;
        kern_sincos(unit * 131072.0, &s, &c);
        hash = hash_add(hash, kern_bits_of(fmath_exp_f32((float)(unit - 0.5) * 180.0f)));
        hash = hash_add(hash, kern_bits_of(fmath_tanh_f32((float)(unit - 0.5) * 12.0f)));
        hash = hash_add(hash, fmath_bits_f64(fmath_exp_f64((unit - 0.5) * 1430.0)));
        hash = hash_add(hash, fmath_bits_f64(kern_log(unit * 300000.0)));
        hash = hash_add(hash, fmath_bits_f64(kern_log1p(unit * 4.0 - 1.0)));
        hash = hash_add(hash_add(hash, fmath_bits_f64(s)), fmath_bits_f64(c));
    }
    if (hash != 0x173c7c68b59b3b0eu) {
        fail_msg("the hash of the results is 0x%016" PRIx64, hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_f32),   cmocka_unit_test(test_exp_f64),
        cmocka_unit_test(test_exp_seams), cmocka_unit_test(test_exp_special),
        cmocka_unit_test(test_log),       cmocka_unit_test(test_bits_are_everywhere_the_same),
        cmocka_unit_test(test_sincos),    cmocka_unit_test(test_tanh_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
