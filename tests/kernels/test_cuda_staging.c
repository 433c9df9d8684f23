/* Rows gathered for a device, by one thread and by several: every byte, none beside them; of a
 * weight whose scales lie apart also these. */
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cuda/device/staging.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/guard.h"
#include "tests/harness/rng.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"

/** Some ranges of rows of random bytes against a byte by byte definition. */
static void check_rows(struct base_pool *pool, struct rng *r, size_t n_rows, size_t row_bytes,
                       size_t gap, bool shuffled)
{
    size_t stride = row_bytes + gap, total = n_rows * row_bytes;
    /* The last row has no gap after it: nothing there may be read. */
    struct guard from = guard_open((n_rows - 1) * stride + row_bytes, 0);
    rng_bytes(r, from.data, (n_rows - 1) * stride + row_bytes);
    int32_t *which = shuffled ? malloc(n_rows * sizeof *which) : NULL;
    assert_true(which || !shuffled);
    for (size_t i = 0; shuffled && i < n_rows; i++) /* some twice, some never */
        which[i] = (int32_t)rng_below(r, n_rows);
    const struct kern_cuda_rows rows = {from.data, n_rows, row_bytes, stride, which};
    assert_int_equal(kern_cuda_rows_total(&rows), total);
    for (int i = 0; i < 4; i++) {
        size_t begin = i == 0 ? 0 : rng_below(r, total);
        size_t n = i == 0 ? total : 1 + rng_below(r, total - begin);
        struct guard to = guard_open(n, 0);
        kern_cuda_rows_gather(pool, &rows, begin, n, to.data);
        const uint8_t *found = to.data, *source = from.data;
        for (size_t k = 0; k < n; k++) {
            size_t at = begin + k;
            size_t row = which ? (size_t)which[at / row_bytes] : at / row_bytes;
            if (found[k] != source[row * stride + at % row_bytes])
                fail_msg("byte %zu of %zu from %zu on differs (rows of %zu, %zu apart)", k, n,
                         begin, row_bytes, stride);
        }
        assert_true(guard_intact(&to));
        guard_close(&to);
    }
    free(which);
    guard_close(&from);
}

static void test_gather(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 70);
    for (unsigned n_threads = 0; n_threads <= 4; n_threads += 2) {
        struct base_pool *pool = NULL;
        if (n_threads > 0)
            assert_int_equal(base_pool_open(&pool, n_threads, NULL), STATUS_OK);
        for (int shuffled = 0; shuffled < 2; shuffled++) {
            check_rows(pool, &r, 1, 1, 0, shuffled);
            check_rows(pool, &r, 300, 7, 3, shuffled);
            check_rows(pool, &r, 1, 3 << 20, 0, shuffled);       /* one row for several threads */
            check_rows(pool, &r, 200, 8192, 8192 + 8, shuffled); /* a tile of records */
            check_rows(pool, &r, 3, 700001, 1, shuffled);        /* pieces that end within rows */
        }
        base_pool_close(pool);
    }
}

/** What a device holds of codes is not taken for the same codes with other scales, or scales from
 * another row on. */
static void test_other_scales(void **state)
{
    (void)state;
    enum { ROWS = 9, COLS = 64, TOKENS = 2 };
    struct rng r = rng_open(rng_seed(), 13);
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(1);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
    struct kern_weight first = cuda_data_random_weight(&r, GGUF_TYPE_MXFP4_APART, ROWS, COLS);
    static const uint8_t others[] = {127, 120, 130, 127, 125, 129, 121};
    struct kern_weight w[] = {first, first, first, first};
    w[1].scales.data = others;
    w[2].scales.first_row = 2;
    w[3].scales.block_rows = 4;
    float *x = cuda_data_floats(&r, TOKENS * COLS, 1), expected[TOKENS * ROWS];
    float found[TOKENS * ROWS] = {0}, *device_x = cuda_pair_put(&p, x, TOKENS * COLS);
    for (size_t i = 0; i < 8; i++) {
        struct kern_linear op = {.weight = &w[i % 4], .y_stride = ROWS, .n_tokens = TOKENS};
        op.x = x;
        op.y = expected;
        assert_int_equal(kern_linear(p.cpu, &op, NULL), STATUS_OK);
        op.x = device_x;
        float *device_y = op.y = cuda_pair_put(&p, found, TOKENS * ROWS);
        assert_int_equal(kern_linear(p.cuda, &op, NULL), STATUS_OK);
        cuda_pair_take(&p, device_y, found, TOKENS * ROWS);
        cuda_data_assert_same(found, expected, TOKENS * ROWS, "a product");
    }
    cuda_pair_take(&p, device_x, NULL, 0);
    free(x);
    cuda_data_weight_free(&first);
    cuda_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gather),
                                       cmocka_unit_test(test_other_scales)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
