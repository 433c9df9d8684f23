/* Exact sums of squares: those of a tile are those of the definition, and what has no sum is told.
 */
#include "tests/harness/cmocka.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/imatrix/squares.h"
#include "tests/harness/rng.h"

enum { ROWS = 140, COLUMNS = 131 };

/** Sums of the tile's numbers, one by one. */
static void add_plainly(struct imat_sum *sums, const float *x, size_t n_rows)
{
    for (size_t i = 0; i < n_rows * COLUMNS; i++)
        assert_true(imat_squares_add(&sums[i % COLUMNS], x[i]));
}

/** Random tiles whose numbers have exponents from `least` on: sums of the tile, and plain ones. */
static void compare_tiles(int least, int most)
{
    struct rng rng = rng_open(rng_seed(), (uint64_t)(least + 1000));
    static float x[ROWS * COLUMNS];
    struct imat_sum sums[COLUMNS] = {{0}}, plain_sums[COLUMNS] = {{0}};
    struct imat_squares s = {0};
    struct base_pool *pool = NULL;
    assert_int_equal(base_pool_open(&pool, 3, NULL), STATUS_OK);
    for (size_t tile = 0; tile < 3; tile++) {
        s.pool = tile ? pool : NULL;
        for (size_t i = 0; i < ROWS * COLUMNS; i++)
            x[i] = ldexpf(rng_normal(&rng), least + (int)rng_below(&rng, (size_t)(most - least)));
        size_t n_rows = tile == 2 ? 1 : ROWS;
        bool plain;
        assert_int_equal(imat_squares_make(&s, x, n_rows, COLUMNS, &plain, NULL), STATUS_OK);
        assert_false(plain);
        assert_int_equal(imat_squares_give(&s, sums), COLUMNS);
        add_plainly(plain_sums, x, n_rows);
        assert_memory_equal(sums, plain_sums, sizeof sums);
    }
    imat_squares_free(&s);
    base_pool_close(pool);
}

static void a_tile_is_its_numbers(void **state)
{
    (void)state;
    compare_tiles(-4, 4);
    compare_tiles(-40, 12); /* below the quantum, near the limit of a tile */
    compare_tiles(-149, -30);
}

/** Squares are rounded to 2^-64; of two multiples, to the even one. */
static void ties_are_even(void **state)
{
    (void)state;
    static const struct {
        float x;
        uint64_t part;
    } cases[] = {{0x1p-32F, 1},   {0x1p-33F, 0},    {0x1.8p-32F, 2}, {0x1.6p-33F, 0},
                 {0x1.7p-33F, 1}, {-0x1.8p-32F, 2}, {0x1p-149F, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct imat_sum sum = {0}, of_tile = {0};
        struct imat_squares s = {0};
        bool plain;
        assert_true(imat_squares_add(&sum, cases[i].x));
        assert_int_equal(sum.part, cases[i].part);
        assert_int_equal(imat_squares_make(&s, &cases[i].x, 1, 1, &plain, NULL), STATUS_OK);
        assert_int_equal(imat_squares_give(&s, &of_tile), 1);
        assert_memory_equal(&sum, &of_tile, sizeof sum);
        imat_squares_free(&s);
    }
}

static void carries_pass_on(void **state)
{
    (void)state;
    struct imat_sum sum = {.part = UINT64_MAX, .whole = 5};
    assert_true(imat_squares_add(&sum, 0x1p-32F));
    assert_int_equal(sum.part, 0);
    assert_int_equal(sum.whole, 6);
    assert_true(imat_squares_add(&sum, 1.5F));
    assert_int_equal(sum.whole, 8);
    assert_int_equal(sum.part, UINT64_C(1) << 62);
}

/** What a tile cannot hold is left to the definition, which refuses what has no sum. */
static void wild_numbers(void **state)
{
    (void)state;
    static const float wild[] = {NAN, INFINITY, -INFINITY, 1e5F, 3e38F};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        float x[COLUMNS] = {0};
        struct imat_squares s = {0};
        bool plain;
        x[100] = wild[i];
        assert_int_equal(imat_squares_make(&s, x, 1, COLUMNS, &plain, NULL), STATUS_OK);
        assert_true(plain);
        imat_squares_free(&s);
        struct imat_sum sum = {.part = 3, .whole = 4};
        assert_int_equal(imat_squares_add(&sum, wild[i]), wild[i] == 1e5F);
        assert_int_equal(sum.whole, wild[i] == 1e5F ? 10000000004 : 4);
        assert_int_equal(sum.part, 3);
    }
    float *rows = calloc(16385, sizeof *rows);
    struct imat_squares s = {0};
    bool plain;
    assert_non_null(rows);
    assert_int_equal(imat_squares_make(&s, rows, 16385, 1, &plain, NULL), STATUS_OK);
    assert_true(plain);
    free(rows);
    imat_squares_free(&s);
}

/** Sums end below 2^63, by one number or by a tile. */
static void full_sums(void **state)
{
    (void)state;
    const struct imat_sum full = {.part = UINT64_MAX, .whole = INT64_MAX};
    struct imat_sum sums[2] = {{0}, full};
    float x[2] = {1, 0x1p-32F};
    struct imat_squares s = {0};
    bool plain;
    assert_false(imat_squares_add(&sums[1], x[1]));
    assert_memory_equal(&sums[1], &full, sizeof full);
    assert_true(imat_squares_add(&sums[1], 0));
    assert_int_equal(imat_squares_make(&s, x, 1, 2, &plain, NULL), STATUS_OK);
    assert_int_equal(imat_squares_give(&s, sums), 1);
    imat_squares_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tile_is_its_numbers),
        cmocka_unit_test(ties_are_even),
        cmocka_unit_test(carries_pass_on),
        cmocka_unit_test(wild_numbers),
        cmocka_unit_test(full_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
