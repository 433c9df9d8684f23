/* Texts of others in Markdown: what could be markup has a backslash in front. */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <string.h>

#include "base/text/printable.h"
#include "base/text/utf8.h"

static const struct {
    const char *text, *shown, *code;
} rows[] = {
    {"tiny.Q4_K_M, 99.9 %", "tiny.Q4_K_M, 99.9 %", "`tiny.Q4_K_M, 99.9 %`"},
    {"[x](javascript:1)", "\\[x\\](javascript:1)", "`[x](javascript:1)`"},
    {"<img src=x>", "\\<img src=x\\>", "`<img src=x>`"},
    {"a|b\\|c", "a\\|b\\\\\\|c", "`a\\|b\\\\|c`"},
    {"https://a.b www.a.b", "https\\://a.b www\\.a.b", "`https://a.b www.a.b`"},
    {"_a_ *b* `c` ~d~ &lt; $e$ @f", "\\_a\\_ \\*b\\* \\`c\\` \\~d\\~ \\&lt; \\$e\\$ \\@f",
     "`_a_ *b* 'c' ~d~ &lt; $e$ @f`"},
    {"a\nb\x1b[2J", "a\\\\x0ab\\\\x1b\\[2J", "`a\\x0ab\\x1b[2J`"},
    {"\xe2\x80\xae±", "\\\\xe2\\\\x80\\\\xae±", "`\\xe2\\x80\\xae±`"},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void shows(void **state)
{
    (void)state;
    char out[128];
    for (size_t i = 0; i < N_ROWS; i++) {
        assert_string_equal(base_markdown(out, sizeof out, rows[i].text), rows[i].shown);
        assert_string_equal(base_markdown_code(out, sizeof out, rows[i].text), rows[i].code);
    }
}

/* A cut keeps characters whole, a backslash with what it is in front of, and a span's end. */
static void is_cut(void **state)
{
    (void)state;
    char out[128];
    for (size_t i = 0; i < N_ROWS; i++)
        for (size_t capacity = 3; capacity < sizeof out; capacity++) {
            base_markdown(out, capacity, rows[i].text);
            size_t n = strlen(out), n_end = n;
            assert_true(n < capacity);
            assert_memory_equal(out, rows[i].shown, n);
            assert_int_equal(base_utf8_first_bad(out, n), n);
            while (n_end > 0 && out[n_end - 1] == '\\')
                n_end--;
            assert_int_equal((n - n_end) % 2, 0);
            n = strlen(base_markdown_code(out, capacity, rows[i].text));
            assert_true(n < capacity && n >= 2 && out[0] == '`' && out[n - 1] == '`');
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows),
        cmocka_unit_test(is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
