/* UTF-8. Rules and the numbers of well-formed characters: RFC 3629. */
#include <stdbool.h>
#include <string.h>

#include "base/text/utf8.h"
#include "tests/harness/cmocka.h"

static bool is_surrogate(uint32_t c)
{
    return c >= 0xD800 && c <= 0xDFFF;
}

/** Every code point there and back, alone and at the end of a text. */
static void every_character(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        char text[7] = "\x80\xC2";
        uint32_t found = 0, last = 0;
        size_t n = base_utf8_encode(c, text + 2);
        assert_int_equal(n, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        if (is_surrogate(c)) {
            assert_int_equal(base_utf8_decode(text + 2, n, &found), 0);
            assert_int_equal(base_utf8_decode_last(text, 2 + n, &last), 0);
            continue;
        }
        assert_int_equal(base_utf8_decode(text + 2, n, &found), n);
        assert_int_equal(base_utf8_decode_last(text, 2 + n, &last), n);
        assert_true(found == c && last == c);
        assert_int_equal(n > 1 ? base_utf8_decode(text + 2, n - 1, NULL) : 0, 0);
    }
}

/** Which of all runs of 2 and of 3 bytes are one character as a whole. */
static void nothing_else(void **state)
{
    (void)state;
    size_t n_two = 0, n_three = 0;
    for (uint32_t bits = 0; bits < 1u << 24; bits++) {
        const char bytes[] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
        n_three += base_utf8_decode(bytes, 3, NULL) == 3;
        n_two += bits >> 16 == 0 && base_utf8_decode(bytes + 1, 2, NULL) == 2;
    }
    assert_int_equal(n_two, 0x800 - 0x80);
    assert_int_equal(n_three, 0x10000 - 0x800 - 0x800);
    assert_int_equal(base_utf8_decode("\xF0\x8F\xBF\xBF", 4, NULL), 0);
    assert_int_equal(base_utf8_decode("\xF4\x90\x80\x80", 4, NULL), 0);
    assert_int_equal(base_utf8_decode("\xF8\x90\x80\x80", 4, NULL), 0);
}

static void repairs(void **state)
{
    (void)state;
    static const char text[] = "eight bytes\xC3\xA9\x80 and \xE2\x96";
    static const char expected[] = "eight bytes\xC3\xA9\xEF\xBF\xBD and \xEF\xBF\xBD\xEF\xBF\xBD";
    char out[3 * sizeof text];
    assert_int_equal(base_utf8_first_bad(text, sizeof text - 1), 13);
    assert_int_equal(base_utf8_repair(text, sizeof text - 1, NULL), sizeof expected - 1);
    assert_int_equal(base_utf8_repair(text, sizeof text - 1, out), sizeof expected - 1);
    assert_memory_equal(out, expected, sizeof expected - 1);
    assert_int_equal(base_utf8_first_bad(out, sizeof expected - 1), sizeof expected - 1);
}

static void put_unit(char *at, uint32_t unit, bool big_endian)
{
    at[!big_endian] = (char)(unit >> 8);
    at[big_endian] = (char)unit;
}

/** Every code point in UTF-16 after a mark, and halves of pairs. */
static void from_utf16(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        for (int big_endian = 0; big_endian < 2; big_endian++) {
            char text[7], out[9], expected[4];
            size_t n = c < 0x10000 ? 4 : 6, n_out;
            put_unit(text, 0xFEFF, big_endian);
            put_unit(text + 2, c < 0x10000 ? c : 0xD800 + ((c - 0x10000) >> 10), big_endian);
            if (n == 6)
                put_unit(text + 4, 0xDC00 + (c & 0x3FF), big_endian);
            size_t read = base_utf8_from_utf16(text, n, big_endian, out, &n_out);
            assert_int_equal(read, is_surrogate(c) ? 2 : n);
            assert_int_equal(n_out, is_surrogate(c) ? 0 : base_utf8_encode(c, expected));
            assert_memory_equal(out, expected, n_out);
        }
    }
    size_t n_out;
    static const char odd[] = {'a', 0, 'b'}, halves[] = {0, (char)0xD8, 0, (char)0xD8};
    assert_int_equal(base_utf8_from_utf16(odd, 3, false, NULL, &n_out), 2);
    assert_int_equal(base_utf8_from_utf16(halves, 4, false, NULL, &n_out), 0);
    assert_int_equal(base_utf8_from_utf16(halves, 2, false, NULL, &n_out), 0);
    assert_int_equal(base_utf8_from_utf16(odd, 0, false, NULL, &n_out), 0);
    assert_int_equal(n_out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character),
        cmocka_unit_test(nothing_else),
        cmocka_unit_test(repairs),
        cmocka_unit_test(from_utf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
