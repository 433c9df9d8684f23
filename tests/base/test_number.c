/* Floats in sentences, figures in tables. */
#include "tests/harness/cmocka.h"
#include <math.h>
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */

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

static void test_digits(void **state)
{
    (void)state;
    static const struct {
        double value, error;
        const char *text;
    } rows[] = {
        {0.003623, 0.0000482, "0.003623 ± 0.000048"},
        {4.344e-5, 4.2e-7, "4.344e-05 ± 4.2e-07"},
        {0, 4.2e-7, "0 ± 4.2e-07"},
        {3e-9, 4.2e-7, "3e-09 ± 4.2e-07"},
        {81.599079, 2.701011, "81.6 ± 2.7"},
        {95.11, 0.0996, "95.11 ± 0.10"},
        {724.3, 173.2, "720 ± 170"},
        {72.37, 17.33, "72 ± 17"},
        {-0.004, 0.23, "0.00 ± 0.23"},
        {3.14159e9, 2.7e7, "3.142e+09 ± 2.7e+07"},
        {1e300, 1e-300, "1.0000000000000001e+300 ± 1.0e-300"},
        {-1e-9, 4.9e-324, "-1.0000000000000001e-09 ± 4.9e-324"},
        {100, 0, "100 ± 0"},
        {61.172154, (double)NAN, "61.1722"},
        {(double)INFINITY, 1, "inf"},
        {-(double)NAN, 0, "nan"},
    };
    static const struct {
        double value;
        const char *text;
    } alone[] = {
        {0.039478, "0.0395"}, {0.00009996, "1.00e-04"}, {0.0001, "0.000100"}, {0, "0"},
        {16.0088, "16.0"},    {12345, "12345"},         {-0.5, "-0.500"},     {2e9, "2.00e+09"},
        {(double)NAN, "nan"}};
    char text[BASE_FIGURE_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(base_figure_with_error(text, rows[i].value, rows[i].error),
                            rows[i].text);
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        assert_string_equal(base_figure(text, alone[i].value, 3), alone[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fewest_digits),
                                       cmocka_unit_test(test_digits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
