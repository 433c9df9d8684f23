/* Sizes as people write them. */
#include "base/text/size.h"
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t n_bytes;
    } rows[] = {
        {"0", 0},
        {"17", 17},
        {"17B", 17},
        {"4.2GiB", 4509715660},
        {"4.2 gib", 4509715660},
        {".5kb", 500},
        {"1.5 MiB", 1572864},
        {"3TB", 3000000000000},
        {"1.9 B", 1},
        {"2.KiB", 2048},
        {"8388607TiB", UINT64_C(8388607) << 40},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t n_bytes = 1234567;
        assert_true(base_size_parse(rows[i].text, &n_bytes));
        assert_int_equal(n_bytes, rows[i].n_bytes);
    }
}

static void test_others(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "GiB",
                                        "4.2.1GiB",
                                        "-1",
                                        "+1",
                                        "0x10",
                                        "1e9",
                                        "nan",
                                        "inf",
                                        "4 ",
                                        "4  B",
                                        " 4",
                                        "4GiBs",
                                        "4 G",
                                        "4,2GiB",
                                        ".",
                                        "9223372036854775808",
                                        "8388608TiB"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t n_bytes = 7;
        assert_false(base_size_parse(texts[i], &n_bytes));
        assert_int_equal(n_bytes, 7);
    }
}

static void test_written(void **state)
{
    (void)state;
    static const struct {
        const char *asked;
        double n_bytes;
        const char *text;
    } rows[] = {
        {"100MB", 98860000, "98.86 MB"},       {"0.1 gb", 98860000, "0.09886 GB"},
        {NULL, 98860000, "94.28 MiB"},         {NULL, 0x1p30, "1.000 GiB"},
        {"100000000", 1e6, "0.9537 MiB"},      {"1TiB", 0, "0.000 TiB"},
        {"4MiB", 12345 * 0x1p20, "12345 MiB"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[BASE_SIZE_BYTES];
        assert_string_equal(
            base_size_text(out, rows[i].n_bytes, base_size_unit(rows[i].asked, rows[i].n_bytes)),
            rows[i].text);
    }
    assert_true(base_size_lacks_unit("100") && base_size_lacks_unit("4.2"));
    assert_false(base_size_lacks_unit("100B") || base_size_lacks_unit("100MB") ||
                 base_size_lacks_unit("2096928") || base_size_lacks_unit("0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
