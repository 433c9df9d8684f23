/*
 * The reductions of one model's logits over the vocabulary: every ISA's variant against the
 * scalar one to the bit, the scalar one against long double within derived bounds, ranks
 * against counting, and what is promised of ties and logits that are not finite.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/kernels/ops_variants.h"

/* Everything that is reduced. */
struct scores {
    struct kern_score_lanes sums;
    struct kern_rank_lanes rank;
};

static void scores_init(struct scores *s)
{
    kern_score_lanes_init(&s->sums);
    kern_rank_lanes_init(&s->rank);
}

/* Feed a vocabulary of n rows, at most `step` rows per call. */
static void feed(const struct kern_ops *ops, struct scores *s, const float *logits, size_t stride,
                 size_t n, size_t step)
{
    for (size_t row = 0; row < n; row += step) {
        size_t rows = n - row < step ? n - row : step;
        struct kern_logit_tile tile = {logits + row * stride, stride, rows, (int32_t)row};
        ops->score_update(&s->sums, &tile, NULL);
        ops->score_rank(&s->rank, &tile);
    }
}

static void assert_lanes_equal(const struct kern_score_lanes *found,
                               const struct kern_score_lanes *expected)
{
    assert_int_equal(compare_bits(found->max, expected->max, KERN_LANES), KERN_LANES);
    assert_memory_equal(found->argmax, expected->argmax, sizeof found->argmax);
    assert_int_equal(compare_double_bits(found->sum, expected->sum, KERN_LANES), KERN_LANES);
    assert_int_equal(compare_double_bits(found->moment, expected->moment, KERN_LANES), KERN_LANES);
}

static void assert_scores_equal(const struct scores *found, const struct scores *expected)
{
    assert_lanes_equal(&found->sums, &expected->sums);
    assert_memory_equal(found->rank.above, expected->rank.above, sizeof found->rank.above);
}

/* A target per lane, some lanes without; its logit is that of the row. */
static void choose_targets(struct rng *r, struct scores *s, const float *b, size_t stride, size_t n)
{
    for (size_t i = 0; i < KERN_LANES; i++) {
        if (rng_below(r, 8) != 0) {
            s->rank.token[i] = (int32_t)rng_below(r, n);
            s->rank.logit[i] = b[(size_t)s->rank.token[i] * stride + i];
        }
    }
}

static void compare_vocabulary(int isa, size_t n, size_t extra, bool wild)
{
    struct rng r = rng_open(rng_seed(), n * 4 + extra);
    size_t stride = KERN_LANES + extra;
    size_t n_floats = (n - 1) * stride + KERN_LANES;
    struct guard b = guard_open(n_floats * sizeof(float), 4 * extra);
    (wild ? fill_wild : fill_normal)(&r, (float *)b.data, n_floats, 40.0f);
    struct scores scalar, simd, cut;
    scores_init(&scalar);
    choose_targets(&r, &scalar, (const float *)b.data, stride, n);
    simd = scalar;
    cut = scalar;
    const float *pb = (const float *)b.data;
    feed(&kern_ops_scalar, &scalar, pb, stride, n, n);
    feed(ops_variant(isa), &simd, pb, stride, n, n);
    feed(ops_variant(isa), &cut, pb, stride, n, KERN_SCORE_BLOCK * (1 + rng_below(&r, 3)));
    assert_scores_equal(&simd, &scalar);
    assert_scores_equal(&cut, &scalar);
    assert_true(guard_intact(&b));
    guard_close(&b);
}

static void test_variants_agree(void **state)
{
    (void)state;
    for (int isa = KERN_ISA_SCALAR; isa < KERN_ISA_COUNT; isa++) {
        print_message("%s: %s\n", kern_isa_name((enum kern_isa)isa),
                      ops_variant(isa) ? "compared with scalar" : "not on this machine");
        for (size_t n = 1; n <= 150 && ops_variant(isa); n += n < 70 ? 1 : 7) {
            compare_vocabulary(isa, n, n % 4, false);
            compare_vocabulary(isa, n, n % 3, true);
        }
    }
}

/* exp for every magnitude of negative arguments: a single row below a maximum of 0. */
static void test_exp_variants_over_the_range(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 77);
    for (int isa = KERN_ISA_SCALAR; isa < KERN_ISA_COUNT; isa++) {
        for (int round = 0; round < 4000 && ops_variant(isa); round++) {
            float logits[KERN_LANES];
            for (size_t i = 0; i < KERN_LANES; i++) {
                uint32_t bits = 0x80000000u | (uint32_t)rng_below(&r, 0x447a0000u);
                bits = i % 2 == 0 ? 0xbf000000u + (bits & 0x05ffffffu) : bits;
                memcpy(&logits[i], &bits, sizeof bits);
            }
            struct kern_logit_tile tile = {logits, KERN_LANES, 1, 0};
            struct kern_score_lanes expected, found;
            kern_score_lanes_init(&expected);
            memset(expected.max, 0, sizeof expected.max);
            found = expected;
            kern_ops_scalar.score_update(&expected, &tile, NULL);
            ops_variant(isa)->score_update(&found, &tile, NULL);
            assert_lanes_equal(&found, &expected);
        }
    }
}

/* What long double says of one lane. */
struct truth {
    long double max, log_sum, entropy;
};

static struct truth truth_of(const float *logits, size_t stride, size_t n)
{
    struct truth t = {.max = -(long double)INFINITY};
    long double sum = 0, moment = 0;
    for (size_t i = 0; i < n; i++)
        t.max = fmaxl(t.max, (long double)logits[i * stride]);
    for (size_t i = 0; i < n; i++) {
        long double d = (long double)logits[i * stride] - t.max;
        sum += expl(d);
        moment += expl(d) * d;
    }
    t.log_sum = logl(sum);
    t.entropy = t.log_sum - moment / sum;
    return t;
}

/*
 * Relative error of a sum of n terms in units of 2^-53: exp of a difference rounded at |d| <= D
 * gives D + 2.2, the block's additions 32, and each of the n / 32 blocks brings a fused addition
 * and a rescaling of D (once over all blocks, as the steps of the maximum add up to D) and 2.2.
 * The moment's terms have the same relative error and one sign, so its sum does too, but for
 * one more rounding per term and per block.
 */
static long double sum_error(size_t n, long double reach)
{
    long double blocks = (long double)((n + KERN_SCORE_BLOCK - 1) / KERN_SCORE_BLOCK);
    return 0x1p-53L * (2 * reach + 2.2L + KERN_SCORE_BLOCK + 1 + blocks * 4.2L);
}

struct worst {
    long double log_sum, entropy;
};

static void check_lane(struct worst *worst, const struct scores *s, const float *logits,
                       size_t lane, size_t stride, size_t n)
{
    struct truth t = truth_of(logits + lane, stride, n);
    struct kern_row_score row;
    kern_score_finish(&row, &s->sums, lane);
    assert_true((long double)row.max_logit == t.max);
    long double error = sum_error(n, 100.0L);
    long double log_error = fabsl((long double)row.log_sum - t.log_sum);
    assert_true(log_error <= error + 0x1p-52L * t.log_sum);
    long double entropy_error = fabsl((long double)row.entropy - t.entropy);
    assert_true(entropy_error <= 4 * error * (1 + fabsl(t.entropy - t.log_sum) + t.log_sum));
    worst->log_sum = fmaxl(worst->log_sum, log_error);
    worst->entropy = fmaxl(worst->entropy, entropy_error);
}

/* Logits of that spread. */
static void check_accuracy(size_t n, float spread, const char *what)
{
    struct rng r = rng_open(rng_seed(), n);
    float *logits = malloc(n * KERN_LANES * sizeof *logits);
    fill_normal(&r, logits, n * KERN_LANES, spread);
    struct scores s;
    scores_init(&s);
    feed(&kern_ops_scalar, &s, logits, KERN_LANES, n, n);
    struct worst worst = {0};
    for (size_t i = 0; i < KERN_LANES; i += 5)
        check_lane(&worst, &s, logits, i, KERN_LANES, n);
    print_message("%s, V = %zu: errors: log_sum %.2Lg, entropy %.2Lg\n", what, n, worst.log_sum,
                  worst.entropy);
    free(logits);
}

static void test_sums_are_accurate(void **state)
{
    (void)state;
    check_accuracy(1, 3.0f, "one token");
    check_accuracy(1000, 3.0f, "common");
    check_accuracy(20000, 3.0f, "large");
    check_accuracy(5000, 0.01f, "flat");
    check_accuracy(5000, 12.0f, "peaked");
}

/* Few distinct values, so that ties abound; counted by the definition. */
static void test_ranks_and_ties(void **state)
{
    (void)state;
    enum { N = 203 };
    static float b[N * KERN_LANES];
    struct rng r = rng_open(rng_seed(), 4);
    for (size_t i = 0; i < N * KERN_LANES; i++) {
        b[i] = (float)rng_below(&r, 12) - 6.0f;
    }
    for (int isa = KERN_ISA_SCALAR; isa < KERN_ISA_COUNT; isa++) {
        struct scores s;
        scores_init(&s);
        choose_targets(&r, &s, b, KERN_LANES, N);
        if (!ops_variant(isa)) {
            continue;
        }
        feed(ops_variant(isa), &s, b, KERN_LANES, N, 64);
        for (size_t i = 0; i < KERN_LANES; i++) {
            uint32_t above = 0;
            int32_t argmax = 0;
            for (int32_t row = 0; row < N; row++) {
                float l = b[(size_t)row * KERN_LANES + i];
                above += l > s.rank.logit[i] || (l == s.rank.logit[i] && row < s.rank.token[i]);
                argmax = l > b[(size_t)argmax * KERN_LANES + i] ? row : argmax;
            }
            assert_int_equal(s.rank.above[i], above);
            assert_int_equal(s.sums.argmax[i], argmax);
        }
    }
}

/* Lanes: 0 NaN, 1 +infinity, 2 only -infinity, 3 one finite at the end, 4 NaN at the start. */
static void test_logits_that_are_not_finite(void **state)
{
    (void)state;
    enum { N = 100 };
    static float b[N * KERN_LANES];
    for (size_t row = 0; row < N; row++) {
        for (size_t i = 0; i < KERN_LANES; i++) {
            b[row * KERN_LANES + i] = i == 2 || i == 3 || i == 4 ? -INFINITY : (float)row * 0.1f;
        }
    }
    b[70 * KERN_LANES] = NAN;
    b[50 * KERN_LANES + 1] = INFINITY;
    b[99 * KERN_LANES + 3] = -2.5f;
    b[4] = NAN;
    b[98 * KERN_LANES + 4] = 1.0f;
    for (int isa = KERN_ISA_SCALAR; isa < KERN_ISA_COUNT; isa++) {
        struct scores s;
        scores_init(&s);
        if (!ops_variant(isa)) {
            continue;
        }
        feed(ops_variant(isa), &s, b, KERN_LANES, N, N);
        struct kern_row_score row;
        for (size_t lane = 0; lane < 5; lane++) {
            kern_score_finish(&row, &s.sums, lane);
            assert_true(lane == 3 ? row.log_sum == 0.0 : isnan(row.log_sum));
            assert_true(lane == 3 ? row.entropy == 0.0 : isnan(row.entropy));
            static const int32_t argmax[5] = {99, 50, -1, 99, 98};
            assert_int_equal(row.argmax, argmax[lane]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants_agree),
        cmocka_unit_test(test_exp_variants_over_the_range),
        cmocka_unit_test(test_sums_are_accurate),
        cmocka_unit_test(test_ranks_and_ties),
        cmocka_unit_test(test_logits_that_are_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
