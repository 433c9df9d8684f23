/* The CUDA backend's product in halves of two parts: three products in one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/cuda/kernels/half.h"
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
            const float *row = (const void *)((const char *)w.data + i % ROWS * w.row_bytes);
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
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_three_in_one)};
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
}
