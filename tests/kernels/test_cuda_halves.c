/* The CUDA backend's products in halves: with two parts three in one; what follows the sums. And
 * products with rows in another order than they are stored. */
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cuda/kernels/half.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"

/** A row of a product's operand, as half.h says it: halves and the power of two taken out. */
static int split_row(const float *x, size_t n, uint16_t *hi, uint16_t *lo)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = kern_magnitude_bits(x[i]) > largest ? kern_magnitude_bits(x[i]) : largest;
    int exponent = kern_row_exponent(largest);
    for (size_t i = 0; i < n; i++) {
        float scaled = kern_scale_by(x[i], exponent);
        hi[i] = kern_half_from_float(scaled);
        lo[i] = kern_half_rest(scaled, hi[i]);
    }
    return exponent;
}

static float add_products(float sum, const uint16_t *a, const uint16_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum += kern_half_to_float(a[i]) * kern_half_to_float(b[i]);
    return sum;
}

/**
 * One product over rows of lo, hi, hi is three products, each of which goes on with the sums of the
 * one before: the same bits. Columns that are a multiple of four, and not.
 */
static void test_three_in_one(void **state)
{
    (void)state;
    enum { ROWS = 70, MOST = 101, TOKENS = 19 };
    const size_t n_cols[] = {96, MOST};
    for (size_t c = 0; c < 2; c++) {
        struct rng r = rng_open(rng_seed(), 12);
        size_t n = n_cols[c];
        struct cuda_pair p;
        cuda_pair_open(&p, KERN_PRECISION_HIGH, &(struct host_device_options){0});
        struct kern_weight w = cuda_data_float_weight(&r, ROWS, n);
        float *x = cuda_data_floats(&r, TOKENS * n, 1.0f), found[TOKENS * ROWS];
        float *device_x = cuda_pair_put(&p, x, TOKENS * n);
        float *device_y = cuda_pair_put(&p, found, TOKENS * ROWS);
        struct kern_linear op = {
            .weight = &w, .x = device_x, .y = device_y, .y_stride = ROWS, .n_tokens = TOKENS};
        assert_int_equal(kern_linear(p.cuda, &op, NULL), STATUS_OK);
        cuda_pair_take(&p, device_y, found, TOKENS * ROWS);
        cuda_pair_take(&p, device_x, NULL, 0);
        for (size_t i = 0; i < TOKENS * ROWS && !cuda_pair_is_real(); i++) {
            uint16_t hi[2][MOST], lo[2][MOST];
            float row[MOST]; /* of the weight, whose rows begin at any byte */
            memcpy(row, (const char *)w.data + i % ROWS * w.row_bytes, n * sizeof *row);
            int exponent =
                split_row(row, n, hi[0], lo[0]) + split_row(x + i / ROWS * n, n, hi[1], lo[1]);
            float sum = add_products(0.0f, lo[0], hi[1], n);
            sum = add_products(add_products(sum, hi[0], lo[1], n), hi[0], hi[1], n);
            float expected = kern_scale_by(sum, -exponent);
            cuda_data_assert_same(found + i, &expected, 1, "three products in one");
        }
        cuda_data_weight_free(&w);
        free(x);
        cuda_pair_close(&p);
    }
}
/**
 * Scale, bias and what is there already, each rounded on its own; rows of y that begin anywhere,
 * and end with one, two or three outputs beyond the last four.
 */
static void check_finish(struct rng *r, size_t n_rows, size_t y_stride, unsigned way)
{
    enum { COLS = 32, TOKENS = 5, MOST = 16 };
    struct cuda_pair p;
    cuda_pair_open(&p, KERN_PRECISION_FAST, &(struct host_device_options){0});
    struct kern_weight w = cuda_data_float_weight(r, n_rows, COLS);
    struct kern_weight bias = cuda_data_float_weight(r, 1, n_rows);
    float *x = cuda_data_floats(r, TOKENS * COLS, 1.0f);
    float *y = cuda_data_floats(r, TOKENS * y_stride, 1.0f), found[2][TOKENS * MOST];
    float *device_x = cuda_pair_put(&p, x, TOKENS * COLS);
    for (unsigned i = 0; i < 2; i++) { /* the sums alone, then with what follows */
        float *device_y = cuda_pair_put(&p, y, TOKENS * y_stride);
        w.scale = i && way & 1 ? 0.75f : 1.0f;
        struct kern_linear op = {.weight = &w,
                                 .bias = i && way & 2 ? &bias : NULL,
                                 .x = device_x,
                                 .y = device_y,
                                 .y_stride = y_stride,
                                 .n_tokens = TOKENS,
                                 .accumulate = i && way & 4};
        assert_int_equal(kern_linear(p.cuda, &op, NULL), STATUS_OK);
        cuda_pair_take(&p, device_y, found[i], TOKENS * y_stride);
    }
    for (size_t i = 0; i < TOKENS * y_stride; i++) {
        float expected = found[0][i];
        if (i % y_stride < n_rows) {
            expected = way & 1 ? expected * 0.75f : expected;
            expected = way & 2 ? expected + ((const float *)bias.data)[i % y_stride] : expected;
            expected = way & 4 ? expected + y[i] : expected;
        }
        cuda_data_assert_same(&found[1][i], &expected, 1, "a finished sum");
    }
    cuda_pair_take(&p, device_x, NULL, 0);
    cuda_data_weight_free(&w);
    cuda_data_weight_free(&bias);
    free(x);
    free(y);
    cuda_pair_close(&p);
}

static void test_finish(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 13);
    for (unsigned way = 0; way < 8; way++)
        for (size_t n_rows = 8; n_rows < 12; n_rows++)
            check_finish(&r, n_rows, n_rows + 1 + way % 2, way);
}

enum { STORED = 70, ROWS = 45, COLS = 64, TOKENS = 9 };

/** The product on the CPU, and on the device, which gives the same. */
static void multiply(struct cuda_pair *p, const struct kern_weight *w, const float *x, float *y)
{
    float found[TOKENS * ROWS];
    struct kern_linear op = {.weight = w, .x = x, .y = y, .y_stride = ROWS, .n_tokens = TOKENS};
    assert_int_equal(kern_linear(p->cpu, &op, NULL), STATUS_OK);
    float *device_x = cuda_pair_put(p, x, TOKENS * COLS);
    float *device_y = cuda_pair_put(p, y, TOKENS * ROWS);
    op.x = device_x;
    op.y = device_y;
    assert_int_equal(kern_linear(p->cuda, &op, NULL), STATUS_OK);
    cuda_pair_take(p, device_y, found, TOKENS * ROWS);
    cuda_pair_take(p, device_x, NULL, 0);
    cuda_data_assert_same(found, y, TOKENS * ROWS, gguf_type_name(w->type));
}

/** Rows in another order, as a view and as a copy; two views of the same bytes after each other. */
static void check_view(struct cuda_pair *p, struct rng *r, enum gguf_type type)
{
    struct kern_weight view = cuda_data_random_weight(r, type, STORED, COLS);
    struct kern_weight copy = cuda_data_random_weight(r, type, ROWS, COLS);
    float *x = cuda_data_floats(r, TOKENS * COLS, 1.0f), expected[TOKENS * ROWS],
          found[TOKENS * ROWS];
    int32_t rows[2][ROWS];
    size_t n_bytes = base_min(view.row_bytes, copy.row_bytes); /* the longer has something after */
    view.n_rows = ROWS;
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < ROWS; i++) {
            rows[k][i] = (int32_t)rng_below(r, STORED);
            memcpy((char *)(uintptr_t)copy.data + i * copy.row_bytes,
                   (const char *)view.data + (size_t)rows[k][i] * view.row_bytes, n_bytes);
        }
        copy.generation = kern_next_generation();
        view.rows = rows[k];
        multiply(p, &copy, x, expected);
        multiply(p, &view, x, found);
        cuda_data_assert_same(found, expected, TOKENS * ROWS, gguf_type_name(type));
    }
    free(x);
    cuda_data_weight_free(&view);
    cuda_data_weight_free(&copy);
}

/** Columns of one matrix as rows of another. */
static void check_columns(struct cuda_pair *p, struct rng *r)
{
    enum { SIZE = 2 };
    struct kern_weight rows = cuda_data_random_weight(r, GGUF_TYPE_BF16, ROWS, COLS);
    struct kern_weight columns = cuda_data_random_weight(r, GGUF_TYPE_BF16, COLS, ROWS);
    float *x = cuda_data_floats(r, TOKENS * COLS, 1.0f), expected[TOKENS * ROWS],
          found[TOKENS * ROWS];
    for (size_t i = 0; i < ROWS; i++)
        for (size_t c = 0; c < COLS; c++)
            memcpy((char *)(uintptr_t)columns.data + c * columns.row_bytes + i * SIZE,
                   (const char *)rows.data + i * rows.row_bytes + c * SIZE, SIZE);
    columns.col_step = columns.row_bytes;
    columns.row_bytes = SIZE;
    columns.n_rows = ROWS;
    columns.n_cols = COLS;
    multiply(p, &rows, x, expected);
    multiply(p, &columns, x, found);
    cuda_data_assert_same(found, expected, TOKENS * ROWS, "columns");
    free(x);
    cuda_data_weight_free(&rows);
    cuda_data_weight_free(&columns);
}

static void test_views(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 31);
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(1);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
    check_view(&p, &r, GGUF_TYPE_BF16);
    check_view(&p, &r, GGUF_TYPE_Q4_0);
    check_columns(&p, &r);
    cuda_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_three_in_one),
                                       cmocka_unit_test(test_finish), cmocka_unit_test(test_views)};
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
}
