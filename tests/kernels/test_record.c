/*
 * Recording on the CPU backend: scale, floor and codes against the definition in plain double
 * arithmetic, the same bytes for any ISA, threads and split of the rows, and rows that are not
 * finite.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/kernels/score_scene.h"

/** Record head h of a scene; free the result. */
static uint16_t *record(struct kern_backend *b, const struct scene *s, size_t h)
{
    size_t stride = kern_record_codes(s->n_vocab);
    uint16_t *records = malloc(s->op.n_rows * stride * sizeof *records);
    memset(records, 0xa5, s->op.n_rows * stride * sizeof *records);
    struct kern_record op = {
        .head = s->heads[h], .n_rows = s->op.n_rows, .records = records, .stride = stride};
    assert_int_equal(kern_record(b, &op, NULL), STATUS_OK);
    return records;
}

static float float_at(const uint16_t *codes)
{
    float value;
    memcpy(&value, codes, sizeof value);
    return value;
}

/**
 * All but the floor to the bit. The floor holds ln sum, whose two double evaluations differ by
 * about 1e-15 and so can, once in ten million rows, round to neighbouring floats.
 */
static void check_record(const uint16_t *found, const float *logits, size_t n_vocab)
{
    size_t n = kern_record_codes(n_vocab);
    uint16_t *expected = malloc(n * sizeof *expected);
    scene_encode(expected, logits, n_vocab);
    assert_memory_equal(found, expected, 2 * sizeof *expected);
    assert_true(compare_ulps(float_at(found + 2), float_at(expected + 2)) <= 1);
    assert_memory_equal(found + 4, expected + 4, (n - 4) * sizeof *expected);
    free(expected);
}

static void test_against_definition(void **state)
{
    (void)state;
    static const struct {
        size_t n_rows, n_vocab;
    } shapes[] = {{1, 1}, {2, 3}, {15, 32}, {16, 33}, {33, 250}, {100, 301}, {3, 4099}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct scene s;
        scene_open(&s, i, 3, shapes[i].n_rows, shapes[i].n_vocab);
        s.matrices[1].scale = 5.0f; /* logits more than 16 below the largest */
        scene_define_logits(&s, 1);
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            struct kern_backend *b = backend_open((enum kern_isa)isa, 2);
            for (size_t h = 0; h < 3; h++) {
                uint16_t *records = record(b, &s, h);
                for (size_t row = 0; row < s.op.n_rows; row++)
                    check_record(records + row * kern_record_codes(s.n_vocab),
                                 s.logits[h] + row * s.n_vocab, s.n_vocab);
                free(records);
            }
            kern_close(b);
        }
        scene_close(&s);
    }
}

/** Logits of rows, of the whole vocabulary and of a part, are those of the definition. */
static void test_logit_rows(void **state)
{
    (void)state;
    static const struct {
        size_t n_rows, n_vocab;
    } shapes[] = {{1, 1}, {15, 32}, {33, 250}, {2100, 67}, {3, 4099}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        size_t n_rows = shapes[i].n_rows, n_vocab = shapes[i].n_vocab, half = n_vocab / 2;
        struct scene s;
        scene_open(&s, 400 + i, 3, n_rows, n_vocab);
        float *found = malloc(n_rows * n_vocab * sizeof *found);
        assert_non_null(found);
        for (size_t h = 0; h < 3; h++) {
            struct kern_backend *b = backend_open((enum kern_isa)(h % KERN_ISA_COUNT), 2);
            struct kern_logit_rows op = {
                .head = s.heads[h], .n_rows = n_rows, .n = n_vocab, .logits = found};
            assert_int_equal(kern_logit_rows(b, &op, NULL), STATUS_OK);
            assert_int_equal(compare_bits(found, s.logits[h], n_rows * n_vocab), n_rows * n_vocab);
            op.first = half;
            op.n = n_vocab - half;
            assert_int_equal(kern_logit_rows(b, &op, NULL), STATUS_OK);
            for (size_t row = 0; row < n_rows; row++)
                assert_int_equal(
                    compare_bits(found + row * op.n, s.logits[h] + row * n_vocab + half, op.n),
                    op.n);
            kern_close(b);
        }
        free(found);
        scene_close(&s);
    }
}

/** A vocabulary so large that a slab holds two panels of rows, and rows for five slabs. */
static void test_slabs_and_threads_do_not_matter(void **state)
{
    (void)state;
    enum { N_VOCAB = (16 << 20) / 32 / 2 - 77, N_ROWS = 4 * 64 + 3 };
    struct rng r = rng_open(rng_seed(), 100);
    float *hidden = malloc(N_ROWS * 4 * sizeof *hidden);
    float *matrix = malloc((size_t)N_VOCAB * 4 * sizeof *matrix);
    for (size_t i = 0; i < N_ROWS * 4; i++)
        hidden[i] = rng_normal(&r);
    for (size_t i = 0; i < (size_t)N_VOCAB * 4; i++)
        matrix[i] = rng_normal(&r);
    struct kern_weight weight = {.type = GGUF_TYPE_F32,
                                 .n_rows = N_VOCAB,
                                 .n_cols = 4,
                                 .row_bytes = 4 * sizeof(float),
                                 .data = matrix,
                                 .scale = 1.0f};
    size_t stride = kern_record_codes(N_VOCAB);
    uint16_t *all = malloc(N_ROWS * stride * sizeof *all), *one = malloc(stride * sizeof *one);
    struct kern_record op = {.head = {.hidden = hidden, .matrix = &weight},
                             .n_rows = N_ROWS,
                             .records = all,
                             .stride = stride};
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    struct kern_backend *single = backend_open(KERN_ISA_COUNT - 1, 1);
    assert_in_range(kern_record_bytes(b, &op), 64 << 20, 66 << 20);
    assert_int_equal(kern_record(b, &op, NULL), STATUS_OK);
    for (size_t row = 0; row < N_ROWS; row += row < 250 ? 31 : 1) {
        struct kern_record alone = op;
        alone.head.hidden = hidden + row * 4;
        alone.n_rows = 1;
        alone.records = one;
        assert_int_equal(kern_record(single, &alone, NULL), STATUS_OK);
        assert_memory_equal(all + row * stride, one, stride * sizeof *one);
    }
    kern_close(b);
    kern_close(single);
    free(all);
    free(one);
    free(hidden);
    free(matrix);
}

/** Equal logits have no range: scale 0, all codes 0, log p = -ln V. */
static void test_equal_logits(void **state)
{
    (void)state;
    enum { N = 100 };
    struct scene s;
    scene_open(&s, 200, 1, 3, N);
    memset(s.memory[1], 0, N * s.matrices[0].n_cols * sizeof(float));
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 1);
    uint16_t *records = record(b, &s, 0);
    assert_true(float_at(records) == 0.0f && float_at(records + 2) == -(float)log(N));
    for (size_t i = 4; i < kern_record_codes(N); i++)
        assert_int_equal(records[i], 0);
    kern_close(b);
    free(records);
    scene_close(&s);
}

/** A row whose logits are NaN or infinite gets a floor that says so; the others are as ever. */
static void test_nonfinite_rows(void **state)
{
    (void)state;
    enum { BAD = 5 };
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        struct scene s;
        scene_open(&s, 300, 1, 20, 301);
        s.memory[0][BAD * s.matrices[0].n_cols + 2] = bad[i];
        struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
        uint16_t *records = record(b, &s, 0);
        size_t stride = kern_record_codes(s.n_vocab);
        assert_false(isfinite(float_at(records + BAD * stride + 2)));
        for (size_t row = 0; row < s.op.n_rows; row++) {
            if (row != BAD)
                check_record(records + row * stride, s.logits[0] + row * s.n_vocab, s.n_vocab);
        }
        kern_close(b);
        free(records);
        scene_close(&s);
    }
}

static void test_cancel_and_checks(void **state)
{
    (void)state;
    struct scene s;
    struct status_why why = {{0}};
    uint16_t records[4 * 66];
    scene_open(&s, 400, 1, 4, 61);
    struct kern_record op = {.head = s.heads[0], .n_rows = 4, .records = records, .stride = 65};
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    assert_int_equal(kern_record(b, &op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "record: records of 65 codes; 61 tokens take 66");
    op.stride = 66;
    atomic_bool cancel = true;
    kern_set_cancel(b, &cancel);
    assert_int_equal(kern_record(b, &op, NULL), STATUS_CANCELLED);
    kern_set_cancel(b, NULL);
    op.n_rows = 0;
    assert_int_equal(kern_record(b, &op, NULL), STATUS_OK);
    assert_int_equal(kern_record_bytes(b, &op), 0);
    s.matrices[0].row_bytes = 4;
    op.n_rows = 4;
    assert_int_equal(kern_record(b, &op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "record: head: rows 4 bytes apart; 40 elements of F32 take 160");
    kern_close(b);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_definition),
        cmocka_unit_test(test_logit_rows),
        cmocka_unit_test(test_slabs_and_threads_do_not_matter),
        cmocka_unit_test(test_equal_logits),
        cmocka_unit_test(test_nonfinite_rows),
        cmocka_unit_test(test_cancel_and_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
