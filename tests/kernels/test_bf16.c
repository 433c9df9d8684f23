/*
 * bfloat16: rounding against its definition in double, layouts against formulas of their own,
 * and the packers of every ISA against the scalar ones on random bits, to the bit. Buffers end
 * at inaccessible pages.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/guard.h"
#include "tests/harness/rng.h"

static struct kern_kernels variant;
static const char *variant_name;

/** hi is one of the two neighbours of a finite x, the nearer one, of equals the even one. */
static void check_rounding(float x)
{
    uint16_t hi = kern_bf16_round(x);
    double error = fabs((double)kern_bf16_to_float(hi) - (double)x);
    if (isinf(kern_bf16_to_float(hi)))
        fail_msg("%a rounds to infinity", (double)x);
    for (int step = -1; step <= 1; step += 2) {
        float other = kern_bf16_to_float((uint16_t)(hi + step));
        if (!isfinite(other) || (hi & 0x7fff) == 0)
            continue;
        double other_error = fabs((double)other - (double)x);
        bool is_best = error < other_error || (error == other_error && hi % 2 == 0);
        if (!is_best)
            fail_msg("%a rounds to %a, %a is nearer", (double)x, (double)kern_bf16_to_float(hi),
                     (double)other);
    }
}

static void test_rounding(void **state)
{
    (void)state;
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (uint32_t high = 0; high < 1 << 16; high++) {
        for (size_t i = 0; i < sizeof low / sizeof low[0]; i++) {
            float x = kern_float_from_bits(high << 16 | low[i]);
            if (isfinite(x))
                check_rounding(x);
            else if (isnan(x))
                assert_true(isnan(kern_bf16_to_float(kern_bf16_round(x))));
            else
                assert_true(kern_bf16_to_float(kern_bf16_round(x)) == x);
        }
    }
}

/** The remainders that bf16.h promises. */
static void test_two_parts_hold_sixteen_bits(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    for (int i = 0; i < 1000000; i++) {
        float x = kern_float_from_bits((uint32_t)rng_next(&r));
        uint16_t hi = kern_bf16_round(x), lo = kern_bf16_rest(x, hi);
        if (!isfinite(x)) {
            assert_int_equal(lo, 0);
            continue;
        }
        double a = (double)kern_bf16_to_float(hi), b = (double)kern_bf16_to_float(lo);
        double magnitude = fabs((double)x);
        if (magnitude < 0x1p-100 || magnitude > 0x1.fep127)
            continue; /* denormal remainders; numbers that are rounded towards zero */
        assert_true(fabs((double)x - a) <= 0x1p-8 * magnitude);
        assert_true(fabs((double)x - a - b) <= 0x1p-16 * magnitude);
    }
    float largest = kern_float_from_bits(0x7f7fffff);
    uint16_t hi = kern_bf16_round(largest);
    assert_true(fabs((double)largest - (double)kern_bf16_to_float(hi) -
                     (double)kern_bf16_to_float(kern_bf16_rest(largest, hi))) <= 0x1p112);
}

static uint16_t *numbers_of(const struct guard *g)
{
    return (uint16_t *)(void *)g->data;
}

/** Random bits, or normal numbers. */
static struct guard floats_open(struct rng *r, size_t n)
{
    struct guard g = guard_open(n * sizeof(float), 4 * rng_below(r, 3));
    if (rng_below(r, 2)) {
        rng_bytes(r, g.data, g.n_bytes);
    } else {
        for (size_t i = 0; i < n; i++)
            ((float *)(void *)g.data)[i] = rng_normal(r);
    }
    return g;
}

static void assert_same(const struct guard *found, const struct guard *expected, const char *what,
                        size_t n_k)
{
    size_t n = found->n_bytes / sizeof(uint16_t);
    for (size_t i = 0; i < n; i++) {
        if (numbers_of(found)[i] != numbers_of(expected)[i])
            fail_msg("%s, %s, %zu columns: number %zu is %04x, expected %04x", variant_name, what,
                     n_k, i, numbers_of(found)[i], numbers_of(expected)[i]);
    }
}

/** Where a part of column k of row or token i lies. */
static size_t place_of_weight(size_t row, size_t k, unsigned part, unsigned n_parts)
{
    return k / 32 * (n_parts * 1024) + part * 1024 + row / 16 * 512 + row % 16 * 32 + k % 32;
}

static size_t place_of_token(size_t lane, size_t k, unsigned part, unsigned n_parts)
{
    return k / 32 * (n_parts * 1024) + part * 1024 + lane / 16 * 512 + k % 32 / 2 * 32 +
           lane % 16 * 2 + k % 2;
}

/** What must lie there. */
static uint16_t part_of(float x, unsigned part)
{
    uint16_t hi = kern_bf16_round(x);
    return part ? kern_bf16_rest(x, hi) : hi;
}

static void test_pack_row(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    for (size_t n_k = 1; n_k <= 100; n_k++) {
        unsigned n_parts = 1 + (unsigned)rng_below(&r, 2);
        size_t row = rng_below(&r, 32), size = kern_bf16_group_size(n_k, n_parts);
        struct guard w = floats_open(&r, n_k);
        struct guard expected = guard_open(size * 2, 0), found = guard_open(size * 2, 0);
        for (size_t k = 0; k < (n_k + 31) / 32 * 32; k++) {
            for (unsigned part = 0; part < n_parts; part++)
                numbers_of(&expected)[place_of_weight(row, k, part, n_parts)] =
                    k < n_k ? part_of(((float *)(void *)w.data)[k], part) : 0;
        }
        variant.bf16_pack_row((float *)(void *)w.data, n_k, n_parts, row, numbers_of(&found));
        assert_same(&found, &expected, "pack_row", n_k);
        guard_close(&w);
        guard_close(&expected);
        guard_close(&found);
    }
}

static void test_pack_panel(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3);
    for (size_t n_k = 1; n_k <= 100; n_k++) {
        unsigned n_parts = 1 + (unsigned)rng_below(&r, 2);
        size_t n_lanes = 1 + rng_below(&r, 32), stride = n_k + rng_below(&r, 3);
        size_t size = kern_bf16_group_size(n_k, n_parts);
        struct guard x = floats_open(&r, (n_lanes - 1) * stride + n_k);
        struct guard expected = guard_open(size * 2, 0), found = guard_open(size * 2, 0);
        memset(expected.data, 0, expected.n_bytes);
        for (size_t lane = 0; lane < n_lanes; lane++) {
            for (size_t k = 0; k < n_k; k++) {
                for (unsigned part = 0; part < n_parts; part++)
                    numbers_of(&expected)[place_of_token(lane, k, part, n_parts)] =
                        part_of(((float *)(void *)x.data)[lane * stride + k], part);
            }
        }
        variant.bf16_pack_panel(&(struct kern_panel_pack){.x = (float *)(void *)x.data,
                                                          .x_stride = stride,
                                                          .n_lanes = n_lanes,
                                                          .n_k = n_k,
                                                          .n_parts = n_parts,
                                                          .out = numbers_of(&found)});
        assert_same(&found, &expected, "pack_panel", n_k);
        guard_close(&x);
        guard_close(&expected);
        guard_close(&found);
    }
}

static void test_pack_lanes(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 4);
    for (size_t n_k = 1; n_k <= 100; n_k++) {
        unsigned n_parts = 1 + (unsigned)rng_below(&r, 2);
        size_t size = kern_bf16_group_size(n_k, n_parts);
        struct guard x = guard_open(n_k * 32 * sizeof(float), 0);
        struct guard expected = guard_open(size * 2, 0), found = guard_open(size * 2, 0);
        memset(expected.data, 0, expected.n_bytes);
        for (size_t i = 0; i < n_k * 32; i++)
            ((float *)(void *)x.data)[i] = rng_normal(&r);
        if (n_k % 2)
            rng_bytes(&r, x.data, x.n_bytes);
        for (size_t k = 0; k < n_k; k++) {
            for (size_t i = 0; i < 32 * (size_t)n_parts; i++)
                numbers_of(&expected)[place_of_token(i % 32, k, (unsigned)(i / 32), n_parts)] =
                    part_of(((float *)(void *)x.data)[k * 32 + i % 32], (unsigned)(i / 32));
        }
        variant.bf16_pack_lanes((float *)(void *)x.data, n_k, n_parts, numbers_of(&found));
        assert_same(&found, &expected, "pack_lanes", n_k);
        guard_close(&x);
        guard_close(&expected);
        guard_close(&found);
    }
}

int main(void)
{
    const struct CMUnitTest rounding[] = {
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_two_parts_hold_sixteen_bits),
    };
    const struct CMUnitTest packers[] = {
        cmocka_unit_test(test_pack_row),
        cmocka_unit_test(test_pack_panel),
        cmocka_unit_test(test_pack_lanes),
    };
    int n_failed = cmocka_run_group_tests(rounding, NULL, NULL);
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        kern_kernels_build(&variant, (enum kern_isa)isa);
        variant_name = kern_isa_name((enum kern_isa)isa);
        n_failed += cmocka_run_group_tests_name(variant_name, packers, NULL, NULL);
    }
    return n_failed;
}
