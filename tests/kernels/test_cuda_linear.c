/*
 * The CUDA backend's layer products on a device made of the host's memory and, where there is one,
 * on a real device: the CPU's bits in `exact`; tokens that are split once for several products.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cuda/context.h"
#include "kernels/operations.h"
#include "kernels/quant/registry.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/run_kernel.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"

/** What a product is, beside its weight. */
struct sum {
    size_t n_tokens;
    bool bias, accumulate, scale, bias_scale;
};

/** A product on both backends, bits compared. */
static void check_sum(struct cuda_pair *p, struct rng *r, struct kern_weight *w,
                      const struct sum *sum)
{
    size_t n_tokens = sum->n_tokens, y_stride = w->n_rows + rng_below(r, 5),
           n_y = n_tokens * y_stride;
    struct kern_weight bias = cuda_data_float_weight(r, 1, w->n_rows);
    float *x = cuda_data_floats(r, n_tokens * w->n_cols, 1.0f), *y = cuda_data_floats(r, n_y, 1.0f);
    float *expected = cuda_data_copy(y, n_y), *found = cuda_data_copy(y, n_y);
    w->scale = sum->scale ? 0.75f : 1.0f;
    bias.scale = sum->bias_scale ? 0.7f : 1.0f;
    float *device_x = cuda_pair_put(p, x, n_tokens * w->n_cols);
    struct kern_linear op = {.weight = w,
                             .bias = sum->bias ? &bias : NULL,
                             .x = x,
                             .y = expected,
                             .y_stride = y_stride,
                             .n_tokens = n_tokens,
                             .accumulate = sum->accumulate};
    assert_int_equal(kern_linear(p->cpu, &op, NULL), STATUS_OK);
    op.x = device_x;
    for (int again = 0; again < 2; again++) {
        struct status_why why = {""};
        float *device_y = op.y = cuda_pair_put(p, y, n_y);
        if (kern_linear(p->cuda, &op, &why) != STATUS_OK)
            fail_msg("%s", why.text);
        cuda_pair_take(p, device_y, found, n_y);
        cuda_data_assert_same(found, expected, n_y, gguf_type_name(w->type));
    }
    cuda_pair_take(p, device_x, NULL, 0);
    free(found);
    cuda_data_weight_free(&bias);
    free(x);
    free(y);
    free(expected);
}

static void check_linear(struct cuda_pair *p, struct rng *r, struct kern_weight *w, size_t n_tokens)
{
    unsigned what = (unsigned)rng_below(r, 16);
    check_sum(p, r, w, &(struct sum){n_tokens, what & 1, what & 2, what & 4, what & 8});
}

/** Squares of outputs that are cut at each side, with all that a product adds; odd columns. */
static void test_edges(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 12);
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(1);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
    static const size_t n_cols[] = {17, 18, 19, 20, 8, 24};
    for (unsigned i = 0; i < 12; i++) {
        struct kern_weight w = cuda_data_float_weight(&r, 128 + 3 * (i % 3), n_cols[i % 6]);
        check_sum(&p, &r, &w, &(struct sum){129, i & 1, i & 2, i & 4, i & 4});
        cuda_data_weight_free(&w);
    }
    cuda_pair_close(&p);
}

/** Every type, random bits (NaN and infinity included), odd sizes. */
static void test_linear_types(void **state)
{
    (void)state;
    if (run_kernel_is_slow())
        return; /* test_types() has them all */
    struct rng r = rng_open(rng_seed(), 1);
    const struct kern_quant *format;
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(1);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
    for (size_t i = 0; (format = kern_quant_at(i)) != NULL; i++) {
        size_t n_cols = gguf_type_info(format->type)->block_elems == 1 ? 37 : 512;
        size_t bundle = gguf_type_info(format->type)->bundle_rows;
        struct kern_weight w = cuda_data_random_weight(
            &r, format->type, bundle * (1 + rng_below(&r, 150 / bundle)), n_cols);
        check_linear(&p, &r, &w, 1 + rng_below(&r, 60));
        cuda_data_weight_free(&w);
    }
    cuda_pair_close(&p);
}

/** A product of the CUDA backend. */
static float *multiply(struct cuda_pair *p, const struct kern_weight *w, float *x, size_t n_tokens)
{
    size_t n = n_tokens * w->n_rows;
    float *y = calloc(n, sizeof *y);
    assert_non_null(y);
    struct kern_linear op = {.weight = w, .x = x, .y_stride = w->n_rows, .n_tokens = n_tokens};
    struct status_why why = {""};
    float *device_y = op.y = cuda_pair_put(p, y, n);
    if (kern_linear(p->cuda, &op, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    cuda_pair_take(p, device_y, y, n);
    return y;
}

/** Random bits; the halves of the last rows, or half of all where they are elements, are special.
 */
static struct kern_weight awkward_weight(struct rng *r, enum gguf_type type, size_t n_rows,
                                         size_t n_cols)
{
    static const uint16_t words[] = {0x7c00, 0x0001, 0x0000, 0xfe01, 0x8300, 0xffff};
    enum { N = sizeof words / sizeof *words };
    struct kern_weight w = cuda_data_random_weight(r, type, n_rows, n_cols);
    uint8_t *data = (uint8_t *)(uintptr_t)w.data;
    bool single = gguf_type_info(type)->block_elems == 1;
    for (size_t i = 0; i < n_rows && (i < N || single); i++) {
        for (size_t k = 0; k + 1 < w.row_bytes; k += 2) {
            size_t word = single ? rng_below(r, 2 * N) : i;
            if (word < N)
                memcpy(data + (n_rows - 1 - i) * w.row_bytes + k, &words[word], 2);
        }
    }
    return w;
}

/** A weight of a type and one of the floats that the CPU makes of it give the same bits. */
static void check_type(struct cuda_pair *p, struct rng *r, enum gguf_type type, size_t n_cols)
{
    enum { TOKENS = 3, MOST = 16 };
    const struct gguf_type_info *info = gguf_type_info(type);
    size_t bundle = info->bundle_rows, n_rows = bundle > 4 ? MOST : bundle > 1 ? 12 : 15;
    struct kern_weight w = awkward_weight(r, type, n_rows, n_cols);
    struct kern_weight floats = cuda_data_random_weight(r, GGUF_TYPE_F32, n_rows, n_cols);
    float *decoded = (float *)(uintptr_t)floats.data, *x = cuda_data_floats(r, TOKENS * n_cols, 1);
    int32_t rows[MOST];
    for (int32_t i = 0; i < MOST; i++)
        rows[i] = i;
    floats.row_bytes = n_cols * sizeof *decoded;
    x[n_cols - 1] = INFINITY; /* of the first token */
    x[2 * n_cols - 1] = 1e-9f;
    assert_int_equal(kern_embed(p->cpu, &w, rows, n_rows, decoded, NULL), STATUS_OK);
    float *device_x = cuda_pair_put(p, x, TOKENS * n_cols);
    float *found = multiply(p, &w, device_x, TOKENS);
    float *expected = multiply(p, &floats, device_x, TOKENS);
    cuda_data_assert_same(found, expected, TOKENS * n_rows, info->name);
    cuda_pair_take(p, device_x, NULL, 0);
    cuda_data_weight_free(&w);
    cuda_data_weight_free(&floats);
    free(x);
    free(found);
    free(expected);
}

/** Every type in every precision, in rows of an odd number of blocks. */
static void test_types(void **state)
{
    (void)state;
    const enum kern_precision precisions[] = {KERN_PRECISION_HIGH, KERN_PRECISION_FAST,
                                              KERN_PRECISION_EXACT};
    static const size_t singles[] = {1, 2, 3, 5, 9, 10, 11, 37, 301, 302, 550};
    for (size_t k = 0; k < 3; k++) {
        struct rng r = rng_open(rng_seed(), 11);
        const struct kern_quant *format;
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(k);
        cuda_pair_open(&p, precisions[k], &way);
        for (size_t i = 0; (format = kern_quant_at(i)) != NULL; i++) {
            size_t n = gguf_type_info(format->type)->block_elems;
            for (size_t j = 0; n == 1 && j < sizeof singles / sizeof *singles; j++)
                check_type(&p, &r, format->type, singles[j]);
            if (n > 1) /* so that the last chunk of a weight is neither short nor whole */
                check_type(&p, &r, format->type, (n == 64 ? 19 : 672 / n | 1) * n);
        }
        cuda_pair_close(&p);
    }
}

/** Weights that do not fit: some stay, the others pass through slots, in every order of work. */
static void test_linear_streaming(void **state)
{
    (void)state;
    enum { N = 12 };
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct rng r = rng_open(rng_seed(), 2);
        struct kern_weight weights[N];
        for (size_t k = 0; k < N; k++)
            weights[k] = cuda_data_float_weight(&r, 100 + 37 * (k % 3), 256);
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        for (size_t k = 0; i % 2 && k < N; k++) /* more than there is room for */
            assert_int_equal(kern_preload(p.cuda, &weights[k], NULL), STATUS_OK);
        for (int round = 0; round < 3; round++) {
            for (size_t k = 0; k < N; k++)
                check_linear(&p, &r, &weights[k], 1 + rng_below(&r, 20));
        }
        cuda_pair_close(&p);
        for (size_t k = 0; k < N; k++)
            cuda_data_weight_free(&weights[k]);
    }
}

/**
 * More rows than a kernel's block has threads, as halves. Operands are rounded to 11 bits in
 * `fast`, to 22 in `high`: a product is off by 2^-11 (2^-21) of the largest weight times the
 * largest token, sums of 64 of them by that and what float32 adds.
 */
static void test_many_rows(void **state)
{
    (void)state;
    enum { ROWS = 1100, COLS = 64, TOKENS = 3 };
    const double largest = 6.0 * 6.0; /* of normal numbers */
    const enum kern_precision precisions[] = {KERN_PRECISION_HIGH, KERN_PRECISION_FAST};
    const double units[] = {0x1p-20, 0x1p-10};
    for (size_t i = 0; i < 2; i++) {
        struct rng r = rng_open(rng_seed(), 9);
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open_panels(&p, precisions[i], &way, 4 << 20);
        struct kern_weight w = cuda_data_float_weight(&r, ROWS, COLS);
        float *x = cuda_data_floats(&r, TOKENS * COLS, 1.0f);
        float *y = cuda_data_floats(&r, TOKENS * ROWS, 1.0f),
              *found = cuda_data_copy(y, TOKENS * ROWS);
        struct kern_weight bias = cuda_data_float_weight(&r, 1, ROWS);
        struct kern_linear op = {.weight = &w,
                                 .bias = &bias,
                                 .x = x,
                                 .y = y,
                                 .y_stride = ROWS,
                                 .n_tokens = TOKENS,
                                 .accumulate = true};
        assert_int_equal(kern_linear(p.cpu, &op, NULL), STATUS_OK);
        float *device_x = cuda_pair_put(&p, x, TOKENS * COLS);
        float *device_y = op.y = cuda_pair_put(&p, found, TOKENS * ROWS);
        op.x = device_x;
        assert_int_equal(kern_linear(p.cuda, &op, NULL), STATUS_OK);
        cuda_pair_take(&p, device_y, found, TOKENS * ROWS);
        cuda_pair_take(&p, device_x, NULL, 0);
        for (size_t k = 0; k < TOKENS * ROWS; k++)
            assert_true(fabs((double)found[k] - (double)y[k]) <= COLS * largest * units[i]);
        cuda_data_weight_free(&bias);
        cuda_data_weight_free(&w);
        free(x);
        free(y);
        free(found);
        cuda_pair_close(&p);
    }
}

/** A weight whose bytes change, as its generation says. */
static void test_generation(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3);
    struct cuda_pair p;
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &(struct host_device_options){0});
    struct kern_weight w = cuda_data_float_weight(&r, 40, 64);
    check_linear(&p, &r, &w, 5);
    memset((void *)(uintptr_t)w.data, 0, w.n_rows * w.row_bytes);
    w.generation++;
    check_linear(&p, &r, &w, 5);
    cuda_data_weight_free(&w);
    cuda_pair_close(&p);
}

/** A weight of the products that share their tokens, and what is between it and the one before. */
struct sharing {
    size_t n_rows;
    bool bias;  /* of a new weight: decoded in scratch memory */
    bool other; /* an operation that uses scratch memory comes first */
};

/** What is forgotten is read anew, with the same generation, too; its neighbours stay. */
static void test_forget(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 4);
    struct cuda_pair p;
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &(struct host_device_options){0});
    struct kern_weight w = cuda_data_float_weight(&r, 40, 64);
    check_linear(&p, &r, &w, 5);
    memset((void *)(uintptr_t)w.data, 0, w.n_rows * w.row_bytes);
    kern_forget(p.cuda, w.data, w.n_rows * w.row_bytes);
    kern_forget(p.cpu, w.data, w.n_rows * w.row_bytes);
    check_linear(&p, &r, &w, 5);
    cuda_data_weight_free(&w);
    cuda_pair_close(&p);
}

/** Products of the same tokens, with the hint or without; how often tokens were split. */
static size_t multiply_sharing(enum kern_precision precision, size_t way, size_t n_tokens,
                               bool hint, float *y)
{
    static const struct sharing products[] = {
        {60, false, false}, {20, false, false}, {90, false, false}, /* needs more memory */
        {33, false, false}, {50, true, false},  {20, false, false}, {60, false, true}};
    enum { N = sizeof products / sizeof *products, COLS = 64 };
    struct rng r = rng_open(rng_seed(), 8);
    struct cuda_pair p;
    struct host_device_options options = cuda_pair_way(way);
    cuda_pair_open(&p, precision, &options);
    float *host_x = cuda_data_floats(&r, n_tokens * COLS, 1.0f),
          *host_y = cuda_data_floats(&r, n_tokens * 100, 1.0f);
    float *x = cuda_pair_put(&p, host_x, n_tokens * COLS);
    struct kern_weight weights[2 * N];
    for (size_t i = 0; i < 2 * N; i++) {
        const struct sharing *product = &products[i % N];
        struct kern_weight bias = cuda_data_float_weight(&r, 1, product->n_rows);
        weights[i] = cuda_data_float_weight(&r, product->n_rows, COLS);
        if (i == N) { /* other tokens at the same address, as in the next layer */
            host_x[3] += 1.0f;
            assert_int_equal(kern_upload(p.cuda, x, host_x, n_tokens * COLS * sizeof *x, NULL), 0);
        }
        float *device_y = cuda_pair_put(&p, host_y, n_tokens * 100);
        struct kern_gather gather = {x, (const uint32_t[]){0}, 1, COLS, device_y};
        if (product->other)
            assert_int_equal(kern_gather(p.cuda, &gather, NULL), STATUS_OK);
        struct kern_linear op = {.weight = &weights[i],
                                 .bias = product->bias ? &bias : NULL,
                                 .x = x,
                                 .y = device_y,
                                 .y_stride = 100,
                                 .n_tokens = n_tokens,
                                 .same_x = hint && i % N > 0};
        assert_int_equal(kern_linear(p.cuda, &op, NULL), STATUS_OK);
        cuda_pair_take(&p, device_y, y + i * n_tokens * 100, n_tokens * 100);
        cuda_data_weight_free(&bias);
    }
    cuda_pair_take(&p, x, NULL, 0);
    cuda_pair_close(&p);
    for (size_t i = 0; i < 2 * N; i++)
        cuda_data_weight_free(&weights[i]);
    free(host_x);
    free(host_y);
    return p.log.n_launches[KERN_CUDA_SPLIT];
}

/** Tokens are split once for the products that share them; the bits are those without the hint. */
static void test_same_x(void **state)
{
    (void)state;
    enum { PRODUCTS = 2 * 7, MOST = PRODUCTS * 100 * 120 };
    float *found = malloc(MOST * sizeof *found), *expected = malloc(MOST * sizeof *expected);
    assert_true(found && expected);
    const size_t n_tokens[] = {1, 48, 120};
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        size_t n = n_tokens[i % 3];
        enum kern_precision precision = i % 2 ? KERN_PRECISION_HIGH : KERN_PRECISION_FAST;
        size_t n_without = multiply_sharing(precision, i, n, false, expected);
        size_t n_with = multiply_sharing(precision, i, n, true, found);
        cuda_data_assert_same(found, expected, (size_t)PRODUCTS * 100 * n,
                              "product of the same tokens");
        if (cuda_pair_is_real())
            continue;
        assert_int_equal(n_without, PRODUCTS);
        /* At first each new shape is tried in scratch memory, but for the one that comes again;
         * then only what has no hint, a new bias, and a gathering come between. */
        assert_int_equal(n_with, 6 + 3);
    }
    free(found);
    free(expected);
}

/** What is preloaded is there: its use uploads and tries nothing more, and has the same bits. */
static void test_preload(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        enum kern_precision precision = i % 2 ? KERN_PRECISION_EXACT : KERN_PRECISION_HIGH;
        struct rng r = rng_open(rng_seed(), 10 + i);
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, precision, &way);
        struct kern_weight w = cuda_data_float_weight(&r, 300, 256); /* panels of 64 */
        float *x = cuda_data_floats(&r, 256, 1.0f), *y = cuda_data_floats(&r, 300, 1.0f);
        float *device_x = cuda_pair_put(&p, x, 256), *device_y = cuda_pair_put(&p, y, 300);
        assert_int_equal(kern_preload(p.cuda, &w, NULL), STATUS_OK);
        size_t n_uploads = kern_cuda_of(p.cuda)->cache.n_uploads, n_gemms = p.log.n_gemms;
        assert_int_equal(n_uploads, 5);
        struct kern_linear op = {
            .weight = &w, .x = device_x, .y = device_y, .y_stride = 300, .n_tokens = 1};
        assert_int_equal(kern_linear(p.cuda, &op, NULL), STATUS_OK);
        cuda_pair_take(&p, device_y, y, 300);
        assert_int_equal(kern_cuda_of(p.cuda)->cache.n_uploads, n_uploads);
        if (!cuda_pair_is_real())
            assert_int_equal(p.log.n_gemms - n_gemms, i % 2 ? 0 : 5);
        if (i % 2) {
            float *expected = cuda_data_floats(&r, 300, 1.0f);
            op.x = x;
            op.y = expected;
            assert_int_equal(kern_linear(p.cpu, &op, NULL), STATUS_OK);
            cuda_data_assert_same(y, expected, 300, "product of a preloaded weight");
            free(expected);
        }
        cuda_pair_take(&p, device_x, NULL, 0);
        cuda_pair_close(&p);
        cuda_data_weight_free(&w);
        free(x);
        free(y);
    }
}

enum { TIMED = 1200 /* products, and as many gates: more than are timed at once */ };

/** The seconds from before the first operation until the times of all were read. */
static double time_operations(struct cuda_pair *p, struct kern_times *times)
{
    enum { COLS = 32, ROWS = 5 };
    struct rng r = rng_open(rng_seed(), 9);
    struct kern_weight w = cuda_data_float_weight(&r, ROWS, COLS);
    float *x = cuda_pair_put(p, (const float[COLS]){1.0f}, COLS);
    float *y = cuda_pair_put(p, (const float[COLS]){0}, COLS);
    struct kern_linear op = {.weight = &w, .x = x, .y = y, .y_stride = ROWS, .n_tokens = 1};
    uint64_t begun = kern_clock_now();
    for (size_t k = 0; k < TIMED; k++) {
        assert_int_equal(kern_linear(p->cuda, &op, NULL), STATUS_OK);
        struct kern_activate gate = {.gate = y, .up = x, .n = ROWS};
        assert_int_equal(kern_activate(p->cuda, &gate, NULL), STATUS_OK);
    }
    kern_times_read(p->cuda, times);
    double passed = 1e-9 * (double)(kern_clock_now() - begun);
    cuda_pair_take(p, x, NULL, 0);
    cuda_pair_take(p, y, NULL, 0);
    cuda_data_weight_free(&w);
    return passed;
}

/**
 * An operation takes the time of its work on the device, whenever that is done: on the host device
 * a product of halves takes a second, and everything else nothing. On a real one operations take
 * some time, and one after the other no more than passed.
 */
static void test_times(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_HIGH, &way);
        struct kern_times times;
        double passed = time_operations(&p, &times);
        for (int phase = 0; phase < KERN_N_PHASES; phase++) {
            double found = times.seconds[phase];
            bool is_linear = phase == KERN_PHASE_LINEAR;
            if (!cuda_pair_is_real())
                assert_true(fabs(found - (is_linear ? (double)p.log.n_gemms : 0.0)) < 1e-3);
            else if (is_linear || phase == KERN_PHASE_GATE)
                assert_true(found > 0.0 && found <= passed);
            else
                assert_true(found == 0.0);
        }
        if (!cuda_pair_is_real())
            assert_true(p.log.n_gemms >= TIMED);
        cuda_pair_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear_types), cmocka_unit_test(test_edges),
        cmocka_unit_test(test_types),        cmocka_unit_test(test_linear_streaming),
        cmocka_unit_test(test_many_rows),    cmocka_unit_test(test_generation),
        cmocka_unit_test(test_forget),       cmocka_unit_test(test_same_x),
        cmocka_unit_test(test_preload),      cmocka_unit_test(test_times),
    };
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
}
