/* Token bytes as a TSV field. UTF-8 rules: RFC 3629. */
#include <stdlib.h>
#include <string.h>

#include "base/text/escape.h"
#include "base/text/utf8.h"
#include "tests/harness/cmocka.h"

static void escapes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *expected;
    } cases[] = {
        {"", 0, ""},
        {" the", 4, " the"},
        {"a\tb\nc\rd\\e", 9, "a\\tb\\nc\\rd\\\\e"},
        {"\0\x01\x1f\x7f", 4, "\\x00\\x01\\x1f\\x7f"},
        {"\xc3\xa9\xe2\x96\x81\xf0\x9f\x98\x80", 9, "\xc3\xa9\xe2\x96\x81\xf0\x9f\x98\x80"},
        {"\xe2\x96", 2, "\\xe2\\x96"},                   /* cut short */
        {"\x80 \xff", 3, "\\x80 \\xff"},                 /* no first bytes */
        {"\xc0\xaf", 2, "\\xc0\\xaf"},                   /* longer than need be */
        {"\xe0\x80\xaf", 3, "\\xe0\\x80\\xaf"},          /* the same, three bytes */
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},          /* a surrogate */
        {"\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"}, /* beyond U+10FFFF */
        {"\xc3\x28", 2, "\\xc3("},                       /* a wrong second byte */
        {"\xc2\x9b"
         "2J",
         4, "\\xc2\\x9b2J"}, /* a control sequence of one character */
        {"\xc2\xa0", 2, "\xc2\xa0"},
        {"\xe2\x80\xae", 3, "\\xe2\\x80\\xae"},          /* U+202E turns what follows */
        {"\xe2\x80\xa8", 3, "\\xe2\\x80\\xa8"},          /* U+2028 ends a line */
        {"\xe2\x80\xa7", 3, "\xe2\x80\xa7"},             /* U+2027 is a dot */
        {"\xef\xbb\xbf", 3, "\\xef\\xbb\\xbf"},          /* U+FEFF takes no room */
        {"\xf3\xa0\x81\x81", 4, "\\xf3\\xa0\\x81\\x81"}, /* nor does the tag U+E0041 */
        {"\xd8\x80", 2, "\xd8\x80"},                     /* U+0600 is a visible sign */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        size_t n = base_escape(out, sizeof out, cases[i].bytes, cases[i].n);
        assert_int_equal(n, strlen(cases[i].expected));
        assert_memory_equal(out, cases[i].expected, n);
        assert_true(n <= 4 * cases[i].n);
    }
}

static void respects_the_capacity(void **state)
{
    (void)state;
    char out[8];
    memset(out, '#', sizeof out);
    assert_true(base_escape(out, 3, "a\tbcd", 5) > 3);
    assert_memory_equal(out, "a\\t#####", 8);
    assert_true(base_escape(NULL, 0, "abc", 3) > 0);
    assert_int_equal(base_escape(out, 4, "a\tb", 3), 4);
}

/** For people: as it is but for what a terminal obeys, a whole number of characters. */
static void printable(void **state)
{
    (void)state;
    static const char bytes[] = "a\\b\tc\n\x1b[2J\xc2\x9b\xff\xc3\xa9";
    static const char expected[] = "a\\b\\x09c\\x0a\\x1b[2J\\xc2\\x9b\\xff\xc3\xa9";
    char out[64];
    assert_string_equal(base_printable(out, sizeof out, bytes, sizeof bytes - 1), expected);
    for (size_t capacity = 1; capacity < sizeof out; capacity++) {
        memset(out, '#', sizeof out);
        base_printable(out, capacity, bytes, sizeof bytes - 1);
        assert_true(strlen(out) < capacity);
        assert_memory_equal(out, expected, strlen(out));
        assert_int_equal(base_utf8_first_bad(out, strlen(out)), strlen(out));
    }
}

/** A text of a gigabyte is not read to its end to fill eight bytes: this does not even have it. */
static void stops_when_full(void **state)
{
    (void)state;
    char out[8];
    char *bytes = malloc(9); /* sanitizers see a read beyond them */
    assert_non_null(bytes);
    memset(bytes, 'a', 9);
    assert_true(base_escape(out, sizeof out, bytes, (size_t)1 << 30) > sizeof out);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes),
        cmocka_unit_test(respects_the_capacity),
        cmocka_unit_test(printable),
        cmocka_unit_test(stops_when_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
