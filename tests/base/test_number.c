/* Floats in sentences. */
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text/number.h"

static void test_fewest_digits(void **state)
{
    (void)state;
    static const struct {
        float value;
        const char *text;
    } rows[] = {
        {1, "1"},         {-3, "-3"},
        {0.01f, "0.01"},  {1.0000001f, "1.0000001"},
        {1e-5f, "1e-05"}, {-1.17549435e-38f, "-1.1754944e-38"},
        {1e38f, "1e+38"}, {16777217.0f, "16777216"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct base_number shown;
        assert_string_equal(base_float_text(&shown, rows[i].value), rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fewest_digits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
