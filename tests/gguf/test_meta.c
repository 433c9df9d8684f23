/* Typed look-up: every getter against every value type, and the sentences of refusals. */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdlib.h>
#include <string.h>

#include "tests/gguf/sample.h"

static struct sample sample;
static struct gguf_file *file;

static int open_sample(void **state)
{
    (void)state;
    sample = sample_make();
    file = sample_open(&sample);
    return 0;
}

static int close_sample(void **state)
{
    (void)state;
    gguf_close(file);
    free(sample.data);
    return 0;
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t value;
        const char *refusal; /* of gguf_get_u32; NULL: served */
    } rows[] = {
        {"t.u8", 200, NULL},
        {"t.i8", -100, "sample: key 't.i8' is -100, expected an integer from 0 to 4294967295"},
        {"t.u16", 60000, NULL},
        {"t.i16", -30000,
         "sample: key 't.i16' is -30000, expected an integer from 0 to 4294967295"},
        {"t.u32", 4000000000, NULL},
        {"t.i32", -2000000000,
         "sample: key 't.i32' is -2000000000, expected an integer from 0 to 4294967295"},
        {"t.u64", INT64_MAX, /* what gguf_kv_int makes of 2^64 - 1 */
         "sample: key 't.u64' is 18446744073709551615, expected an integer from 0 to 4294967295"},
        {"t.i64", INT64_MIN,
         "sample: key 't.i64' is -9223372036854775808, expected an integer from 0 to 4294967295"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct status_why why = {0};
        uint32_t value = 77;
        bool found = false;
        const struct gguf_kv *kv = gguf_kv_find(file, rows[i].key);
        assert_true(gguf_value_is_int(kv->type));
        assert_true(gguf_kv_int(kv, 0) == rows[i].value);
        enum status status = gguf_get_u32(file, rows[i].key, &value, &found, &why);
        assert_true(found);
        assert_string_equal(why.text, rows[i].refusal ? rows[i].refusal : "");
        assert_int_equal(status, rows[i].refusal ? STATUS_FORMAT : STATUS_OK);
        assert_int_equal(value, rows[i].refusal ? 77 : (uint32_t)rows[i].value);
    }
}

static void test_other_scalars(void **state)
{
    (void)state;
    float real;
    bool truth = false;
    struct base_string string;
    assert_int_equal(gguf_get_f32(file, "t.f32", &real, NULL, NULL), STATUS_OK);
    assert_true(real == 0.15625f);
    assert_int_equal(gguf_get_f32(file, "t.f64", &real, NULL, NULL), STATUS_OK);
    assert_true(real == 0.1f);
    assert_true(gguf_kv_float(gguf_kv_find(file, "t.f64"), 0) == 0.1);
    assert_int_equal(gguf_get_bool(file, "t.bool", &truth, NULL, NULL), STATUS_OK);
    assert_true(truth);
    assert_int_equal(gguf_get_string(file, "general.architecture", &string, NULL, NULL), STATUS_OK);
    assert_int_equal(string.n_bytes, 6);
    assert_memory_equal(string.data, "sample", 6);
}

static void test_arrays(void **state)
{
    (void)state;
    struct status_why why;
    const struct gguf_kv *kv = gguf_kv_find(file, "t.i32s");
    assert_int_equal(kv->type, GGUF_VALUE_ARRAY);
    assert_int_equal(kv->element_type, GGUF_VALUE_I32);
    assert_int_equal(kv->count, 3);
    assert_int_equal(gguf_kv_int(kv, 1), -2);
    assert_int_equal(gguf_kv_int(kv, 2), 3);
    kv = gguf_kv_find(file, "t.bools");
    assert_int_equal(gguf_kv_int(kv, 0), 1);
    assert_int_equal(gguf_kv_int(kv, 1), 0);
    kv = gguf_kv_find(file, "t.f32s");
    assert_true(gguf_kv_float(kv, 0) == 0.5 && gguf_kv_float(kv, 1) == -0.25);

    static const char *const expected[] = {"one", "", "three"};
    struct base_string *strings;
    kv = gguf_kv_find(file, "t.strings");
    assert_int_equal(gguf_kv_strings(kv, &strings, &why), STATUS_OK);
    assert_int_equal(kv->count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(strings[i].n_bytes, strlen(expected[i]));
        assert_memory_equal(strings[i].data, expected[i], strings[i].n_bytes);
        struct base_string alone = gguf_kv_string(kv, i);
        assert_ptr_equal(alone.data, strings[i].data);
        assert_int_equal(alone.n_bytes, strings[i].n_bytes);
    }
    free(strings);
    kv = gguf_kv_find(file, "t.none");
    assert_int_equal(gguf_kv_strings(kv, &strings, &why), STATUS_OK);
    assert_int_equal(kv->count, 0);
    free(strings);
    kv = gguf_kv_find(file, "general.architecture"); /* an array of one */
    assert_int_equal(gguf_kv_strings(kv, &strings, &why), STATUS_OK);
    assert_memory_equal(strings[0].data, "sample", 6);
    free(strings);
}

static void test_wrong_types(void **state)
{
    (void)state;
    struct status_why why;
    uint32_t number;
    float real;
    bool truth;
    struct base_string string, *strings;
    assert_int_equal(gguf_get_u32(file, "t.f32", &number, NULL, &why), STATUS_FORMAT);
    assert_string_equal(why.text, "sample: key 't.f32' is of type f32, expected an integer");
    assert_int_equal(gguf_get_u32(file, "t.bool", &number, NULL, &why), STATUS_FORMAT);
    assert_string_equal(why.text, "sample: key 't.bool' is of type bool, expected an integer");
    assert_int_equal(gguf_get_u32(file, "t.i32s", &number, NULL, &why), STATUS_FORMAT);
    assert_string_equal(why.text,
                        "sample: key 't.i32s' is of type array of i32, expected an integer");
    assert_int_equal(gguf_get_f32(file, "t.u32", &real, NULL, &why), STATUS_FORMAT);
    assert_string_equal(why.text, "sample: key 't.u32' is of type u32, expected f32 or f64");
    assert_int_equal(gguf_get_bool(file, "t.u8", &truth, NULL, &why), STATUS_FORMAT);
    assert_string_equal(why.text, "sample: key 't.u8' is of type u8, expected bool");
    assert_int_equal(gguf_get_string(file, "t.strings", &string, NULL, &why), STATUS_FORMAT);
    assert_string_equal(why.text,
                        "sample: key 't.strings' is of type array of string, expected string");
    const struct gguf_kv *kv = gguf_kv_find(file, "t.f32s");
    assert_int_equal(gguf_kv_strings(kv, &strings, &why), STATUS_FORMAT);
    assert_null(strings);
    assert_string_equal(why.text, "key 't.f32s' is of type array of f32, expected array of string");
}

/* Without `found` a key is required; with it, absence leaves the default in place. */
static void test_missing_key(void **state)
{
    (void)state;
    struct status_why why;
    uint32_t value = 42;
    bool found = true;
    assert_null(gguf_kv_find(file, "t.u3"));
    assert_int_equal(gguf_get_u32(file, "t.absent", &value, &found, &why), STATUS_OK);
    assert_false(found);
    assert_int_equal(value, 42);
    assert_int_equal(gguf_get_u32(file, "t.absent", &value, NULL, &why), STATUS_FORMAT);
    assert_string_equal(why.text, "sample: key 't.absent' is missing");
    assert_int_equal(value, 42);
}

/* Overriding pairs replace or join the file's; the bytes of the file stay as they are. */
static void test_override(void **state)
{
    (void)state;
    struct gguf_file *own = sample_open(&sample);
    struct gguf_kv number = {{"t.f32", 5}, .type = GGUF_VALUE_U32, .data = (uint8_t[]){9, 0, 0, 0}};
    struct gguf_kv text = {
        {"new", 3}, .type = GGUF_VALUE_STRING, .data = (const uint8_t *)"\2\0\0\0\0\0\0\0ab"};
    uint32_t value = 0;
    struct base_string string;
    size_t n = gguf_n_kv(own);
    assert_int_equal(gguf_override(own, &number, NULL), STATUS_OK);
    assert_int_equal(gguf_get_u32(own, "t.f32", &value, NULL, NULL), STATUS_OK);
    assert_int_equal(value, 9);
    assert_int_equal(gguf_n_kv(own), n);
    assert_int_equal(gguf_override(own, &text, NULL), STATUS_OK);
    assert_int_equal(gguf_override(own, &text, NULL), STATUS_OK); /* again: the same pair */
    assert_int_equal(gguf_get_string(own, "new", &string, NULL, NULL), STATUS_OK);
    assert_int_equal(string.n_bytes, 2);
    assert_memory_equal(string.data, "ab", 2);
    assert_int_equal(gguf_n_kv(own), n + 1);
    gguf_close(own);
    own = sample_open(&sample);
    assert_int_equal(gguf_kv_find(own, "t.f32")->type, GGUF_VALUE_F32);
    gguf_close(own);
}

static void test_type_names(void **state)
{
    (void)state;
    static const char *const names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
    for (int i = 0; i <= GGUF_VALUE_F64; i++)
        assert_string_equal(gguf_value_type_name((enum gguf_value_type)i), names[i]);
    assert_string_equal(gguf_value_type_name((enum gguf_value_type)13), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),    cmocka_unit_test(test_other_scalars),
        cmocka_unit_test(test_arrays),      cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_missing_key), cmocka_unit_test(test_override),
        cmocka_unit_test(test_type_names),
    };
    return cmocka_run_group_tests(tests, open_sample, close_sample);
}
