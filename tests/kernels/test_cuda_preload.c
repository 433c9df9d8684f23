/** What preloading spares the first batch: uploads, trials, and the decoding of weights. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/context.h"
#include "kernels/operations.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"

enum { PANELS = 3 /* of a weight, or of the head */ };
enum { ROWS = 300, COLS = 256, TOKENS = 5, N_WEIGHTS = 3, PANEL = 128 << 10 /* of 128 rows */ };

/** Random weights and a head, that two pairs have, and tokens. */
struct data {
    struct kern_weight weights[N_WEIGHTS], matrix;
    float *x;
};

static struct data open_data(struct rng *r)
{
    struct data d = {.matrix = cuda_data_float_weight(r, ROWS, COLS),
                     .x = cuda_data_floats(r, (size_t)TOKENS * COLS, 1.0f)};
    for (size_t i = 0; i < N_WEIGHTS; i++)
        d.weights[i] = cuda_data_float_weight(r, ROWS, COLS);
    return d;
}

static void close_data(struct data *d)
{
    for (size_t i = 0; i < N_WEIGHTS; i++)
        cuda_data_weight_free(&d->weights[i]);
    cuda_data_weight_free(&d->matrix);
    free(d->x);
}

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
    struct rng r = rng_open(rng_seed(), way);
    struct data d = open_data(&r);
    struct cuda_pair p[2];
    struct host_device_options options = cuda_pair_way(way);
    for (size_t k = 0; k < 2; k++) {
        cuda_pair_open_panels(&p[k], precision, &options, PANEL);
        kern_cuda_of(p[k].cuda)->cache.resident_limit = (room ? room : 100) * PANEL;
    }
    preload(&p[1], d.weights, &d.matrix);
    size_t n_preloaded = p[1].log.n_launches[KERN_CUDA_DECODE];
    float *expected = multiply(&p[0], d.weights, d.x), *found = multiply(&p[1], d.weights, d.x);
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
    close_data(&d);
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

static struct kern_cuda_cache *cache_of(struct cuda_pair *p)
{
    return &kern_cuda_of(p->cuda)->cache;
}

/** The products of p are those of a backend without any preloading. */
static void assert_products(struct cuda_pair *p, const struct data *d)
{
    struct cuda_pair plain;
    cuda_pair_open_panels(&plain, KERN_PRECISION_EXACT, &(struct host_device_options){0}, PANEL);
    float *expected = multiply(&plain, d->weights, d->x), *found = multiply(p, d->weights, d->x);
    cuda_data_assert_same(found, expected, (size_t)N_WEIGHTS * TOKENS * ROWS, "products");
    cuda_pair_close(&plain);
    free(expected);
    free(found);
}

/** All preloaded, with room for everything, in chunks of that many panels; 0: as they are. */
static void open_chunks(struct cuda_pair *p, const struct data *d, size_t panels,
                        size_t memory_bytes)
{
    const struct host_device_options options = {.memory_bytes = memory_bytes};
    cuda_pair_open_panels(p, KERN_PRECISION_EXACT, &options, PANEL);
    cache_of(p)->resident_limit = 100 * PANEL;
    if (panels > 0)
        cache_of(p)->chunk_bytes = panels * PANEL;
    preload(p, d->weights, &d->matrix);
}

/** A panel of 128 rows takes a PANEL, the last of each weight less. */
static const size_t rest_bytes = (size_t)(ROWS - 2 * 128) * COLS * sizeof(float);

/** Decoded panels share allocations; packed ones have their own. */
static void test_chunks(void **state)
{
    (void)state;
    static const size_t chunks[][2] = {{0, 1}, {1, 12}, {3, 4}, {5, 2}, {100, 1}};
    struct rng r = rng_open(rng_seed(), 20);
    struct data d = open_data(&r);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct cuda_pair p;
        open_chunks(&p, &d, chunks[i][0], 0);
        assert_int_equal(p.log.n_allocs, (N_WEIGHTS + 1) * PANELS + chunks[i][1]);
        assert_int_equal(cache_of(&p)->decoded_bytes, (N_WEIGHTS + 1) * (2 * PANEL + rest_bytes));
        assert_products(&p, &d);
        cuda_pair_close(&p);
    }
    close_data(&d);
}

/** Another generation of a weight is decoded to the place of the one before. */
static void test_generation(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 21);
    struct data d = open_data(&r);
    struct cuda_pair p;
    open_chunks(&p, &d, 5, 0);
    assert_products(&p, &d);
    size_t n_allocs = p.log.n_allocs, n_bytes = cache_of(&p)->decoded_bytes;
    memset((void *)(uintptr_t)d.weights[1].data, 0x3c, d.weights[1].row_bytes);
    d.weights[1].generation = kern_next_generation();
    assert_products(&p, &d);
    assert_int_equal(p.log.n_allocs - n_allocs, PANELS + 2); /* packed ones; x and y */
    assert_int_equal(cache_of(&p)->decoded_bytes, n_bytes);
    kern_forget(p.cuda, d.weights[1].data,
                1); /* its first panel, which is not the last of a chunk */
    assert_int_equal(cache_of(&p)->decoded_bytes, n_bytes);
    assert_products(&p, &d);
    cuda_pair_close(&p);
    close_data(&d);
}

/** Where memory is short the chunk that has not been used for longest is given up, and no other. */
static void test_short_memory(void **state)
{
    (void)state;
    enum { MORE = 400 << 10 };
    struct rng r = rng_open(rng_seed(), 22);
    struct data d = open_data(&r);
    struct cuda_pair p;
    size_t all = (N_WEIGHTS + 1) * (2 * PANEL + rest_bytes);
    void *memory;
    open_chunks(&p, &d, PANELS, 2 * all + MORE);
    assert_products(&p, &d); /* the head's panels are not used, so they are the first to go */
    assert_int_equal(cache_of(&p)->decoded_bytes, all);
    assert_int_equal(kern_alloc(p.cuda, &memory, MORE, NULL), STATUS_OK);
    assert_int_equal(cache_of(&p)->decoded_bytes, all / (N_WEIGHTS + 1) * N_WEIGHTS);
    for (size_t i = 0; i < cache_of(&p)->n_panels; i++)
        assert_int_equal(cache_of(&p)->panels[i].decoded != NULL, i < N_WEIGHTS * PANELS);
    assert_products(&p, &d);
    kern_free(p.cuda, memory);
    assert_int_equal(kern_alloc(p.cuda, &memory, all + MORE / 2, NULL), STATUS_OK);
    assert_int_equal(cache_of(&p)->decoded_bytes, 0);
    kern_free(p.cuda, memory);
    assert_products(&p, &d);
    cuda_pair_close(&p);
    close_data(&d);
}

/** Where there is no room for a chunk, half of its panels may find some. */
static void test_smaller_chunk(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 23);
    struct data d = open_data(&r);
    struct cuda_pair p;
    size_t all = (N_WEIGHTS + 1) * (2 * PANEL + rest_bytes);
    open_chunks(&p, &d, 0, all + 8 * PANEL);
    assert_true(cache_of(&p)->decoded_bytes >= 6 * PANEL - 2 * (PANEL - rest_bytes));
    assert_true(cache_of(&p)->decoded_bytes <= 8 * PANEL);
    assert_true(cache_of(&p)->n_chunks > 1);
    assert_products(&p, &d);
    cuda_pair_close(&p);
    close_data(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoded),       cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_generation),    cmocka_unit_test(test_short_memory),
        cmocka_unit_test(test_smaller_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
