/*
 * The activations: every ISA's variant against the scalar one to the bit, and the scalar one
 * against long double within bounds derived from its operations.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/numerics/fmath_constants.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/kernels/ops_variants.h"

static const char *const names[KERN_N_ACTIVATIONS] = {[KERN_SILU] = "silu",
                                                      [KERN_GELU] = "gelu",
                                                      [KERN_GELU_EXACT] = "exact gelu",
                                                      [KERN_SIGMOID] = "sigmoid",
                                                      [KERN_RELU_SQUARED] = "relu squared",
                                                      [KERN_IDENTITY] = "identity",
                                                      [KERN_TANH] = "tanh",
                                                      [KERN_SWIGLU_OAI] = "swiglu_oai",
                                                      [KERN_RELU] = "relu",
                                                      [KERN_SOFTPLUS] = "softplus",
                                                      [KERN_SWIGLU_CLAMP_BEFORE] = "clamp before",
                                                      [KERN_SWIGLU_CLAMP_AFTER] = "clamp after",
                                                      [KERN_XIELU] = "xielu",
                                                      [KERN_SITU] = "situ"};

/* The formulas' numbers: a limit that both z and z sigmoid(z) cross, and xIELU's with an eps that
 * many z lie above. */
static struct kern_curve curve = {.clamp = 2.5f,
                                  .beta = 4.0f,
                                  .up_beta = 3.0f,
                                  .rise = 0.8,
                                  .fall = 1.7,
                                  .slope = 0.45,
                                  .eps = -0.125};

static int first_kind = 0; /* of those that are tested */

/* SiTU alone, which does not bound u then. */
static int without_up_beta(void **state)
{
    (void)state;
    first_kind = KERN_SITU;
    curve.up_beta = 0;
    return 0;
}

/* Kinds that bound u take one. */
static bool bounds_up(int kind)
{
    return kind == KERN_SWIGLU_OAI || kind == KERN_SWIGLU_CLAMP_BEFORE ||
           kind == KERN_SWIGLU_CLAMP_AFTER || (kind == KERN_SITU && curve.up_beta > 0);
}

static long double sigmoid(long double w)
{
    return 1.0L / (1.0L + expl(-w));
}

/* By the definitions in kernels/types.h. */
static long double truth_of(enum kern_activation kind, float gate, float up)
{
    long double z = (long double)gate, u = (long double)up, a = fminl(z, 7.0L);
    long double c = (long double)curve.clamp, v = fminl(fmaxl(u, -c), c);
    switch (kind) {
    case KERN_SILU:
        return z * sigmoid(z) * u;
    case KERN_GELU: /* z / 2 (1 + tanh(w / 2)) */
        return z * sigmoid(2.0L * sqrtl(2.0L / acosl(-1.0L)) * (z + 0.044715L * z * z * z)) * u;
    case KERN_GELU_EXACT:
        return z * 0.5L * erfcl(-z * sqrtl(0.5L)) * u;
    case KERN_SIGMOID:
        return sigmoid(z) * u;
    case KERN_RELU_SQUARED:
        return fmaxl(z, 0.0L) * fmaxl(z, 0.0L) * u;
    case KERN_TANH:
        return tanhl(z) * u;
    case KERN_IDENTITY:
        return z * u;
    case KERN_SWIGLU_OAI:
        return a * sigmoid(1.702L * a) * (fminl(fmaxl(u, -7.0L), 7.0L) + 1.0L);
    case KERN_RELU:
        return fmaxl(z, 0.0L) * u;
    case KERN_SOFTPLUS:
        return (log1pl(expl(-fabsl(z))) + fmaxl(z, 0.0L)) * u;
    case KERN_SWIGLU_CLAMP_BEFORE:
        return fminl(z, c) * sigmoid(fminl(z, c)) * v;
    case KERN_SWIGLU_CLAMP_AFTER:
        return fminl(z * sigmoid(z), c) * v;
    case KERN_XIELU:
        c = (long double)curve.slope * z;
        if (z > 0)
            return ((long double)curve.rise * z * z + c) * u;
        return ((long double)curve.fall * (expm1l(fminl(z, (long double)curve.eps)) - z) + c) * u;
    case KERN_SITU:
        c = (long double)curve.beta;
        v = (long double)curve.up_beta;
        return c * tanhl(z / c) * sigmoid(z) * (v > 0 ? v * tanhl(u / v) : u);
    case KERN_N_ACTIVATIONS:
        break;
    }
    return 0.0L;
}

/* All arrays of a variant lie before inaccessible pages. */
static void compare_once(enum kern_activation kind, int isa, size_t n, size_t slack, bool gated)
{
    struct rng r = rng_open(rng_seed(), n * 64 + slack + 7 * (size_t)kind);
    float *expected = malloc(n * sizeof *expected);
    struct guard x = guard_open(n * sizeof(float), slack);
    struct guard up = guard_open(n * sizeof(float), slack);
    fill_wild(&r, (float *)x.data, n, 8.0f);
    fill_wild(&r, (float *)up.data, n, 8.0f);
    memcpy(expected, x.data, n * sizeof *expected);
    const float *factors = gated ? (const float *)up.data : NULL;
    kern_ops_scalar.activate(kind, &curve, expected, factors, n);
    ops_variant(isa)->activate(kind, &curve, (float *)x.data, factors, n);
    size_t i = compare_bits((const float *)x.data, expected, n);
    if (i < n) {
        fail_msg("%s, %s, length %zu, slack %zu, element %zu: %a, expected %a", names[kind],
                 kern_isa_name((enum kern_isa)isa), n, slack, i, (double)((const float *)x.data)[i],
                 (double)expected[i]);
    }
    assert_true(guard_intact(&x) && guard_intact(&up));
    guard_close(&x);
    guard_close(&up);
    free(expected);
}

static void test_variants_agree(void **state)
{
    (void)state;
    for (int isa = KERN_ISA_SCALAR + 1; isa < KERN_ISA_COUNT; isa++) {
        for (int kind = first_kind; kind < KERN_N_ACTIVATIONS && ops_variant(isa); kind++) {
            for (size_t n = 1; n < 500; n += n < 70 ? 1 : 61) {
                compare_once((enum kern_activation)kind, isa, n, 0, true);
                compare_once((enum kern_activation)kind, isa, n, 4, bounds_up(kind));
            }
        }
    }
}

/* Inputs have every magnitude at which an exponential is anything but 0 or infinite, and are the
 * neighbours of where it becomes so. */
static void test_variants_over_the_range(void **state)
{
    (void)state;
    enum { N = 4096, PARTS = 64 };
    static float expected[N], found[N], up[N];
    for (size_t i = 0; i < N; i++)
        up[i] = 1.0f;
    for (int isa = KERN_ISA_SCALAR + 1; isa < KERN_ISA_COUNT; isa++) {
        for (int part = PARTS * first_kind; part < PARTS * KERN_N_ACTIVATIONS && ops_variant(isa);
             part++) {
            enum kern_activation kind = (enum kern_activation)(part / PARTS);
            for (size_t i = 0; i < N; i++)
                expected[i] = -120.0f + 240.0f / (N * PARTS) * (float)(part % PARTS * N + (int)i);
            expected[0] = -FMATH_EXP_F32_MAX;
            expected[1] = nextafterf(-FMATH_EXP_F32_MAX, -INFINITY);
            expected[2] = -FMATH_EXP_F32_MIN;
            expected[3] = nextafterf(-FMATH_EXP_F32_MIN, INFINITY);
            memcpy(found, expected, sizeof found);
            kern_ops_scalar.activate(kind, &curve, expected, up, N);
            ops_variant(isa)->activate(kind, &curve, found, up, N);
            assert_int_equal(compare_bits(found, expected, N), N);
        }
    }
}

/*
 * exp within 1.01 ulp (2.02 half ulps), then a sum, a quotient and a product of half an ulp each:
 * silu and sigmoid. GELU has a correction of the sum besides, of half an ulp; swiglu_oai that and
 * the sum u + 1. relu squared has two products, relu one; tanh is within 2.5 ulp. softplus and
 * xielu are computed in double, rounded and multiplied: two roundings. SiTU has a quotient, tanh
 * and a product twice, the sigmoid, and two more products. Limits round nothing. Where e^-w
 * overflows, below w = -88.7, the result is 0 for one that is as small as the bound there.
 */
static void test_each_is_accurate(void **state)
{
    (void)state;
    static const long double half_ulps[KERN_N_ACTIVATIONS] = {[KERN_SILU] = 5.03L,
                                                              [KERN_GELU] = 6.04L,
                                                              [KERN_GELU_EXACT] = 2.05L,
                                                              [KERN_SIGMOID] = 5.03L,
                                                              [KERN_RELU_SQUARED] = 2.01L,
                                                              [KERN_IDENTITY] = 1.01L,
                                                              [KERN_TANH] = 6.01L,
                                                              [KERN_SWIGLU_OAI] = 7.05L,
                                                              [KERN_RELU] = 1.01L,
                                                              [KERN_SOFTPLUS] = 2.01L,
                                                              [KERN_SWIGLU_CLAMP_BEFORE] = 5.03L,
                                                              [KERN_SWIGLU_CLAMP_AFTER] = 5.03L,
                                                              [KERN_XIELU] = 2.01L,
                                                              [KERN_SITU] = 20.2L};
    static const float ups[] = {1.7f, -0.3f, 9.0f, -8.0f};
    for (int k = first_kind; k < KERN_N_ACTIVATIONS; k++) {
        enum kern_activation kind = (enum kern_activation)k;
        long double worst = 0;
        for (float z = -100.0f; z < 100.0f; z += 0.00371f) {
            size_t i = (size_t)(long)(z * 269.0f) % 4;
            float found = z;
            kern_ops_scalar.activate(kind, &curve, &found, &ups[i], 1);
            long double truth = truth_of(kind, z, ups[i]);
            long double error = fabsl((long double)found - truth);
            long double bound = half_ulps[k] * 0x1p-24L * fabsl(truth) + 2.7e-36L;
            if (!(error <= bound))
                fail_msg("%s of %a, %a is %a, expected %La", names[k], (double)z, (double)ups[i],
                         (double)found, truth);
            if (fabsl(truth) > 1e-30L)
                worst = fmaxl(worst, error / fabsl(truth) / 0x1p-24L);
        }
        print_message("%s: %.2Lf half ulps\n", names[k], worst);
    }
}

/* Without up: as with an up of 1. */
static void test_without_a_gate(void **state)
{
    (void)state;
    enum { N = 1000 };
    float found[N], expected[N], up[N];
    struct rng r = rng_open(rng_seed(), 3);
    for (int kind = first_kind; kind < KERN_N_ACTIVATIONS; kind++) {
        if (bounds_up(kind))
            continue;
        fill_wild(&r, found, N, 5.0f);
        memcpy(expected, found, sizeof found);
        for (size_t i = 0; i < N; i++)
            up[i] = 1.0f;
        kern_ops_scalar.activate((enum kern_activation)kind, &curve, found, NULL, N);
        kern_ops_scalar.activate((enum kern_activation)kind, &curve, expected, up, N);
        assert_int_equal(compare_bits(found, expected, N), N);
    }
}

/* A NaN is never lost, an infinity only where the definition has a limit. */
static void test_special_values(void **state)
{
    (void)state;
    /* What each kind makes of 0 (times 3), infinity (times 2), -infinity and -3e38. Where the
     * definition says 0 times infinity, it is NaN. */
    const float of[KERN_N_ACTIVATIONS][4] = {
        [KERN_SILU] = {0, INFINITY, NAN, 0},
        [KERN_GELU] = {0, INFINITY, NAN, 0},
        [KERN_GELU_EXACT] = {0, INFINITY, NAN, 0},
        [KERN_SIGMOID] = {1.5f, 2, 0, 0},
        [KERN_RELU_SQUARED] = {0, INFINITY, 0, 0},
        [KERN_IDENTITY] = {0, INFINITY, -INFINITY, -3e38f},
        [KERN_TANH] = {0, 2, -1, -1},
        [KERN_SWIGLU_OAI] = {0, 20.999859f, NAN, 0},
        [KERN_RELU] = {0, INFINITY, 0, 0},
        [KERN_SOFTPLUS] = {2.07944155f, INFINITY, 0, 0},
        [KERN_SWIGLU_CLAMP_BEFORE] = {0, 4.6207091f, NAN, 0},
        [KERN_SWIGLU_CLAMP_AFTER] = {0, 5, NAN, 0},
        [KERN_XIELU] = {-0.5992658f, INFINITY, NAN, INFINITY},
        [KERN_SITU] = {0, curve.up_beta > 0 ? 6.99340936f : 8, 0, 0},
    };
    for (int kind = first_kind; kind < KERN_N_ACTIVATIONS; kind++) {
        float z[] = {0.0f, INFINITY, -INFINITY, -3e38f, NAN, 1.0f};
        const float up[] = {3.0f, 2.0f, 1.0f, 1.0f, 1.0f, NAN};
        kern_ops_scalar.activate((enum kern_activation)kind, &curve, z, up, sizeof z / sizeof *z);
        for (size_t i = 0; i < 4; i++) {
            bool same = isnan(of[kind][i]) ? isnan(z[i])
                        : isinf(of[kind][i])
                            ? z[i] == of[kind][i]
                            : fabsf(z[i] - of[kind][i]) <= 1e-5f * fabsf(of[kind][i]);
            if (!same)
                fail_msg("%s, value %zu: %g, expected %g", names[kind], i, (double)z[i],
                         (double)of[kind][i]);
        }
        assert_true(isnan(z[4]) && isnan(z[5]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants_agree),   cmocka_unit_test(test_variants_over_the_range),
        cmocka_unit_test(test_each_is_accurate), cmocka_unit_test(test_without_a_gate),
        cmocka_unit_test(test_special_values),
    };
    return cmocka_run_group_tests_name("all", tests, NULL, NULL) +
           cmocka_run_group_tests_name("SiTU without up_beta", tests, without_up_beta, NULL);
}
