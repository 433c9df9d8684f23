/**
 * Rows as files store them (kernels/quant/rows.h), every type: any columns of any row are the same
 * as the row decoded at once, nothing beyond the matrix is read, and a product or an embedding with
 * the stored rows has the bits of one with the decoded rows in float32. ASSAY_TEST_SEED repeats a
 * run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/operations.h"
#include "kernels/quant/rows.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/harness/random_blocks.h"

enum { N_ROWS = 48, N_COLS = 768, N_TOKENS = 5 };

struct matrix {
    const struct kern_quant *format;
    struct guard bytes; /* N_ROWS rows, an inaccessible page behind them */
    struct kern_rows rows;
    float *decoded; /* [N_ROWS, N_COLS] */
};

static struct matrix matrix_open(const struct kern_quant *format, size_t slack)
{
    struct matrix m = {.format = format};
    size_t row_bytes = random_blocks_row_bytes(format->type, N_COLS);
    struct random_blocks pool;
    m.bytes = guard_open(N_ROWS * row_bytes, slack);
    m.decoded = malloc(sizeof(float) * N_ROWS * N_COLS);
    assert_true(m.decoded && random_blocks_open(&pool, format->type, 0.5, 4096));
    pool.rng = rng_open(rng_seed(), format->type);
    random_blocks_draw(&pool, m.bytes.data, N_ROWS, N_COLS);
    random_blocks_close(&pool);
    m.rows = (struct kern_rows){format->type, m.bytes.data, row_bytes};
    for (size_t r = 0; r < N_ROWS; r++)
        kern_rows_decode(&m.rows, format->decode, r, 0, N_COLS, m.decoded + r * N_COLS);
    return m;
}

static void matrix_close(struct matrix *m)
{
    assert_true(guard_intact(&m->bytes));
    guard_close(&m->bytes);
    free(m->decoded);
}

static void assert_same(const struct matrix *m, const float *found, const float *expected, size_t n,
                        const char *what)
{
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s, %s: element %zu of %zu is %a, expected %a", gguf_type_name(m->rows.type),
                 what, i, n, (double)found[i], (double)expected[i]);
}

/** Columns from anywhere, into memory of exactly their size. */
static void test_any_columns(void **state)
{
    (void)state;
    const struct kern_quant *format;
    for (size_t i = 0; (format = kern_quant_at(i)); i++) {
        struct matrix m = matrix_open(format, i % 3);
        size_t step = gguf_type_info(format->type)->block_elems;
        struct rng r = rng_open(rng_seed(), i);
        for (int k = 0; k < 40; k++) {
            size_t row = rng_below(&r, N_ROWS), n_blocks = N_COLS / step;
            size_t first = rng_below(&r, n_blocks), n = 1 + rng_below(&r, n_blocks - first);
            struct guard work = guard_open(KERN_ROWS_WORK_BYTES * n * step, 0);
            float y[N_COLS];
            const void *blocks = kern_rows_blocks(&m.rows, row, first * step, n * step, work.data);
            assert_true((blocks == work.data) == kern_rows_are_copied(format->type));
            format->decode(blocks, y, n * step);
            assert_same(&m, y, m.decoded + row * N_COLS + first * step, n * step, "columns");
            assert_true(guard_intact(&work));
            guard_close(&work);
        }
        matrix_close(&m);
    }
}

/** All rows differ: one of a bundle is not another one. */
static void test_rows_differ(void **state)
{
    (void)state;
    const struct kern_quant *format;
    for (size_t i = 0; (format = kern_quant_at(i)); i++) {
        struct matrix m = matrix_open(format, 0);
        for (size_t r = 1; r < gguf_type_info(format->type)->bundle_rows; r++)
            assert_int_not_equal(memcmp(m.decoded, m.decoded + r * N_COLS, sizeof(float) * N_COLS),
                                 0);
        matrix_close(&m);
    }
}

static void check_products(struct kern_backend *b, const struct matrix *m, const float *x)
{
    struct kern_weight stored = {.type = m->rows.type,
                                 .n_rows = N_ROWS,
                                 .n_cols = N_COLS,
                                 .row_bytes = m->rows.row_bytes,
                                 .data = m->rows.data,
                                 .scale = 1};
    struct kern_weight decoded = stored;
    decoded.type = GGUF_TYPE_F32;
    decoded.row_bytes = sizeof(float) * N_COLS;
    decoded.data = m->decoded;
    float found[N_TOKENS * N_ROWS], expected[N_TOKENS * N_ROWS];
    struct kern_linear op = {.x = x, .y_stride = N_ROWS, .n_tokens = N_TOKENS};
    op.weight = &stored;
    op.y = found;
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    op.weight = &decoded;
    op.y = expected;
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    assert_same(m, found, expected, N_TOKENS * N_ROWS, "a product");

    static const int32_t tokens[] = {0, 7, 47, 1, 30};
    float rows[5 * N_COLS];
    assert_int_equal(kern_embed(b, &stored, tokens, 5, rows, NULL), STATUS_OK);
    for (size_t t = 0; t < 5; t++)
        assert_same(m, rows + t * N_COLS, m->decoded + (size_t)tokens[t] * N_COLS, N_COLS,
                    "an embedding");
}

/** Columns as rows: the even ones of a matrix that has them twice. */
static void check_columns(struct kern_backend *b, const struct matrix *m, const float *x)
{
    struct kern_weight rows = {.type = m->rows.type,
                               .n_rows = N_ROWS,
                               .n_cols = N_COLS,
                               .row_bytes = m->rows.row_bytes,
                               .data = m->rows.data,
                               .scale = 1};
    struct kern_weight columns = rows;
    size_t size = gguf_type_info(m->rows.type)->block_bytes;
    char *turned = malloc(2 * N_ROWS * N_COLS * size);
    float found[N_TOKENS * N_ROWS], expected[N_TOKENS * N_ROWS];
    assert_non_null(turned);
    memset(turned, 0x7f, 2 * N_ROWS * N_COLS * size);
    for (size_t r = 0; r < N_ROWS; r++)
        for (size_t c = 0; c < N_COLS; c++)
            memcpy(turned + 2 * (c * N_ROWS + r) * size,
                   (const char *)m->rows.data + r * m->rows.row_bytes + c * size, size);
    columns.data = turned;
    columns.row_bytes = 2 * size;
    columns.apart = 2 * size * N_ROWS;
    struct kern_linear op = {.x = x, .y_stride = N_ROWS, .n_tokens = N_TOKENS};
    op.weight = &rows;
    op.y = expected;
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    op.weight = &columns;
    op.y = found;
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    assert_same(m, found, expected, N_TOKENS * N_ROWS, "a product with columns");
    free(turned);
}

static void test_products(void **state)
{
    (void)state;
    struct kern_cpu_options options = {
        .n_threads = 2, .isa_cap = KERN_ISA_COUNT - 1, .precision = KERN_PRECISION_EXACT};
    struct kern_backend *b;
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    float x[N_TOKENS * N_COLS];
    struct rng r = rng_open(rng_seed(), 5);
    for (size_t i = 0; i < N_TOKENS * N_COLS; i++)
        x[i] = rng_normal(&r);
    const struct kern_quant *format;
    for (size_t i = 0; (format = kern_quant_at(i)); i++) {
        struct matrix m = matrix_open(format, i % 2);
        check_products(b, &m, x);
        if (gguf_type_info(format->type)->block_elems == 1 &&
            gguf_type_info(format->type)->row_prefix == 0)
            check_columns(b, &m, x);
        matrix_close(&m);
    }
    kern_close(b);
}

/** Part of a bundle is no matrix. */
static void test_whole_bundles(void **state)
{
    (void)state;
    struct kern_cpu_options options = {.n_threads = 1};
    struct kern_backend *b;
    struct status_why why = {""};
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    struct matrix m = matrix_open(kern_quant_find(GGUF_TYPE_IQ4_KS_R4), 0);
    struct kern_weight w = {.type = m.rows.type,
                            .n_rows = 6,
                            .n_cols = N_COLS,
                            .row_bytes = m.rows.row_bytes,
                            .data = m.rows.data};
    const int32_t token = 0;
    float y[N_COLS];
    assert_int_equal(kern_embed(b, &w, &token, 1, y, &why), STATUS_USAGE);
    assert_string_equal(why.text,
                        "embed: matrix: 6 rows; IQ4_KS_R4 stores 4 together and needs a multiple");
    w.n_rows = 8;
    w.row_bytes -= 4;
    assert_int_equal(kern_embed(b, &w, &token, 1, y, &why), STATUS_USAGE);
    assert_string_equal(why.text,
                        "embed: matrix: rows 408 bytes apart; 768 elements of IQ4_KS_R4 take 412");
    matrix_close(&m);
    kern_close(b);
}

int main(void)
{
    rng_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_columns),
        cmocka_unit_test(test_rows_differ),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_whole_bundles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
