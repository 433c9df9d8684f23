/** What preloading spares the first batch: uploads, trials, and the decoding of weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/cuda/context.h"
#include "kernels/operations.h"
#include "kernels/scoring.h"
#include "tests/harness/rng.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"

enum { ROWS = 300, COLS = 256, TOKENS = 5, N_WEIGHTS = 3, PANEL = 128 << 10 /* of 128 rows */ };

/** Products of the same tokens with all weights: [N_WEIGHTS][TOKENS][ROWS], free(). */
static float *multiply(struct cuda_pair *p, const struct kern_weight *weights, const float *x)
{
    size_t n_y = (size_t)N_WEIGHTS * TOKENS * ROWS;
    float *y = calloc(n_y, sizeof *y), *device_x = cuda_pair_put(p, x, (size_t)TOKENS * COLS);
    assert_non_null(y);
    float *device_y = cuda_pair_put(p, y, n_y);
    for (size_t i = 0; i < N_WEIGHTS; i++) {
        const struct kern_linear op = {.weight = &weights[i],
                                       .x = device_x,
                                       .y = device_y + i * TOKENS * ROWS,
                                       .y_stride = ROWS,
                                       .n_tokens = TOKENS};
        assert_int_equal(kern_linear(p->cuda, &op, NULL), STATUS_OK);
    }
    cuda_pair_take(p, device_x, NULL, 0);
    cuda_pair_take(p, device_y, y, n_y);
    return y;
}

/** Weights, then a head, as a model's are preloaded. */
static void preload(struct cuda_pair *p, const struct kern_weight *weights,
                    const struct kern_weight *matrix)
{
    const struct kern_head head = {.matrix = matrix};
    for (size_t i = 0; i < N_WEIGHTS; i++)
        assert_int_equal(kern_preload(p->cuda, &weights[i], NULL), STATUS_OK);
    assert_int_equal(p->log.n_launches[KERN_CUDA_DECODE], 0); /* packed panels first */
    assert_int_equal(kern_preload_heads(p->cuda, &head, 1, NULL), STATUS_OK);
}

/** room: panels of the cache, or 0 for as many as there are and more. */
static void check(enum kern_precision precision, size_t way, size_t room)
{
    enum { PANELS = 3 /* of a weight, or of the head */ };
    struct rng r = rng_open(rng_seed(), way);
    struct kern_weight weights[N_WEIGHTS], matrix = cuda_data_float_weight(&r, ROWS, COLS);
    float *x = cuda_data_floats(&r, (size_t)TOKENS * COLS, 1.0f);
    struct cuda_pair p[2];
    struct host_device_options options = cuda_pair_way(way);
    for (size_t i = 0; i < N_WEIGHTS; i++)
        weights[i] = cuda_data_float_weight(&r, ROWS, COLS);
    for (size_t k = 0; k < 2; k++) {
        cuda_pair_open_panels(&p[k], precision, &options, PANEL);
        kern_cuda_of(p[k].cuda)->cache.resident_limit = (room ? room : 100) * PANEL;
    }
    preload(&p[1], weights, &matrix);
    size_t n_preloaded = p[1].log.n_launches[KERN_CUDA_DECODE];
    float *expected = multiply(&p[0], weights, x), *found = multiply(&p[1], weights, x);
    cuda_data_assert_same(found, expected, (size_t)N_WEIGHTS * TOKENS * ROWS, "preloaded weights");
    /* Halves: once more for the largest element of each row. */
    size_t per_panel = precision == KERN_PRECISION_EXACT ? 1 : 2;
    assert_true(room || n_preloaded == (N_WEIGHTS + 1) * PANELS * per_panel);
    assert_true(room || p[1].log.n_launches[KERN_CUDA_DECODE] == n_preloaded);
    assert_true(kern_cuda_of(p[1].cuda)->cache.resident_bytes +
                    kern_cuda_of(p[1].cuda)->cache.decoded_bytes <=
                kern_cuda_of(p[1].cuda)->cache.resident_limit);
    for (size_t k = 0; k < 2; k++)
        cuda_pair_close(&p[k]);
    for (size_t i = 0; i < N_WEIGHTS; i++)
        cuda_data_weight_free(&weights[i]);
    cuda_data_weight_free(&matrix);
    free(x);
    free(expected);
    free(found);
}

/** With room for all, and for less and less of it, in every order of work. */
static void test_decoded(void **state)
{
    (void)state;
    static const size_t rooms[] = {0, 20, 14, 9, 2};
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i++)
        for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++)
            check((i + k) % 2 ? KERN_PRECISION_EXACT : KERN_PRECISION_FAST, i, rooms[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decoded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
