/*
 * Recurrent layers on the CUDA backend, on a device made of the host's memory and, where there is
 * one, on a real device: the CPU backend's bits, whatever the runs.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/recurrent.h"
#include "kernels/recurrent/gates.h"
#include "tests/harness/cmocka.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"
#include "tests/kernels/recurrent_scene.h"

enum { N_STATES = 24 };

/** A scene on both backends: what is on the device. */
struct both {
    struct cuda_pair pair;
    struct recurrent_scene scene;
    struct kern_recur recur;
    struct kern_convolve convolve;
    float *q, *gates, *x;
};

static float *floats(const struct guard *g)
{
    return (float *)(void *)g->data;
}

static float *put(struct both *o, const struct guard *g)
{
    return cuda_pair_put(&o->pair, floats(g), g->n_bytes / sizeof(float));
}

/** States with NaN, on the host or on the device. */
static float *states(struct both *o, size_t n_bytes, bool on_device)
{
    float *memory = aligned_alloc(64, N_STATES * n_bytes + 64);
    assert_non_null(memory);
    memset(memory, 0xff, N_STATES * n_bytes);
    if (!on_device)
        return memory;
    float *copy = cuda_pair_put(&o->pair, memory, N_STATES * n_bytes / sizeof(float));
    free(memory);
    return copy;
}

static void both_open(struct both *o, struct rng *r, const struct recurrent_shape *shape,
                      size_t n_taps, size_t n_tokens, size_t way)
{
    struct host_device_options options = cuda_pair_way(way % CUDA_PAIR_N_WAYS);
    cuda_pair_open(&o->pair, KERN_PRECISION_EXACT, &options);
    struct recurrent_scene *s = &o->scene;
    recurrent_scene_open(s, r, shape, n_taps, n_tokens);
    size_t recur_bytes = kern_recur_state_bytes(&s->recur);
    size_t convolve_bytes = kern_convolve_state_bytes(&s->convolve);
    s->recur.states = states(o, recur_bytes, false);
    s->convolve.states = states(o, convolve_bytes, false);
    o->recur = s->recur;
    o->convolve = s->convolve;
    o->q = put(o, &s->q);
    o->gates = put(o, &s->gates);
    o->x = put(o, &s->x);
    o->recur.q = o->q;
    o->recur.k = o->q + (s->recur.k - s->recur.q);
    o->recur.v = o->q + (s->recur.v - s->recur.q);
    o->recur.dt = o->gates;
    o->recur.beta = s->recur.beta ? o->gates + (s->recur.beta - s->recur.dt) : NULL;
    o->convolve.x = o->x;
    o->recur.out = put(o, &s->out);
    o->convolve.y = put(o, &s->y);
    o->recur.states = states(o, recur_bytes, true);
    o->convolve.states = states(o, convolve_bytes, true);
}

static void both_close(struct both *o)
{
    float *copies[] = {
        o->q, o->gates, o->x, o->recur.out, o->convolve.y, o->recur.states, o->convolve.states};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        cuda_pair_take(&o->pair, copies[i], NULL, 0);
    free(o->scene.recur.states);
    free(o->scene.convolve.states);
    recurrent_scene_close(&o->scene);
    cuda_pair_close(&o->pair);
}

static void run(struct both *o, const struct kern_run *runs, size_t n_runs)
{
    struct kern_recur *recurs[] = {&o->scene.recur, &o->recur};
    struct kern_convolve *convolves[] = {&o->scene.convolve, &o->convolve};
    struct kern_backend *backends[] = {o->pair.cpu, o->pair.cuda};
    struct status_why why = {""};
    for (size_t i = 0; i < 2; i++) {
        recurs[i]->runs = convolves[i]->runs = runs;
        recurs[i]->n_runs = convolves[i]->n_runs = n_runs;
        if (kern_recur(backends[i], recurs[i], &why) != STATUS_OK ||
            kern_convolve(backends[i], convolves[i], &why) != STATUS_OK)
            fail_msg("%s", why.text);
    }
}

/** All outputs, of rows that no run had as well. */
static void compare(struct both *o, const char *what)
{
    const struct guard *expected[] = {&o->scene.out, &o->scene.y};
    const float *found[] = {o->recur.out, o->convolve.y};
    for (size_t i = 0; i < 2; i++) {
        float *copy = malloc(expected[i]->n_bytes);
        assert_non_null(copy);
        assert_int_equal(kern_download(o->pair.cuda, copy, found[i], expected[i]->n_bytes, NULL),
                         STATUS_OK);
        cuda_data_assert_same(copy, floats(expected[i]), expected[i]->n_bytes / sizeof *copy, what);
        free(copy);
    }
}

static struct kern_run run_of(size_t row, size_t n, size_t index, ptrdiff_t parent, ptrdiff_t from,
                              ptrdiff_t to)
{
    return (struct kern_run){row, n, index, parent, from, to};
}

static const struct recurrent_shape shapes[] = {
    {1, 2, 5, 3, true, true, KERN_UNIT_ADD, 0.9f, 0},
    {2, 4, 16, 33, true, false, KERN_UNIT_ADD, 0.98f, 0},
    {1, 2, 40, 64, false, false, KERN_UNIT_NONE, 0.95f, 0.01f},
    {1, 1, 128, 32, true, true, KERN_UNIT_ADD, 0.99f, 0},
    {2, 2, 13, 37, true, false, KERN_UNIT_ADD, 0.95f, 0, true},
    {1, 1, 6, 34, true, false, KERN_UNIT_ADD, 0, 0, true, -5},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/** Calls, one after the other: the ends of each call's runs in `runs`. */
struct calls {
    const struct kern_run *runs;
    const size_t *ends;
    size_t n;
};

/** Families in one call; one of them saves an end that nobody needs. */
static const struct kern_run together[] = {{0, 70, 0, -1, -1, -1},  {70, 3, 70, 0, -1, 1},
                                           {73, 40, 70, 0, -1, -1}, {113, 1, 0, -1, -1, -1},
                                           {114, 64, 1, 3, -1, -1}, {178, 20, 0, -1, -1, -1}};

/** A family that is cut in the prefix and in an ending, and others. */
static const struct kern_run cut[] = {
    {0, 1, 0, -1, -1, 0},     {1, 1, 1, -1, 0, 0},      {2, 3, 2, -1, 0, 0},
    {5, 26, 5, -1, 0, 0},     {31, 39, 31, -1, 0, 0},   {70, 3, 70, 0, -1, -1},
    {73, 20, 70, -1, 0, 1},   {93, 1, 90, -1, 1, 1},    {94, 19, 91, -1, 1, -1},
    {113, 10, 70, -1, 0, -1}, {123, 10, 70, -1, 0, -1}, {133, 33, 0, -1, -1, -1}};

static const struct calls calls[] = {
    {together, (const size_t[]){6}, 1},
    {cut, (const size_t[]){1, 2, 3, 4, 6, 7, 8, 12}, 8},
};

static void test_bits(void **state)
{
    (void)state;
    static const size_t n_taps[] = {2, 1, 3, 3, 5, 7, KERN_CONVOLVE_MAX, KERN_CONVOLVE_MAX,
                                    4, 4, 2, 4};
    for (size_t i = 0; i < 2 * N_SHAPES; i++) {
        struct rng r = rng_open(rng_seed(), i);
        const struct calls *c = &calls[i % 2];
        struct both o;
        both_open(&o, &r, &shapes[i / 2], n_taps[i], 200, i);
        for (size_t j = 0, begin = 0; j < c->n; begin = c->ends[j++])
            run(&o, c->runs + begin, c->ends[j] - begin);
        compare(&o, i % 2 ? "cut" : "in one call");
        both_close(&o);
    }
}

enum { ROWS = 300, LONG = 40 /* more than KERN_CHUNK */ };

/**
 * For each number of taps: runs, parents and what came before them end at every place that a
 * convolution looks back to. No run's rows are beside its parent's, and the last row is used. The
 * last call shows what all others saved.
 */
static void check_ends(struct both *o, size_t n_taps)
{
    const size_t most = n_taps - 1;
    struct kern_run runs[6 * 8];
    size_t n = 0, row = 0, behind = 200;
    for (size_t i = 1; i <= most; row += i++)
        runs[n++] = run_of(row, i, 0, -1, -1, (ptrdiff_t)i - 1);
    runs[n++] = run_of(ROWS - LONG, LONG, 0, -1, -1, -1);
    run(o, runs, n);
    n = 0;
    for (size_t i = 1; i <= most; i++) /* tokens before the only one that there is */
        runs[n++] = run_of(row++, 1, i, -1, (ptrdiff_t)i - 1, (ptrdiff_t)i - 1);
    run(o, runs, n);
    n = 0;
    for (size_t i = 1; i <= most; i++) {
        const size_t parents[] = {i, 9}, lengths[] = {1, i};
        for (size_t k = 0; k < 2; k++) {
            runs[n] = run_of(row, parents[k], 0, -1, -1, -1);
            runs[n + 1] = run_of(behind, lengths[k], parents[k], (ptrdiff_t)n, -1,
                                 (ptrdiff_t)(8 + 8 * k + i) - 1);
            row += parents[k];
            behind += lengths[k];
            n += 2;
        }
    }
    run(o, runs, n);
    n = 0;
    for (size_t i = 1; i <= most; i++) {
        runs[n] = run_of(row++, 1, i + 1, -1, (ptrdiff_t)i - 1, -1);
        runs[n + 1] = run_of(behind++, 1, i + 2, (ptrdiff_t)n, -1, -1);
        runs[n + 2] = run_of(row++, 1, i + 1, -1, (ptrdiff_t)(8 + i) - 1, -1);
        runs[n + 3] = run_of(row++, 1, i + 9, -1, (ptrdiff_t)(16 + i) - 1, -1);
        n += 4;
    }
    run(o, runs, n);
}

static void test_ends(void **state)
{
    (void)state;
    struct recurrent_shape shape = {1, 1, 1, 1, false, false, KERN_UNIT_NONE, 0.9f, 0};
    for (size_t n_taps = 2; n_taps < 10; n_taps++) {
        struct rng r = rng_open(rng_seed(), 300 + n_taps);
        shape.v_size = n_taps == 2 ? 128 : 1; /* in one of them each thread has a channel */
        struct both o;
        both_open(&o, &r, &shape, n_taps, ROWS, 0);
        check_ends(&o, n_taps);
        compare(&o, "ends");
        both_close(&o);
    }
}

/** Channels have decays of their own: fewer than chains, then whole lengths; no row is left over.
 */
static void test_few_channels(void **state)
{
    (void)state;
    enum { T = 6 };
    static const struct kern_run runs[] = {
        {0, 1, 0, -1, -1, 0}, {1, 2, 1, -1, 0, 1}, {3, 3, 3, 0, -1, -1}};
    static const size_t sizes[] = {2, KERN_UNIT_LANES};
    for (size_t i = 0; i < 2; i++) {
        struct rng r = rng_open(rng_seed(), 400 + i);
        const struct recurrent_shape shape = {
            1, 2, sizes[i], 2, true, false, KERN_UNIT_ADD, 0.95f, 0, true, i ? -5.0f : 0.0f};
        struct both o;
        both_open(&o, &r, &shape, 1, T, 0);
        run(&o, runs, 1);
        run(&o, runs + 1, 2);
        compare(&o, "few channels");
        both_close(&o);
    }
}

/** More families with parents than a launch has room for. */
static void test_many_families(void **state)
{
    (void)state;
    enum { N = 24, T = 2 * N };
    const struct recurrent_shape shape = {1,    1, 1, 24 * 1024, false, false, KERN_UNIT_NONE,
                                          0.9f, 0};
    struct rng r = rng_open(rng_seed(), 100);
    struct both o;
    both_open(&o, &r, &shape, 1, T, 0);
    struct kern_run runs[2 * N];
    for (size_t i = 0; i < N; i++) {
        runs[2 * i] = run_of(2 * i, 1, 0, -1, -1, -1);
        runs[2 * i + 1] = run_of(2 * i + 1, 1, 1, (ptrdiff_t)(2 * i), -1, -1);
    }
    size_t before = o.pair.log.n_launches[KERN_CUDA_RECUR];
    run(&o, runs, 2 * N);
    compare(&o, "many families");
    if (!cuda_pair_is_real())
        assert_true(o.pair.log.n_launches[KERN_CUDA_RECUR] - before > 1);
    both_close(&o);
}

static void test_large_keys(void **state)
{
    (void)state;
    const struct recurrent_shape shape = {1, 1, 2048, 1, true, false, KERN_UNIT_ADD, 0.9f, 0};
    struct rng r = rng_open(rng_seed(), 200);
    struct both o;
    both_open(&o, &r, &shape, 1, 1, 0);
    const struct kern_run all = run_of(0, 1, 0, -1, -1, -1);
    struct status_why why = {""};
    o.recur.runs = &all;
    o.recur.n_runs = 1;
    assert_int_equal(kern_recur(o.pair.cuda, &o.recur, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "keys of 2048 elements"));
    both_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),          cmocka_unit_test(test_few_channels),
        cmocka_unit_test(test_bits),          cmocka_unit_test(test_large_keys),
        cmocka_unit_test(test_many_families),
    };
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
}
