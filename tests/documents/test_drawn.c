/* A divergence in words: rounding that is not known, and the bounds. */
#include "tests/harness/cmocka.h"
#include <math.h>
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */

#include "clients/documents/results/drawn.h"

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(doc_drawn_otherwise(1e-6, 1e-5), "none beyond rounding");
    assert_string_equal(doc_drawn_otherwise(-1e-9, 0), "none beyond rounding");
    assert_string_equal(doc_drawn_otherwise(0, (double)NAN), "at most 1 in 100");
    assert_string_equal(doc_drawn_otherwise(-1e-6, (double)NAN), "at most 1 in 100");
    assert_string_equal(doc_drawn_otherwise(0.004, (double)NAN), "at most 1 in 20");
    assert_string_equal(doc_drawn_otherwise(0.6, 0), "perhaps most");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
