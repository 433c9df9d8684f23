/* Stretches of zeros: a gap that a download left is told from numbers that are 0. */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/harness/gguf_writer.h"

enum { COLUMNS = 300, ROWS = 64, ROW_BYTES = 4 * COLUMNS, MATRIX = ROWS * ROW_BYTES };

/** What was found in a file of the matrices a, b, c, d with a bias after b, of ones but for zeros.
 */
struct found {
    struct gguf_zeros all[8];
    char first[8][8], last[8][8];
    size_t n;
};

static enum status take(void *user, const struct gguf_zeros *zeros, struct status_why *why)
{
    (void)why;
    struct found *f = user;
    assert_true(f->n < 8);
    snprintf(f->first[f->n], sizeof f->first[0], "%s", zeros->first->name);
    snprintf(f->last[f->n], sizeof f->last[0], "%s", zeros->last->name);
    f->all[f->n++] = *zeros;
    return STATUS_OK;
}

/** Zeros in bytes [from, to) of the data, in which each matrix has MATRIX bytes. */
static struct found look(size_t from, size_t to)
{
    static const char *const names[] = {"a", "b", "bias", "c", "d"};
    struct found found = {0};
    struct gguf_writer *w;
    struct gguf_file *file;
    void *bytes;
    size_t n_bytes;
    float *ones = malloc(MATRIX);
    assert_non_null(ones);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        ones[i] = 1;
    assert_int_equal(gguf_writer_new(&w, NULL), STATUS_OK);
    for (size_t i = 0; i < 5; i++) {
        bool bias = strcmp(names[i], "bias") == 0;
        gguf_writer_tensor(w, names[i], GGUF_TYPE_F32, (uint64_t[]){bias ? 8 : COLUMNS, ROWS},
                           bias ? 1 : 2, ones);
    }
    assert_int_equal(gguf_writer_finish_memory(w, &bytes, &n_bytes, NULL), STATUS_OK);
    size_t data = n_bytes - (4 * MATRIX + 32);
    memset((char *)bytes + data + from, 0, to - from);
    assert_int_equal(gguf_bytes_open(&file, bytes, n_bytes, "zeros", NULL), STATUS_OK);
    assert_int_equal(gguf_zeros_find(file, take, &found, NULL), STATUS_OK);
    gguf_close(file);
    free(bytes);
    free(ones);
    return found;
}

static void check(size_t from, size_t to, const char *first, const char *last, size_t n_whole,
                  unsigned n_signs)
{
    struct found f = look(from, to);
    assert_int_equal(f.n, 1);
    assert_string_equal(f.first[0], first);
    assert_string_equal(f.last[0], last);
    assert_int_equal(f.all[0].n_whole, n_whole);
    assert_int_equal(f.all[0].n_signs, n_signs);
    /* A number's other bytes beside it may be zeros, too. */
    assert_true(f.all[0].n_bytes >= to - from && f.all[0].n_bytes < to - from + 8);
}

enum { BIAS = 2 * MATRIX, C = BIAS + 32, D = C + MATRIX, END = D + MATRIX };

static void test_gaps(void **state)
{
    (void)state;
    check(D + MATRIX / 3 + 500, END, "d", "d", 0, 2);
    check(MATRIX / 4 + 500, END, "a", "d", 3, 3);
    check(MATRIX, END, "b", "d", 3, 2);             /* just before a tensor */
    check(D + 10 * ROW_BYTES, END, "d", "d", 0, 1); /* just before a row */
    check(C + 20 * ROW_BYTES, END, "c", "d", 1, 2); /* the same, and more */
    check(C + 1000, D - 1000, "c", "c", 0, 2);      /* in the middle */
    check(C + 10 * ROW_BYTES, D + 40 * ROW_BYTES, "c", "d", 0, 1);
    check(C + 10 * ROW_BYTES, D + 40 * ROW_BYTES + 400, "c", "d", 0, 2);
    check(END - 5000, END, "d", "d", 0, 2); /* hardly anything */
}

static void test_numbers(void **state)
{
    (void)state;
    assert_int_equal(look(0, 0).n, 0);
    assert_int_equal(look(BIAS, C).n, 0);                          /* a bias */
    assert_int_equal(look(END - 2 * ROW_BYTES, END).n, 0);         /* a few rows */
    check(C, D, "c", "c", 1, 0);                                   /* a matrix */
    check(BIAS, D, "bias", "c", 1, 0);                             /* and its bias */
    check(0, 2 * MATRIX, "a", "b", 2, 0);                          /* two */
    check(D, END, "d", "d", 1, 1);                                 /* the last */
    check(C + 10 * ROW_BYTES, C + 50 * ROW_BYTES, "c", "c", 0, 0); /* rows */
}

/* What the caller fails with is what comes back. */
static enum status refuse(void *user, const struct gguf_zeros *zeros, struct status_why *why)
{
    (void)user;
    return status_fail(why, STATUS_FORMAT, "%s", zeros->first->name);
}

static void test_failure(void **state)
{
    (void)state;
    struct gguf_file *file;
    struct gguf_writer *w;
    struct status_why why = {0};
    void *bytes;
    size_t n_bytes;
    static const float none[64];
    assert_int_equal(gguf_writer_new(&w, NULL), STATUS_OK);
    gguf_writer_tensor(w, "x", GGUF_TYPE_F32, (uint64_t[]){8, 8}, 2, none);
    assert_int_equal(gguf_writer_finish_memory(w, &bytes, &n_bytes, NULL), STATUS_OK);
    assert_int_equal(gguf_bytes_open(&file, bytes, n_bytes, "zeros", NULL), STATUS_OK);
    assert_int_equal(gguf_zeros_find(file, refuse, NULL, &why), STATUS_FORMAT);
    assert_string_equal(why.text, "x");
    gguf_close(file);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
