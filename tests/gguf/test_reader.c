/* The reader: what a good file says, and one sentence for each way in which a file is bad. */
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gguf/sample.h"
#include "tests/gguf/walk.h"

static void test_good_file(void **state)
{
    (void)state;
    struct sample sample = sample_make();
    struct gguf_file *file = sample_open(&sample);
    walk_file(file);
    assert_string_equal(gguf_path(file), "sample");
    assert_int_equal(gguf_version(file), 3);
    assert_int_equal(gguf_n_kv(file), 17);
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

/* n_bytes of `value`, little-endian, written `delta` behind the text `after` (or at delta). */
struct patch {
    const char *after;
    size_t delta;
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
     "sample: the header counts 1000 tensors, expected at most 26: only 872 bytes follow"},
    {{{NULL, 8, UINT64_MAX, 8}},
     STATUS_FORMAT,
     "sample: the header counts 18446744073709551615 tensors, expected at most 26: only 872 "
     "bytes follow"},
    {{{NULL, 16, 67, 8}},
     STATUS_FORMAT,
     "sample: the header counts 67 key/value pairs, expected at most 62: only 872 bytes follow"},
};

static void apply(struct sample *sample, const struct patch *patch)
{
    size_t at = patch->delta + (patch->after ? sample_after(sample, patch->after) : 0);
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
        enum status status = gguf_open_memory(&file, sample.data, sample.n_bytes, "sample", &why);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
