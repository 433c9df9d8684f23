/*
 * A norm, and sums of products, that wait for what comes next: where one kernel takes them to a
 * product or a rotation, and where not, the bits are those of one operation after the other.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels/gated/norm.h"
#include "kernels/cuda/kernels/gated/rotated.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"
#include "tests/kernels/cuda_sums.h"

enum { ROWS = 3, BLOCKS = 5 };

/** Rows of which one is zeros, and one, with `wild`, has a NaN or an infinity; in device memory. */
static float *rows_of(struct cuda_pair *p, struct rng *r, size_t n_cols, bool wild)
{
    float *x = cuda_data_floats(r, ROWS * n_cols, 3.0f);
    memset(x + n_cols, 0, n_cols * sizeof *x);
    if (wild)
        x[rng_below(r, n_cols)] = rng_below(r, 2) ? INFINITY : NAN;
    float *copy = cuda_sums_room(p, x, ROWS * n_cols * sizeof *x);
    free(x);
    return copy;
}

/** what: 1: parts, 2: a gain, 4: wild numbers, 8: x and the gain are not aligned. */
static void check_norm(struct cuda_pair *p, struct rng *r, size_t n_cols, unsigned what)
{
    size_t n = ROWS * n_cols, off = what & 8 ? 1 : 0;
    float *memory = rows_of(p, r, n_cols + off, what & 4);
    float *gain = cuda_sums_numbers(p, r, n_cols + off), *y[2], *host[2];
    struct kern_half_out out[2];
    for (size_t way = 0; way < 2; way++) {
        y[way] = cuda_sums_room(p, NULL, n * sizeof(float));
        host[way] = malloc(n * sizeof(float));
        out[way] = cuda_sums_out(p, ROWS, BLOCKS, n_cols, what & 1);
    }
    const struct kern_norm_args norm = {.x = memory + off,
                                        .gain = what & 2 ? gain + off : NULL,
                                        .y = y[0],
                                        .width = n_cols,
                                        .n_groups = 1,
                                        .eps = 1e-5f};
    const struct kern_split_args split = {.x = y[0], .out = out[0]};
    cuda_sums_launch(p, KERN_CUDA_NORM, ROWS, sizeof(struct kern_norm_shared), &norm);
    cuda_sums_launch(p, KERN_CUDA_SPLIT, BLOCKS, sizeof(uint32_t), &split);
    const struct kern_norm_split_args both = {
        .x = norm.x, .gain = norm.gain, .y = y[1], .out = out[1], .eps = norm.eps};
    cuda_sums_launch(p, KERN_CUDA_NORM_SPLIT, BLOCKS, kern_norm_split_bytes(n_cols), &both);
    for (size_t way = 0; way < 2; way++)
        cuda_pair_take(p, y[way], host[way], n);
    assert_memory_equal(host[1], host[0], n * sizeof(float));
    cuda_sums_assert_same(p, out[1], out[0], BLOCKS);
    kern_free(p->cuda, memory);
    kern_free(p->cuda, gain);
    free(host[0]);
    free(host[1]);
}

/** Each end of a row, several rounds of a block's threads, more than a chunk of the norm alone. */
static void test_norm_split(void **state)
{
    (void)state;
    static const size_t wide[] = {51, 512, 514, 2051};
    struct cuda_pair p;
    struct rng r = rng_open(rng_seed(), 41);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &(struct host_device_options){0});
    for (size_t i = 0; i < 4; i++)
        for (unsigned gain = 0; gain <= 2; gain += 2)
            check_norm(&p, &r, wide[i], 1 + gain);
    for (unsigned what = 0; what < 16; what++)
        for (size_t n_cols = 15; n_cols < 19; n_cols++)
            check_norm(&p, &r, n_cols, what);
    cuda_pair_close(&p);
}

/** How heads are rotated. */
struct turn {
    size_t n_heads, head_size, n_pairs;
    bool split_halves;
};

enum { POSITIONS = 7 };

/** what: 1: bias, 2: scale, 4: mild. */
static void check_rotated(struct cuda_pair *p, struct rng *r, const struct turn *turn,
                          unsigned what)
{
    static const int32_t positions[ROWS] = {2, 6, 0};
    size_t n_cols = turn->n_heads * turn->head_size, n = ROWS * n_cols;
    uint32_t *of_rows = cuda_sums_magnitudes(p, r, ROWS, what & 4);
    uint32_t *of_cols = cuda_sums_magnitudes(p, r, n_cols, what & 4);
    float *bias = cuda_sums_numbers(p, r, n_cols), *host[2], *out[2];
    float *angles = cuda_sums_numbers(p, r, POSITIONS * turn->n_pairs * 2);
    float *sums = cuda_data_floats(r, n, 1e4f);
    void *at = cuda_sums_room(p, positions, sizeof positions);
    for (size_t way = 0; way < 2; way++) {
        host[way] = malloc(n * sizeof(float));
        out[way] = cuda_sums_room(p, sums, n * sizeof(float));
    }
    struct kern_rotated_args a = {
        .sums = {.sums = out[0],
                 .cols = cuda_sums_powers(p, of_cols, n_cols),
                 .rows = cuda_sums_powers(p, of_rows, ROWS),
                 .bias = what & 1 ? bias : NULL,
                 .scale = what & 2 ? 0.75f : 1.0f},
        .rope = {.x = out[0],
                 .angles = angles,
                 .positions = at,
                 .stride = n_cols,
                 .n_tokens = ROWS,
                 .n_heads = turn->n_heads,
                 .head_size = turn->head_size,
                 .n_pairs = turn->n_pairs,
                 .split_halves = turn->split_halves},
    };
    cuda_sums_finish(p, &a.sums, out[0], ROWS, n_cols);
    size_t n_pairs = ROWS * turn->n_heads * turn->n_pairs;
    cuda_sums_launch(p, KERN_CUDA_ROPE, base_div_up(n_pairs, KERN_ROWS_ELEMS), 0, &a.rope);
    a.rope.x = out[1];
    a.sums.sums = out[1];
    cuda_sums_launch(p, KERN_CUDA_ROTATED, ROWS, 0, &a);
    for (size_t way = 0; way < 2; way++)
        cuda_pair_take(p, out[way], host[way], n);
    assert_memory_equal(host[1], host[0], n * sizeof(float));
    cuda_sums_free_powers(p, a.sums.cols);
    cuda_sums_free_powers(p, a.sums.rows);
    void *memory[] = {of_rows, of_cols, bias, angles, at};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        kern_free(p->cuda, memory[i]);
    free(host[0]);
    free(host[1]);
    free(sums);
}

/** Both kinds of pairs, whole heads and parts of them, more parts than a block has threads. */
static void test_rotated(void **state)
{
    (void)state;
    static const struct turn turns[] = {{2, 8, 4, true},    {2, 8, 4, false},  {3, 20, 4, true},
                                        {3, 12, 4, false},  {1, 12, 3, false}, {2, 16, 1, false},
                                        {35, 32, 16, true}, {33, 16, 8, false}};
    struct cuda_pair p;
    struct rng r = rng_open(rng_seed(), 42);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &(struct host_device_options){0});
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
        for (unsigned what = 0; what < (i < 6 ? 8 : 2); what++)
            check_rotated(&p, &r, &turns[i], what ^ 4);
    cuda_pair_close(&p);
}

/** An attention's first operations: a norm, products of its results, two rotations. */
struct scene {
    size_t n_tokens, width, n_kv; /* heads of keys and values */
    struct turn turn;             /* of queries; keys have n_kv heads */
    bool bias, center, wide;      /* wide: a row of queries has room after it */
    bool overwrites;              /* values come where the queries are */
    size_t reads_after;           /* whoever looks after so many operations; 0: nobody */
    size_t forgets_after;         /* the gain is forgotten after so many; 0: never */
};

enum { N_OPS = 6, Q = 0, K, V, N_OUT };

struct attention {
    const struct scene *scene;
    struct kern_weight gain, shift, weights[N_OUT], bias[N_OUT];
    float *x, *y, *angles, *out[N_OUT]; /* in a backend's memory */
    size_t stride[N_OUT], n[N_OUT];
    int32_t *positions;
};

static struct attention make_attention(struct rng *r, const struct scene *s)
{
    struct attention a = {.scene = s,
                          .gain = cuda_data_float_weight(r, 1, s->width),
                          .shift = cuda_data_float_weight(r, 1, s->width)};
    a.x = cuda_data_floats(r, s->n_tokens * s->width, 2.0f);
    a.angles = cuda_data_floats(r, POSITIONS * s->turn.n_pairs * 2, 1.0f);
    a.positions = malloc(s->n_tokens * sizeof *a.positions);
    assert_non_null(a.positions);
    for (size_t i = 0; i < s->n_tokens; i++)
        a.positions[i] = (int32_t)rng_below(r, POSITIONS);
    for (size_t i = 0; i < N_OUT; i++) {
        size_t n_rows = (i == Q ? s->turn.n_heads : s->n_kv) * s->turn.head_size;
        a.weights[i] = cuda_data_float_weight(r, n_rows, s->width);
        a.bias[i] = cuda_data_float_weight(r, 1, n_rows);
        a.stride[i] = n_rows + (i == Q && s->wide ? 4 : 0);
        a.n[i] = s->n_tokens * a.stride[i];
    }
    a.weights[K].scale = 0.75f;
    return a;
}

static void free_attention(struct attention *a)
{
    cuda_data_weight_free(&a->gain);
    cuda_data_weight_free(&a->shift);
    for (size_t i = 0; i < N_OUT; i++) {
        cuda_data_weight_free(&a->weights[i]);
        cuda_data_weight_free(&a->bias[i]);
    }
    free(a->x);
    free(a->angles);
    free(a->positions);
}

static enum status multiply(struct kern_backend *b, const struct attention *a, size_t i)
{
    const struct scene *s = a->scene;
    bool over = i == V && s->overwrites;
    const struct kern_linear op = {.weight = &a->weights[i],
                                   .bias = s->bias ? &a->bias[i] : NULL,
                                   .x = a->y,
                                   .y = over ? a->out[Q] : a->out[i],
                                   .y_stride = a->stride[i],
                                   .n_tokens = s->n_tokens,
                                   .same_x = i > Q};
    return kern_linear(b, &op, NULL);
}

static enum status rotate(struct kern_backend *b, const struct attention *a, size_t i)
{
    const struct scene *s = a->scene;
    const struct kern_rope op = {.x = a->out[i],
                                 .stride = a->stride[i],
                                 .n_tokens = s->n_tokens,
                                 .n_heads = i == Q ? s->turn.n_heads : s->n_kv,
                                 .head_size = s->turn.head_size,
                                 .n_pairs = s->turn.n_pairs,
                                 .split_halves = s->turn.split_halves,
                                 .angles = a->angles,
                                 .n_positions = POSITIONS,
                                 .positions = a->positions};
    return kern_rope(b, &op, NULL);
}

static enum status operation(struct kern_backend *b, const struct attention *a, size_t i)
{
    const struct scene *s = a->scene;
    const struct kern_norm norm = {.gain = &a->gain,
                                   .bias = s->center ? &a->shift : NULL,
                                   .center = s->center,
                                   .eps = 1e-5f,
                                   .x = a->x,
                                   .y = a->y,
                                   .n_rows = s->n_tokens,
                                   .width = s->width,
                                   .n_groups = 1};
    if (i == 0)
        return kern_norm(b, &norm, NULL);
    return i <= N_OUT ? multiply(b, a, i - 1) : rotate(b, a, i == N_OUT + 1 ? K : Q);
}

/** All on the device; to y, and to all outputs. one_by_one: somebody looks after each operation. */
static enum status run(struct kern_backend *b, const struct attention *host, bool one_by_one,
                       float *y, float **out)
{
    const struct scene *s = host->scene;
    struct attention a = *host;
    size_t n_x = s->n_tokens * s->width, n_angles = POSITIONS * s->turn.n_pairs * 2;
    struct {
        float **at;
        const float *from;
        size_t n;
    } arrays[] = {
        {&a.x, host->x, n_x},      {&a.y, NULL, n_x},         {&a.angles, host->angles, n_angles},
        {&a.out[Q], NULL, a.n[Q]}, {&a.out[K], NULL, a.n[K]}, {&a.out[V], NULL, a.n[V]}};
    enum { N_ARRAYS = sizeof arrays / sizeof *arrays };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < N_ARRAYS; i++) {
        void *memory = NULL;
        float *zeros = calloc(arrays[i].n, sizeof *zeros);
        const float *from = arrays[i].from ? arrays[i].from : zeros;
        size_t n_bytes = arrays[i].n * sizeof(float);
        status = status ? status : kern_alloc(b, &memory, n_bytes, NULL);
        status = status ? status : kern_upload(b, memory, from, n_bytes, NULL);
        *arrays[i].at = memory;
        free(zeros);
    }
    float first;
    for (size_t i = 0; !status && i < N_OPS; i++) {
        status = operation(b, &a, i);
        if (!status && (one_by_one || i + 1 == s->reads_after))
            status = kern_download(b, &first, a.x, sizeof first, NULL);
        if (!status && i + 1 == s->forgets_after)
            kern_forget(b, a.gain.data, a.gain.row_bytes);
    }
    if (!status)
        status = kern_download(b, y, a.y, n_x * sizeof *y, NULL);
    for (size_t i = 0; !status && i < N_OUT; i++)
        status = kern_download(b, out[i], a.out[i], a.n[i] * sizeof **out, NULL);
    for (size_t i = 0; i < N_ARRAYS; i++)
        kern_free(b, *arrays[i].at);
    return status;
}

/** Room for y and the outputs of a run. */
static void make_results(const struct attention *a, float **y, float **out)
{
    *y = malloc(a->scene->n_tokens * a->scene->width * sizeof **y);
    assert_non_null(*y);
    for (size_t i = 0; i < N_OUT; i++) {
        out[i] = malloc(a->n[i] * sizeof **out);
        assert_non_null(out[i]);
    }
}

static void free_results(float *y, float **out)
{
    free(y);
    for (size_t i = 0; i < N_OUT; i++)
        free(out[i]);
}

/** What one kernel is to do of two operations. */
struct together {
    size_t norms, rotations;
};

static void check(enum kern_precision precision, const struct scene *s, struct together together)
{
    struct rng r = rng_open(rng_seed(), 43);
    struct attention a = make_attention(&r, s);
    float *y[2], *out[2][N_OUT];
    for (size_t i = 0; i < 2; i++)
        make_results(&a, &y[i], out[i]);
    for (size_t way = 0; way < CUDA_PAIR_N_WAYS; way += cuda_pair_step()) {
        struct cuda_pair p;
        struct host_device_options options = cuda_pair_way(way);
        size_t panel_size = s->width > 16000 ? 256 << 10 : 64 << 10; /* a row's bytes, and more */
        cuda_pair_open_panels(&p, precision, &options, panel_size);
        assert_int_equal(run(p.cuda, &a, true, y[0], out[0]), STATUS_OK);
        assert_int_equal(cuda_sums_launched(&p, KERN_CUDA_NORM_SPLIT), 0);
        assert_int_equal(cuda_sums_launched(&p, KERN_CUDA_ROTATED), 0);
        cuda_pair_close(&p);
        cuda_pair_open_panels(&p, precision, &options,
                              panel_size); /* without the room that the first run needed */
        assert_int_equal(run(p.cuda, &a, false, y[1], out[1]), STATUS_OK);
        cuda_data_assert_same(y[1], y[0], s->n_tokens * s->width, "a norm");
        for (size_t i = 0; i < N_OUT; i++)
            cuda_data_assert_same(out[1][i], out[0][i], a.n[i], "a product");
        if (!cuda_pair_is_real()) {
            assert_int_equal(cuda_sums_launched(&p, KERN_CUDA_NORM_SPLIT), together.norms);
            assert_int_equal(cuda_sums_launched(&p, KERN_CUDA_NORM), 1 - together.norms);
            assert_int_equal(cuda_sums_launched(&p, KERN_CUDA_ROTATED), together.rotations);
            assert_int_equal(cuda_sums_launched(&p, KERN_CUDA_ROPE), 2 - together.rotations);
        }
        cuda_pair_close(&p);
    }
    for (size_t i = 0; i < 2; i++)
        free_results(y[i], out[i]);
    free_attention(&a);
}

static const struct scene usual = {
    .n_tokens = 16, .width = 24, .n_kv = 2, .turn = {4, 16, 8, true}};

/** One panel and several, one chunk of tokens and several. */
static void test_together(void **state)
{
    (void)state;
    const struct together all = {1, 2};
    struct scene s = usual;
    check(KERN_PRECISION_FAST, &s, all);
    s.bias = true;
    s.n_tokens = 96;
    check(KERN_PRECISION_HIGH, &s, all);
    s = (struct scene){.n_tokens = 16, .width = 200, .n_kv = 4, .turn = {20, 16, 6, false}};
    check(KERN_PRECISION_FAST, &s, all);
}

/** What one kernel cannot do, or must not, since somebody looks or writes where results wait. */
static void test_apart(void **state)
{
    (void)state;
    struct scene s = usual;
    s.n_tokens = 13; /* padded */
    check(KERN_PRECISION_FAST, &s, (struct together){1, 0});
    s = usual;
    s.center = true;
    check(KERN_PRECISION_FAST, &s, (struct together){0, 2});
    s = usual;
    s.wide = true;
    check(KERN_PRECISION_HIGH, &s, (struct together){1, 1});
    s = usual;
    s.turn.n_pairs = 6; /* not in fours */
    check(KERN_PRECISION_FAST, &s, (struct together){1, 0});
    s = usual;
    s.overwrites = true;
    check(KERN_PRECISION_FAST, &s, (struct together){1, 0});
    s = usual;
    s.n_kv = 20; /* their powers have no room beside those of queries */
    s.turn.n_heads = 1;
    check(KERN_PRECISION_FAST, &s, (struct together){1, 0});
    s = usual;
    check(KERN_PRECISION_EXACT, &s, (struct together){0, 0});
    s.width = 26000; /* no room in shared memory */
    s.n_kv = s.turn.n_heads = 1;
    if (!cuda_pair_is_real())
        check(KERN_PRECISION_FAST, &s, (struct together){0, 2});
}

static void test_looking(void **state)
{
    (void)state;
    static const struct together together[N_OPS] = {{0, 2}, {1, 1}, {1, 0}, {1, 0}, {1, 1}, {1, 2}};
    for (size_t i = 1; i <= N_OPS; i++) {
        struct scene s = usual;
        s.reads_after = i;
        check(KERN_PRECISION_FAST, &s, together[i - 1]);
    }
    for (size_t i = 1; i <= 2; i++) {
        struct scene s = usual;
        s.forgets_after = i;
        check(KERN_PRECISION_FAST, &s, i == 1 ? (struct together){0, 2} : (struct together){1, 1});
    }
}

/** Whatever fails ends in an error, and not in other results; no memory is lost. */
static void test_failures(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 44);
    struct scene s = usual;
    s.bias = true;
    struct attention a = make_attention(&r, &s);
    float *y[2], *out[2][N_OUT];
    size_t n_failed = 0;
    struct host_device_log log = {.n_calls = SIZE_MAX};
    for (size_t i = 0; i < 2; i++)
        make_results(&a, &y[i], out[i]);
    for (size_t at = 0; at == 0 || log.n_calls >= at - 1; at++) { /* the first time nothing fails */
        struct kern_backend *b;
        struct kern_cuda_device *device =
            host_device_open(&(struct host_device_options){.fail_at = at}, &log);
        const struct kern_cuda_options options = {
            .precision = KERN_PRECISION_FAST, .product_tokens = 16, .product_step = 16};
        enum status status = kern_cuda_open(&b, device, &options, NULL);
        if (!status)
            status = run(b, &a, false, y[at > 0], out[at > 0]);
        for (size_t i = 0; !status && i < N_OUT; i++)
            cuda_data_assert_same(out[at > 0][i], out[0][i], a.n[i], "what failed and went on");
        kern_close(b);
        assert_int_equal(log.n_left, 0);
        n_failed += status != STATUS_OK;
    }
    assert_true(n_failed > 40);
    for (size_t i = 0; i < 2; i++)
        free_results(y[i], out[i]);
    free_attention(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm_split), cmocka_unit_test(test_rotated),
        cmocka_unit_test(test_together),   cmocka_unit_test(test_apart),
        cmocka_unit_test(test_looking),    cmocka_unit_test(test_failures),
    };
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (n_failed == 0 && cuda_pair_use_real_device())
        n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    return n_failed;
}
