/*
 * A feed-forward's products, whose results never exist where the CUDA backend takes them together:
 * the bits of one operation after the other, whatever comes between the operations; and near the
 * CPU's results.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/rows.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"
#include "tests/kernels/cuda_sums.h"

/** Who reads what is between the products. */
enum between { NOBODY, READS_GATE, READS_UP, READS_ACTIVATED, USES_GATE };

/** A feed-forward: its sizes, and what its products have beside a weight. */
struct scene {
    size_t n_tokens, width, n_ff;
    enum kern_activation kind;
    bool alone; /* no `up` */
    bool bias, scale;
    enum between between;
};

/** Its weights, numbers, and the numbers in a backend's memory. */
struct ffn {
    const struct scene *scene;
    struct kern_weight gate, up, down, bias;
    float *x, *y, *inner, *high;
};

/** Something that reads n floats of x. */
static enum status read_floats(struct kern_backend *b, const float *x, size_t n)
{
    float *copy = malloc(n * sizeof *copy);
    assert_non_null(copy);
    enum status status = kern_download(b, copy, x, n * sizeof *copy, NULL);
    free(copy);
    return status;
}

/** What is between the first products and the last one. */
static enum status activate(struct kern_backend *b, const struct ffn *f)
{
    const struct scene *s = f->scene;
    size_t n = s->n_tokens * s->n_ff;
    enum status status = STATUS_OK;
    const struct kern_activate op = {
        .kind = s->kind, .gate = f->inner, .up = s->alone ? NULL : f->high, .n = n};
    const struct kern_copy copy = {f->inner, s->n_ff, f->high, s->n_ff, s->n_ff, 1, 0};
    if (s->between == READS_UP)
        status = read_floats(b, f->high, n);
    if (s->between == USES_GATE)
        status = kern_copy_rows(b, &copy, NULL);
    if (!status)
        status = kern_activate(b, &op, NULL);
    return !status && s->between == READS_ACTIVATED ? read_floats(b, f->inner, n) : status;
}

/** y += the feed-forward of x. */
static enum status run_ffn(struct kern_backend *b, const struct ffn *f, bool passing)
{
    const struct scene *s = f->scene;
    struct kern_linear op = {.weight = &f->gate,
                             .bias = s->bias ? &f->bias : NULL,
                             .x = f->x,
                             .y = f->inner,
                             .y_stride = s->n_ff,
                             .n_tokens = s->n_tokens,
                             .passing = passing};
    const struct kern_linear down = {.weight = &f->down,
                                     .x = f->inner,
                                     .y = f->y,
                                     .y_stride = s->width,
                                     .n_tokens = s->n_tokens,
                                     .accumulate = true};
    enum status status = kern_linear(b, &op, NULL);
    if (!status && s->between == READS_GATE)
        status = read_floats(b, f->inner, s->n_tokens * s->n_ff);
    op.weight = &f->up;
    op.y = f->high;
    op.same_x = true;
    if (!status && !s->alone)
        status = kern_linear(b, &op, NULL);
    if (!status)
        status = activate(b, f);
    return status ? status : kern_linear(b, &down, NULL);
}

/** The feed-forward on the device: y, from the same x and y. */
static enum status run_on_device(struct kern_backend *b, const struct ffn *f, bool passing,
                                 float *found)
{
    const struct scene *s = f->scene;
    struct ffn device = *f;
    size_t n_y = s->n_tokens * s->width, n_ff = s->n_tokens * s->n_ff;
    const float *from[] = {f->x, f->y, f->inner, f->high};
    float **to[] = {&device.x, &device.y, &device.inner, &device.high};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < 4; i++) {
        size_t n_bytes = (i < 2 ? n_y : n_ff) * sizeof(float);
        void *memory = NULL;
        status = status ? status : kern_alloc(b, &memory, n_bytes, NULL);
        status = status ? status : kern_upload(b, memory, from[i], n_bytes, NULL);
        *to[i] = memory;
    }
    if (!status)
        status = run_ffn(b, &device, passing);
    if (!status)
        status = kern_download(b, found, device.y, n_y * sizeof *found, NULL);
    for (size_t i = 0; i < 4; i++)
        kern_free(b, *to[i]);
    return status;
}

static struct ffn make_ffn(struct rng *r, const struct scene *s)
{
    struct ffn f = {
        .scene = s,
        .gate = cuda_data_float_weight(r, s->n_ff, s->width),
        .up = cuda_data_float_weight(r, s->n_ff, s->width),
        .down = cuda_data_float_weight(r, s->width, s->n_ff),
        .bias = cuda_data_float_weight(r, 1, s->n_ff),
        .x = cuda_data_floats(r, s->n_tokens * s->width, 1.0f / sqrtf((float)s->width)),
        .y = cuda_data_floats(r, s->n_tokens * s->width, 1.0f),
        .inner = cuda_data_floats(r, s->n_tokens * s->n_ff, 1.0f),
        .high = cuda_data_floats(r, s->n_tokens * s->n_ff, 1.0f),
    };
    if (s->scale)
        f.gate.scale = 0.75f;
    return f;
}

static void free_ffn(struct ffn *f)
{
    struct kern_weight *weights[] = {&f->gate, &f->up, &f->down, &f->bias};
    float *numbers[] = {f->x, f->y, f->inner, f->high};
    for (size_t i = 0; i < 4; i++) {
        cuda_data_weight_free(weights[i]);
        free(numbers[i]);
    }
}

/**
 * Root mean square of the differences from the CPU, over that of the results. A half is off by
 * 2^-11 at most. There are six on the way to a result, and the activations here are no steeper than
 * 1.2: 7.2 of that, under 2^-8. In two parts it is 2^-22, and under 2^-18 with sums in float32.
 */
static void compare_with_cpu(struct cuda_pair *p, const struct ffn *f,
                             enum kern_precision precision, const float *found)
{
    size_t n = f->scene->n_tokens * f->scene->width;
    struct ffn cpu = *f;
    cpu.y = cuda_data_copy(f->y, n);
    assert_int_equal(run_ffn(p->cpu, &cpu, true), STATUS_OK);
    double off = 0.0, all = 0.0;
    for (size_t i = 0; i < n; i++) {
        off += pow((double)found[i] - (double)cpu.y[i], 2);
        all += pow((double)cpu.y[i], 2);
    }
    double most = precision == KERN_PRECISION_FAST ? 0x1p-8 : 0x1p-18;
    if (!(sqrt(off) <= most * sqrt(all)))
        fail_msg("a feed-forward is off by %g of its size", sqrt(off / all));
    free(cpu.y);
}

/** together: whether one kernel is to take the gate to the last product. */
static void check_ffn(enum kern_precision precision, const struct scene *s, bool together)
{
    struct rng r = rng_open(rng_seed(), 31);
    struct ffn f = make_ffn(&r, s);
    size_t n = s->n_tokens * s->width;
    float *expected = malloc(n * sizeof *expected), *found = malloc(n * sizeof *found);
    assert_true(expected && found);
    for (size_t way = 0; way < CUDA_PAIR_N_WAYS; way += cuda_pair_step()) {
        struct cuda_pair p;
        struct host_device_options options = cuda_pair_way(way);
        cuda_pair_open(&p, precision, &options);
        assert_int_equal(run_on_device(p.cuda, &f, false, expected), STATUS_OK);
        size_t n_finish = cuda_sums_launched(&p, KERN_CUDA_FINISH),
               n_gate = cuda_sums_launched(&p, KERN_CUDA_GATE);
        assert_int_equal(cuda_sums_launched(&p, KERN_CUDA_GATE_SPLIT), 0);
        assert_int_equal(run_on_device(p.cuda, &f, true, found), STATUS_OK);
        cuda_data_assert_same(found, expected, n, "a feed-forward");
        if (!cuda_pair_is_real()) {
            assert_int_equal(cuda_sums_launched(&p, KERN_CUDA_GATE_SPLIT), together);
            assert_int_equal(cuda_sums_launched(&p, KERN_CUDA_GATE) - n_gate, !together);
            assert_true(!together ||
                        cuda_sums_launched(&p, KERN_CUDA_FINISH) - n_finish < n_finish);
        }
        /* A single output may be close to 0 beside the terms of its sum. */
        if (s->between != USES_GATE && s->width > 1)
            compare_with_cpu(&p, &f, precision, found);
        cuda_pair_close(&p);
    }
    free_ffn(&f);
    free(expected);
    free(found);
}

/** One panel and several, one chunk of tokens and several, with all that a product adds. */
static void test_together(void **state)
{
    (void)state;
    check_ffn(KERN_PRECISION_FAST, &(struct scene){.n_tokens = 32, .width = 12, .n_ff = 38}, true);
    check_ffn(
        KERN_PRECISION_HIGH,
        &(struct scene){
            .n_tokens = 96, .width = 9, .n_ff = 20, .bias = true, .scale = true, .kind = KERN_GELU},
        true);
    check_ffn(KERN_PRECISION_FAST,
              &(struct scene){
                  .n_tokens = 48, .width = 8, .n_ff = 33, .alone = true, .kind = KERN_RELU_SQUARED},
              true);
    check_ffn(KERN_PRECISION_HIGH,
              &(struct scene){.n_tokens = 16, .width = 80, .n_ff = 272, .bias = true}, true);
}

/** Tokens that must be padded, and a row that shared memory has no room for: one by one. */
static void test_apart(void **state)
{
    (void)state;
    check_ffn(KERN_PRECISION_FAST, &(struct scene){.n_tokens = 13, .width = 12, .n_ff = 38}, false);
    check_ffn(KERN_PRECISION_FAST, &(struct scene){.n_tokens = 50, .width = 12, .n_ff = 38}, false);
    check_ffn(KERN_PRECISION_HIGH, &(struct scene){.n_tokens = 16, .width = 80, .n_ff = 270},
              false);
    if (!cuda_pair_is_real())
        check_ffn(KERN_PRECISION_FAST, &(struct scene){.n_tokens = 16, .width = 1, .n_ff = 26000},
                  false);
}

/** Whoever looks at what waits finds results. */
static void test_between(void **state)
{
    (void)state;
    for (enum between between = READS_GATE; between <= USES_GATE; between++)
        check_ffn(KERN_PRECISION_FAST,
                  &(struct scene){.n_tokens = 16, .width = 12, .n_ff = 38, .between = between},
                  false);
}

/** Whatever fails ends in an error, and not in other results; no memory is lost. */
static void test_failures(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 33);
    enum { N_Y = 16 * 12 };
    const struct scene s = {.n_tokens = 16, .width = 12, .n_ff = 38, .bias = true};
    struct ffn f = make_ffn(&r, &s);
    float *expected = malloc(N_Y * sizeof *expected), *found = malloc(N_Y * sizeof *found);
    size_t n_failed = 0;
    struct host_device_log log = {.n_calls = SIZE_MAX};
    assert_true(expected && found);
    for (size_t at = 0; at == 0 || log.n_calls >= at - 1; at++) { /* the first time nothing fails */
        struct kern_backend *b;
        struct kern_cuda_device *device =
            host_device_open(&(struct host_device_options){.fail_at = at}, &log);
        const struct kern_cuda_options options = {
            .precision = KERN_PRECISION_FAST, .product_tokens = 16, .product_step = 16};
        enum status status = kern_cuda_open(&b, device, &options, NULL);
        if (!status)
            status = run_on_device(b, &f, true, at ? found : expected);
        if (!status && at > 0)
            cuda_data_assert_same(found, expected, N_Y, "what failed and went on");
        kern_close(b);
        assert_int_equal(log.n_left, 0);
        n_failed += status != STATUS_OK;
    }
    assert_true(n_failed > 40);
    free(expected);
    free(found);
    free_ffn(&f);
}

enum { ROWS = 3, BLOCKS = 5, MILD = 32 };

/** By the kernels that come one after the other elsewhere. */
static void one_by_one(struct cuda_pair *p, const struct kern_gate_split_args *a)
{
    size_t n = ROWS * a->out.n_cols;
    float *gate = cuda_sums_room(p, NULL, n * sizeof *gate),
          *up = cuda_sums_room(p, NULL, n * sizeof *up);
    cuda_sums_finish(p, &a->gate, gate, ROWS, a->out.n_cols);
    if (a->up.sums)
        cuda_sums_finish(p, &a->up, up, ROWS, a->out.n_cols);
    const struct kern_gate_args activate = {
        .gate = gate, .up = a->up.sums ? up : NULL, .n = n, .curve = a->curve, .kind = a->kind};
    cuda_sums_launch(p, KERN_CUDA_GATE, base_div_up(n, KERN_ROWS_ELEMS), 0, &activate);
    const struct kern_split_args split = {.x = gate, .out = a->out};
    cuda_sums_launch(p, KERN_CUDA_SPLIT, BLOCKS, sizeof(uint32_t), &split);
    kern_free(p->cuda, gate);
    kern_free(p->cuda, up);
}

/** Run both ways and compare halves and magnitudes. */
static void compare_ways(struct cuda_pair *p, struct kern_gate_split_args *a, bool parts)
{
    size_t n_cols = a->out.n_cols;
    struct kern_half_out out[2];
    for (size_t way = 0; way < 2; way++) {
        a->out = out[way] = cuda_sums_out(p, ROWS, BLOCKS, n_cols, parts);
        if (way == 0)
            one_by_one(p, a);
        else
            cuda_sums_launch(p, KERN_CUDA_GATE_SPLIT, BLOCKS,
                             KERN_GATE_SPLIT_HEADER + base_round_up(n_cols, 4) * sizeof(float), a);
    }
    cuda_sums_assert_same(p, out[1], out[0], BLOCKS);
}

static void check_kernel(struct cuda_pair *p, struct rng *r, size_t n_cols,
                         enum kern_activation kind, unsigned what)
{
    uint32_t *of_rows = cuda_sums_magnitudes(p, r, ROWS, what & MILD);
    float *bias = cuda_sums_numbers(p, r, n_cols);
    struct kern_sums sums[2];
    struct kern_powers rows = cuda_sums_powers(p, of_rows, ROWS);
    for (size_t i = 0; i < 2; i++) {
        uint32_t *of_cols = cuda_sums_magnitudes(p, r, n_cols, what & MILD);
        sums[i] = (struct kern_sums){.sums = cuda_sums_numbers(p, r, ROWS * n_cols),
                                     .cols = cuda_sums_powers(p, of_cols, n_cols),
                                     .rows = rows,
                                     .bias = what & 1 << i ? bias : NULL,
                                     .scale = what & 4 ? 0.75f : 1.0f};
        kern_free(p->cuda, of_cols);
    }
    struct kern_gate_split_args args = {
        .gate = sums[0],
        .out = {.n_cols = n_cols},
        .curve = {.clamp = 0.5f, .slope = 0.5, .rise = 0.8, .fall = 0.8, .eps = -1e-6},
        .kind = kind};
    bool limits_up = kind == KERN_SWIGLU_OAI || kind == KERN_SWIGLU_CLAMP_BEFORE ||
                     kind == KERN_SWIGLU_CLAMP_AFTER;
    if (what & 8 || limits_up)
        args.up = sums[1];
    compare_ways(p, &args, what & 16);
    for (size_t i = 0; i < 2; i++) {
        kern_free(p->cuda, (void *)(uintptr_t)sums[i].sums);
        cuda_sums_free_powers(p, sums[i].cols);
    }
    cuda_sums_free_powers(p, rows);
    kern_free(p->cuda, of_rows);
    kern_free(p->cuda, bias);
}

/** Every activation, each end of a row, rows of padding. */
static void test_kernel(void **state)
{
    (void)state;
    static const size_t wide[] = {4 * KERN_GATE_SPLIT_THREADS, 4 * KERN_GATE_SPLIT_THREADS + 2};
    struct cuda_pair p;
    struct rng r = rng_open(rng_seed(), 32);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &(struct host_device_options){0});
    for (size_t i = 0; i < 2; i++)
        check_kernel(&p, &r, wide[i], KERN_SILU, 31);
    for (unsigned kind = 0; kind < 2 * KERN_N_ACTIVATIONS; kind++)
        check_kernel(&p, &r, 97 + kind % 4, (enum kern_activation)(kind / 2),
                     8 | kind % 8 | (kind % 2 ? MILD : 0));
    for (unsigned what = 0; what < 128; what++)
        check_kernel(&p, &r, 4 + what / 32, KERN_SILU, what % 32);
    cuda_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel),   cmocka_unit_test(test_together),
        cmocka_unit_test(test_apart),    cmocka_unit_test(test_between),
        cmocka_unit_test(test_failures),
    };
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (n_failed == 0 && cuda_pair_use_real_device())
        n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    return n_failed;
}
