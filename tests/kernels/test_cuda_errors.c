/*
 * The CUDA backend where things go wrong: every call of the device made to fail in turn, too little
 * memory, products whose bits depend on what they must not depend on, cancelling.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/operations.h"
#include "kernels/recurrent.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/rng.h"
#include "tests/kernels/cuda_pair.h"
#include "tests/kernels/recurrent_scene.h"
#include "tests/kernels/score_scene.h"

enum { T = 20, ROWS = 60, COLS = 64 };

/** A product on memory of the backend's own. */
struct product {
    struct kern_weight weight;
    float *matrix, x[T * COLS], y[T * ROWS];
};

static void product_open(struct product *p)
{
    struct rng r = rng_open(rng_seed(), 60);
    p->matrix = malloc(sizeof(float) * ROWS * COLS);
    assert_non_null(p->matrix);
    for (size_t i = 0; i < ROWS * COLS; i++)
        p->matrix[i] = rng_normal(&r);
    for (size_t i = 0; i < T * COLS; i++)
        p->x[i] = rng_normal(&r);
    p->weight = (struct kern_weight){.type = GGUF_TYPE_F32,
                                     .n_rows = ROWS,
                                     .n_cols = COLS,
                                     .row_bytes = COLS * sizeof(float),
                                     .data = p->matrix,
                                     .scale = 1.0f,
                                     .generation = 1};
}

/** n_tokens of the product's tokens from `first` on, to y. */
static enum status multiply(struct kern_backend *b, struct product *p, size_t first,
                            size_t n_tokens, struct status_why *why)
{
    void *x = NULL, *y = NULL;
    size_t x_bytes = n_tokens * COLS * sizeof(float), y_bytes = n_tokens * ROWS * sizeof(float);
    enum status status = kern_alloc(b, &x, x_bytes, why);
    if (status == STATUS_OK)
        status = kern_alloc(b, &y, y_bytes, why);
    if (status == STATUS_OK)
        status = kern_upload(b, x, p->x + first * COLS, x_bytes, why);
    struct kern_linear op = {
        .weight = &p->weight, .x = x, .y = y, .y_stride = ROWS, .n_tokens = n_tokens};
    if (status == STATUS_OK)
        status = kern_linear(b, &op, why);
    if (status == STATUS_OK)
        status = kern_download(b, p->y, y, y_bytes, why);
    kern_free(b, x);
    kern_free(b, y);
    return status;
}

static enum status open_and_multiply(const struct host_device_options *options,
                                     enum kern_precision precision, size_t weight_bytes,
                                     struct host_device_log *log, struct product *p,
                                     struct status_why *why)
{
    struct kern_backend *b;
    struct kern_cuda_options cuda = {.precision = precision,
                                     .weight_bytes = weight_bytes,
                                     .panel_size = 4 << 10,
                                     .n_slots = 4,
                                     .product_tokens = 16,
                                     .product_step = 4};
    enum status status = kern_cuda_open(&b, host_device_open(options, log), &cuda, why);
    for (int i = 0; status == STATUS_OK && i < 2; i++)
        status = multiply(b, p, 0, T, why);
    kern_close(b);
    return status;
}

/** Whichever call fails: a status and a sentence, nothing lost, never a result. */
static void test_every_failure(void **state)
{
    (void)state;
    struct product p;
    product_open(&p);
    for (size_t i = 0; i < 2; i++) {
        enum kern_precision precision = i ? KERN_PRECISION_HIGH : KERN_PRECISION_EXACT;
        size_t n_failed = 0;
        for (size_t at = 1;; at++) {
            struct host_device_options options = {.fail_at = at};
            struct host_device_log log;
            struct status_why why = {""};
            /* 24 KiB: some panels stay, the others are streamed. */
            enum status status = open_and_multiply(&options, precision, 24 << 10, &log, &p, &why);
            assert_int_equal(log.n_left, 0);
            if (log.n_calls < at) {
                assert_int_equal(status, STATUS_OK);
                break;
            }
            /* What is kept decoded is a kindness: without the memory it is not kept. */
            if (status == STATUS_OK)
                continue;
            n_failed++;
            assert_int_equal(status, STATUS_DEVICE);
            assert_string_equal(why.text, "the device was made to fail");
        }
        assert_true(n_failed > 20);
    }
    free(p.matrix);
}

/** The same for recurrent layers, on the host's memory, which is the device's. */
static void test_every_failure_of_recurrent_layers(void **state)
{
    (void)state;
    const struct recurrent_shape shape = {1, 2, 8, 8, true, false, KERN_UNIT_ADD, 0.9f, 0};
    const struct kern_run runs[] = {{0, 40, 0, -1, -1, -1}, {40, 10, 40, 0, -1, 0}};
    struct rng r = rng_open(rng_seed(), 62);
    struct recurrent_scene s;
    recurrent_scene_open(&s, &r, &shape, 4, 50);
    s.recur.states = calloc(1, kern_recur_state_bytes(&s.recur));
    s.convolve.states = calloc(1, kern_convolve_state_bytes(&s.convolve));
    assert_true(s.recur.states && s.convolve.states);
    s.recur.runs = s.convolve.runs = runs;
    s.recur.n_runs = s.convolve.n_runs = 2;
    size_t n_failed = 0;
    struct host_device_log log = {.n_calls = SIZE_MAX};
    for (size_t at = 0; log.n_calls >= at;) {
        struct kern_backend *b;
        struct kern_cuda_device *device =
            host_device_open(&(struct host_device_options){.fail_at = ++at}, &log);
        struct status_why why = {""};
        enum status status = kern_cuda_open(&b, device, &(struct kern_cuda_options){0}, &why);
        if (!status)
            status = kern_recur(b, &s.recur, &why);
        if (!status)
            status = kern_convolve(b, &s.convolve, &why);
        kern_close(b);
        assert_int_equal(log.n_left, 0);
        n_failed += status != STATUS_OK;
        assert_true(!status || strcmp(why.text, "the device was made to fail") == 0);
    }
    assert_true(n_failed > 15);
    free(s.recur.states);
    free(s.convolve.states);
    recurrent_scene_close(&s);
}

/** Too little memory is a sentence with both sizes; as it grows, so does what is kept. */
static void test_little_memory(void **state)
{
    (void)state;
    struct product p;
    product_open(&p);
    size_t n_enough = 0;
    for (size_t bytes = 1 << 10; bytes <= 1 << 20; bytes += bytes / 4) {
        struct host_device_options options = {.memory_bytes = bytes};
        struct host_device_log log;
        struct status_why why = {""};
        enum status status = open_and_multiply(&options, KERN_PRECISION_HIGH, 0, &log, &p, &why);
        assert_int_equal(log.n_left, 0);
        assert_true(log.peak_bytes <= bytes);
        if (status == STATUS_OK) {
            n_enough++;
            continue;
        }
        assert_int_equal(n_enough, 0);
        assert_int_equal(status, STATUS_MEMORY);
        assert_non_null(strstr(why.text, "bytes"));
    }
    assert_true(n_enough > 5);
    free(p.matrix);
}

/**
 * Weights may take more than there is, as where other programs use the device, too: results are
 * right or there is an error, whatever gives way to what.
 */
static void test_less_than_promised(void **state)
{
    (void)state;
    enum { N = 5 };
    struct product p[N];
    float expected[N][T * ROWS];
    struct cuda_pair pair;
    cuda_pair_open(&pair, KERN_PRECISION_FAST, &(struct host_device_options){0});
    for (size_t i = 0; i < N; i++) {
        product_open(&p[i]);
        p[i].weight.generation = i + 1;
        p[i].matrix[0] = (float)i;
        assert_int_equal(multiply(pair.cuda, &p[i], 0, T, NULL), STATUS_OK);
        memcpy(expected[i], p[i].y, sizeof p[i].y);
    }
    cuda_pair_close(&pair);
    size_t n_right = 0;
    for (size_t bytes = 24 << 10; bytes < 160 << 10; bytes += 500) {
        struct host_device_log log;
        struct kern_backend *b;
        struct host_device_options options = {.memory_bytes = bytes};
        struct kern_cuda_options cuda = {.precision = KERN_PRECISION_FAST,
                                         .weight_bytes = 99 << 10,
                                         .panel_size = 4 << 10,
                                         .n_slots = 12,
                                         .product_tokens = 48,
                                         .product_step = 16};
        assert_int_equal(kern_cuda_open(&b, host_device_open(&options, &log), &cuda, NULL), 0);
        for (size_t k = 0; k < 4 * (size_t)N; k++) {
            struct product *one = &p[k % N];
            enum status status = multiply(b, one, 0, T, NULL);
            if (status == STATUS_OK) {
                assert_int_equal(compare_bits(one->y, expected[k % N], T * ROWS), T * ROWS);
                n_right++;
            } else {
                assert_int_equal(status, STATUS_MEMORY);
            }
        }
        kern_close(b);
        assert_int_equal(log.n_left, 0);
    }
    assert_true(n_right > 100);
    for (size_t i = 0; i < N; i++)
        free(p[i].matrix);
}

/**
 * Twenty tokens, which are 32 of 48 planned ones, and some of them alone (16): the same bits.
 * even: the bits without oddities, which the first algorithm has; found if `gemm` is EVEN.
 */
static void check_even(struct cuda_pair *pair, struct product *p, enum host_device_gemm gemm,
                       float *even)
{
    float all[T * ROWS];
    assert_int_equal(multiply(pair->cuda, p, 0, T, NULL), STATUS_OK);
    memcpy(all, p->y, sizeof all);
    if (gemm == HOST_DEVICE_GEMM_EVEN)
        memcpy(even, all, sizeof all);
    if (gemm != HOST_DEVICE_GEMM_BY_NUMBER)
        assert_int_equal(compare_bits(all, even, T * ROWS), T * ROWS);
    for (size_t t = 0; t < T; t += 7) {
        assert_int_equal(multiply(pair->cuda, p, t, 1, NULL), STATUS_OK);
        assert_int_equal(compare_bits(p->y, all + t * ROWS, ROWS), ROWS);
    }
}

/** However the library behaves, one token gives the same bits as twenty; or there is an error. */
static void test_uneven_products(void **state)
{
    (void)state;
    static const struct {
        enum host_device_gemm gemm;
        unsigned algorithm; /* that is used: times decide, but not about the bits */
    } rows[] = {{HOST_DEVICE_GEMM_EVEN, 0},      {HOST_DEVICE_GEMM_BY_NUMBER, 0},
                {HOST_DEVICE_GEMM_BY_MIDDLE, 0}, {HOST_DEVICE_GEMM_PLANNED_ONLY, 0},
                {HOST_DEVICE_GEMM_FASTER, 4},    {HOST_DEVICE_GEMM_SLOWER, 0}};
    struct product p;
    float even[2][T * ROWS];
    product_open(&p);
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        enum host_device_gemm gemm = rows[i / 2].gemm;
        struct host_device_options options = {.gemm = gemm};
        struct cuda_pair pair;
        cuda_pair_open(&pair, i % 2 ? KERN_PRECISION_HIGH : KERN_PRECISION_FAST, &options);
        check_even(&pair, &p, gemm, even[i % 2]);
        assert_int_equal(pair.log.last_algorithm, rows[i / 2].algorithm);
        cuda_pair_close(&pair);
    }
    free(p.matrix);
}

/** A library whose bits depend on the row's number is of no use. */
static void test_uneven_places(void **state)
{
    (void)state;
    struct product p;
    product_open(&p);
    for (size_t i = 0; i < 2; i++) {
        struct host_device_options options = {.gemm = HOST_DEVICE_GEMM_BY_PLACE};
        struct cuda_pair pair;
        cuda_pair_open(&pair, i ? KERN_PRECISION_HIGH : KERN_PRECISION_FAST, &options);
        struct status_why why = {""};
        assert_int_equal(multiply(pair.cuda, &p, 0, T, &why), STATUS_DEVICE);
        assert_non_null(strstr(why.text, "different bits"));
        cuda_pair_close(&pair);
    }
    free(p.matrix);
}

static void test_cancelled(void **state)
{
    (void)state;
    struct product p;
    product_open(&p);
    struct cuda_pair pair;
    cuda_pair_open(&pair, KERN_PRECISION_EXACT, &(struct host_device_options){0});
    atomic_bool cancel = true;
    kern_set_cancel(pair.cuda, &cancel);
    assert_int_equal(multiply(pair.cuda, &p, 0, T, NULL), STATUS_CANCELLED);
    struct scene s;
    scene_open(&s, 61, 2, 10, 50);
    struct kern_row_score rows[20];
    struct kern_target_score targets[2 * SCENE_TARGETS];
    struct kern_score op = s.op;
    op.rows = rows;
    op.target_scores = targets;
    op.pairs = NULL;
    assert_int_equal(kern_score(pair.cuda, &op, NULL), STATUS_CANCELLED);
    scene_close(&s);
    cancel = false;
    assert_int_equal(multiply(pair.cuda, &p, 0, T, NULL), STATUS_OK);
    cuda_pair_close(&pair);
    free(p.matrix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_failure),
        cmocka_unit_test(test_every_failure_of_recurrent_layers),
        cmocka_unit_test(test_little_memory),
        cmocka_unit_test(test_less_than_promised),
        cmocka_unit_test(test_uneven_products),
        cmocka_unit_test(test_uneven_places),
        cmocka_unit_test(test_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
