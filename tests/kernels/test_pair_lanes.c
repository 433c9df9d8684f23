/*
 * The reductions of two models' logits: every ISA's variant against the scalar one to the bit,
 * the scalar one against long double within derived bounds, the most likely tokens against
 * sorting, and what is promised of equal models, ties, tokens without probability and logits
 * that are not finite.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/kernels/ops_variants.h"

/* Everything that is reduced over two models' logits. */
struct pair {
    struct kern_score_lanes base, other;
    struct kern_top_lanes base_top, other_top;
    struct kern_pair_lanes sums;
    struct kern_js_lanes js;
};

/* Logits of two models: n tokens, lanes side by side. */
struct logits {
    const float *a, *b;
    size_t stride, n;
};

static struct kern_logit_tile rows_of(const float *logits, const struct logits *l, size_t row,
                                      size_t most)
{
    size_t n = l->n - row < most ? l->n - row : most;
    return (struct kern_logit_tile){logits + row * l->stride, l->stride, n, (int32_t)row};
}

static double shift_of(const struct kern_score_lanes *sums, size_t lane)
{
    struct kern_row_score score;
    kern_score_finish(&score, sums, lane);
    return score.max_logit + score.log_sum;
}

/* Feed everything, blocks to the pair, and at most `step` rows per call to what takes more. */
static void feed(const struct kern_ops *ops, struct pair *p, const struct logits *l, double cut,
                 size_t step)
{
    kern_score_lanes_init(&p->base);
    kern_score_lanes_init(&p->other);
    kern_top_lanes_init(&p->base_top);
    kern_top_lanes_init(&p->other_top);
    kern_pair_lanes_init(&p->sums);
    for (size_t row = 0; row < l->n; row += KERN_SCORE_BLOCK) {
        struct kern_logit_tile a = rows_of(l->a, l, row, KERN_SCORE_BLOCK);
        struct kern_logit_tile b = rows_of(l->b, l, row, KERN_SCORE_BLOCK);
        struct kern_block_exps a_exps, b_exps;
        ops->score_update(&p->base, &a, &a_exps);
        ops->score_update(&p->other, &b, &b_exps);
        struct kern_pair_block block = {&a, &b, &a_exps, &b_exps, cut};
        ops->score_pair(&p->sums, &block);
    }
    for (size_t lane = 0; lane < KERN_LANES; lane++) {
        p->js.base_shift[lane] = shift_of(&p->base, lane);
        p->js.other_shift[lane] = shift_of(&p->other, lane);
        p->js.sum[lane] = p->js.distance[lane] = 0.0;
    }
    for (size_t row = 0; row < l->n; row += step) {
        struct kern_logit_tile a = rows_of(l->a, l, row, step), b = rows_of(l->b, l, row, step);
        ops->score_top(&p->base_top, &a);
        ops->score_top(&p->other_top, &b);
        ops->score_js(&p->js, &a, &b);
    }
}

static struct kern_pair_score finish(const struct pair *p, size_t lane, bool stored)
{
    struct kern_pair_sums sums = {.pair = &p->sums,
                                  .base = &p->base,
                                  .other = &p->other,
                                  .base_top = &p->base_top,
                                  .other_top = &p->other_top,
                                  .stored = stored};
    struct kern_pair_score score;
    kern_pair_finish(&score, &sums, lane);
    kern_js_finish(&score, &p->js, lane);
    return score;
}

static void assert_doubles_equal(const double *found, const double *expected)
{
    assert_int_equal(compare_double_bits(found, expected, KERN_LANES), KERN_LANES);
}

static void assert_pair_equal(const struct pair *found, const struct pair *expected)
{
    assert_doubles_equal(found->base.sum, expected->base.sum);
    assert_doubles_equal(found->other.moment, expected->other.moment);
    assert_doubles_equal(found->sums.cross, expected->sums.cross);
    assert_doubles_equal(found->sums.mass, expected->sums.mass);
    assert_doubles_equal(found->sums.reverse, expected->sums.reverse);
    assert_doubles_equal(found->js.sum, expected->js.sum);
    assert_doubles_equal(found->js.distance, expected->js.distance);
    assert_memory_equal(&found->base_top, &expected->base_top, sizeof found->base_top);
    assert_memory_equal(&found->other_top, &expected->other_top, sizeof found->other_top);
}

static void compare_vocabulary(int isa, size_t n, size_t extra, bool wild)
{
    struct rng r = rng_open(rng_seed(), n * 4 + extra);
    size_t stride = KERN_LANES + extra;
    size_t n_floats = (n - 1) * stride + KERN_LANES;
    struct guard a = guard_open(n_floats * sizeof(float), 4 * extra);
    struct guard b = guard_open(n_floats * sizeof(float), 4 * extra);
    float *pa = (float *)a.data, *pb = (float *)b.data;
    (wild ? fill_wild : fill_normal)(&r, pa, n_floats, 5.0f);
    (wild ? fill_wild : fill_normal)(&r, pb, n_floats, 40.0f);
    for (size_t i = 0; i < n_floats; i += 2) /* equal and nearly equal ones, too */
        pb[i] = pa[i] * (1.0f + 1e-3f * (float)(i % 3));
    struct logits l = {pa, pb, stride, n};
    double cut = n % 2 == 0 ? -2.0 : -(double)INFINITY;
    static struct pair scalar, simd, pieces;
    feed(&kern_ops_scalar, &scalar, &l, cut, n);
    feed(ops_variant(isa), &simd, &l, cut, n);
    feed(ops_variant(isa), &pieces, &l, cut, KERN_SCORE_BLOCK * (1 + rng_below(&r, 3)));
    assert_pair_equal(&simd, &scalar);
    assert_pair_equal(&pieces, &scalar);
    assert_true(guard_intact(&a) && guard_intact(&b));
    guard_close(&a);
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

/* What long double says of one lane. */
struct truth {
    long double kl, reverse_kl, js, distance; /* distance: total variation */
    long double reach, reverse_reach;         /* sums of magnitudes of the divergences' terms */
};

static long double log_normaliser(const float *logits, size_t stride, size_t n)
{
    long double max = -(long double)INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        max = fmaxl(max, (long double)logits[i * stride]);
    for (size_t i = 0; i < n; i++)
        sum += expl((long double)logits[i * stride] - max);
    return max + logl(sum);
}

static struct truth truth_of(const struct logits *l, size_t lane)
{
    struct truth t = {0};
    long double shift_a = log_normaliser(l->a + lane, l->stride, l->n);
    long double shift_b = log_normaliser(l->b + lane, l->stride, l->n);
    for (size_t i = 0; i < l->n; i++) {
        long double log_p = (long double)l->a[i * l->stride + lane] - shift_a;
        long double log_q = (long double)l->b[i * l->stride + lane] - shift_b;
        long double d = log_p - log_q, p = expl(log_p), q = expl(log_q);
        /* p (ln p/q - 1 + q/p) is never negative, so nearly equal models do not cancel. */
        t.kl += p * (d + expm1l(-d));
        t.reverse_kl += q * (-d + expm1l(d));
        /* (1 + r) ln(1 + r) + (1 - r) ln(1 - r) with r = |p - q| / (p + q) */
        long double r = tanhl(fabsl(d) / 2), rest = 2 * expl(-fabsl(d)) / (1 + expl(-fabsl(d)));
        t.js += (p + q) / 4 * ((1 + r) * log1pl(r) + (rest > 0 ? rest * logl(rest) : 0));
        t.distance += fabsl(p - q) / 2;
        t.reach += p * fabsl(d + shift_a - shift_b);
        t.reverse_reach += q * fabsl(d + shift_a - shift_b);
    }
    return t;
}

/*
 * Relative error of a sum of exponentials, as in test_score_lanes.c, for differences below 100.
 */
static long double sum_error(size_t n)
{
    long double blocks = (long double)((n + KERN_SCORE_BLOCK - 1) / KERN_SCORE_BLOCK);
    return 0x1p-53L * (2 * 100 + 2.2L + KERN_SCORE_BLOCK + 1 + blocks * 4.2L);
}

/*
 * A divergence is a sum of weighted gaps plus the gap of the normalisers: the weights have the
 * relative error of the sums, the normalisers the same absolute one. For Jensen-Shannon the
 * same error of the log-probabilities, and so of d, moves m f(t) by its share of itself and by
 * m t as much; the sum of m t is the distance. Its n additions are of terms of one sign. An error
 * of d moves m t by m / 2 of itself at most, so the distance by as much, the sum of m being 1.
 */
static void check_lane(struct truth *worst, const struct pair *p, const struct logits *l,
                       size_t lane)
{
    struct truth t = truth_of(l, lane);
    struct kern_pair_score found = finish(p, lane, false);
    long double error = sum_error(l->n);
    long double gap = fabsl((long double)p->base.max[lane] - (long double)p->other.max[lane]);
    long double kl = fabsl((long double)found.kl - t.kl);
    long double reverse = fabsl((long double)found.reverse_kl - t.reverse_kl);
    long double js = fabsl((long double)found.js - t.js);
    assert_true(found.kl >= 0 && kl <= 4 * error * (1 + t.reach + gap));
    assert_true(found.reverse_kl >= 0 && reverse <= 4 * error * (1 + t.reverse_reach + gap));
    long double relative = 8 * error + 0x1p-53L * (long double)l->n;
    assert_true(found.js >= 0 && js <= relative * t.js + 4 * error * t.distance);
    long double distance = fabsl((long double)found.tv - t.distance);
    assert_true(found.tv >= 0 && found.tv <= 1);
    assert_true(distance <= relative * t.distance + 4 * error);
    worst->distance = fmaxl(worst->distance, distance);
    worst->kl = fmaxl(worst->kl, kl);
    worst->reverse_kl = fmaxl(worst->reverse_kl, reverse);
    worst->js = fmaxl(worst->js, js);
}

/* A base with logits of that spread, another model off by noise of that size. */
static void check_accuracy(size_t n, float spread, float noise, const char *what)
{
    struct rng r = rng_open(rng_seed(), n);
    float *a = malloc(n * KERN_LANES * sizeof *a);
    float *b = malloc(n * KERN_LANES * sizeof *b);
    fill_normal(&r, a, n * KERN_LANES, spread);
    for (size_t i = 0; i < n * KERN_LANES; i++)
        b[i] = a[i] + rng_normal(&r) * noise;
    struct logits l = {a, b, KERN_LANES, n};
    static struct pair p;
    feed(&kern_ops_scalar, &p, &l, -(double)INFINITY, n);
    struct truth worst = {0};
    for (size_t i = 0; i < KERN_LANES; i += 5)
        check_lane(&worst, &p, &l, i);
    struct kern_pair_score score = finish(&p, 0, false);
    print_message("%s, V = %zu: KL about %.3g, JS %.3g, TV %.3g; errors: %.2Lg, reverse %.2Lg, "
                  "JS %.2Lg, TV %.2Lg\n",
                  what, n, score.kl, score.js, score.tv, worst.kl, worst.reverse_kl, worst.js,
                  worst.distance);
    free(a);
    free(b);
}

static void test_sums_are_accurate(void **state)
{
    (void)state;
    check_accuracy(1, 3.0f, 0.1f, "one token");
    check_accuracy(1000, 3.0f, 0.1f, "common");
    check_accuracy(20000, 3.0f, 4.5e-5f, "nearly equal");
    check_accuracy(20000, 3.0f, 1.0f, "far apart");
    check_accuracy(5000, 0.01f, 1e-4f, "flat");
    check_accuracy(5000, 12.0f, 0.5f, "peaked");
    check_accuracy(2000, 12.0f, 20.0f, "unlike");
}

static void test_equal_models_have_no_divergence(void **state)
{
    (void)state;
    enum { N = 777 };
    static float a[N * KERN_LANES];
    static struct pair p;
    struct rng r = rng_open(rng_seed(), 3);
    fill_normal(&r, a, N * KERN_LANES, 4.0f);
    a[5 * KERN_LANES + 1] = -INFINITY;
    struct logits l = {a, a, KERN_LANES, N};
    feed(&kern_ops_scalar, &p, &l, -(double)INFINITY, N);
    for (size_t i = 0; i < KERN_LANES; i++) {
        struct kern_pair_score score = finish(&p, i, false);
        assert_true(score.kl == 0.0 && !signbit(score.kl));
        assert_true(score.reverse_kl == 0.0 && !signbit(score.reverse_kl));
        assert_true(score.js == 0.0 && !signbit(score.js));
        assert_true(score.tv == 0.0 && !signbit(score.tv));
        static const uint8_t all[KERN_N_TOPS] = {1, 5, 10};
        assert_memory_equal(score.common_top, all, sizeof all);
    }
}

/* One logit off by its last bit: about 1e-15, and never below 0, whatever rounding does. */
static void test_divergence_is_not_negative(void **state)
{
    (void)state;
    enum { N = 500 };
    static float a[N * KERN_LANES], b[N * KERN_LANES];
    static struct pair p;
    struct rng r = rng_open(rng_seed(), 6);
    struct logits l = {a, b, KERN_LANES, N};
    for (int round = 0; round < 20; round++) {
        fill_normal(&r, a, N * KERN_LANES, 4.0f);
        memcpy(b, a, sizeof b);
        for (size_t i = 0; i < KERN_LANES; i++) {
            size_t at = rng_below(&r, N) * KERN_LANES + i;
            b[at] = nextafterf(b[at], INFINITY);
        }
        feed(&kern_ops_scalar, &p, &l, -(double)INFINITY, N);
        for (size_t i = 0; i < KERN_LANES; i++) {
            struct kern_pair_score score = finish(&p, i, false);
            assert_true(score.kl >= 0.0 && score.kl < 1e-12);
            assert_true(score.reverse_kl >= 0.0 && score.reverse_kl < 1e-12);
            assert_true(score.js >= 0.0 && score.js < 1e-12);
        }
    }
}

struct ranked {
    float logit;
    int32_t token;
};

static int better(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    if (a->logit != b->logit)
        return a->logit > b->logit ? -1 : 1;
    return a->token < b->token ? -1 : 1;
}

/* The list of a lane by sorting what has a probability. */
static size_t sort_lane(struct ranked *out, const float *logits, size_t n)
{
    size_t n_ranked = 0;
    for (size_t i = 0; i < n; i++) {
        float l = logits[i * KERN_LANES];
        if (l > -INFINITY)
            out[n_ranked++] = (struct ranked){l, (int32_t)i};
    }
    qsort(out, n_ranked, sizeof *out, better);
    return n_ranked;
}

/* Few distinct values, so that ties abound; vocabularies shorter than the list, too. */
static void test_most_likely_tokens(void **state)
{
    (void)state;
    enum { N = 203 };
    static float a[N * KERN_LANES], b[N * KERN_LANES];
    static struct ranked top[2][N];
    static struct pair p;
    struct rng r = rng_open(rng_seed(), 4);
    for (size_t n = 1; n <= N; n += n < 40 ? 1 : 54) {
        for (size_t i = 0; i < n * KERN_LANES; i++) {
            a[i] = (float)rng_below(&r, 40) - 6.0f;
            b[i] = rng_below(&r, 2) ? a[i] : (float)rng_below(&r, 40) - 6.0f;
            a[i] = rng_below(&r, 9) ? a[i] : -INFINITY;
        }
        struct logits l = {a, b, KERN_LANES, n};
        feed(ops_variant((int)kern_isa_detect()), &p, &l, -(double)INFINITY, 64);
        for (size_t lane = 0; lane < KERN_LANES; lane++) {
            static const size_t sizes[KERN_N_TOPS] = {1, 5, 10};
            size_t n_a = sort_lane(top[0], a + lane, n), n_b = sort_lane(top[1], b + lane, n);
            struct kern_pair_score score = finish(&p, lane, false);
            for (size_t k = 0; k < KERN_N_TOPS && n_a > 0; k++) {
                size_t n_common = 0;
                for (size_t i = 0; i < sizes[k] && i < n_a; i++) {
                    for (size_t j = 0; j < sizes[k] && j < n_b; j++)
                        n_common += top[0][i].token == top[1][j].token;
                }
                assert_int_equal(score.common_top[k], n_common);
            }
            for (size_t i = 0; i < KERN_TOP_MAX; i++)
                assert_int_equal(p.base_top.token[i][lane], i < n_a ? top[0][i].token : -1);
        }
    }
}

/* Lanes: 0 NaN, 1 +infinity, 2 only -infinity, 3 one finite at the end, 4 NaN at the start. */
static void test_logits_that_are_not_finite(void **state)
{
    (void)state;
    enum { N = 100 };
    static float good[N * KERN_LANES], bad[N * KERN_LANES];
    static struct pair p;
    for (size_t row = 0; row < N; row++) {
        for (size_t i = 0; i < KERN_LANES; i++) {
            good[row * KERN_LANES + i] = (float)row * 0.1f;
            bad[row * KERN_LANES + i] = i >= 2 && i <= 4 ? -INFINITY : (float)row * 0.1f;
        }
    }
    bad[70 * KERN_LANES] = NAN;
    bad[50 * KERN_LANES + 1] = INFINITY;
    bad[99 * KERN_LANES + 3] = -2.5f;
    bad[4] = NAN;
    bad[98 * KERN_LANES + 4] = 1.0f;
    const struct logits cases[] = {
        {bad, bad, KERN_LANES, N}, {bad, good, KERN_LANES, N}, {good, bad, KERN_LANES, N}};
    for (int i = 0; i < 3 * KERN_ISA_COUNT; i++) {
        if (!ops_variant(i / 3))
            continue;
        feed(ops_variant(i / 3), &p, &cases[i % 3], -(double)INFINITY, N);
        for (size_t lane = 0; lane < 5; lane++) {
            struct kern_pair_score live = finish(&p, lane, false), stored = finish(&p, lane, true);
            bool is_bad = lane != 3;
            assert_true(isnan(live.kl) == is_bad && isnan(live.reverse_kl) == is_bad);
            assert_true(isnan(stored.kl) == is_bad && isnan(stored.reverse_kl) == is_bad);
            assert_true(isnan(live.js) == is_bad && isnan(live.tv) == is_bad);
            assert_true(live.common_top[2] == (is_bad ? 0 : 1));
        }
    }
}

/*
 * Even lanes: p = (0.6.., 0.3..) against q = (1, 0); odd lanes: p = (1, 0) against q = (1/2, 1/2).
 * What the other finds impossible makes a divergence infinite, not NaN; Jensen-Shannon stays
 * finite: of (1, 0) and (1/2, 1/2) it is (3/4) ln(4/3), and of (1, 0) and (0, 1) it is ln 2. The
 * total variation of these is 1/2 and 1; that of the even lanes is what q lacks, 0.3..
 */
static void test_impossible_tokens(void **state)
{
    (void)state;
    static struct pair p;
    for (int isa = KERN_ISA_SCALAR; isa < KERN_ISA_COUNT; isa++) {
        if (!ops_variant(isa))
            continue;
        float a[2 * KERN_LANES], b[2 * KERN_LANES];
        for (size_t i = 0; i < KERN_LANES; i++) {
            a[i] = 1.0f;
            b[i] = i == 15 ? -INFINITY : 2.0f;
            a[KERN_LANES + i] = i % 2 == 0 ? 0.5f : -INFINITY;
            b[KERN_LANES + i] = i % 2 == 0 ? -INFINITY : 2.0f;
        }
        struct logits l = {a, b, KERN_LANES, 2};
        feed(ops_variant(isa), &p, &l, -(double)INFINITY, 2);
        for (size_t i = 0; i < 15; i++) {
            struct kern_pair_score score = finish(&p, i, false);
            const double infinity = (double)INFINITY;
            assert_true(i % 2 == 0 ? score.kl == infinity : fabs(score.kl - log(2.0)) < 1e-15);
            assert_true(i % 2 == 1 ? score.reverse_kl == infinity
                                   : fabs(score.reverse_kl - log1p(exp(-0.5))) < 1e-15);
            if (i % 2 == 1)
                assert_true(fabs(score.js - (0.75 * log(4.0 / 3.0))) < 1e-15);
            assert_true(fabs(score.tv - (i % 2 == 1 ? 0.5 : 1 / (1 + exp(0.5)))) < 1e-15);
            assert_int_equal(score.common_top[0], 1);
            assert_int_equal(score.common_top[1], 1);
        }
        struct kern_pair_score apart = finish(&p, 15, false);
        assert_true(apart.kl == (double)INFINITY && apart.reverse_kl == (double)INFINITY);
        assert_true(fabs(apart.js - log(2.0)) < 1e-15 && apart.common_top[2] == 0);
        assert_true(apart.tv == 1.0);
    }
}

/* A stored base: as it is, not renormalised, and what is cut is left out of kl alone. */
static void test_stored_base(void **state)
{
    (void)state;
    enum { N = 300 };
    static float a[N * KERN_LANES], b[N * KERN_LANES];
    static struct pair p;
    struct rng r = rng_open(rng_seed(), 8);
    fill_normal(&r, a, N * KERN_LANES, 2.0f);
    fill_normal(&r, b, N * KERN_LANES, 2.0f);
    for (size_t i = 0; i < N * KERN_LANES; i++)
        a[i] -= 8.0f;
    struct logits l = {a, b, KERN_LANES, N};
    for (int round = 0; round < 2; round++) {
        double cut = round == 0 ? -(double)INFINITY : -9.0;
        feed(&kern_ops_scalar, &p, &l, cut, N);
        for (size_t lane = 0; lane < KERN_LANES; lane++) {
            long double kl = 0, reverse = 0, magnitude = 0;
            long double shift = log_normaliser(b + lane, KERN_LANES, N);
            for (size_t i = 0; i < N; i++) {
                long double log_p = (long double)a[i * KERN_LANES + lane];
                long double log_q = (long double)b[i * KERN_LANES + lane] - shift;
                kl += log_p > (long double)cut ? expl(log_p) * (log_p - log_q) : 0;
                reverse += expl(log_q) * (log_q - log_p);
                magnitude += (expl(log_p) + expl(log_q)) * (fabsl(log_p) + fabsl(log_q) + 20);
            }
            struct kern_pair_score score = finish(&p, lane, true);
            long double bound = 4 * sum_error(N) * (1 + magnitude);
            assert_true(fabsl((long double)score.kl - kl) <= bound);
            assert_true(fabsl((long double)score.reverse_kl - reverse) <= bound);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants_agree),
        cmocka_unit_test(test_sums_are_accurate),
        cmocka_unit_test(test_equal_models_have_no_divergence),
        cmocka_unit_test(test_divergence_is_not_negative),
        cmocka_unit_test(test_most_likely_tokens),
        cmocka_unit_test(test_logits_that_are_not_finite),
        cmocka_unit_test(test_impossible_tokens),
        cmocka_unit_test(test_stored_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
