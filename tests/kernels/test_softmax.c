/*
 * Attention's softmax block by block: every ISA's variant against the scalar one to the bit,
 * the scalar one against long double, and what it promises of masks and non-finite scores.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/numerics/fmath_constants.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/kernels/ops_variants.h"

/* The running state of a group of lanes, and where its keys begin and end in this block. */
struct lanes {
    float max[KERN_LANES], sum[KERN_LANES], rescale[KERN_LANES];
    int32_t begin[KERN_LANES], end[KERN_LANES];
};

static void lanes_init(struct lanes *l)
{
    for (size_t i = 0; i < KERN_LANES; i++) {
        l->max[i] = -INFINITY;
        l->sum[i] = 0.0f;
        l->rescale[i] = NAN;
        l->begin[i] = 0;
        l->end[i] = INT32_MAX;
    }
}

static void run(const struct kern_ops *ops, struct lanes *l, float *s, size_t stride, size_t n_keys,
                float scale)
{
    struct kern_softmax_block block = {
        .s = s,
        .stride = stride,
        .n_keys = n_keys,
        .scale = scale,
        .begin = l->begin,
        .end = l->end,
        .max = l->max,
        .sum = l->sum,
        .rescale = l->rescale,
    };
    ops->softmax_block(&block);
}

/* Ranges around the block, empty ones and ones that lie outside included. */
static void random_ranges(struct rng *r, struct lanes *l, size_t n_keys)
{
    for (size_t i = 0; i < KERN_LANES; i++) {
        l->begin[i] = (int32_t)rng_below(r, n_keys + 10) - 8;
        l->end[i] = (int32_t)rng_below(r, n_keys + 20) - 4;
        if (rng_below(r, 3) == 0) {
            l->begin[i] = -(int32_t)rng_below(r, 1000);
        }
    }
}

/* Several blocks in a row, so that every branch of the running state is met. */
static void compare_blocks(int isa, size_t n_keys, size_t extra, bool wild, bool masked)
{
    struct rng r = rng_open(rng_seed(), n_keys * 8 + extra + 4u * wild + 2u * masked);
    size_t stride = KERN_LANES + extra;
    size_t n = (n_keys - 1) * stride + KERN_LANES;
    struct guard s = guard_open(n * sizeof(float), 4 * extra);
    float *expected = malloc(n * sizeof *expected);
    struct lanes scalar, simd;
    lanes_init(&scalar);
    lanes_init(&simd);
    for (int block = 0; block < 5; block++) {
        (wild ? fill_wild : fill_normal)(&r, expected, n, 20.0f);
        if (masked) {
            random_ranges(&r, &scalar, n_keys);
            memcpy(simd.begin, scalar.begin, sizeof simd.begin);
            memcpy(simd.end, scalar.end, sizeof simd.end);
        }
        memcpy(s.data, expected, n * sizeof *expected);
        run(&kern_ops_scalar, &scalar, expected, stride, n_keys, 0.37f);
        run(ops_variant(isa), &simd, (float *)s.data, stride, n_keys, 0.37f);
        assert_int_equal(compare_bits((const float *)s.data, expected, n), n);
        assert_int_equal(compare_bits(simd.max, scalar.max, KERN_LANES), KERN_LANES);
        assert_int_equal(compare_bits(simd.sum, scalar.sum, KERN_LANES), KERN_LANES);
        assert_int_equal(compare_bits(simd.rescale, scalar.rescale, KERN_LANES), KERN_LANES);
    }
    assert_true(guard_intact(&s));
    guard_close(&s);
    free(expected);
}

static void test_variants_agree(void **state)
{
    (void)state;
    for (int isa = KERN_ISA_SCALAR + 1; isa < KERN_ISA_COUNT; isa++) {
        print_message("%s: %s\n", kern_isa_name((enum kern_isa)isa),
                      ops_variant(isa) ? "compared with scalar" : "not on this machine");
        for (size_t n = 1; n <= 70 && ops_variant(isa); n++) {
            for (int kind = 0; kind < 4; kind++) {
                compare_blocks(isa, n, n % 3, (kind & 1) != 0, (kind & 2) != 0);
            }
        }
    }
}

/* exp for every magnitude of negative arguments: with a first score of 0 the rest is e^s. */
static void test_exp_variants_over_the_range(void **state)
{
    (void)state;
    enum { KEYS = 4096 };
    enum { N = KEYS * KERN_LANES };
    static float expected[N], found[N];
    struct rng r = rng_open(rng_seed(), 99);
    for (int isa = KERN_ISA_SCALAR; isa < KERN_ISA_COUNT; isa++) {
        for (int round = 0; round < 16 && ops_variant(isa); round++) {
            for (size_t i = 0; i < N; i++) {
                uint32_t bits = 0x80000000u | (uint32_t)rng_below(&r, 0x43000000u);
                bits = i % 2 == 0 ? 0xc0000000u | (bits & 0x03ffffffu) : bits;
                memcpy(&expected[i], &bits, sizeof bits);
            }
            /* Where results turn to 0, and its neighbours. */
            expected[KERN_LANES] = FMATH_EXP_F32_MIN;
            expected[KERN_LANES + 1] = nextafterf(FMATH_EXP_F32_MIN, 0.0f);
            expected[KERN_LANES + 2] = nextafterf(FMATH_EXP_F32_MIN, -INFINITY);
            memset(expected, 0, KERN_LANES * sizeof *expected);
            memcpy(found, expected, sizeof found);
            struct lanes a, b;
            lanes_init(&a);
            lanes_init(&b);
            run(&kern_ops_scalar, &a, expected, KERN_LANES, KEYS, 1.0f);
            run(ops_variant(isa), &b, found, KERN_LANES, KEYS, 1.0f);
            assert_int_equal(compare_bits(found, expected, N), N);
        }
    }
}

/*
 * Weights p / sum of one lane over several blocks against long double. Relative error of a
 * weight, in units of 2^-24, with D the distance of the lowest score from the maximum: the
 * roundings of s - max and of the steps of the maximum add up to D at most, exp adds 2.02, and
 * each rescaling 3.02 with its product. The sum adds as much again, and one per addition.
 */
static void check_weights(uint64_t stream, size_t n_blocks)
{
    enum { MAX_BLOCKS = 6 };
    static float s[MAX_BLOCKS * KERN_KEY_BLOCK][KERN_LANES], p[KERN_KEY_BLOCK * KERN_LANES];
    static double weight[MAX_BLOCKS * KERN_KEY_BLOCK][KERN_LANES];
    struct rng r = rng_open(rng_seed(), stream);
    struct lanes l;
    lanes_init(&l);
    const float scale = 0.25f; /* exact */
    for (size_t b = 0; b < n_blocks; b++) {
        size_t first = b * KERN_KEY_BLOCK;
        fill_normal(&r, p, KERN_KEY_BLOCK * KERN_LANES, 16.0f);
        memcpy(s[first], p, sizeof p);
        run(&kern_ops_scalar, &l, p, KERN_LANES, KERN_KEY_BLOCK, scale);
        for (size_t i = 0; i < KERN_LANES; i++) {
            for (size_t j = 0; j < first; j++) {
                weight[j][i] *= (double)l.rescale[i];
            }
            for (size_t j = 0; j < KERN_KEY_BLOCK; j++) {
                weight[first + j][i] = (double)p[j * KERN_LANES + i];
            }
        }
    }
    for (size_t i = 0; i < KERN_LANES; i++) {
        long double sum = 0;
        long double distance = 0;
        for (size_t j = 0; j < n_blocks * KERN_KEY_BLOCK; j++) {
            long double gap = (long double)s[j][i] * 0.25L - (long double)l.max[i];
            sum += expl(gap);
            distance = fmaxl(distance, -gap);
        }
        long double blocks = (long double)n_blocks;
        long double bound = 2 * (distance + 2.02L + 3.02L * blocks) + KERN_KEY_BLOCK + blocks;
        for (size_t j = 0; j < n_blocks * KERN_KEY_BLOCK; j++) {
            long double gap = (long double)s[j][i] * 0.25L - (long double)l.max[i];
            long double truth = expl(gap) / sum;
            long double found = (long double)weight[j][i] / (long double)l.sum[i];
            assert_true(fabsl(found - truth) <= 0x1p-24L * bound * truth);
        }
    }
}

static void test_weights_are_accurate(void **state)
{
    (void)state;
    for (uint64_t stream = 0; stream < 20; stream++) {
        check_weights(stream, stream % 6 + 1);
    }
}

/* Hidden keys get 0 and leave no trace, whatever they hold. */
static void test_hidden_keys_do_not_count(void **state)
{
    (void)state;
    for (int isa = KERN_ISA_SCALAR; isa < KERN_ISA_COUNT; isa++) {
        if (!ops_variant(isa)) {
            continue;
        }
        float s[3][KERN_LANES];
        struct lanes l;
        lanes_init(&l);
        for (size_t i = 0; i < KERN_LANES; i++) {
            s[0][i] = 1.0f;
            s[1][i] = i % 2 == 0 ? NAN : INFINITY;
            s[2][i] = 1.0f;
            l.begin[i] = i < 8 ? -5 : 2;
            l.end[i] = i < 8 ? 1 : 100;
        }
        run(ops_variant(isa), &l, s[0], KERN_LANES, 3, 2.0f);
        for (size_t i = 0; i < KERN_LANES; i++) {
            assert_true(s[0][i] == (i < 8 ? 1.0f : 0.0f) && s[2][i] == (i < 8 ? 0.0f : 1.0f));
            assert_true(s[1][i] == 0.0f && l.sum[i] == 1.0f && l.max[i] == 2.0f);
            assert_true(l.rescale[i] == 1.0f);
            l.begin[i] = 3;
        }
        run(ops_variant(isa), &l, s[0], KERN_LANES, 3, 2.0f); /* sees nothing: no change */
        for (size_t i = 0; i < KERN_LANES; i++) {
            assert_true(s[0][i] == 0.0f && s[1][i] == 0.0f && s[2][i] == 0.0f);
            assert_true(l.sum[i] == 1.0f && l.max[i] == 2.0f && l.rescale[i] == 1.0f);
        }
    }
}

static void test_special_scores(void **state)
{
    (void)state;
    for (int isa = KERN_ISA_SCALAR; isa < KERN_ISA_COUNT; isa++) {
        if (!ops_variant(isa)) {
            continue;
        }
        float s[2][KERN_LANES];
        struct lanes l;
        lanes_init(&l);
        for (size_t i = 0; i < KERN_LANES; i++) {
            static const float first[4] = {-INFINITY, NAN, INFINITY, 1.0f};
            s[0][i] = first[i % 4];
            s[1][i] = i % 4 == 3 ? 1.0f : -INFINITY;
        }
        run(ops_variant(isa), &l, s[0], KERN_LANES, 2, 1.0f);
        assert_true(l.sum[0] == 0.0f && s[0][0] == 0.0f && l.rescale[0] == 1.0f);
        assert_true(isnan(l.sum[1]) && isnan(l.sum[2]));
        assert_true(l.sum[3] == 2.0f && s[0][3] == 1.0f && s[1][3] == 1.0f);
        for (size_t i = 0; i < KERN_LANES; i++) {
            s[0][i] = 3.0f;
        }
        run(ops_variant(isa), &l, s[0], KERN_LANES, 1, 1.0f);
        assert_true(l.sum[0] == 1.0f && l.max[0] == 3.0f); /* -infinity only, then a score */
        assert_true(isnan(l.sum[1]) && isnan(l.sum[2]));   /* once NaN, NaN for good */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants_agree),
        cmocka_unit_test(test_exp_variants_over_the_range),
        cmocka_unit_test(test_weights_are_accurate),
        cmocka_unit_test(test_hidden_keys_do_not_count),
        cmocka_unit_test(test_special_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
