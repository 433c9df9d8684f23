/*
 * Files that are cut, changed or made to be slow: never a crash, a hang, or an allocation
 * that a number in the file has blown up. Meant to run under AddressSanitizer too.
 *
 * The linker sends the library's allocations here (--wrap), where they are measured, and
 * made to fail one after the other.
 */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/gguf/sample.h"
#include "tests/gguf/walk.h"
#include "tests/harness/gguf_bytes.h"

static size_t largest_request;
static size_t n_until_failure = SIZE_MAX; /* allocations that still succeed */

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
void *__real_realloc(void *old, size_t n_bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
void *__wrap_realloc(void *old, size_t n_bytes);
char *__wrap_strdup(const char *text);

static bool allow(size_t n_bytes)
{
    if (n_bytes > largest_request)
        largest_request = n_bytes;
    if (n_until_failure == 0)
        return false;
    if (n_until_failure != SIZE_MAX)
        n_until_failure--;
    return true;
}

void *__wrap_malloc(size_t n_bytes)
{
    return allow(n_bytes) ? __real_malloc(n_bytes) : NULL;
}

void *__wrap_calloc(size_t n, size_t n_bytes)
{
    return allow(n * n_bytes) ? __real_calloc(n, n_bytes) : NULL;
}

void *__wrap_realloc(void *old, size_t n_bytes)
{
    return allow(n_bytes) ? __real_realloc(old, n_bytes) : NULL;
}

char *__wrap_strdup(const char *text)
{
    return allow(strlen(text) + 1) ? __real_strdup(text) : NULL;
}

/* Walk a copy of the first n_bytes. */
static enum status walk_copy(const struct sample *sample, size_t n_bytes, struct status_why *why)
{
    uint8_t *copy = malloc(n_bytes ? n_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, sample->data, n_bytes);
    largest_request = 0;
    enum status status = walk_bytes(copy, n_bytes, why);
    free(copy);
    return status;
}

/* Cut anywhere before the last tensor's end, the sample is refused; its padding may go. */
static void test_sample_cut_at_every_byte(void **state)
{
    (void)state;
    struct sample sample = sample_make();
    struct gguf_file *file = sample_open(&sample);
    const struct gguf_tensor *last = gguf_tensor_find(file, "d.bias");
    size_t end = (size_t)(last->offset + last->n_bytes);
    gguf_close(file);
    for (size_t n = 0; n <= sample.n_bytes; n++) {
        struct status_why why;
        assert_int_equal(walk_copy(&sample, n, &why), n < end ? STATUS_FORMAT : STATUS_OK);
    }
    free(sample.data);
}

static void test_cut_sentences(void **state)
{
    (void)state;
    static const struct {
        size_t n_bytes;
        const char *sentence;
    } rows[] = {
        {0, "input: is not a GGUF file: begins with '', expected 'GGUF'"},
        {3, "input: is not a GGUF file: begins with 'GGU', expected 'GGUF'"},
        {6, "input: the version at byte 4 is cut off: expected 4 bytes, found 2 before the end of "
            "the file: an incomplete download?"},
        {8, "input: the number of tensors at byte 8 is cut off: expected 8 bytes, found 0 before "
            "the end of the file: an incomplete download?"},
        {23, "input: the number of key/value pairs at byte 16 is cut off: expected 8 bytes, found "
             "7 before the end of the file: an incomplete download?"},
        {24, "input: the header counts 4 tensors, expected at most 0: only 0 bytes follow: an "
             "incomplete download?"},
        {200, "input: the header counts 18 key/value pairs, expected at most 12: only 176 bytes "
              "follow: an incomplete download?"},
        {540, "input: tensor 1 of 4: the name at byte 540 is cut off: expected 8 bytes, found 0 "
              "before the end of the file: an incomplete download?"},
        {560, "input: tensor 'a.weight': a dimension at byte 560 is cut off: expected 8 bytes, "
              "found 0 before the end of the file: an incomplete download?"},
        {720, "input: tensor 'd.bias': the type at byte 718 is cut off: expected 4 bytes, found 2 "
              "before the end of the file: an incomplete download?"},
        {729, "input: tensor 'd.bias': the offset at byte 722 is cut off: expected 8 bytes, found "
              "7 before the end of the file: an incomplete download?"},
        {730, "input: tensor data should start at byte 736 (alignment 32), but the file has only "
              "730 bytes: an incomplete download?"},
        {800, "input: tensor 'b.weight': its 54 bytes from byte 64 of the data section (which "
              "begins at byte 736) on end beyond the file; the file has 800 bytes, and its tensors "
              "need at least 908: it may be an incomplete download; fetch it again"},
    };
    struct sample sample = sample_make();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct status_why why;
        walk_copy(&sample, rows[i].n_bytes, &why);
        assert_string_equal(why.text, rows[i].sentence);
    }
    free(sample.data);
}

static void test_model_cut_at_every_percent(void **state)
{
    (void)state;
    struct sample model = sample_read(ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf");
    struct status_why why;
    for (size_t percent = 0; percent < 100; percent++)
        assert_int_equal(walk_copy(&model, model.n_bytes * percent / 100, &why), STATUS_FORMAT);
    assert_int_equal(walk_copy(&model, model.n_bytes - 1, &why), STATUS_FORMAT);
    assert_int_equal(walk_copy(&model, model.n_bytes, &why), STATUS_OK);
    free(model.data);
}

/* Each byte of [from, to) flipped, zeroed and filled, one at a time. */
static void mutate(struct sample *sample, size_t from, size_t to)
{
    size_t n_refused = 0;
    for (size_t at = from; at < to; at++) {
        const uint8_t original = sample->data[at];
        const uint8_t values[] = {(uint8_t)~original, (uint8_t)(original ^ 1), 0, 0xff};
        for (size_t k = 0; k < sizeof values; k++) {
            struct status_why why;
            sample->data[at] = values[k];
            largest_request = 0;
            n_refused += walk_bytes(sample->data, sample->n_bytes, &why) != STATUS_OK;
            /* Tables are at most a few times larger than what they are read from. */
            assert_true(largest_request <= 8 * sample->n_bytes + 16384);
        }
        sample->data[at] = original;
    }
    assert_true(n_refused > (to - from) / 2); /* the changes are seen at all */
}

static void test_every_byte_of_sample_mutated(void **state)
{
    (void)state;
    struct sample sample = sample_make();
    mutate(&sample, 0, 736); /* up to the tensor data */
    free(sample.data);
}

/* The head of a real directory, and the tensor section at its end. */
static void test_directory_of_model_mutated(void **state)
{
    (void)state;
    struct sample model = sample_read(ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf");
    struct gguf_file *file = sample_open(&model);
    uint64_t n_bytes, data_offset;
    gguf_shard_data(file, 0, &n_bytes, &data_offset);
    gguf_close(file);
    mutate(&model, 0, 400);
    mutate(&model, (size_t)data_offset - 1024, (size_t)data_offset - 32);
    free(model.data);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* 200000 keys and as many tensors: duplicates are looked for in linear time. */
static void test_many_names(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct gguf_writer *w;
    struct status_why why = {0};
    float value = 0;
    char name[32];
    assert_int_equal(gguf_writer_new(&w, &why), STATUS_OK);
    for (unsigned i = 0; i < N; i++) {
        snprintf(name, sizeof name, "key.%u", i);
        gguf_writer_u32(w, name, i);
        snprintf(name, sizeof name, "tensor.%u", i);
        gguf_writer_tensor(w, name, GGUF_TYPE_F32, (uint64_t[]){1}, 1, &value);
    }
    void *data;
    size_t n_bytes;
    assert_int_equal(gguf_writer_finish_memory(w, &data, &n_bytes, &why), STATUS_OK);
    double start = seconds();
    assert_int_equal(walk_bytes(data, n_bytes, &why), STATUS_OK);
    double spent = seconds() - start;
    print_message("%d keys and tensors opened and walked in %.3f s\n", N, spent);
    /* Pairwise it would be 4e10 comparisons, minutes; linear, well below a second. */
    assert_true(spent < 10);
    free(data);
}

/* Let the n-th allocation fail, for every n, and see that nothing is lost or left. */
static void test_reading_out_of_memory(void **state)
{
    (void)state;
    struct sample sample = sample_make();
    size_t n = 0;
    for (;; n++) {
        struct gguf_file *file;
        struct status_why why = {0};
        n_until_failure = n;
        enum status status = gguf_bytes_open(&file, sample.data, sample.n_bytes, "sample", &why);
        n_until_failure = SIZE_MAX;
        gguf_close(file);
        if (status == STATUS_OK)
            break;
        assert_null(file);
        assert_int_equal(status, STATUS_MEMORY);
        assert_non_null(strstr(why.text, "memory"));
    }
    assert_true(n >= 8); /* so many were met */
    free(sample.data);
}

static void test_writing_out_of_memory(void **state)
{
    (void)state;
    size_t n = 0;
    for (;; n++) {
        struct gguf_writer *w;
        struct status_why why = {0};
        float value = 1;
        void *data = NULL;
        size_t n_bytes = 0;
        n_until_failure = n;
        enum status status = gguf_writer_new(&w, &why);
        if (status == STATUS_OK) {
            gguf_writer_u32(w, "key", 1);
            gguf_writer_tensor(w, "tensor", GGUF_TYPE_F32, (uint64_t[]){1}, 1, &value);
            status = gguf_writer_finish_memory(w, &data, &n_bytes, &why);
        }
        n_until_failure = SIZE_MAX;
        free(data);
        if (status == STATUS_OK)
            break;
        assert_null(data);
        assert_int_equal(status, STATUS_MEMORY);
        assert_non_null(strstr(why.text, "memory"));
    }
    assert_true(n >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample_cut_at_every_byte),
        cmocka_unit_test(test_cut_sentences),
        cmocka_unit_test(test_model_cut_at_every_percent),
        cmocka_unit_test(test_every_byte_of_sample_mutated),
        cmocka_unit_test(test_directory_of_model_mutated),
        cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_reading_out_of_memory),
        cmocka_unit_test(test_writing_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
