/*
 * The draw of a subset. Expected values: programs of a few lines with libstdc++ 12.
 */
#include <stdlib.h>

#include "eval/input/draw.h"
#include "tests/harness/cmocka.h"

static void check(size_t n, enum eval_draw how, const size_t *expected, size_t n_drawn)
{
    size_t *drawn;
    assert_int_equal(eval_draw(&drawn, n, n_drawn, how, NULL), STATUS_OK);
    for (size_t i = 0; i < n_drawn; i++)
        assert_int_equal(drawn[i], expected[i]);
    free(drawn);
}

static void draws_as_libstdcxx(void **state)
{
    (void)state;
    check(7, EVAL_DRAW_UNIFORM, (size_t[]){2, 6, 4, 5, 0, 1, 3}, 7);
    check(300, EVAL_DRAW_UNIFORM, (size_t[]){125, 299, 215, 278, 0, 38, 90, 298, 44, 71, 27, 120},
          12);
    check(7, EVAL_DRAW_SCALED, (size_t[]){2, 5, 3, 4, 0, 6, 1}, 7);
    check(300, EVAL_DRAW_SCALED, (size_t[]){125, 298, 214, 276, 0, 37, 88, 292, 42, 68, 26, 114},
          12);
}

/** Everything is drawn once, also where the float32 product is beyond the end. */
static void draws_without_replacement(void **state)
{
    (void)state;
    enum { N = 20000 };
    for (int how = EVAL_DRAW_UNIFORM; how <= EVAL_DRAW_SCALED; how++) {
        size_t *drawn;
        assert_int_equal(eval_draw(&drawn, N, N, (enum eval_draw)how, NULL), STATUS_OK);
        unsigned char *seen = calloc(N, 1);
        assert_non_null(seen);
        for (size_t i = 0; i < N; i++) {
            assert_true(drawn[i] < N);
            assert_int_equal(seen[drawn[i]]++, 0);
        }
        free(seen);
        free(drawn);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_as_libstdcxx),
        cmocka_unit_test(draws_without_replacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
