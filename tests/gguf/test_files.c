/*
 * Real files: the bundled models, and where they lie beside the checkout, the reference
 * models and vocabularies, all written by other programs. And what is no file at all.
 */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/gguf/sample.h"
#include "tests/gguf/walk.h"
#include "tests/harness/reference_list.h"

static struct gguf_file *open_file(const char *path)
{
    struct gguf_file *file;
    struct status_why why = {0};
    if (gguf_open(&file, path, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    return file;
}

static uint64_t n_elements(const struct gguf_file *file)
{
    uint64_t n = 0;
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        n += gguf_tensor_at(file, i)->n_rows * gguf_tensor_at(file, i)->ne[0];
    return n;
}

/*
 * In a file without unused space, padding alone lies between the tensors, and the last one
 * (padded or not) ends the file: totals that are too small or too large cannot agree.
 */
static void check_totals(const struct gguf_file *file)
{
    uint64_t n_bytes, data_offset, sum = 0;
    gguf_shard_data(file, 0, &n_bytes, &data_offset);
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        sum += gguf_tensor_at(file, i)->n_bytes;
    assert_true(data_offset + sum <= n_bytes);
    assert_true(n_bytes - data_offset - sum < 32 * (gguf_n_tensors(file) + 1));
}

static void test_bundled_models(void **state)
{
    (void)state;
    struct gguf_file *f16 = open_file(ASSAY_SOURCE_DIR "/data/tiny.F16.gguf");
    struct gguf_file *q4 = open_file(ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf");
    walk_file(f16);
    walk_file(q4);
    check_totals(f16);
    check_totals(q4);
    assert_int_equal(gguf_n_tensors(f16), 39);
    assert_int_equal(gguf_n_tensors(q4), 39);
    assert_int_equal(n_elements(f16), n_elements(q4));
    for (size_t i = 0; i < 39; i++) {
        const struct gguf_tensor *a = gguf_tensor_at(f16, i);
        const struct gguf_tensor *b = gguf_tensor_find(q4, a->name);
        assert_non_null(b);
        assert_memory_equal(a->ne, b->ne, sizeof a->ne);
        assert_true(a->n_bytes >= b->n_bytes);
    }
    struct base_string architecture;
    assert_int_equal(gguf_get_string(q4, "general.architecture", &architecture, NULL, NULL),
                     STATUS_OK);
    assert_int_equal(architecture.n_bytes, 5);
    assert_memory_equal(architecture.data, "llama", 5);
    gguf_close(f16);
    gguf_close(q4);
}

/* No value of the bundled models is a path of the machine where they were made. */
static void test_bundled_models_name_no_folder(void **state)
{
    (void)state;
    static const char *const keys[] = {"quantize.imatrix.file", "quantize.imatrix.dataset"};
    struct gguf_file *q4 = open_file(ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf");
    for (size_t i = 0; i < 2; i++) {
        struct base_string value = {0};
        assert_int_equal(gguf_get_string(q4, keys[i], &value, NULL, NULL), STATUS_OK);
        assert_true(value.n_bytes > 0 && !memchr(value.data, '/', value.n_bytes));
    }
    gguf_close(q4);
}

/* Every tiny.* is one model in another type: the same shapes, sizes that follow the type. */
static void test_reference_models(void **state)
{
    (void)state;
    struct reference_list models;
    if (!reference_list_open(&models, "models"))
        skip();
    struct gguf_file *f16 = open_file(ASSAY_SOURCE_DIR "/data/tiny.F16.gguf");
    while (reference_list_next(&models)) {
        struct gguf_file *file = open_file(models.path);
        walk_file(file);
        check_totals(file);
        if (strncmp(models.name, "tiny.", 5) == 0) {
            /* NVFP4 may bring a scale of one element per matrix. */
            uint64_t n = n_elements(file);
            assert_true(n >= n_elements(f16) && n < n_elements(f16) + 100);
        }
        gguf_close(file);
    }
    gguf_close(f16);
}

/* ik_llama.cpp's: rows with prefixes and in bundles. */
static void test_foreign_models(void **state)
{
    (void)state;
    struct reference_list models;
    if (!reference_list_open(&models, "models-ik"))
        skip();
    while (reference_list_next(&models)) {
        struct gguf_file *file = open_file(models.path);
        walk_file(file);
        check_totals(file);
        gguf_close(file);
    }
}

/* A type that nobody knows, and one of an unknown size: listed by id, their sizes are 0. */
static void test_unknown_types(void **state)
{
    (void)state;
    static const uint32_t ids[] = {43, 4, 77777};
    struct sample sample = sample_make();
    char path[] = "/tmp/assay-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct gguf_file *file;
        struct status_why why = {0};
        memcpy(sample.data + sample_after(&sample, "b.weight") + 20, &ids[i], sizeof ids[i]);
        assert_int_equal(pwrite(fd, sample.data, sample.n_bytes, 0), sample.n_bytes);
        assert_int_equal(gguf_open(&file, path, &why), STATUS_UNSUPPORTED);
        assert_int_equal(gguf_list(&file, path, &why), STATUS_OK);
        const struct gguf_tensor *tensor = gguf_tensor_find(file, "b.weight");
        assert_int_equal(tensor->type_id, ids[i]);
        assert_ptr_equal(tensor->type, gguf_type_listed(ids[i]));
        assert_int_equal(tensor->n_bytes, 0);
        assert_int_equal(tensor->n_rows, 3);
        assert_int_equal(gguf_check_types(file, &why), STATUS_UNSUPPORTED);
        gguf_close(file);
    }
    close(fd);
    unlink(path);
    free(sample.data);
}

/* Vocabularies without a model: no tensors, and the tokens are there. */
static void test_reference_vocabularies(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t n_tokens;
    } rows[] = {{"gpt-2", 50257}, {"llama-bpe", 128256}, {"llama-spm", 32000}, {"phi-3", 32064}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[512];
        snprintf(path, sizeof path, ASSAY_REFERENCE_DIR "/reference/tokenizers/ggml-vocab-%s.gguf",
                 rows[i].name);
        if (access(path, F_OK) != 0)
            skip();
        struct gguf_file *file = open_file(path);
        uint64_t n_bytes, data_offset;
        walk_file(file);
        gguf_shard_data(file, 0, &n_bytes, &data_offset);
        assert_int_equal(gguf_n_tensors(file), 0);
        assert_int_equal(data_offset, n_bytes); /* the directory is all there is */
        const struct gguf_kv *tokens = gguf_kv_find(file, "tokenizer.ggml.tokens");
        assert_non_null(tokens);
        assert_int_equal(tokens->element_type, GGUF_VALUE_STRING);
        assert_int_equal(tokens->count, rows[i].n_tokens);
        gguf_close(file);
    }
}

static void expect_refusal(const char *path, enum status status, const char *expected)
{
    struct gguf_file *file;
    struct status_why why = {0};
    char sentence[256];
    snprintf(sentence, sizeof sentence, "%s: %s", path, expected);
    enum status found = gguf_open(&file, path, &why);
    assert_null(file);
    assert_string_equal(why.text, sentence);
    assert_int_equal(found, status);
}

static void test_no_such_file(void **state)
{
    (void)state;
    expect_refusal("/nowhere/model.gguf", STATUS_IO, "cannot be opened: No such file or directory");
    expect_refusal("/", STATUS_IO, "is a directory, expected a GGUF file");
    expect_refusal("/dev/null", STATUS_IO, "is not a regular file, expected a GGUF file");
    expect_refusal("", STATUS_IO, "cannot be opened: No such file or directory");
    expect_refusal(ASSAY_SOURCE_DIR "/LICENSE", STATUS_FORMAT,
                   "is not a GGUF file: begins with 'MIT ', expected 'GGUF'");

    char path[] = "/tmp/assay-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    expect_refusal(path, STATUS_IO, "is empty, expected a GGUF file");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it: must not hang */
    expect_refusal(path, STATUS_IO, "is not a regular file, expected a GGUF file");
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundled_models),
        cmocka_unit_test(test_bundled_models_name_no_folder),
        cmocka_unit_test(test_reference_models),
        cmocka_unit_test(test_foreign_models),
        cmocka_unit_test(test_unknown_types),
        cmocka_unit_test(test_reference_vocabularies),
        cmocka_unit_test(test_no_such_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
