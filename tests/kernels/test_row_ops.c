/*
 * The kernels that work on one row: every ISA's variant against the scalar one to the bit, and
 * the scalar one against long double within bounds derived from its operations.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/kernels/ops_variants.h"

static const size_t long_lengths[] = {127, 128, 129, 1000, 2053, 4096};
enum { SHORT_LENGTHS = 70, N_LENGTHS = SHORT_LENGTHS + 6 };

/* 1 .. 70, then the long ones. */
static size_t length_at(size_t i)
{
    return i < SHORT_LENGTHS ? i + 1 : long_lengths[i - SHORT_LENGTHS];
}

/* How a kernel is called: on x (n floats, in place) with two further arrays of n floats. */
typedef void run_fn(const struct kern_ops *ops, float *x, const float *p, const float *q, size_t n);

static void rmsnorm(const struct kern_ops *ops, float *y, const float *x, const float *gain,
                    float eps, size_t n)
{
    ops->norm(&(struct kern_norm_row){.y = y, .x = x, .gain = gain, .n = n, .eps = eps});
}

static void run_rmsnorm(const struct kern_ops *ops, float *x, const float *p, const float *q,
                        size_t n)
{
    (void)q;
    rmsnorm(ops, x, x, p, 1e-5f, n);
}

static void run_rmsnorm_apart(const struct kern_ops *ops, float *x, const float *p, const float *q,
                              size_t n)
{
    rmsnorm(ops, x, q, p, 1e-5f, n);
}

static void run_norm_alone(const struct kern_ops *ops, float *x, const float *p, const float *q,
                           size_t n)
{
    (void)p;
    (void)q;
    rmsnorm(ops, x, x, NULL, 1e-5f, n);
}

static void run_norm_onto(const struct kern_ops *ops, float *x, const float *p, const float *q,
                          size_t n)
{
    ops->norm(&(struct kern_norm_row){
        .y = x, .x = q, .gain = p, .n = n, .eps = 1e-5f, .accumulate = true});
}

static void run_layernorm(const struct kern_ops *ops, float *x, const float *p, const float *q,
                          size_t n)
{
    ops->norm(&(struct kern_norm_row){
        .y = x, .x = x, .gain = p, .bias = q, .n = n, .eps = 1e-5f, .center = true});
}

static void run_layernorm_onto(const struct kern_ops *ops, float *x, const float *p, const float *q,
                               size_t n)
{
    ops->norm(&(struct kern_norm_row){
        .y = x, .x = q, .bias = p, .n = n, .eps = 1e-5f, .center = true, .accumulate = true});
}

static void run_plain(const struct kern_ops *ops, float *x, const float *p, const float *q,
                      size_t n)
{
    ops->norm(&(struct kern_norm_row){.y = x,
                                      .x = q,
                                      .gain = n % 3 ? p : NULL,
                                      .n = n,
                                      .eps = 1e-5f,
                                      .center = n % 4 == 1,
                                      .accumulate = n % 5 > 1,
                                      .plain = true});
}

static void run_rope_adjacent(const struct kern_ops *ops, float *x, const float *p, const float *q,
                              size_t n)
{
    (void)q;
    ops->rope_adjacent(x, p, n / 2);
}

static void run_rope_halves(const struct kern_ops *ops, float *x, const float *p, const float *q,
                            size_t n)
{
    (void)q;
    ops->rope_halves(x, p, n / 2);
}

static void run_soft_cap(const struct kern_ops *ops, float *x, const float *p, const float *q,
                         size_t n)
{
    (void)p;
    (void)q;
    ops->soft_cap(x, n, 0.7f, 5.0f);
}

static void run_add_scaled(const struct kern_ops *ops, float *x, const float *p, const float *q,
                           size_t n)
{
    (void)q;
    ops->add_scaled(x, p, 0.3f, n);
}

/** A row, and where that is even two of half its length. */
static void run_add_rectified(const struct kern_ops *ops, float *x, const float *p, const float *q,
                              size_t n)
{
    size_t n_rows = n % 2 ? 1 : 2;
    ops->add_rectified(x, p, q, n / n_rows, n_rows);
}

static void run_sparsify(const struct kern_ops *ops, float *x, const float *p, const float *q,
                         size_t n)
{
    (void)p;
    (void)q;
    ops->sparsify(x, n, 0.3f, n % 2 == 0);
}

static const struct {
    const char *name;
    run_fn *run;
} kernels[] = {
    {"rmsnorm in place", run_rmsnorm},     {"rmsnorm", run_rmsnorm_apart},
    {"norm without gain", run_norm_alone}, {"norm added", run_norm_onto},
    {"layernorm", run_layernorm},          {"layernorm added", run_layernorm_onto},
    {"norm without its root", run_plain},  {"rope adjacent", run_rope_adjacent},
    {"rope halves", run_rope_halves},      {"soft cap", run_soft_cap},
    {"add_scaled", run_add_scaled},        {"sparsify", run_sparsify},
    {"add_rectified", run_add_rectified},
};
enum { N_KERNELS = sizeof kernels / sizeof kernels[0] };

/* One kernel, one length: all arrays of the variant lie before inaccessible pages. */
static void compare_once(size_t k, int isa, size_t n, size_t slack, bool wild)
{
    struct rng r = rng_open(rng_seed(), n * 64 + slack + 7 * k);
    float *expected = malloc(n * sizeof *expected);
    struct guard x = guard_open(n * sizeof(float), slack);
    struct guard p = guard_open(n * sizeof(float), slack);
    struct guard q = guard_open(n * sizeof(float), slack);
    void (*fill)(struct rng *, float *, size_t, float) = wild ? fill_wild : fill_normal;
    fill(&r, (float *)x.data, n, 8.0f);
    fill(&r, (float *)p.data, n, 1.0f);
    fill(&r, (float *)q.data, n, 1.0f);
    memcpy(expected, x.data, n * sizeof *expected);
    kernels[k].run(&kern_ops_scalar, expected, (const float *)p.data, (const float *)q.data, n);
    kernels[k].run(ops_variant(isa), (float *)x.data, (const float *)p.data, (const float *)q.data,
                   n);
    size_t i = compare_bits((const float *)x.data, expected, n);
    if (i < n) {
        fail_msg("%s, %s, length %zu, slack %zu, element %zu: %a, expected %a", kernels[k].name,
                 kern_isa_name((enum kern_isa)isa), n, slack, i, (double)((const float *)x.data)[i],
                 (double)expected[i]);
    }
    assert_true(guard_intact(&x) && guard_intact(&p) && guard_intact(&q));
    guard_close(&x);
    guard_close(&p);
    guard_close(&q);
    free(expected);
}

static void test_variants_agree(void **state)
{
    (void)state;
    for (int isa = KERN_ISA_SCALAR + 1; isa < KERN_ISA_COUNT; isa++) {
        print_message("%s: %s\n", kern_isa_name((enum kern_isa)isa),
                      ops_variant(isa) ? "compared with scalar" : "not on this machine");
        for (size_t k = 0; k < N_KERNELS && ops_variant(isa); k++) {
            for (size_t i = 0; i < N_LENGTHS; i++) {
                compare_once(k, isa, length_at(i), 0, i % 2 == 1);
                compare_once(k, isa, length_at(i), 4, i % 2 == 0);
                compare_once(k, isa, length_at(i), 12, false);
            }
        }
    }
}

/*
 * One square of 1 among squares of a few quarters of its last bit; eps takes the 1 away again.
 * What is left, and so the whole result, depends on the order in which the squares were added.
 */
static void test_rmsnorm_adds_in_the_fixed_order(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 8);
    float x[64], gain[64], expected[64], found[64];
    for (int round = 0; round < 500; round++) {
        size_t n = (size_t)16 << rng_below(&r, 3);
        for (size_t i = 0; i < n; i++) {
            x[i] = sqrtf((float)rng_below(&r, 8)) * 0x1p-27f;
            gain[i] = 1.0f;
        }
        x[rng_below(&r, n)] = 1.0f;
        rmsnorm(&kern_ops_scalar, expected, x, gain, -1.0f / (float)n, n);
        for (int isa = KERN_ISA_SCALAR + 1; isa < KERN_ISA_COUNT && ops_variant(isa); isa++) {
            rmsnorm(ops_variant(isa), found, x, gain, -1.0f / (float)n, n);
            assert_int_equal(compare_bits(found, expected, n), n);
        }
    }
}

/* inv is rounded to float and two products are: three half ulps, and a little for the double. */
static void test_rmsnorm_is_accurate(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float x[N], gain[N], y[N];
    for (size_t n = 1; n <= N; n = n * 3 + 1) {
        struct rng r = rng_open(rng_seed(), n);
        fill_normal(&r, x, n, 3.0f);
        fill_normal(&r, gain, n, 1.0f);
        rmsnorm(&kern_ops_scalar, y, x, gain, 1e-6f, n);
        long double sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum += (long double)x[i] * (long double)x[i];
        }
        long double root = sqrtl(sum / (long double)n + (long double)1e-6f);
        for (size_t i = 0; i < n; i++) {
            long double truth = (long double)x[i] / root * (long double)gain[i];
            assert_true(fabsl((long double)y[i] - truth) <= 3.01L * 0x1p-24L * fabsl(truth));
        }
    }
}

struct moments {
    long double mean, squares; /* squares: the sum of those of the distances from the mean */
};

/** Move a row far from 0, and measure it. */
static struct moments move_away(float *x, size_t n)
{
    struct moments is = {0, 0};
    for (size_t i = 0; i < n; i++) {
        x[i] += 100.0f;
        is.mean += (long double)x[i];
    }
    is.mean /= (long double)n;
    for (size_t i = 0; i < n; i++)
        is.squares += ((long double)x[i] - is.mean) * ((long double)x[i] - is.mean);
    return is;
}

/*
 * x - m is rounded to float, then come the roundings of RMSNorm and of the sum with the bias. m is
 * far from 0, so that a mean taken in float would show.
 */
static void test_layernorm_is_accurate(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float x[N], gain[N], bias[N], y[N], before[N];
    for (size_t n = 2; n <= N; n = n * 3 + 1) {
        struct rng r = rng_open(rng_seed(), n);
        fill_normal(&r, x, n, 0.1f);
        fill_normal(&r, gain, n, 1.0f);
        fill_normal(&r, bias, n, 1.0f);
        fill_normal(&r, before, n, 1.0f);
        struct moments is = move_away(x, n);
        long double root = sqrtl(is.squares / (long double)n + (long double)1e-6f);
        struct kern_norm_row row = {y, x, gain, bias, n, 1e-6f, true, false};
        kern_ops_scalar.norm(&row);
        for (size_t i = 0; i < n; i++) {
            long double d = ((long double)x[i] - is.mean) / root * (long double)gain[i];
            long double truth = d + (long double)bias[i];
            long double bound = 4.1L * 0x1p-24L * fabsl(d) + 0x1.1p-24L * fabsl(truth) + 1e-10L;
            assert_true(fabsl((long double)y[i] - truth) <= bound);
            before[i] += y[i];
        }
        row.accumulate = true;
        memcpy(y, before, n * sizeof *y);
        kern_ops_scalar.norm(&row);
        row.accumulate = false;
        row.y = x;
        kern_ops_scalar.norm(&row);
        for (size_t i = 0; i < n; i++)
            assert_true(y[i] == before[i] + x[i]);
    }
}

/* The same bits as with a gain of 1, and a bias of 0 that changes nothing but the sign of 0. */
static void test_norm_without_a_gain(void **state)
{
    (void)state;
    enum { N = 77 };
    float x[N], one[N], zero[N] = {0}, found[N], expected[N];
    struct rng r = rng_open(rng_seed(), 12);
    fill_normal(&r, x, N, 1.0f);
    for (size_t i = 0; i < N; i++)
        one[i] = 1.0f;
    for (int center = 0; center < 2; center++) {
        struct kern_norm_row row = {found, x, NULL, NULL, N, 1e-5f, center != 0, false};
        kern_ops_scalar.norm(&row);
        row = (struct kern_norm_row){expected, x, one, zero, N, 1e-5f, center != 0, false};
        kern_ops_scalar.norm(&row);
        assert_memory_equal(found, expected, sizeof found);
    }
}

/* Without the root: the product with the gain, and the sum, rounded each on its own. */
static void test_norm_without_its_root(void **state)
{
    (void)state;
    enum { N = 37 };
    float x[N], gain[N], y[N], before[N];
    struct rng r = rng_open(rng_seed(), 13);
    fill_normal(&r, x, N, 1.0f);
    fill_normal(&r, gain, N, 1.0f);
    fill_normal(&r, y, N, 1.0f);
    memcpy(before, y, sizeof y);
    struct kern_norm_row row = {y, x, gain, NULL, N, 1e-5f, false, true, true};
    kern_ops_scalar.norm(&row);
    for (size_t i = 0; i < N; i++)
        assert_true(y[i] == x[i] * gain[i] + before[i]);
}

static void test_rmsnorm_special(void **state)
{
    (void)state;
    float gain[3] = {1.0f, 2.0f, -1.0f};
    float y[3];
    rmsnorm(&kern_ops_scalar, y, (float[3]){0.0f, 0.0f, -0.0f}, gain, 1e-5f, 3);
    assert_true(y[0] == 0.0f && y[1] == 0.0f && y[2] == 0.0f);
    rmsnorm(&kern_ops_scalar, y, (float[3]){NAN, 1.0f, 1.0f}, gain, 1e-5f, 3);
    assert_true(isnan(y[0]) && isnan(y[1]) && isnan(y[2]));
    /* The squares of the largest floats do not overflow in double. */
    rmsnorm(&kern_ops_scalar, y, (float[3]){3e38f, 3e38f, 3e38f}, gain, 1e-5f, 3);
    assert_true(fabsf(y[0] - 1.0f) < 1e-6f && fabsf(y[1] - 2.0f) < 1e-6f);
}

/* What is left is rounded to float once; the threshold is far from 0, and its sums are in double.
 */
static void test_sparsify_is_accurate(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float x[N], y[N];
    for (size_t n = 1; n <= N; n = n * 3 + 1) {
        struct rng r = rng_open(rng_seed(), n);
        fill_normal(&r, x, n, 0.1f);
        struct moments is = move_away(x, n);
        for (int sample = 0; sample < 2; sample++) {
            memcpy(y, x, sizeof y);
            kern_ops_scalar.sparsify(y, n, 0.7f, sample != 0);
            long double by = (long double)(sample && n > 1 ? n - 1 : n);
            long double threshold = is.mean + (long double)0.7f * sqrtl(is.squares / by);
            for (size_t i = 0; i < n; i++) {
                long double truth = fmaxl(0.0L, (long double)x[i] - threshold);
                assert_true(fabsl((long double)y[i] - truth) <= 0x1.01p-24L * truth + 1e-12L);
            }
        }
    }
}

/* a' = fma(a, cos, -(b sin)): one rounding of the product b sin, one of the result. */
static void test_rope_is_accurate(void **state)
{
    (void)state;
    enum { PAIRS = 64, POSITIONS = 3 };
    struct rng r = rng_open(rng_seed(), 5);
    float x[2 * PAIRS], y[2 * PAIRS], z[2 * PAIRS], angles[2 * PAIRS];
    fill_normal(&r, x, 2 * PAIRS, 2.0f);
    for (size_t i = 0; i < PAIRS; i++) {
        angles[2 * i] = cosf((float)i);
        angles[2 * i + 1] = sinf((float)i);
        z[i] = x[2 * i];
        z[PAIRS + i] = x[2 * i + 1];
    }
    memcpy(y, x, sizeof y);
    kern_ops_scalar.rope_adjacent(y, angles, PAIRS);
    kern_ops_scalar.rope_halves(z, angles, PAIRS);
    for (size_t i = 0; i < PAIRS; i++) {
        long double a = (long double)x[2 * i], b = (long double)x[2 * i + 1];
        long double c = (long double)angles[2 * i], s = (long double)angles[2 * i + 1];
        long double first = a * c - b * s, second = b * c + a * s;
        assert_true(fabsl((long double)y[2 * i] - first) <=
                    0x1.01p-24L * (fabsl(b * s) + fabsl(first)));
        assert_true(fabsl((long double)y[2 * i + 1] - second) <=
                    0x1.01p-24L * (fabsl(a * s) + fabsl(second)));
        assert_true(z[i] == y[2 * i] && z[PAIRS + i] == y[2 * i + 1]);
    }
}

/* Every entry within half an ulp of the true cos and sin, but for the double's own 2^-52. */
static void test_rope_fill(void **state)
{
    (void)state;
    enum { PAIRS = 5, POSITIONS = 4099 };
    double frequency[PAIRS] = {1.0, 0.1234567890123, 1e-2, 1e-5, 0.0};
    float *table = malloc(sizeof(float) * 2 * PAIRS * POSITIONS);
    kern_rope_fill(table, 0, POSITIONS, frequency, PAIRS, 1.25);
    for (size_t position = 0; position < POSITIONS; position++) {
        for (size_t i = 0; i < PAIRS; i++) {
            long double angle = (long double)((double)position * frequency[i]);
            const float *entry = table + (position * PAIRS + i) * 2;
            long double truth[2] = {1.25L * cosl(angle), 1.25L * sinl(angle)};
            for (int k = 0; k < 2; k++) {
                long double error = fabsl((long double)entry[k] - truth[k]);
                assert_true(error <= 0x1p-24L * fabsl(truth[k]) + 0x1p-51L);
            }
        }
    }
    float part[2 * PAIRS * 3]; /* a table may be filled in pieces */
    kern_rope_fill(part, POSITIONS - 3, 3, frequency, PAIRS, 1.25);
    assert_memory_equal(part, table + (size_t)2 * PAIRS * (POSITIONS - 3), sizeof part);
    free(table);
}

/** tanh within 2.5 ulp (5 half ulps); scale, 1 / cap, the quotient and the product half an ulp
 * each. */
static void test_soft_cap_is_accurate(void **state)
{
    (void)state;
    static const float caps[] = {30.0f, 50.0f, 0.3f};
    for (float z = -400.0f; z<400.0f; z += z> - 2.0f && z < 2.0f ? 0.00037f : 0.037f) {
        for (size_t i = 0; i < 3; i++) {
            float found = z;
            kern_ops_scalar.soft_cap(&found, 1, 0.3f, caps[i]);
            long double cap = (long double)caps[i];
            long double truth = cap * tanhl((long double)z * (long double)0.3f / cap);
            if (!(fabsl((long double)found - truth) <= 9.05L * 0x1p-24L * fabsl(truth)))
                fail_msg("soft cap of %a is %a, expected %Lg", (double)z, (double)found, truth);
        }
    }
    float special[] = {INFINITY, -INFINITY, NAN, -0.0f};
    kern_ops_scalar.soft_cap(special, 4, 1.0f, 30.0f);
    assert_true(isnan(special[0]) && isnan(special[1]) && isnan(special[2]) && special[3] == 0.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants_agree),
        cmocka_unit_test(test_rmsnorm_adds_in_the_fixed_order),
        cmocka_unit_test(test_rmsnorm_is_accurate),
        cmocka_unit_test(test_layernorm_is_accurate),
        cmocka_unit_test(test_norm_without_a_gain),
        cmocka_unit_test(test_norm_without_its_root),
        cmocka_unit_test(test_rmsnorm_special),
        cmocka_unit_test(test_sparsify_is_accurate),
        cmocka_unit_test(test_rope_is_accurate),
        cmocka_unit_test(test_rope_fill),
        cmocka_unit_test(test_soft_cap_is_accurate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
