/* Look-ups in JSON from outside: types, paths in sentences, and that the first failure stays. */
#include "tests/harness/cmocka.h"
#include <float.h>
#include <math.h>
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdlib.h>
#include <string.h>

#include "base/json/build.h"
#include "base/json/read.h"

static const char text[] =
    "{\"name\": \"tiny\", \"rope\": {\"factor\": 2.5, \"type\": \"yarn\", \"null\": null},"
    " \"n\": 7, \"most\": 4294967295, \"on\": true, \"list\": [1, {\"x\": [\"a\", -1, 1.5]}, "
    "1e999],"
    " \"big\": 9007199254740994, \"\": 3, \"a.b\": 4, \"n\": 8}";

static struct base_field open_text(struct base_json_reader *r, const char *bytes)
{
    *r = (struct base_json_reader){.file = "config.json"};
    return base_json_open(r, bytes, strlen(bytes));
}

static void test_values(void **state)
{
    (void)state;
    struct base_json_reader r;
    struct base_field root = open_text(&r, text), rope = base_field_object(root, "rope");
    assert_string_equal(base_field_text(root, "name"), "tiny");
    assert_string_equal(base_field_text(root, "rope.type"), "yarn");
    assert_string_equal(base_field_text_or(rope, "absent", "default"), "default");
    assert_string_equal(base_field_text_or(rope, "null", "default"), "default");
    assert_true(base_field_real(rope, "factor") == 2.5);
    assert_true(base_field_real_or(root, "rope.absent.deeper", 3) == 3);
    assert_true(isnan(base_field_real_or_null(root, "rope.null")));
    assert_int_equal(base_field_uint(root, "n", 7), 7); /* of two the first */
    assert_int_equal(base_field_uint(root, "most", UINT32_MAX), UINT32_MAX);
    assert_int_equal(base_field_uint_or(root, "rope.null", 9, 5), 5);
    assert_int_equal(base_field_uint(base_field_get(root, "n"), "", 7), 7);
    assert_true(base_field_flag(root, "on"));
    assert_true(base_field_flag_or(root, "off", true));
    assert_int_equal(base_field_word(rope, "type", "linear yarn"), 1);
    assert_int_equal(base_field_word_or(rope, "kind", "linear yarn", -1), -1);
    assert_true(base_field_is(base_field_get(rope, "type"), "yarn"));
    assert_false(base_field_is(base_field_get(rope, "factor"), "yarn"));
    assert_null(base_field_get(root, "a.b").json); /* the dot parts names */
    assert_null(base_field_find(rope, "null").json);
    assert_non_null(base_field_get(rope, "null").json);
    assert_null(base_field_list_or_none(root, "absent").json);
    assert_null(base_field_object_or_none(rope, "null").json);
    assert_int_equal(base_json_status(&r, NULL), STATUS_OK);
    base_json_close(&r);
    base_json_close(&r); /* twice is allowed */
}

static void test_lists(void **state)
{
    (void)state;
    struct base_json_reader r;
    struct base_field root = open_text(&r, text), list = base_field_list(root, "list");
    size_t n = 0;
    for (struct base_field item = {0}; base_field_next(list, &item);)
        n++;
    for (struct base_field item = {0}; base_field_next(base_field_get(root, "rope"), &item);)
        n++;
    for (struct base_field item = {0}; base_field_next(base_field_get(root, "name"), &item);)
        n++;
    assert_int_equal(n, 6);
    assert_int_equal(base_field_count(list), 3);
    assert_int_equal(base_field_count(base_field_get(root, "absent")), 0);
    assert_int_equal(r.status, STATUS_OK);
    base_json_close(&r);
}

/** Each look-up, of something that is not what it wants. */
enum kind { TEXT, FLAG, REAL, UINT, SMALL, WORD, LIST, OBJECT, NEED, REAL_OR, OBJECT_OR, OR_NULL };

static void look_up(struct base_field root, enum kind kind, const char *path)
{
    switch (kind) {
    case TEXT:
        assert_string_equal(base_field_text(root, path), "");
        break;
    case FLAG:
        assert_false(base_field_flag(root, path));
        break;
    case REAL:
        assert_true(base_field_real(root, path) == 0);
        break;
    case UINT:
        assert_int_equal(base_field_uint(root, path, UINT64_C(1) << 53), 0);
        break;
    case SMALL:
        assert_int_equal(base_field_uint(root, path, 6), 0);
        break;
    case WORD:
        assert_int_equal(base_field_word(root, path, "linear default"), 0);
        break;
    case LIST:
        assert_null(base_field_list(root, path).json);
        break;
    case OBJECT:
        assert_null(base_field_object(root, path).json);
        break;
    case NEED:
        assert_null(base_field_need(root, path).json);
        break;
    case REAL_OR:
        assert_true(base_field_real_or(root, path, 3) == 0);
        break;
    case OBJECT_OR:
        assert_null(base_field_object_or_none(root, path).json);
        break;
    case OR_NULL:
        assert_true(isnan(base_field_real_or_null(root, path)));
        break;
    }
}

static void test_sentences(void **state)
{
    (void)state;
    static const struct {
        enum kind kind;
        const char *path, *why;
    } rows[] = {
        {TEXT, "n", "config.json: n is 7, expected a text"},
        {TEXT, "rope.null", "config.json: rope.null is null, expected a text"},
        {TEXT, "rope.absent.x", "config.json: rope.absent.x is missing, expected a text"},
        {TEXT, "name.x", "config.json: name.x is missing, expected a text"},
        {FLAG, "rope.type", "config.json: rope.type is 'yarn', expected true or false"},
        {REAL, "on", "config.json: on is true, expected a number"},
        {REAL_OR, "name", "config.json: name is 'tiny', expected a number"},
        {UINT, "big",
         "config.json: big is 9007199254740994, expected a whole number from 0 to 2^53"},
        {UINT, "rope.factor",
         "config.json: rope.factor is 2.5, expected a whole number from 0 to 2^53"},
        {SMALL, "n", "config.json: n is 7, expected a whole number from 0 to 6"},
        {WORD, "rope.type", "config.json: rope.type is 'yarn', expected one of linear default"},
        {LIST, "rope", "config.json: rope is an object, expected a list"},
        {OBJECT, "list", "config.json: list is a list, expected an object"},
        {OBJECT_OR, "list", "config.json: list is a list, expected an object"},
        {NEED, "absent", "config.json: absent is missing, expected a value"},
        {OR_NULL, "name", "config.json: name is 'tiny', expected a finite number, or null"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct base_json_reader r;
        struct status_why why = {""};
        struct base_field root = open_text(&r, text);
        look_up(root, rows[i].kind, rows[i].path);
        look_up(root, FLAG, "absent"); /* the first one stays */
        assert_int_equal(base_json_status(&r, &why),
                         rows[i].kind == WORD ? STATUS_UNSUPPORTED : STATUS_FORMAT);
        assert_string_equal(why.text, rows[i].why);
        base_json_close(&r);
    }
}

static void test_paths(void **state)
{
    (void)state;
    struct base_json_reader r;
    struct base_field_path path;
    struct base_field root = open_text(&r, text), item = {0}, inner = {0};
    base_field_next(base_field_list(root, "list"), &item);
    base_field_next(base_field_list(root, "list"), &item);
    struct base_field x = base_field_list(item, "x");
    base_field_next(x, &inner);
    base_field_next(x, &inner);
    assert_string_equal(base_field_path(&path, inner), "list[1].x[1]");
    assert_string_equal(base_field_path(&path, root), "");
    (void)base_field_uint(inner, "", UINT32_MAX);
    assert_string_equal(r.why.text,
                        "config.json: list[1].x[1] is -1, expected a whole number from 0 "
                        "to 2^32 - 1");
    base_json_close(&r);

    root = open_text(&r, text);
    r.missing = "expected a whole result";
    r.code = STATUS_USAGE;
    base_field_fail(base_field_get(root, "rope"), STATUS_OK, "nothing"); /* no failure */
    assert_int_equal(r.status, STATUS_OK);
    (void)base_field_text(item = base_field_get(root, "rope"), "x.y");
    assert_string_equal(r.why.text, "config.json: rope.x.y is missing; expected a whole result");
    assert_int_equal(r.status, STATUS_USAGE);
    base_json_close(&r);
}

static void test_own_sentences(void **state)
{
    (void)state;
    struct base_json_reader r;
    struct base_field root = open_text(&r, text);
    base_field_fail(base_field_get(root, "rope.factor"), STATUS_UNSUPPORTED, "is %g, expected 1",
                    2.5);
    assert_string_equal(r.why.text, "config.json: rope.factor is 2.5, expected 1");
    assert_int_equal(r.status, STATUS_UNSUPPORTED);
    base_json_close(&r);
    root = open_text(&r, text);
    base_field_fail(root, STATUS_FORMAT, "has no layers");
    assert_string_equal(r.why.text, "config.json: has no layers");
    assert_int_equal(base_json_keep(&r, STATUS_MEMORY, &(struct status_why){"later"}),
                     STATUS_FORMAT);
    base_json_close(&r);
    root = open_text(&r, text);
    assert_int_equal(base_json_keep(&r, STATUS_OK, &(struct status_why){""}), STATUS_OK);
    assert_int_equal(base_json_keep(&r, STATUS_MEMORY, &(struct status_why){"none"}),
                     STATUS_MEMORY);
    base_field_fail_member(root, "rope.new", STATUS_FORMAT, "is expected");
    assert_string_equal(r.why.text, "none");
    base_json_close(&r);
}

/** Numbers that base/json/build.h made are texts of digits. */
static void test_built(void **state)
{
    (void)state;
    struct base_json json;
    base_json_begin(&json);
    base_json_uint(&json, json.root, "n", UINT64_C(1) << 53);
    struct base_json_reader r = {.root = json.root};
    assert_true(base_field_uint(base_json_root(&r), "n", UINT64_C(1) << 53) == UINT64_C(1) << 53);
    (void)base_field_text(base_json_root(&r), "x");
    assert_string_equal(r.why.text, "x is missing, expected a text");
    base_json_free(&json);
}

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        enum status status;
        const char *why;
    } rows[] = {
        {"", 0, STATUS_FORMAT, "config.json: is no JSON from byte 0 on"},
        {"[1]", 3, STATUS_FORMAT, "config.json: is no JSON object"},
        {"{} x", 4, STATUS_FORMAT, "config.json: goes on after its JSON, from byte 3 on"},
        {"{} \n\t", 5, STATUS_OK, ""},
        {"{\"a\\u0000b\": 1}", 15, STATUS_FORMAT,
         "config.json: has the character U+0000 at byte 3, where its texts would end"},
        {"{\"a\": 1}\0", 9, STATUS_FORMAT,
         "config.json: has the character U+0000 at byte 8, where its texts would end"},
        {"{\"a\": tru}", 10, STATUS_FORMAT, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct base_json_reader r = {.file = "config.json"};
        struct status_why why = {""};
        struct base_field root = base_json_open(&r, rows[i].bytes, rows[i].n);
        assert_int_equal(base_json_status(&r, &why), rows[i].status);
        if (rows[i].why)
            assert_string_equal(why.text, rows[i].why);
        assert_int_equal(base_field_uint_or(root, "x", 9, 3), 3);
        (void)base_field_text(root, "y"); /* nothing to read: still no crash */
        base_json_close(&r);
    }
}

/** As deep as the parser goes, with names that are long, and that steer a terminal. */
static void test_deep(void **state)
{
    (void)state;
    enum { DEPTH = 900 };
    char *bytes = calloc(DEPTH, 16), *at = bytes;
    static const char open[] = "{\"\\u001bname\":", shut[] = "}";
    assert_non_null(bytes);
    for (size_t i = 0; i < DEPTH; i++, at += sizeof open - 1)
        memcpy(at, open, sizeof open - 1);
    *at++ = '1';
    for (size_t i = 0; i < DEPTH; i++)
        *at++ = *shut;
    struct base_json_reader r;
    struct base_field value = open_text(&r, bytes);
    assert_int_equal(r.status, STATUS_OK);
    while (base_field_get(value, "\x1bname").json)
        value = base_field_get(value, "\x1bname");
    (void)base_field_text(value, "");
    assert_non_null(strstr(r.why.text, "is 1, expected a text"));
    assert_null(strchr(r.why.text, 0x1b));
    assert_true(strlen(r.why.text) < 600);
    base_json_close(&r);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_sentences),     cmocka_unit_test(test_paths),
        cmocka_unit_test(test_own_sentences), cmocka_unit_test(test_built),
        cmocka_unit_test(test_hostile),       cmocka_unit_test(test_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
