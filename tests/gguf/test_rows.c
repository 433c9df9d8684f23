/* Rows with a prefix and rows in bundles: their sizes, and shapes that are no rows of theirs. */
#include "tests/harness/cmocka.h"
#include <inttypes.h>
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gguf/sample.h"
#include "tests/gguf/walk.h"
#include "tests/harness/types.h"

enum { DIMS_AT = 4, TYPE_AT = 20 }; /* after a name of a tensor of two dimensions */

/* A file of a.weight, of a type, and b.weight, F32 of 16 KiB; all bytes are 1. */
static struct sample make(enum gguf_type type, uint64_t n_cols, uint64_t n_rows)
{
    struct gguf_writer *w;
    struct sample sample;
    struct status_why why = {""};
    uint64_t ne[2] = {n_cols, n_rows};
    static uint8_t data[1 << 16];
    memset(data, 1, sizeof data);
    assert_int_equal(gguf_writer_new(&w, &why), STATUS_OK);
    gguf_writer_tensor(w, "a.weight", type, ne, 2, data);
    gguf_writer_tensor(w, "b.weight", GGUF_TYPE_F32, (uint64_t[]){64, 64}, 2, data);
    if (gguf_writer_finish_memory(w, (void **)&sample.data, &sample.n_bytes, &why))
        fail_msg("%s", why.text);
    return sample;
}

static void put(struct sample *s, size_t at, uint64_t value, size_t n_bytes)
{
    memcpy(s->data + sample_after(s, "a.weight") + at, &value, n_bytes);
}

/* Refused with this sentence; frees the sample. */
static void check_refused(struct sample *s, const char *sentence)
{
    struct status_why why;
    assert_int_not_equal(walk_bytes(s->data, s->n_bytes, &why), STATUS_OK);
    if (!strstr(why.text, sentence))
        fail_msg("'%s' is not in '%s'", sentence, why.text);
    free(s->data);
}

static void test_every_type(void **state)
{
    (void)state;
    const struct gguf_type_info *type;
    for (size_t i = 0; (type = type_at(i)) && (int)type->type < GGUF_FIRST_FOLDER; i++) {
        size_t tail = type->tail_bytes;
        struct sample s = make(type->type, 2 * type->block_elems, 2 * type->bundle_rows);
        struct gguf_file *file = sample_open(&s);
        walk_file(file);
        const struct gguf_tensor *a = gguf_tensor_find(file, "a.weight");
        assert_int_equal(
            a->n_bytes,
            2 * type->bundle_rows * (type->row_prefix + (uint64_t)2 * type->block_bytes) + tail);
        assert_true((a->scales != NULL) == (tail > 0));
        gguf_close(file);
        if (type->bundle_rows > 1) { /* not whole bundles */
            put(&s, DIMS_AT + 8, 2 * type->bundle_rows - 1, 8);
            char sentence[160];
            snprintf(sentence, sizeof sentence,
                     "input: tensor 'a.weight': has matrices of %" PRIu32
                     " rows of type %s, expected a multiple of the %" PRIu32
                     " that it stores together",
                     2 * type->bundle_rows - 1, type->name, type->bundle_rows);
            check_refused(&s, sentence);
        } else {
            free(s.data);
        }
    }
}

/* Numbers that no file has bytes for, or that overflow. */
static void test_hostile_sizes(void **state)
{
    (void)state;
    static const enum gguf_type types[] = {GGUF_TYPE_IQ4_KS,   GGUF_TYPE_IQ1_BN,
                                           GGUF_TYPE_Q8_KV,    GGUF_TYPE_IQ4_K_R4,
                                           GGUF_TYPE_BF16_R16, GGUF_TYPE_Q8_KV_R8};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const struct gguf_type_info *type = gguf_type_info(types[i]);
        uint64_t rows = type->bundle_rows;
        struct sample s = make(types[i], 256, rows);
        put(&s, DIMS_AT, 256 + type->block_elems / 2, 8);
        check_refused(&s, "expected a multiple of its block of");
        s = make(types[i], 256, rows);
        put(&s, DIMS_AT, UINT64_C(1) << 62, 8);
        check_refused(&s, rows > 1 ? "expected a product of the dimensions below 2^63"
                                   : "end beyond the file");
        s = make(types[i], 256, rows);
        put(&s, DIMS_AT + 8, UINT64_C(1) << 54, 8);
        check_refused(&s, "end beyond the file");
        s = make(types[i], 256, rows); /* more than up to the next tensor */
        put(&s, DIMS_AT + 8, 2 * rows, 8);
        check_refused(&s, "starts at byte");
    }
    struct sample s = make(GGUF_TYPE_Q8_KV, 32, 8); /* 2^58 - 1 rows of 40 bytes: beyond 2^63 */
    put(&s, DIMS_AT + 8, (UINT64_C(1) << 58) - 1, 8);
    check_refused(&s, "end beyond the file");
}

/* A row of 256 elements in a bundle of one row: a vector is none. */
static void test_vector(void **state)
{
    (void)state;
    struct sample s = make(GGUF_TYPE_Q4_K, 256, 1);
    put(&s, TYPE_AT, GGUF_TYPE_Q4_K_R4, 4);
    check_refused(&s, "has matrices of 1 row of type Q4_K_R4, expected a multiple of the 4");
}

/* What ik_llama.cpp makes of Q8_KV when it repacks it: the type changes, the places do not. */
static void test_repacked_q8_kv(void **state)
{
    (void)state;
    struct sample s = make(GGUF_TYPE_Q8_KV, 64, 8);
    put(&s, TYPE_AT, GGUF_TYPE_Q8_KV_R8, 4);
    check_refused(&s, "input: tensor 'a.weight': has type Q8_KV_R8 and 32 bytes after it, expected "
                      "fewer than 4 a row (32)");
    s = make(GGUF_TYPE_Q8_KV_R8, 64, 8);
    struct status_why why;
    assert_int_equal(walk_bytes(s.data, s.n_bytes, &why), STATUS_OK);
    free(s.data);
}

/* The scale of I2_S is that of the tensor, after its codes. */
static void test_i2_s(void **state)
{
    (void)state;
    struct sample s = make(GGUF_TYPE_I2_S, 256, 3);
    struct gguf_file *file = sample_open(&s);
    const struct gguf_tensor *a = gguf_tensor_find(file, "a.weight");
    assert_int_equal(a->row_bytes, 64);
    assert_int_equal(a->n_bytes, 3 * 64 + 32);
    assert_int_equal(gguf_tensor_stored_bytes(a), a->n_bytes); /* the scale once */
    assert_ptr_equal(a->scales->data, (const uint8_t *)a->data + 3 * 64);
    struct gguf_scales last = gguf_tensor_scales(a, 2);
    assert_ptr_equal(gguf_scales_row(&last, 0), a->scales->data);
    gguf_close(file);
    put(&s, DIMS_AT, 192, 8);
    check_refused(&s, "has rows of 192 elements of type I2_S, expected a multiple of its block");
    s = make(GGUF_TYPE_I2_S, 256, 4); /* of 288 bytes with its tail, and those of five rows */
    put(&s, DIMS_AT + 8, 5, 8);
    check_refused(&s, "starts at byte");
    s = make(GGUF_TYPE_I2_S, 128, 4); /* as long as before, but for the tail */
    put(&s, DIMS_AT + 8, (UINT64_C(1) << 56) - 1, 8);
    check_refused(&s, "end beyond the file");

    struct gguf_writer *w; /* cut within the tail */
    struct status_why why;
    static const uint8_t bytes[128];
    assert_int_equal(gguf_writer_new(&w, &why), STATUS_OK);
    gguf_writer_tensor(w, "a.weight", GGUF_TYPE_I2_S, (uint64_t[]){128, 3}, 2, bytes);
    assert_int_equal(gguf_writer_finish_memory(w, (void **)&s.data, &s.n_bytes, &why), STATUS_OK);
    s.n_bytes -= 29;
    check_refused(&s, "end beyond the file");

    assert_int_equal(gguf_writer_new(&w, &why), STATUS_OK); /* refused when it is written, too */
    gguf_writer_tensor(w, "a.weight", GGUF_TYPE_I2_S, (uint64_t[]){128, 1, 2}, 3, bytes);
    assert_int_not_equal(gguf_writer_finish_memory(w, (void **)&s.data, &s.n_bytes, &why),
                         STATUS_OK);
    assert_non_null(strstr(why.text, "has 2 matrices of type I2_S, expected one"));
}

/* Types of tensors of folders have ids, which no file may have. */
static void test_types_of_folders(void **state)
{
    (void)state;
    for (uint32_t id = GGUF_FIRST_FOLDER; id < GGUF_TYPE_LIMIT; id++) {
        char sentence[96];
        struct sample s = make(GGUF_TYPE_Q8_0, 256, 2);
        put(&s, TYPE_AT, id, 4);
        snprintf(sentence, sizeof sentence,
                 "tensor 'a.weight': has type %" PRIu32 ", expected one that GGUF files may have",
                 id);
        check_refused(&s, sentence);
    }
}

static const uint8_t *sought;

static bool has_sought(const void *data, size_t n)
{
    return sought >= (const uint8_t *)data && sought < (const uint8_t *)data + n;
}

/** Which bytes of the memory the tensor lies in: those of the ranges, [n][2], and no others. */
static void check_lies_in(const struct gguf_tensor *tensor, const uint8_t *memory, size_t n_bytes,
                          size_t ranges[][2], size_t n)
{
    for (size_t i = 0; i < n_bytes; i++) {
        bool expected = false;
        for (size_t k = 0; k < n; k++)
            expected |= i >= ranges[k][0] && i < ranges[k][1];
        sought = memory + i;
        if (gguf_tensor_any(tensor, has_sought) != expected)
            fail_msg("byte %zu: %s", i, expected ? "not found" : "found");
    }
}

static void test_where_it_lies(void **state)
{
    (void)state;
    static uint8_t memory[1024];
    struct gguf_tensor t = {.type = gguf_type_info(GGUF_TYPE_F16),
                            .ne = {4, 3, 2, 1},
                            .n_rows = 6,
                            .row_bytes = 8,
                            .n_bytes = 48,
                            .data = memory + 100};
    check_lies_in(&t, memory, sizeof memory, (size_t[][2]){{100, 148}}, 1);
    struct gguf_view view = {.row_step = 16};
    t.view = &view;
    check_lies_in(&t, memory, sizeof memory, (size_t[][2]){{100, 140}, {124, 164}}, 2);
    const void *const matrices[] = {memory + 500, memory + 200};
    view.matrices = matrices;
    check_lies_in(&t, memory, sizeof memory, (size_t[][2]){{200, 240}, {500, 540}}, 2);
    struct gguf_view parts = {.matrices = matrices, .part_rows = 4};
    struct gguf_tensor table = t;
    table.ne[1] = 6;
    table.ne[2] = 1;
    table.view = &parts;
    check_lies_in(&table, memory, sizeof memory, (size_t[][2]){{500, 532}, {200, 216}}, 2);
    assert_ptr_equal(gguf_tensor_row(&table, 3), memory + 524);
    assert_ptr_equal(gguf_tensor_row(&table, 4), memory + 200);
    assert_ptr_equal(gguf_tensor_row(&table, 5), memory + 208);
    const int32_t rows[] = {0, 4, 1}; /* five rows as stored */
    view.rows = rows;
    check_lies_in(&t, memory, sizeof memory, (size_t[][2]){{200, 272}, {500, 572}}, 2);
    /* Scales of two rows each; the first matrix has none. */
    const struct gguf_scales scales[] = {{0},
                                         {.data = memory + 900,
                                          .type = GGUF_SCALE_F32,
                                          .block_rows = 2,
                                          .block_cols = 4,
                                          .n_cols = 1,
                                          .first_row = 2}};
    t.scales = scales;
    check_lies_in(&t, memory, sizeof memory, (size_t[][2]){{200, 272}, {500, 572}, {904, 916}}, 3);
    /* Columns are rows. */
    view = (struct gguf_view){.row_step = 2, .col_step = 20};
    t.scales = NULL;
    check_lies_in(&t, memory, sizeof memory, (size_t[][2]){{100, 166}, {124, 190}}, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),    cmocka_unit_test(test_hostile_sizes),
        cmocka_unit_test(test_vector),        cmocka_unit_test(test_repacked_q8_kv),
        cmocka_unit_test(test_i2_s),          cmocka_unit_test(test_types_of_folders),
        cmocka_unit_test(test_where_it_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
