/*
 * What attention multiplies in integers of 16 bits: the scalar kernels against the definition
 * (kernels/cpu/gemm/rounded.h), those of every ISA against the scalar ones to the bit. Buffers end
 * at inaccessible pages.
 */
#include "base/arithmetic.h"
#include "tests/harness/compare.h"
#include "tests/kernels/rounded_kinds.h"

enum { MOST = KERN_ATTENTION_MOST, MOST_K = 2 * MAX_BLOCK + COLUMNS };

/** Numbers are of the size of a row, NaN, infinite, or around what counts as 0: by `which`. */
static void fill(struct rng *r, size_t which, float *x, size_t n)
{
    static const float sizes[] = {1.0f, KERN_ROUNDED_LEAST, 0x1p120f, 0.0f, 0x1p-149f};
    for (size_t i = 0; i < n; i++) {
        x[i] = rng_normal(r) * sizes[which % 5];
        if (which % 7 == 6 && rng_below(r, 200) == 0)
            x[i] = rare_number(r);
    }
}

static void check_same_lanes(const struct kern_int16_chunk *found,
                             const struct kern_int16_chunk *expected, size_t n_k)
{
    for (size_t i = 0; i < n_k; i++)
        for (size_t lane = 0; lane < TOKENS; lane++)
            assert_int_equal(own_integer_at(found, lane, i), integer_at(expected, lane, i));
    for (size_t i = 0; i < n_k / COLUMNS; i++) {
        assert_int_equal(compare_bits(found[i].of.scale, expected[i].of.scale, TOKENS), TOKENS);
        if (!variant->word)
            assert_memory_equal(found[i].begins, expected[i].begins, sizeof found[i].begins);
    }
}

static void test_lanes(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 10);
    for (size_t round = 0; round < 70; round++) {
        size_t n_k = COLUMNS * (1 + round % (MOST_K / COLUMNS));
        size_t n_out = n_k / COLUMNS * sizeof(struct kern_int16_chunk);
        struct guard g[] = {guard_open(n_k * KERN_PANEL * sizeof(float), 0),
                            guard_open(n_k * sizeof(float), 0), guard_open(n_out, 0),
                            guard_open(n_out, 0)};
        fill(&r, round, data(&g[0]), n_k * KERN_PANEL);
        fill(&r, round / 10, data(&g[1]), n_k);
        struct kern_lanes_pack op = {.x = data(&g[0]),
                                     .factors = data(&g[1]),
                                     .n_k = n_k,
                                     .largest = MOST,
                                     .out = data(&g[2])};
        kern_kernels_scalar.int16_pack_lanes(&op);
        op.out = data(&g[3]);
        kernels.int16_pack_lanes(&op);
        check_same_lanes(data(&g[3]), data(&g[2]), n_k);
        guards_close(g, 4);
    }
}

static void test_rows(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 11);
    for (size_t round = 0; round < 700; round++) {
        size_t n = 16 * (1 + round % 9);
        struct guard g[] = {guard_open(n * sizeof(float), 0), guard_open(n * sizeof(int16_t), 0),
                            guard_open(n * sizeof(int16_t), 0)};
        fill(&r, round, data(&g[0]), n);
        float expected = kern_kernels_scalar.int16_round(data(&g[0]), n, MOST, data(&g[1]));
        float found = kernels.int16_round(data(&g[0]), n, MOST, data(&g[2]));
        assert_int_equal(compare_bits(&found, &expected, 1), 1);
        assert_memory_equal(data(&g[1]), data(&g[2]), n * sizeof(int16_t));
        guards_close(g, 3);
    }
}

static void test_turn(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 12);
    for (size_t n_rows = 16; n_rows <= 64; n_rows += 16) {
        for (size_t n_cols = 8; n_cols <= 72; n_cols += 8) {
            size_t n_bytes = n_rows * n_cols * sizeof(int16_t);
            struct guard g[] = {guard_open(n_bytes, 0), guard_open(n_bytes, 0)};
            rng_bytes(&r, g[0].data, n_bytes);
            const int16_t *x = data(&g[0]), *out = data(&g[1]);
            kernels.int16_turn(x, n_rows, n_cols, data(&g[1]));
            for (size_t i = 0; i < n_rows * n_cols; i++)
                assert_int_equal(out[i % n_cols * n_rows + i / n_cols], x[i]);
            guards_close(g, 2);
        }
    }
}

/** A row is what int16_pack makes of the same block; a lane is its numbers times the factors. */
static void test_definition(void **state)
{
    (void)state;
    enum { N = MAX_BLOCK };
    struct rng r = rng_open(rng_seed(), 13);
    for (size_t round = 0; round < 70; round++) {
        _Alignas(64) float x[N][KERN_PANEL], factors[N];
        struct kern_int16_chunk chunks[N / COLUMNS];
        fill(&r, round, x[0], N * KERN_PANEL);
        fill(&r, round / 10, factors, N);
        kern_kernels_scalar.int16_pack_lanes(&(struct kern_lanes_pack){
            .x = x[0], .factors = factors, .n_k = N, .largest = MOST, .out = chunks});
        for (size_t lane = 0; lane < TOKENS; lane++) {
            float row[N];
            int16_t integers[N];
            double most = 0;
            for (size_t i = 0; i < N; i++) {
                row[i] = x[i][lane] * factors[i];
                most = isnan(row[i]) ? HUGE_VAL : fmax(most, fabs((double)row[i]));
            }
            float scale = kern_kernels_scalar.int16_round(row, N, MOST, integers);
            assert_int_equal(compare_bits(&scale, &chunks[0].of.scale[lane], 1), 1);
            bool any = isfinite(most) && most >= (double)KERN_ROUNDED_LEAST;
            assert_true(isfinite(most)
                            ? fabs((double)scale * MOST - (any ? most : 0)) <= 0x1p-23 * most
                            : isnan(scale));
            for (size_t i = 0; i < N; i++) {
                assert_int_equal(integers[i], integer_at(chunks, lane, i));
                double error = fabs((double)row[i] - (double)scale * integers[i]);
                assert_true(!any || error <= 0.5011 / MOST * most);
                assert_true(any || integers[i] == 0);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest definition[] = {cmocka_unit_test(test_definition)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lanes), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_turn)};
    kind = &kinds[0];
    variant = &variants[0];
    int n_failed = cmocka_run_group_tests_name("definition", definition, NULL, NULL);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        variant = &variants[i];
        if (!variant->tiles->int16_pack_lanes)
            continue; /* the set below has it */
        if (!is_here(variant)) {
            print_message("%s: not on this processor\n", variant->name);
            continue;
        }
        kern_kernels_build(&kernels, variant->isa);
        n_failed += cmocka_run_group_tests_name(variant->name, tests, NULL, NULL);
    }
    return n_failed;
}
