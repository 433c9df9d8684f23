/* The table of strings: numbers in the order of adding, whatever the hash's key. */
#include <string.h>

#include "base/text/strtab.h"
#include "tests/harness/cmocka.h"

static int32_t add(struct base_strtab *t, const char *data, size_t n_bytes)
{
    int32_t number = -1;
    assert_int_equal(base_strtab_add(t, (struct base_string){data, n_bytes}, &number, NULL),
                     STATUS_OK);
    return number;
}

static int32_t find(const struct base_strtab *t, const char *data, size_t n_bytes)
{
    return base_strtab_find(t, (struct base_string){data, n_bytes});
}

/** Strings of every length, of which many begin or end alike, through several enlargements. */
static void numbers_in_order(void **state)
{
    (void)state;
    enum { N = 5000 };
    static char text[2 * N];
    struct base_strtab t = {0};
    memset(text, 'a', sizeof text);
    assert_int_equal(find(&t, text, 1), -1);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(find(&t, text + i % 7, i + 1), -1);
        assert_int_equal(add(&t, text + i % 7, i + 1), i);
        assert_int_equal(add(&t, text + i / 2, i + 1), i);
        assert_int_equal(t.n, i + 1);
    }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(find(&t, text, i + 1), i);
        assert_int_equal(t.strings[i].n_bytes, i + 1);
    }
    base_strtab_free(&t);
    assert_int_equal(find(&t, text, 1), -1);
    base_strtab_free(&t);
}

/** Room that is made in advance changes no number, and is there without another enlargement. */
static void reserves(void **state)
{
    (void)state;
    static const char text[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    struct base_strtab t = {0};
    assert_int_equal(base_strtab_reserve(&t, 33, NULL), STATUS_OK);
    const struct base_string *strings = t.strings;
    for (size_t i = 0; i < 33; i++)
        assert_int_equal(add(&t, text + i, 1), i);
    assert_ptr_equal(t.strings, strings);
    assert_int_equal(t.capacity, 64);
    assert_int_equal(base_strtab_reserve(&t, 1000, NULL), STATUS_OK);
    assert_int_equal(t.capacity, 1024);
    for (size_t i = 0; i < 33; i++)
        assert_int_equal(find(&t, text + i, 1), i);
    base_strtab_free(&t);
}

/** Every pair of bytes, NUL included, is a string of its own. */
static void every_byte_counts(void **state)
{
    (void)state;
    static char text[65536][9];
    struct base_strtab t = {0};
    for (size_t i = 0; i < 65536; i++) {
        text[i][0] = (char)i;
        text[i][8] = (char)(i >> 8);
        assert_int_equal(add(&t, text[i], 9), i);
    }
    for (size_t i = 0; i < 65536; i++)
        assert_int_equal(find(&t, text[i], 9), i);
    base_strtab_free(&t);
}

static void empty_strings_are_never_found(void **state)
{
    (void)state;
    struct base_strtab t = {0};
    assert_int_equal(add(&t, "", 0), 0);
    assert_int_equal(add(&t, "a", 1), 1);
    assert_int_equal(add(&t, "", 0), 2);
    assert_int_equal(find(&t, "", 0), -1);
    assert_int_equal(find(&t, "a", 1), 1);
    base_strtab_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_order),
        cmocka_unit_test(reserves),
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(empty_strings_are_never_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
