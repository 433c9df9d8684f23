/*
 * The product kernels of every ISA against the scalar ones, to the bit: all row counts around
 * the register tiles, both directions of the weights, random bits included, every buffer ending
 * at an inaccessible page. Ends with which rows each ISA has a version of.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/harness/rng.h"

enum { MAX_ROWS = 30 };

static struct kern_kernels scalar, variant;
static const char *variant_name;

/** n floats: normal ones, or random bits with NaN, infinities and denormals among them. */
static struct guard floats_open(struct rng *r, size_t n, size_t slack, bool any_bits)
{
    struct guard g = guard_open(n * sizeof(float), slack);
    if (any_bits)
        rng_bytes(r, g.data, g.n_bytes);
    for (size_t i = 0; i < n && !any_bits; i++)
        ((float *)(void *)g.data)[i] = rng_normal(r);
    return g;
}

static float *floats_of(const struct guard *g)
{
    return (float *)(void *)g->data;
}

static void guards_close(struct guard *guards, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(guard_intact(&guards[i]));
        guard_close(&guards[i]);
    }
}

static void assert_same(const struct guard *found, const struct guard *expected, const char *what)
{
    size_t n = found->n_bytes / sizeof(float);
    size_t i = compare_bits(floats_of(found), floats_of(expected), n);
    if (i < n)
        fail_msg("%s, %s: element %zu of %zu is %a, expected %a", variant_name, what, i, n,
                 (double)floats_of(found)[i], (double)floats_of(expected)[i]);
}

/** Half of the lanes: what they got before, `expected`, once more. */
static void check_narrow(const struct kern_fma_tile *whole, const float *expected)
{
    struct kern_fma_tile op = *whole;
    op.narrow = true;
    if (op.resume)
        return;
    variant.fma_tile(&op);
    for (size_t r = 0; r < op.n_rows; r++) {
        size_t i = compare_bits(op.acc + r * KERN_PANEL, expected + r * KERN_PANEL, KERN_NARROW);
        if (i < KERN_NARROW)
            fail_msg("%s, narrow fma_tile: row %zu, lane %zu differs", variant_name, r, i);
    }
}

/** One call of fma_tile; along: weights of a row are neighbours, else those of a step. */
static void check_fma_tile(struct rng *r, size_t n_rows, size_t n_k, bool along, bool any_bits)
{
    size_t run = along ? n_k : n_rows, n_runs = along ? n_rows : n_k;
    size_t stride = run + rng_below(r, 3);
    size_t n_w = n_runs && run ? (n_runs - 1) * stride + run : 0;
    struct guard g[] = {floats_open(r, n_w, 4 * rng_below(r, 3), any_bits),
                        floats_open(r, n_k * KERN_PANEL, 0, any_bits),
                        floats_open(r, n_rows * KERN_PANEL, 0, any_bits),
                        guard_open(n_rows * KERN_PANEL * sizeof(float), 0)};
    memcpy(g[3].data, g[2].data, g[2].n_bytes);
    struct kern_fma_tile op = {.w = floats_of(&g[0]),
                               .w_row = along ? stride : 1,
                               .w_col = along ? 1 : stride,
                               .x = floats_of(&g[1]),
                               .acc = floats_of(&g[2]),
                               .n_rows = n_rows,
                               .n_k = n_k,
                               .resume = rng_below(r, 2)};
    scalar.fma_tile(&op);
    op.acc = floats_of(&g[3]);
    op.next_x = rng_below(r, 2) ? op.x : NULL;
    variant.fma_tile(&op);
    assert_same(&g[3], &g[2], along ? "fma_tile along rows" : "fma_tile across rows");
    check_narrow(&op, floats_of(&g[2]));
    guards_close(g, 4);
}

static void test_fma_tile(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 33, 64, 130};
    struct rng r = rng_open(rng_seed(), 1);
    for (size_t n_rows = 0; n_rows <= MAX_ROWS; n_rows++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            check_fma_tile(&r, n_rows, lengths[i], true, false);
            check_fma_tile(&r, n_rows, lengths[i], false, false);
            check_fma_tile(&r, n_rows, lengths[i], i % 2, true);
        }
    }
}

/** A chain may be cut anywhere and gone on with later. */
static void test_resuming_changes_nothing(void **state)
{
    (void)state;
    enum { ROWS = 13, LENGTH = 50 };
    struct rng r = rng_open(rng_seed(), 2);
    struct guard g[] = {floats_open(&r, ROWS * LENGTH, 0, false),
                        floats_open(&r, LENGTH * KERN_PANEL, 0, false),
                        guard_open(ROWS * KERN_PANEL * sizeof(float), 0),
                        guard_open(ROWS * KERN_PANEL * sizeof(float), 0)};
    struct kern_fma_tile whole = {.w = floats_of(&g[0]),
                                  .w_row = LENGTH,
                                  .w_col = 1,
                                  .x = floats_of(&g[1]),
                                  .acc = floats_of(&g[2]),
                                  .n_rows = ROWS,
                                  .n_k = LENGTH};
    variant.fma_tile(&whole);
    for (size_t cut = 0; cut <= LENGTH; cut++) {
        struct kern_fma_tile part = whole;
        part.acc = floats_of(&g[3]);
        part.n_k = cut;
        variant.fma_tile(&part);
        part.w += cut;
        part.x += cut * KERN_PANEL;
        part.n_k = LENGTH - cut;
        part.resume = true;
        variant.fma_tile(&part);
        assert_same(&g[3], &g[2], "fma_tile in two pieces");
    }
    guards_close(g, 4);
}

static void test_panel_pack(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3);
    for (size_t n_lanes = 1; n_lanes <= KERN_PANEL; n_lanes++) {
        for (size_t n_k = 0; n_k < 40; n_k += 1 + rng_below(&r, 3)) {
            size_t stride = n_k + rng_below(&r, 3);
            size_t n_x = n_k ? (n_lanes - 1) * stride + n_k : 0;
            struct guard g[] = {floats_open(&r, n_x, 4 * rng_below(&r, 3), true),
                                guard_open(n_k * KERN_PANEL * sizeof(float), 0),
                                guard_open(n_k * KERN_PANEL * sizeof(float), 0)};
            struct kern_panel_pack op = {.x = floats_of(&g[0]),
                                         .x_stride = stride,
                                         .n_lanes = n_lanes,
                                         .n_k = n_k,
                                         .out = floats_of(&g[1])};
            scalar.panel_pack(&op);
            op.out = floats_of(&g[2]);
            variant.panel_pack(&op);
            assert_same(&g[2], &g[1], "panel_pack");
            guards_close(g, 3);
        }
    }
}

static void test_panel_unpack(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 4);
    for (size_t n_lanes = 1; n_lanes <= KERN_PANEL; n_lanes++) {
        for (size_t n_rows = 1; n_rows < 40; n_rows += 1 + rng_below(&r, 3)) {
            size_t stride = n_rows + rng_below(&r, 3), slack = 4 * rng_below(&r, 3);
            size_t n_y = (n_lanes - 1) * stride + n_rows;
            bool any_bits = rng_below(&r, 4) == 0;
            struct guard g[] = {floats_open(&r, n_rows * KERN_PANEL, 0, any_bits),
                                floats_open(&r, n_rows, slack, any_bits),
                                floats_open(&r, n_y, slack, any_bits),
                                guard_open(n_y * sizeof(float), slack)};
            memcpy(g[3].data, g[2].data, g[2].n_bytes);
            struct kern_panel_unpack op = {.acc = floats_of(&g[0]),
                                           .n_rows = n_rows,
                                           .n_lanes = n_lanes,
                                           .scale = rng_below(&r, 2) ? 1.0f : 0.3f,
                                           .bias = rng_below(&r, 2) ? floats_of(&g[1]) : NULL,
                                           .y = floats_of(&g[2]),
                                           .y_stride = stride,
                                           .accumulate = rng_below(&r, 2)};
            scalar.panel_unpack(&op);
            op.y = floats_of(&g[3]);
            variant.panel_unpack(&op);
            assert_same(&g[3], &g[2], "panel_unpack");
            guards_close(g, 4);
        }
    }
}

static void test_panel_scale(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 5);
    for (size_t n_rows = 0; n_rows < 10; n_rows++) {
        struct guard g[] = {floats_open(&r, KERN_PANEL, 0, n_rows % 2),
                            floats_open(&r, n_rows * KERN_PANEL, 0, n_rows % 2),
                            guard_open(n_rows * KERN_PANEL * sizeof(float), 0)};
        memcpy(g[2].data, g[1].data, g[1].n_bytes);
        scalar.panel_scale(floats_of(&g[1]), n_rows, floats_of(&g[0]));
        variant.panel_scale(floats_of(&g[2]), n_rows, floats_of(&g[0]));
        assert_same(&g[2], &g[1], "panel_scale");
        guards_close(g, 3);
    }
}

static const char *mark(bool own)
{
    return own ? "own" : "-";
}

/** The coverage matrix; each ISA that has other vectors of floats than the one below must have the
 * microkernel at least. */
static void test_coverage(void **state)
{
    (void)state;
    print_message("%-8s fma_tile panel_pack panel_unpack panel_scale\n", "");
    for (int isa = 0; isa < KERN_ISA_COUNT; isa++) {
        const struct kern_kernels *own = kern_sets[isa].own;
        print_message("%-8s %-8s %-10s %-12s %s\n", kern_isa_name((enum kern_isa)isa),
                      mark(own->fma_tile), mark(own->panel_pack), mark(own->panel_unpack),
                      mark(own->panel_scale));
        if (isa == 0 || kern_sets[isa].ops != kern_sets[isa - 1].ops)
            assert_non_null(own->fma_tile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fma_tile),    cmocka_unit_test(test_resuming_changes_nothing),
        cmocka_unit_test(test_panel_pack),  cmocka_unit_test(test_panel_unpack),
        cmocka_unit_test(test_panel_scale),
    };
    const struct CMUnitTest coverage[] = {cmocka_unit_test(test_coverage)};
    kern_kernels_build(&scalar, KERN_ISA_SCALAR);
    int n_failed = cmocka_run_group_tests_name("coverage", coverage, NULL, NULL);
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        kern_kernels_build(&variant, (enum kern_isa)isa);
        variant_name = kern_isa_name((enum kern_isa)isa);
        n_failed += cmocka_run_group_tests_name(variant_name, tests, NULL, NULL);
    }
    return n_failed;
}
