/*
 * What a cache holds of numbers (kern_round()): of each type, as they are and turned, by the
 * definition of the turn, and the same bits for every ISA and number of threads.
 */
#include <math.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/operations.h"
#include "kernels/quant/round.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/cpu_backend.h"
#include "tests/kernels/nearest_small.h"
#include "tests/kernels/ops_variants.h"

enum { ROUND_N = 9 * 1024, ROUND_TURN = 128, ROUND_ROW = 96 };

static void turn_by_definition(double *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = 0;
        for (size_t j = 0; j < n; j++)
            y[i] += (__builtin_popcountll(i & j) % 2 ? -1 : 1) * (double)x[j] / sqrt((double)n);
    }
}

static void check_turned(const float *x, const float *found, enum gguf_type type)
{
    for (size_t i = 0; i < ROUND_N; i += ROUND_TURN) {
        double turned[ROUND_TURN], expected[ROUND_TURN];
        float rounded[ROUND_TURN];
        turn_by_definition(turned, x + i, ROUND_TURN);
        for (size_t k = 0; k < ROUND_TURN; k++)
            rounded[k] = (float)turned[k];
        for (size_t k = 0; k < ROUND_TURN; k += KERN_PACK_ELEMS)
            kern_round_numbers(type, rounded + k, KERN_PACK_ELEMS);
        turn_by_definition(expected, rounded, ROUND_TURN);
        for (size_t k = 0; k < ROUND_TURN; k++) /* a code may differ, where halfway was near */
            assert_true(fabs((double)found[i + k] - expected[k]) < 0.12);
    }
}

static void run_scaled(int isa, unsigned n_threads, struct kern_round op, const float *x, float *y)
{
    struct kern_backend *b = backend_open(isa, n_threads);
    op.x = y;
    op.n = ROUND_N;
    op.row = ROUND_ROW;
    memcpy(y, x, ROUND_N * sizeof *y);
    assert_int_equal(kern_round(b, &op, NULL), STATUS_OK);
    kern_close(b);
}

static void run(int isa, unsigned n_threads, enum gguf_type type, size_t n_turn, const float *x,
                float *y)
{
    run_scaled(isa, n_threads, (struct kern_round){.type = type, .n_turn = n_turn}, x, y);
}

#define ID(TYPE, name) GGUF_TYPE_##TYPE,
static const enum gguf_type types[] = {KERN_ROUND_TYPES(ID)};

/** By blocks; Q8_KV by rows. */
static void round_by_definition(enum gguf_type type, float *x)
{
    bool rows = type == GGUF_TYPE_Q8_KV;
    size_t n = rows ? ROUND_ROW : kern_round_step(type);
    for (size_t k = 0; k < ROUND_N; k += n)
        if (rows)
            kern_round_q8_kv(x + k, n);
        else
            kern_round_numbers(type, x + k, n);
}

static void test_by_definition(void **state)
{
    (void)state;
    static float x[ROUND_N], expected[ROUND_N], plain[ROUND_N], turned[ROUND_N];
    struct rng r = rng_open(rng_seed(), 19);
    fill_normal(&r, x, ROUND_N, 2.0f);
    for (size_t i = 1; i < sizeof types / sizeof *types; i++) {
        run(KERN_ISA_SCALAR, 1, types[i], 0, x, plain);
        memcpy(expected, x, sizeof expected);
        round_by_definition(types[i], expected);
        assert_memory_equal(plain, expected, sizeof expected);
        if (!kern_round_is_turned(types[i]))
            continue;
        run(KERN_ISA_SCALAR, 1, types[i], ROUND_TURN, x, turned);
        check_turned(x, turned, types[i]);
    }
    run(KERN_ISA_SCALAR, 1, GGUF_TYPE_F32, ROUND_TURN, x, turned);
    assert_memory_equal(turned, x, sizeof x);
}

static void test_same_bits_for_any_isa_and_threads(void **state)
{
    (void)state;
    static float x[ROUND_N], expected[ROUND_N], found[ROUND_N];
    struct rng r = rng_open(rng_seed(), 20);
    fill_normal(&r, x, ROUND_N, 2.0f);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t most = kern_round_is_turned(types[i]) ? KERN_TURN_MAX : 0;
        for (size_t n_turn = 0; n_turn <= most; n_turn += n_turn ? n_turn : 64) {
            run(KERN_ISA_SCALAR, 1, types[i], n_turn, x, expected);
            for (unsigned n_threads = 1; n_threads < 4; n_threads++) {
                run((int)kern_isa_detect(), n_threads, types[i], n_turn, x, found);
                assert_int_equal(compare_bits(found, expected, ROUND_N), ROUND_N);
            }
        }
    }
}

/** One scale for all numbers: what is divided is rounded to float32, as engines have it. */
static void test_scaled_floats(void **state)
{
    (void)state;
    static float x[ROUND_N], y[ROUND_N], other[ROUND_N];
    struct rng r = rng_open(rng_seed(), 21);
    fill_normal(&r, x, ROUND_N, 2.0f);
    static const float scales[] = {1.0f, 0.02f, 0x1p-5f, 3.0f, 1e-4f, 1e30f};
    for (size_t i = 0; i < 2 * sizeof scales / sizeof *scales; i++) {
        enum gguf_type type = i % 2 ? GGUF_TYPE_F8_E5M2 : GGUF_TYPE_F8_E4M3;
        float s = scales[i / 2];
        struct kern_round op = {.type = type, .scale = s};
        run_scaled(KERN_ISA_SCALAR, 1, op, x, y);
        run_scaled((int)kern_isa_detect(), 3, op, x, other);
        assert_int_equal(compare_bits(other, y, ROUND_N), ROUND_N);
        for (size_t k = 0; k < ROUND_N; k++) {
            double ratio = (double)(x[k] / s),
                   q = i % 2 ? nearest_small(ratio, 2, 15, 123) : nearest_small(ratio, 3, 7, 126);
            assert_true(y[k] == (float)((double)s * q));
        }
    }
}

/** Blocks of 32 with the power of two floor(log2(largest)) - 8, not below 2^-127. */
static void test_mxfp8(void **state)
{
    (void)state;
    static float x[ROUND_N], y[ROUND_N];
    struct rng r = rng_open(rng_seed(), 22);
    fill_normal(&r, x, ROUND_N, 1.0f);
    for (size_t i = 0; i < ROUND_N; i++)
        x[i] = ldexpf(x[i], (int)(i / KERN_PACK_ELEMS % 270) - 146);
    memset(x + 96, 0, 32 * sizeof *x);
    x[5 * 32] = INFINITY;
    run(KERN_ISA_SCALAR, 1, GGUF_TYPE_MXFP8, 0, x, y);
    for (size_t b = 0; b < ROUND_N; b += 32) {
        int exponent = -127;
        for (size_t k = b; k < b + 32; k++)
            if (x[k] != 0 && ilogb((double)x[k]) - 8 > exponent)
                exponent = ilogb((double)x[k]) - 8;
        for (size_t k = b; k < b + 32 && b != 5 * 32; k++) {
            double q = nearest_small(ldexp((double)x[k], -exponent), 3, 7, 126);
            assert_true((double)y[k] == ldexp(q, exponent));
        }
    }
    for (size_t k = 0; k < 32; k++)
        assert_true(isnan(y[5 * 32 + k]));
}

/** Runs of 128 with a float32 scale by which the largest is 448; the least one is FLT_MIN. */
static void test_ds_mla(void **state)
{
    (void)state;
    static float x[ROUND_N], y[ROUND_N];
    struct rng r = rng_open(rng_seed(), 23);
    fill_normal(&r, x, ROUND_N, 1.0f);
    for (size_t i = 0; i < ROUND_N; i++)
        x[i] = ldexpf(x[i], (int)(i / 128 % 60 * 4) - 146);
    memset(x + 128, 0, 128 * sizeof *x);
    x[5 * 128 + 77] = NAN;
    run(KERN_ISA_SCALAR, 1, GGUF_TYPE_FP8_DS_MLA, 0, x, y);
    for (size_t b = 0; b < ROUND_N; b += 128) {
        float largest = 0;
        for (size_t k = b; k < b + 128; k++)
            largest = fmaxf(largest, fabsf(x[k]));
        float scale = fmaxf(largest / 448, 0x1p-126f);
        for (size_t k = b; k < b + 128; k++) {
            double q = nearest_small((double)(x[k] / scale), 3, 7, 126);
            assert_true(b == 5 * 128 ? isnan(y[k]) : y[k] == (float)((double)scale * q));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_definition),
        cmocka_unit_test(test_same_bits_for_any_isa_and_threads),
        cmocka_unit_test(test_scaled_floats),
        cmocka_unit_test(test_mxfp8),
        cmocka_unit_test(test_ds_mla),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
