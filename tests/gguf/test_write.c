/* The writer: what it writes is read back the same, and its failures have sentences. */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/gguf/sample.h"

static struct gguf_writer *new_writer(void)
{
    struct gguf_writer *w;
    assert_int_equal(gguf_writer_new(&w, NULL), STATUS_OK);
    return w;
}

/* A writer that has all pairs and tensors of a file. */
static struct gguf_writer *copied(const struct gguf_file *file)
{
    struct gguf_writer *w = new_writer();
    for (size_t i = 0; i < gguf_n_kv(file); i++)
        gguf_writer_copy(w, gguf_kv_at(file, i));
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        gguf_writer_tensor(w, t->name, t->type->type, t->ne, t->n_dims, t->data);
    }
    return w;
}

/* All pairs and tensors of a file, through a writer, are the file again. */
static void test_copy_is_identical(void **state)
{
    (void)state;
    struct sample sample = sample_make();
    struct gguf_file *file = sample_open(&sample);
    struct status_why why = {0};
    struct gguf_writer *w = copied(file);
    void *data;
    size_t n_bytes;
    assert_int_equal(gguf_writer_finish_memory(w, &data, &n_bytes, &why), STATUS_OK);
    assert_int_equal(n_bytes, sample.n_bytes);
    assert_memory_equal(data, sample.data, n_bytes);
    free(data);
    gguf_close(file);
    free(sample.data);
}

/* The bundled model, written by another program: copied pair by pair it is the same bytes. */
static void test_copy_of_foreign_file(void **state)
{
    (void)state;
    struct gguf_file *file;
    struct status_why why = {0};
    if (gguf_open(&file, ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf", &why) != STATUS_OK)
        fail_msg("%s", why.text);
    struct gguf_writer *w = copied(file);
    void *data;
    size_t n_bytes;
    uint64_t n_original, data_offset;
    assert_int_equal(gguf_writer_finish_memory(w, &data, &n_bytes, &why), STATUS_OK);
    const void *original = gguf_shard_data(file, 0, &n_original, &data_offset);
    assert_int_equal(n_bytes, n_original);
    assert_memory_equal(data, original, n_bytes);
    free(data);
    gguf_close(file);
}

/* Each element of the slab gets its row's number; calls must come in order, without gaps. */
static void fill_rows(void *user, size_t row, size_t n_rows, void *bytes)
{
    size_t *next_row = user;
    assert_int_equal(row, *next_row);
    *next_row += n_rows;
    uint32_t *values = bytes;
    for (size_t i = 0; i < n_rows * 1000; i++)
        values[i] = (uint32_t)(row + i / 1000);
}

static void test_fill_and_alignment(void **state)
{
    (void)state;
    char path[] = "/tmp/assay-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct gguf_writer *w = new_writer();
    struct status_why why = {0};
    size_t next_row = 0;
    uint64_t ne[] = {1000, 999}; /* 4 MB: several slabs */
    gguf_writer_u32(w, "general.alignment", 256);
    gguf_writer_tensor_fill(w, "filled", GGUF_TYPE_F32, ne, 2, fill_rows, &next_row);
    gguf_writer_tensor(w, "last", GGUF_TYPE_F32, (uint64_t[]){1}, 1, &(float){1.0f});
    assert_int_equal(gguf_writer_finish(w, path, &why), STATUS_OK);
    assert_int_equal(next_row, 999);

    struct gguf_file *file;
    if (gguf_open(&file, path, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    const struct gguf_tensor *filled = gguf_tensor_find(file, "filled");
    assert_int_equal(filled->offset % 256, 0);
    for (size_t i = 0; i < 999 * 1000; i++)
        assert_int_equal(((const uint32_t *)filled->data)[i], i / 1000);
    const struct gguf_tensor *last = gguf_tensor_find(file, "last");
    assert_int_equal(last->offset, filled->offset + 3996160); /* the next multiple of 256 */
    assert_true(*(const float *)last->data == 1.0f);
    gguf_close(file);
    unlink(path);
}

/* A row that is longer than a slab is asked for by itself. */
static void fill_long_row(void *user, size_t row, size_t n_rows, void *bytes)
{
    assert_int_equal(n_rows, 1);
    assert_int_equal(row, (*(size_t *)user)++);
    memset(bytes, (int)row + 1, 4 * 300000);
}

static void test_fill_long_rows(void **state)
{
    (void)state;
    struct gguf_writer *w = new_writer();
    void *data;
    size_t n_bytes, n_rows = 0;
    gguf_writer_tensor_fill(w, "x", GGUF_TYPE_F32, (uint64_t[]){300000, 3}, 2, fill_long_row,
                            &n_rows);
    assert_int_equal(gguf_writer_finish_memory(w, &data, &n_bytes, NULL), STATUS_OK);
    assert_int_equal(n_rows, 3);
    assert_int_equal(((uint8_t *)data)[n_bytes - 1], 3);
    free(data);
}

static void test_bad_tensors(void **state)
{
    (void)state;
    static const struct {
        enum gguf_type type;
        uint32_t n_dims;
        uint64_t ne[4];
        const char *sentence;
    } rows[] = {
        {GGUF_TYPE_F32, 0, {0}, "tensor 'x': has 0 dimensions, expected 1 to 4"},
        {GGUF_TYPE_F32, 5, {1, 1, 1, 1}, "tensor 'x': has 5 dimensions, expected 1 to 4"},
        {GGUF_TYPE_F32, 2, {4, 0}, "tensor 'x': dimension 1 is 0, expected 1 or more"},
        {GGUF_TYPE_Q4_K,
         1,
         {128},
         "tensor 'x': has rows of 128 elements of type Q4_K, expected a multiple of its block of "
         "256"},
        {(enum gguf_type)4, 1, {32}, "tensor 'x': has type 4 (Q4_2), whose size is not known"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct status_why why = {0};
        struct gguf_writer *w = new_writer();
        void *data = &why;
        size_t n_bytes = 1;
        gguf_writer_tensor(w, "x", rows[i].type, rows[i].ne, rows[i].n_dims, "");
        gguf_writer_tensor(w, "later", GGUF_TYPE_F32, (uint64_t[]){0}, 1, "");
        enum status status = gguf_writer_finish_memory(w, &data, &n_bytes, &why);
        assert_true(status == STATUS_FORMAT || status == STATUS_UNSUPPORTED);
        assert_string_equal(why.text, rows[i].sentence); /* the first failure sticks */
        assert_null(data);
        assert_int_equal(n_bytes, 0);
    }
}

static void test_bad_alignment(void **state)
{
    (void)state;
    struct status_why why = {0};
    struct gguf_writer *w = new_writer();
    void *data;
    size_t n_bytes;
    gguf_writer_u32(w, "general.alignment", 0);
    assert_int_equal(gguf_writer_finish_memory(w, &data, &n_bytes, &why), STATUS_FORMAT);
    assert_string_equal(why.text, "key 'general.alignment' is 0, expected a power of two");
}

static void test_unwritable(void **state)
{
    (void)state;
    struct status_why why = {0};
    assert_int_equal(gguf_writer_finish(new_writer(), "/nowhere/x.gguf", &why), STATUS_IO);
    assert_string_equal(why.text, "/nowhere/x.gguf: cannot be written: No such file or directory");
    gguf_writer_abandon(new_writer());
    gguf_writer_abandon(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy_is_identical),  cmocka_unit_test(test_copy_of_foreign_file),
        cmocka_unit_test(test_fill_and_alignment), cmocka_unit_test(test_fill_long_rows),
        cmocka_unit_test(test_bad_tensors),        cmocka_unit_test(test_bad_alignment),
        cmocka_unit_test(test_unwritable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
