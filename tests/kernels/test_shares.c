/*
 * Shares of a row, and the sum of many streams with them: by their definitions, the same bits for
 * every ISA and number of threads, and on a device.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/mixing.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/cpu_backend.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"
#include "tests/kernels/ops_variants.h"

/** n_rows of `width` streams of D, of which n have shares. */
struct shape {
    size_t n_rows, n, width;
};
enum { D = 300, MOST = 50 * 11 };

/** What the backend makes of shares [n_rows, width], in place, of x [n_rows, width, D] and of y. */
static void run(struct kern_backend *b, struct shape z, const float *x, const float *y,
                float *shares, float *alone, float *onto_y)
{
    struct kern_softmax softmax = {shares, z.n_rows, z.width, z.n};
    assert_int_equal(kern_softmax(b, &softmax, NULL), STATUS_OK);
    struct kern_mix op = {.x = x,
                          .weights = shares,
                          .stride = z.width,
                          .out = alone,
                          .n_tokens = z.n_rows,
                          .n_in = z.width,
                          .n_out = 1,
                          .width = D};
    assert_int_equal(kern_mix(b, &op, NULL), STATUS_OK);
    op.y = y;
    op.y_weights = shares;
    op.out = onto_y;
    assert_int_equal(kern_mix(b, &op, NULL), STATUS_OK);
}

/** Random numbers, of which one is far above the others of its row. */
struct scene {
    float x[MOST * D], y[MOST * D], before[MOST], shares[MOST], alone[MOST * D], onto_y[MOST * D];
};

static struct scene *scene_open(struct shape z)
{
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    struct rng r = rng_open(rng_seed(), z.width);
    fill_normal(&r, s->x, z.n_rows * z.width * D, 2.0f);
    fill_normal(&r, s->y, z.n_rows * D, 2.0f);
    fill_normal(&r, s->before, z.n_rows * z.width, 2.0f);
    s->before[z.width / 2] = 1e4f;
    memcpy(s->shares, s->before, sizeof s->shares);
    return s;
}

static void check_truth(const struct scene *s, struct shape z)
{
    for (size_t t = 0; t < z.n_rows; t++) {
        const float *row = s->before + t * z.width, *shares = s->shares + t * z.width;
        double sum = 0, most = 0;
        for (size_t i = 0; i < z.n; i++)
            most = fmax(most, (double)row[i]);
        for (size_t i = 0; i < z.n; i++)
            sum += exp((double)row[i] - most);
        for (size_t i = 0; i < z.width; i++)
            assert_true(fabs((double)shares[i] - (i < z.n ? exp((double)row[i] - most) / sum : 0)) <
                        1e-6);
        for (size_t d = 0; d < D; d++) {
            const float *x = s->x + t * z.width * D + d;
            float alone = x[0] * shares[0];
            float onto_y = fmaf(shares[0], x[0], s->y[t * D + d] * shares[0]);
            for (size_t i = 1; i < z.width; i++) {
                alone = fmaf(shares[i], x[i * D], alone);
                onto_y = fmaf(shares[i], x[i * D], onto_y);
            }
            assert_true(s->alone[t * D + d] == alone && s->onto_y[t * D + d] == onto_y);
        }
    }
}

static const struct shape shapes[] = {{50, 9, 11}, {3, 1, 1}, {3, 2, 2}, {3, 3, 3},
                                      {3, 4, 5},   {3, 5, 6}, {1, 6, 8}, {2, 7, 7}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void test_same_bits_for_any_isa_and_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct scene *first = NULL;
        for (int isa = KERN_ISA_SCALAR; isa <= (int)kern_isa_detect(); isa++) {
            struct scene *s = scene_open(shapes[i]);
            struct kern_backend *b = backend_open(isa, 1 + (unsigned)isa % 3);
            run(b, shapes[i], s->x, s->y, s->shares, s->alone, s->onto_y);
            kern_close(b);
            if (!first)
                check_truth(s, shapes[i]);
            else
                assert_memory_equal(s, first, sizeof *s);
            free(first);
            first = s;
        }
        free(first);
    }
}

enum { N_SPECIAL = 5, SPECIAL_WIDTH = 4 };

/* Shares of what is no number, of infinity and of nothing at all are none; those of -infinity
 * beside a number are 0. What lies beyond the row is 0 always. */
static const float special[N_SPECIAL][SPECIAL_WIDTH] = {{NAN, 1, 2, 3},
                                                        {1, 2, NAN, 3},
                                                        {1, INFINITY, 2, 3},
                                                        {-INFINITY, -INFINITY, -INFINITY, 3},
                                                        {-INFINITY, 7, -INFINITY, 3}};

static void check_special(struct kern_backend *b, float *x)
{
    float found[N_SPECIAL][SPECIAL_WIDTH];
    struct kern_softmax op = {x, N_SPECIAL, SPECIAL_WIDTH, SPECIAL_WIDTH - 1};
    assert_int_equal(kern_softmax(b, &op, NULL), STATUS_OK);
    assert_int_equal(kern_download(b, found, x, sizeof found, NULL), STATUS_OK);
    for (size_t t = 0; t < N_SPECIAL; t++)
        for (size_t i = 0; i < SPECIAL_WIDTH; i++)
            if (i < SPECIAL_WIDTH - 1 && t < N_SPECIAL - 1)
                assert_true(isnan(found[t][i]));
            else
                assert_true(found[t][i] == (float)(t == N_SPECIAL - 1 && i == 1));
}

static void test_special_values(void **state)
{
    (void)state;
    for (int isa = KERN_ISA_SCALAR; isa <= (int)kern_isa_detect(); isa++) {
        float x[N_SPECIAL][SPECIAL_WIDTH];
        struct kern_backend *b = backend_open(isa, 1);
        memcpy(x, special, sizeof x);
        check_special(b, &x[0][0]);
        kern_close(b);
    }
}

static void on_device(struct cuda_pair *p, struct shape z)
{
    struct scene *s = scene_open(z);
    size_t n = z.n_rows * z.width;
    float *x = cuda_pair_put(p, s->x, n * D), *y = cuda_pair_put(p, s->y, z.n_rows * D);
    float *shares = cuda_pair_put(p, s->shares, n);
    float *alone = cuda_pair_put(p, s->alone, z.n_rows * D);
    float *onto_y = cuda_pair_put(p, s->onto_y, z.n_rows * D);
    run(p->cuda, z, x, y, shares, alone, onto_y);
    run(p->cpu, z, s->x, s->y, s->shares, s->alone, s->onto_y);
    float *const arrays[][2] = {{shares, s->shares}, {alone, s->alone}, {onto_y, s->onto_y}};
    for (size_t i = 0; i < 3; i++) {
        size_t n_floats = i == 0 ? n : z.n_rows * D;
        float *found = cuda_data_copy(arrays[i][1], n_floats);
        assert_int_equal(
            kern_download(p->cuda, found, arrays[i][0], n_floats * sizeof *found, NULL), STATUS_OK);
        cuda_data_assert_same(found, arrays[i][1], n_floats, "shares");
        cuda_pair_take(p, arrays[i][0], NULL, 0);
        free(found);
    }
    cuda_pair_take(p, x, NULL, 0);
    cuda_pair_take(p, y, NULL, 0);
    free(s);
}

static void test_on_a_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        for (size_t j = 0; j < N_SHAPES; j++)
            on_device(&p, shapes[j]);
        float *x = cuda_pair_put(&p, &special[0][0], sizeof special / sizeof **special);
        check_special(p.cuda, x);
        cuda_pair_take(&p, x, NULL, 0);
        cuda_pair_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_for_any_isa_and_threads),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_on_a_device),
    };
    const struct CMUnitTest device_tests[] = {cmocka_unit_test(test_on_a_device)};
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", device_tests, NULL, NULL);
}
