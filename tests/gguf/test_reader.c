/* The reader: what a good file says, and one sentence for each way in which a file is bad. */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdlib.h>
#include <string.h>

#include "tests/gguf/sample.h"
#include "tests/gguf/walk.h"
#include "tests/harness/gguf_bytes.h"

static void test_good_file(void **state)
{
    (void)state;
    struct sample sample = sample_make();
    struct gguf_file *file = sample_open(&sample);
    walk_file(file);
    assert_string_equal(gguf_path(file), "sample");
    assert_int_equal(gguf_version(file), 3);
    assert_int_equal(gguf_n_kv(file), 18);
    assert_int_equal(gguf_n_tensors(file), 4);
    assert_int_equal(gguf_n_shards(file), 1);
    assert_string_equal(gguf_shard_path(file, 0), "sample");
    assert_null(gguf_tensor_find(file, "a.weigh"));
    assert_null(gguf_tensor_find(file, ""));

    const struct gguf_tensor *c = gguf_tensor_find(file, "c.weight");
    assert_ptr_equal(c, gguf_tensor_at(file, 2));
    assert_string_equal(c->name, "c.weight");
    assert_int_equal(c->type->type, GGUF_TYPE_F16);
    assert_int_equal(c->n_dims, 3);
    uint64_t ne[4] = {4, 2, 2, 1};
    assert_memory_equal(c->ne, ne, sizeof ne);
    assert_int_equal(c->n_rows, 4);
    assert_int_equal(c->row_bytes, 8);
    assert_int_equal(c->n_bytes, 32);
    for (size_t i = 0; i < c->n_bytes; i++)
        assert_int_equal(((const uint8_t *)c->data)[i], (uint8_t)('c' + i));

    uint64_t n_bytes, data_offset;
    assert_ptr_equal(gguf_shard_data(file, 0, &n_bytes, &data_offset), sample.data);
    assert_int_equal(n_bytes, sample.n_bytes);
    assert_int_equal(data_offset % 32, 0);
    assert_int_equal(gguf_tensor_at(file, 0)->offset, data_offset);
    gguf_close(file);
    free(sample.data);
}

/* A header alone is a file: no pairs, no tensors, no padding. */
static void test_empty_directory(void **state)
{
    (void)state;
    uint8_t header[24] = "GGUF\x02";
    struct sample sample = {header, sizeof header};
    struct gguf_file *file = sample_open(&sample);
    uint64_t n_bytes, data_offset;
    gguf_shard_data(file, 0, &n_bytes, &data_offset);
    assert_int_equal(gguf_version(file), 2);
    assert_int_equal(gguf_n_kv(file), 0);
    assert_int_equal(gguf_n_tensors(file), 0);
    assert_int_equal(data_offset, 24);
    assert_null(gguf_kv_find(file, "general.architecture"));
    gguf_close(file);
}

/* n_bytes of `value`, little-endian, written `delta` after the text `after` (or at delta). */
struct patch {
    const char *after;
    ptrdiff_t delta;
    uint64_t value;
    size_t n_bytes;
};

struct bad_file {
    struct patch patches[2];
    enum status status;
    const char *sentence;
};

/* Behind a key: type +0, value +4; arrays: element type +4, count +8, elements +16.
 * Behind a name: n_dims +0, ne[0] +4, ne[1] +12; with two dimensions type +20, offset +24. */
static const struct bad_file bad_files[] = {
    /* header */
    {{{NULL, 0, 'g', 1}},
     STATUS_FORMAT,
     "sample: is not a GGUF file: begins with 'gGUF', expected 'GGUF'"},
    {{{NULL, 0, 0x0a1b5b20, 4}},
     STATUS_FORMAT,
     "sample: is not a GGUF file: begins with ' [\\x1b\\x0a', expected 'GGUF'"},
    {{{NULL, 4, 1, 4}},
     STATUS_UNSUPPORTED,
     "sample: is a GGUF file of version 1, whose counts have 32 bits, expected version 2 or 3: "
     "convert the model again"},
    {{{NULL, 4, 0x03000000, 4}},
     STATUS_UNSUPPORTED,
     "sample: is a big-endian GGUF file (version 3 with its bytes swapped), expected a "
     "little-endian one"},
    {{{NULL, 4, 4, 4}},
     STATUS_UNSUPPORTED,
     "sample: is a GGUF file of version 4, expected version 2 or 3"},
    {{{NULL, 4, 0, 4}},
     STATUS_UNSUPPORTED,
     "sample: is a GGUF file of version 0, expected version 2 or 3"},
    {{{NULL, 8, 1000, 8}},
     STATUS_FORMAT,
     "sample: the header counts 1000 tensors, expected at most 27: only 904 bytes follow: an "
     "incomplete download?"},
    {{{NULL, 8, UINT64_MAX, 8}},
     STATUS_FORMAT,
     "sample: the header counts 18446744073709551615 tensors, expected at most 27: only 904 bytes "
     "follow: an incomplete download?"},
    {{{NULL, 16, 67, 8}},
     STATUS_FORMAT,
     "sample: the header counts 67 key/value pairs, expected at most 64: only 904 bytes follow: an "
     "incomplete download?"},
    /* keys */
    {{{NULL, 24, UINT64_C(1) << 40, 8}},
     STATUS_FORMAT,
     "sample: key/value pair 1 of 18: the key at byte 24 has a length of 1099511627776 bytes, "
     "expected at most the 896 before the end of the file: an incomplete download?"},
    {{{NULL, 24, 0, 8}},
     STATUS_FORMAT,
     "sample: key/value pair 1 of 18: the key at byte 24 is empty, expected a name"},
    {{{"general", 0, 0, 1}},
     STATUS_FORMAT,
     "sample: key/value pair 1 of 18: the key 'general\\x00architecture' at byte 24 has a NUL "
     "byte, expected none"},
    {{{"t.i16", -2, 0x3233, 2}},
     STATUS_FORMAT,
     "sample: key 't.i32': occurs twice, expected every key once"},
    {{{"t.i16", 0, 99, 4}, {"t.i16", -2, 0x077f, 2}},
     STATUS_FORMAT,
     "sample: key 't.i\\x7f\\x07': the value's type is 99, expected a known type (0 to 12)"},
    /* values */
    {{{"t.u32", 0, 13, 4}},
     STATUS_FORMAT,
     "sample: key 't.u32': the value's type is 13, expected a known type (0 to 12)"},
    {{{"t.u32", 0, UINT32_MAX, 4}},
     STATUS_FORMAT,
     "sample: key 't.u32': the value's type is 4294967295, expected a known type (0 to 12)"},
    {{{"t.bool", 4, 2, 1}}, STATUS_FORMAT, "sample: key 't.bool': a bool is 2, expected 0 or 1"},
    {{{"t.bools", 17, 255, 1}},
     STATUS_FORMAT,
     "sample: key 't.bools': a bool is 255, expected 0 or 1"},
    {{{"general.architecture", 4, UINT64_MAX, 8}},
     STATUS_FORMAT,
     "sample: key 'general.architecture': a string at byte 56 has a length of 18446744073709551615 "
     "bytes, expected at most the 864 before the end of the file: an incomplete download?"},
    {{{"t.i32s", 4, 9, 4}},
     STATUS_UNSUPPORTED,
     "sample: key 't.i32s': is an array of arrays, expected an array of numbers or strings"},
    {{{"t.i32s", 4, 77, 4}},
     STATUS_FORMAT,
     "sample: key 't.i32s': the array's element type is 77, expected a known type (0 to 12)"},
    {{{"t.i32s", 8, UINT64_MAX, 8}},
     STATUS_FORMAT,
     "sample: key 't.i32s': is an array of 18446744073709551615 elements of type i32, expected at "
     "most 125: only 501 bytes follow: an incomplete download?"},
    {{{"t.i32s", 8, UINT64_C(1) << 62, 8}},
     STATUS_FORMAT,
     "sample: key 't.i32s': is an array of 4611686018427387904 elements of type i32, expected at "
     "most 125: only 501 bytes follow: an incomplete download?"},
    {{{"t.strings", 8, UINT64_C(1) << 61, 8}},
     STATUS_FORMAT,
     "sample: key 't.strings': is an array of 2305843009213693952 elements of type string, "
     "expected at most 70: only 563 bytes follow: an incomplete download?"},
    {{{"t.strings", 16, UINT64_C(1) << 63, 8}},
     STATUS_FORMAT,
     "sample: key 't.strings': a string at byte 365 has a length of 9223372036854775808 bytes, "
     "expected at most the 555 before the end of the file: an incomplete download?"},
    /* alignment */
    {{{"general.alignment", 4, 0, 4}},
     STATUS_FORMAT,
     "sample: key 'general.alignment' is 0, expected a power of two"},
    {{{"general.alignment", 4, 33, 4}},
     STATUS_FORMAT,
     "sample: key 'general.alignment' is 33, expected a power of two"},
    {{{"general.alignment", 0, 6, 4}},
     STATUS_FORMAT,
     "sample: key 'general.alignment' is of type f32, expected an integer"},
    {{{"general.alignment", 0, 5, 4}, {"general.alignment", 4, UINT32_MAX, 4}},
     STATUS_FORMAT,
     "sample: key 'general.alignment' is -1, expected an integer from 0 to 4294967295"},
    {{{"general.alignment", 4, UINT32_C(1) << 31, 4}},
     STATUS_FORMAT,
     "sample: tensor data should start at byte 2147483648 (alignment 2147483648), but the file has "
     "only 928 bytes: an incomplete download?"},
    {{{"general.alignment", 4, 64, 4}},
     STATUS_FORMAT,
     "sample: byte 736, in the padding after the directory, is 0x61, expected 0: the header may "
     "count too few tensors, or the alignment of 64 may be wrong"},
    /* tensor names */
    {{{"a.weight", -16, 0, 8}},
     STATUS_FORMAT,
     "sample: tensor 1 of 4: the name at byte 540 is empty, expected a name"},
    {{{"a.weight", -16, UINT64_MAX, 8}},
     STATUS_FORMAT,
     "sample: tensor 1 of 4: the name at byte 540 has a length of 18446744073709551615 bytes, "
     "expected at most the 380 before the end of the file: an incomplete download?"},
    {{{"a.weight", -7, 0, 1}},
     STATUS_FORMAT,
     "sample: tensor 1 of 4: the name 'a\\x00weight' at byte 540 has a NUL byte, expected none"},
    {{{"b.weight", -8, 'a', 1}},
     STATUS_FORMAT,
     "sample: tensor 'a.weight': occurs twice, expected every tensor once"},
    /* shapes and types */
    {{{"a.weight", 0, 0, 4}},
     STATUS_FORMAT,
     "sample: tensor 'a.weight': has 0 dimensions, expected 1 to 4"},
    {{{"a.weight", 0, 5, 4}},
     STATUS_FORMAT,
     "sample: tensor 'a.weight': has 5 dimensions, expected 1 to 4"},
    {{{"a.weight", 4, 0, 8}},
     STATUS_FORMAT,
     "sample: tensor 'a.weight': dimension 0 is 0, expected 1 or more"},
    {{{"a.weight", 12, 0, 8}},
     STATUS_FORMAT,
     "sample: tensor 'a.weight': dimension 1 is 0, expected 1 or more"},
    {{{"a.weight", 4, UINT64_C(1) << 63, 8}},
     STATUS_FORMAT,
     "sample: tensor 'a.weight': dimension 0 is 9223372036854775808, expected a product of the "
     "dimensions below 2^63"},
    {{{"a.weight", 4, UINT64_C(1) << 40, 8}, {"a.weight", 12, UINT64_C(1) << 40, 8}},
     STATUS_FORMAT,
     "sample: tensor 'a.weight': dimension 1 is 1099511627776, expected a product of the "
     "dimensions below 2^63"},
    {{{"d.bias", 4, UINT64_C(1) << 62, 8}},
     STATUS_FORMAT,
     "sample: tensor 'd.bias': has 1 rows of 4611686018427387904 elements of type F32, expected "
     "fewer than 2^64 bytes"},
    {{{"b.weight", 4, 33, 8}},
     STATUS_FORMAT,
     "sample: tensor 'b.weight': has rows of 33 elements of type Q4_0, expected a multiple of its "
     "block of 32"},
    {{{"a.weight", 20, 43, 4}},
     STATUS_UNSUPPORTED,
     "sample: tensor 'a.weight': has type 43 (unknown), expected a type that can be decoded; "
     "take a file of the model in another type, or quantise it again"},
    {{{"a.weight", 20, UINT32_MAX, 4}},
     STATUS_UNSUPPORTED,
     "sample: tensor 'a.weight': has type 4294967295 (unknown), expected a type that can be "
     "decoded; take a file of the model in another type, or quantise it again"},
    {{{"a.weight", 20, 9, 4}},
     STATUS_UNSUPPORTED,
     "sample: tensor 'a.weight': has type 9 (Q8_1), expected a type that can be decoded; "
     "take a file of the model in another type, or quantise it again"},
    {{{"a.weight", 20, 15, 4}},
     STATUS_UNSUPPORTED,
     "sample: tensor 'a.weight': has type 15 (Q8_K), expected a type that can be decoded; "
     "take a file of the model in another type, or quantise it again"},
    /* where data lie */
    {{{NULL, 8, 3, 8}},
     STATUS_FORMAT,
     "sample: byte 692, in the padding after the directory, is 0x06, expected 0: the header may "
     "count too few tensors, or the alignment of 32 may be wrong"},
    {{{"b.weight", 12, 1, 8}},
     STATUS_FORMAT,
     "sample: 46 bytes before tensor 'c.weight', which starts at byte 864, belong to no tensor, "
     "expected fewer than the alignment 32"},
    {{{"b.weight", 24, 65, 8}},
     STATUS_FORMAT,
     "sample: tensor 'b.weight': its offset is 65, expected a multiple of the alignment 32"},
    {{{"b.weight", 24, UINT64_C(1) << 62, 8}},
     STATUS_FORMAT,
     "sample: tensor 'b.weight': its 54 bytes from byte 4611686018427387904 of the data section "
     "(which begins at byte 736) on end beyond the file; the file has 928 bytes, and its tensors "
     "need at least 4611686018427388694: it may be an incomplete download; fetch it again"},
    {{{"d.bias", 4, 1000, 8}},
     STATUS_FORMAT,
     "sample: tensor 'd.bias': its 4000 bytes from byte 160 of the data section (which begins at "
     "byte 736) on end beyond the file; the file has 928 bytes, and its tensors need at least "
     "4896: it may be an incomplete download; fetch it again"},
    {{{"b.weight", 24, UINT64_MAX - 63, 8}},
     STATUS_FORMAT,
     "sample: tensor 'b.weight': its 54 bytes from byte 18446744073709551552 of the data section "
     "(which begins at byte 736) on end beyond the file; the file has 928 bytes"},
    {{{"b.weight", 24, 32, 8}},
     STATUS_FORMAT,
     "sample: tensor 'b.weight' starts at byte 768, within tensor 'a.weight', expected it at byte "
     "800 or later"},
    {{{"c.weight", 32, 0, 8}},
     STATUS_FORMAT,
     "sample: tensor 'c.weight' starts at byte 736, within tensor 'a.weight', expected it at byte "
     "800 or later"},
    {{{"a.weight", 24, 128, 8}},
     STATUS_FORMAT,
     "sample: 64 bytes before tensor 'b.weight', which starts at byte 800, belong to no tensor, "
     "expected fewer than the alignment 32"},
};

/* Bytes that no tensor owns: the sample with `n` of them after it. */
static void test_bytes_at_the_end(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        uint8_t last; /* the others are 0 */
        uint64_t n_unused;
        const char *sentence; /* NULL: accepted */
    } rows[] = {
        {0, 0, 0, NULL},
        {11, 0, 0, NULL}, /* with the padding of 20 that is there: fewer than 32 */
        {12, 0, 32, NULL},
        {65516, 0, 65536, NULL},
        {65517, 0, 0,
         "sample: the last 65537 bytes (from byte 908) belong to no tensor, expected fewer than "
         "32, "
         "all 0: the header may count too few tensors"},
        {1, 1, 0,
         "sample: the last 21 bytes (from byte 908) belong to no tensor, expected fewer than 32, "
         "all 0: the header may count too few tensors"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sample sample = sample_make();
        struct status_why why = {0};
        struct gguf_file *file;
        size_t n_bytes = sample.n_bytes + rows[i].n;
        sample.data = realloc(sample.data, n_bytes);
        memset(sample.data + sample.n_bytes, 0, rows[i].n);
        if (rows[i].n > 0)
            sample.data[n_bytes - 1] = rows[i].last;
        enum status status = gguf_bytes_open(&file, sample.data, n_bytes, "sample", &why);
        assert_int_equal(status, rows[i].sentence ? STATUS_FORMAT : STATUS_OK);
        assert_string_equal(why.text, rows[i].sentence ? rows[i].sentence : "");
        if (!rows[i].sentence)
            assert_int_equal(gguf_n_unused(file), rows[i].n_unused);
        gguf_close(file);
        free(sample.data);
    }
}

static void apply(struct sample *sample, const struct patch *patch)
{
    size_t at = (size_t)patch->delta + (patch->after ? sample_after(sample, patch->after) : 0);
    assert_true(at + patch->n_bytes <= sample->n_bytes);
    memcpy(sample->data + at, &patch->value, patch->n_bytes);
}

static void test_bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        struct sample sample = sample_make();
        for (size_t k = 0; k < 2 && bad_files[i].patches[k].n_bytes > 0; k++)
            apply(&sample, &bad_files[i].patches[k]);
        struct gguf_file *file;
        struct status_why why = {0};
        enum status status = gguf_bytes_open(&file, sample.data, sample.n_bytes, "sample", &why);
        assert_null(file);
        assert_string_equal(why.text, bad_files[i].sentence);
        assert_int_equal(status, bad_files[i].status);
        free(sample.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_file),
        cmocka_unit_test(test_empty_directory),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_bytes_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
