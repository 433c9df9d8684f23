/* Requests as JSON lines: what is read from good ones, and the sentence that a bad one gets. */
#include <string.h>

#include "eval/input/requests.h"
#include "eval/units/requests.h"
#include "tests/harness/cmocka.h"

static void assert_text(struct base_string s, const char *expected)
{
    if (s.n_bytes != strlen(expected) || memcmp(s.data, expected, s.n_bytes) != 0)
        fail_msg("'%.*s', expected '%s'", (int)s.n_bytes, s.data, expected);
}

static void reads_lines(void **state)
{
    (void)state;
    char text[] =
        "{\"context\": \"a\\n\\u00e9\", \"continuation\": \" b\\\"\"}\r\n"
        "\n \t\n"
        " { \"id\" : 18446744073709551617 ,\"text\":\"\\\\u0000\", \"x\": [1, {\"y\": \"],}\"}],"
        "\"logprob\": 3,\"z\\\"\":\"\\\\\" } \n"
        "{\"continuation\":\"\",\"context\":\"\"}";
    struct eval_requests r;
    struct status_why why = {""};
    if (eval_requests_read(&r, text, sizeof text - 1, &why))
        fail_msg("%s", why.text);
    assert_int_equal(r.n, 3);
    assert_int_equal(r.items[0].line, 1);
    assert_false(r.items[0].rolling);
    assert_text(r.items[0].context, "a\n\xc3\xa9");
    assert_text(r.items[0].text, " b\"");
    assert_text(r.items[0].handed, "");
    assert_int_equal(r.items[1].line, 4);
    assert_true(r.items[1].rolling);
    assert_text(r.items[1].text, "\\u0000"); /* a backslash and five characters */
    assert_text(r.items[1].handed,
                "\"id\" : 18446744073709551617,\"x\": [1, {\"y\": \"],}\"}],\"z\\\"\":\"\\\\\"");
    assert_int_equal(r.items[2].line, 5);
    assert_text(r.items[2].context, "");
    assert_text(r.items[2].text, "");
    eval_requests_free(&r);
}

/* Members are moved to the front while the strings still wait for their place. */
static void keeps_many_members(void **state)
{
    (void)state;
    char text[] = "{\"a\":1,\"b\":2,\"c\":3,\"text\":\"tt\",\"d\":4,\"e\":5}";
    struct eval_requests r;
    assert_int_equal(eval_requests_read(&r, text, sizeof text - 1, NULL), STATUS_OK);
    assert_text(r.items[0].handed, "\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5");
    assert_text(r.items[0].text, "tt");
    eval_requests_free(&r);
}

static void refuses_bad_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"", "no requests: expected a JSON object on each line"},
        {"\n \n", "no requests"},
        {"{\"text\": \"a\"}\n{\"text\": \"a\"",
         "line 2: no JSON object: it is not whole at its end, column 12"},
        {"[\"text\"]", "line 1: no JSON object: found [\"text\"] at column 1, expected {"},
        {"{\"text\": \"a\"} x", "line 1: no JSON object: found x at column 15"},
        {"{\"text\": \"a\"},", "line 1: no JSON object: found , at column 14"},
        {"{\"text\": \"a\"}{\"text\": \"a\"}", "line 1: no JSON object"},
        {"\n{\"context\": \"a\"}",
         "line 2: expected \"context\" and \"continuation\", or \"text\""},
        {"{\"continuation\": \"a\"}", "line 1: expected \"context\" and \"continuation\""},
        {"{\"context\": \"a\", \"continuation\": \"b\", \"text\": \"c\"}", "line 1: expected"},
        {"{\"context\": \"a\", \"text\": \"c\"}", "line 1: expected \"context\""},
        {"{\"Text\": \"c\"}", "line 1: expected \"context\""},
        {"{\"text\": 3}", "line 1: expected \"text\" to be a string"},
        {"{\"text\": null}", "line 1: expected \"text\" to be a string"},
        {"{\"context\": [], \"continuation\": \"a\"}", "line 1: expected \"context\" to be a"},
        {"{\"text\": \"a\", \"te\\u0078t\": \"b\"}",
         "line 1: has \"text\" twice; expected it once"},
        {"{\"text\": \"a\\u0000b\"}", "line 1: has the character U+0000"},
        {"{\"text\": \"a\\\\\\u0000b\"}", "line 1: has the character U+0000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char copy[128];
        size_t n = strlen(cases[i].text);
        assert_true(n < sizeof copy);
        memcpy(copy, cases[i].text, n);
        struct eval_requests r;
        struct status_why why = {""};
        enum status status = eval_requests_read(&r, copy, n, &why);
        if (status != STATUS_FORMAT || !strstr(why.text, cases[i].sentence))
            fail_msg("'%s': %s: '%s', expected '%s'", cases[i].text, status_name(status), why.text,
                     cases[i].sentence);
        assert_int_equal(r.n, 0);
    }
    char nul[] = "{\"text\": \"a\0b\"}";
    struct eval_requests r;
    assert_int_equal(eval_requests_read(&r, nul, sizeof nul - 1, NULL), STATUS_FORMAT);
}

/* What Python 3.11 says: len(s) - len(s.rstrip()), in bytes. */
static void knows_trailing_blanks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {
        {"", 0},
        {"a", 0},
        {"a b", 0},
        {"a \t\n\v\f\r", 6},
        {"  ", 2},
        {"a\x1b", 0},
        {"a\x1c\x1f", 2},
        {"a\xc2\x85", 2},                 /* U+0085 */
        {"a\xc2\xa0 ", 3},                /* no-break space */
        {"a\xc2\xad", 0},                 /* soft hyphen */
        {"a\xe1\x9a\x80", 3},             /* U+1680 */
        {"a\xe2\x80\x80\xe2\x80\x8a", 6}, /* U+2000, U+200A */
        {"a\xe2\x80\x8b", 0},             /* zero width space is none */
        {"a\xe2\x80\xa8\xe2\x80\xa9", 6}, /* U+2028, U+2029 */
        {"a\xe2\x80\xaf\xe2\x81\x9f", 6}, /* U+202F, U+205F */
        {"a\xe3\x80\x80", 3},             /* ideographic space */
        {"a\xef\xbb\xbf", 0},             /* U+FEFF */
        {"\xf0\x9f\x98\x80", 0},
        {"\x80", 0},
        {"\xc2", 0},
        {"\x80 ", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct base_string s = {cases[i].text, strlen(cases[i].text)};
        if (eval_trailing_blanks(s) != cases[i].n)
            fail_msg("'%s': %zu, expected %zu", cases[i].text, eval_trailing_blanks(s), cases[i].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_lines),
        cmocka_unit_test(keeps_many_members),
        cmocka_unit_test(refuses_bad_lines),
        cmocka_unit_test(knows_trailing_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
