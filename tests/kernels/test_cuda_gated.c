/*
 * A feed-forward's products, whose results never exist where the CUDA backend takes them together:
 * the bits of one operation after the other, whatever comes between the operations; and near the
 * CPU's results.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arithmetic.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/rows.h"
#include "kernels/operations.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"

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

static void launch(struct cuda_pair *p, enum kern_cuda_kernel kernel, size_t n_blocks,
                   size_t shared_bytes, const void *args)
{
    struct status_why why = {""};
    const struct kern_cuda_launch launch = {
        .kernel = kernel, .n_blocks = n_blocks, .shared_bytes = shared_bytes, .args = args};
    if (kern_cuda_run_launch(kern_cuda_of(p->cuda), &launch, &why))
        fail_msg("%s", why.text);
}

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

/** How many of a kernel the pair has launched. */
static size_t launched(const struct cuda_pair *p, enum kern_cuda_kernel kernel)
{
    return p->log.n_launches[kernel];
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
        size_t n_finish = launched(&p, KERN_CUDA_FINISH), n_gate = launched(&p, KERN_CUDA_GATE);
        assert_int_equal(launched(&p, KERN_CUDA_GATE_SPLIT), 0);
        assert_int_equal(run_on_device(p.cuda, &f, true, found), STATUS_OK);
        cuda_data_assert_same(found, expected, n, "a feed-forward");
        if (!cuda_pair_is_real()) {
            assert_int_equal(launched(&p, KERN_CUDA_GATE_SPLIT), together);
            assert_int_equal(launched(&p, KERN_CUDA_GATE) - n_gate, !together);
            assert_true(!together || launched(&p, KERN_CUDA_FINISH) - n_finish < n_finish);
        }
        if (s->between != USES_GATE)
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

enum { ROWS = 3, BLOCKS = 5, PARTS = 3, MILD = 32 };

static void *room(struct cuda_pair *p, const void *from, size_t n_bytes)
{
    void *copy;
    assert_int_equal(kern_alloc(p->cuda, &copy, n_bytes, NULL), STATUS_OK);
    if (from)
        assert_int_equal(kern_upload(p->cuda, copy, from, n_bytes, NULL), STATUS_OK);
    return copy;
}

/**
 * Magnitudes that scale by everything from the least power of two to the largest; `mild` ones make
 * results around 1.
 */
static uint32_t *magnitudes(struct cuda_pair *p, struct rng *r, size_t n, bool mild)
{
    static const float all[] = {0.0f, 1e-45f, 1e-38f, 1e-20f, 0.3f, 1.0f, 5.5f, 1e20f, 3e38f};
    uint32_t *bits = malloc(n * sizeof *bits);
    assert_non_null(bits);
    for (size_t i = 0; i < n; i++)
        bits[i] = mild              ? kern_magnitude_bits(200.0f)
                  : rng_below(r, 8) ? kern_magnitude_bits(all[rng_below(r, 9)])
                                    : 0x7f800000u;
    uint32_t *copy = room(p, bits, n * sizeof *bits);
    free(bits);
    return copy;
}

static float *numbers(struct cuda_pair *p, struct rng *r, size_t n)
{
    float *x = cuda_data_floats(r, n, 1e4f), *copy = room(p, x, n * sizeof *x);
    free(x);
    return copy;
}

static struct kern_powers powers_of(struct cuda_pair *p, const uint32_t *largest, size_t n)
{
    struct kern_powers_args a = {.largest = largest, .n = n};
    a.to.largest = room(p, NULL, n * sizeof(uint32_t));
    a.to.first = room(p, NULL, n * sizeof(float));
    a.to.second = room(p, NULL, n * sizeof(float));
    launch(p, KERN_CUDA_POWERS, base_div_up(n, KERN_POWERS_THREADS), 0, &a);
    return a.to;
}

static void free_powers(struct cuda_pair *p, struct kern_powers powers)
{
    kern_free(p->cuda, powers.largest);
    kern_free(p->cuda, powers.first);
    kern_free(p->cuda, powers.second);
}

static struct kern_half_rows to_halves(uint16_t *halves, size_t n_cols, bool parts)
{
    struct kern_half_rows to = {.hi = halves, .stride = parts ? PARTS * n_cols : n_cols};
    to.lo = parts ? halves + n_cols : NULL;
    to.again = parts ? halves + 2 * n_cols : NULL;
    return to;
}

static void finish(struct cuda_pair *p, const struct kern_gate_split_args *a,
                   const struct kern_sums *sums, float *out)
{
    const struct kern_finish_args finish = {.sums = sums->sums,
                                            .out = out,
                                            .sums_stride = a->n_cols,
                                            .out_stride = a->n_cols,
                                            .n_a = a->n_cols,
                                            .n_b = ROWS,
                                            .a_largest = sums->cols.largest,
                                            .b_largest = sums->rows.largest,
                                            .bias_a = sums->bias,
                                            .scale = sums->scale};
    launch(p, KERN_CUDA_FINISH, ROWS * base_div_up(a->n_cols, KERN_FINISH_ELEMS), 0, &finish);
}

/** By the kernels that come one after the other elsewhere. */
static void one_by_one(struct cuda_pair *p, const struct kern_gate_split_args *a)
{
    size_t n = ROWS * a->n_cols;
    float *gate = room(p, NULL, n * sizeof *gate), *up = room(p, NULL, n * sizeof *up);
    finish(p, a, &a->gate, gate);
    if (a->up.sums)
        finish(p, a, &a->up, up);
    const struct kern_gate_args activate = {
        .gate = gate, .up = a->up.sums ? up : NULL, .n = n, .curve = a->curve, .kind = a->kind};
    launch(p, KERN_CUDA_GATE, base_div_up(n, KERN_ROWS_ELEMS), 0, &activate);
    const struct kern_split_args split = {
        .x = gate, .to = a->to, .largest = a->largest, .n_rows = ROWS, .n_cols = a->n_cols};
    launch(p, KERN_CUDA_SPLIT, BLOCKS, sizeof(uint32_t), &split);
    kern_free(p->cuda, gate);
    kern_free(p->cuda, up);
}

/** Run both ways and compare halves and magnitudes. */
static void compare_ways(struct cuda_pair *p, struct kern_gate_split_args *a, bool parts)
{
    size_t n = BLOCKS * (parts ? PARTS : 1) * a->n_cols, n_bytes = n * sizeof(uint16_t);
    uint16_t *halves[2];
    uint32_t largest[2][BLOCKS];
    for (size_t way = 0; way < 2; way++) {
        uint16_t *to = room(p, NULL, n_bytes);
        a->to = to_halves(to, a->n_cols, parts);
        a->largest = room(p, NULL, sizeof largest[way]);
        if (way == 0)
            one_by_one(p, a);
        else
            launch(p, KERN_CUDA_GATE_SPLIT, BLOCKS,
                   KERN_GATE_SPLIT_HEADER + base_round_up(a->n_cols, 4) * sizeof(float), a);
        halves[way] = malloc(n_bytes);
        assert_non_null(halves[way]);
        assert_int_equal(kern_download(p->cuda, halves[way], to, n_bytes, NULL), STATUS_OK);
        assert_int_equal(
            kern_download(p->cuda, largest[way], a->largest, sizeof largest[way], NULL), STATUS_OK);
        kern_free(p->cuda, to);
        kern_free(p->cuda, a->largest);
    }
    assert_memory_equal(largest[1], largest[0], sizeof largest[0]);
    assert_memory_equal(halves[1], halves[0], n_bytes);
    free(halves[0]);
    free(halves[1]);
}

static void check_kernel(struct cuda_pair *p, struct rng *r, size_t n_cols,
                         enum kern_activation kind, unsigned what)
{
    uint32_t *of_rows = magnitudes(p, r, ROWS, what & MILD);
    float *bias = numbers(p, r, n_cols);
    struct kern_sums sums[2];
    struct kern_powers rows = powers_of(p, of_rows, ROWS);
    for (size_t i = 0; i < 2; i++) {
        uint32_t *of_cols = magnitudes(p, r, n_cols, what & MILD);
        sums[i] = (struct kern_sums){.sums = numbers(p, r, ROWS * n_cols),
                                     .cols = powers_of(p, of_cols, n_cols),
                                     .rows = rows,
                                     .bias = what & 1 << i ? bias : NULL,
                                     .scale = what & 4 ? 0.75f : 1.0f};
        kern_free(p->cuda, of_cols);
    }
    struct kern_gate_split_args args = {
        .gate = sums[0],
        .n_rows = ROWS,
        .n_cols = n_cols,
        .curve = {.clamp = 0.5f, .slope = 0.5, .rise = 0.8, .fall = 0.8, .eps = -1e-6},
        .kind = kind};
    bool limits_up = kind == KERN_SWIGLU_OAI || kind == KERN_SWIGLU_CLAMP_BEFORE ||
                     kind == KERN_SWIGLU_CLAMP_AFTER;
    if (what & 8 || limits_up)
        args.up = sums[1];
    compare_ways(p, &args, what & 16);
    for (size_t i = 0; i < 2; i++) {
        kern_free(p->cuda, (void *)(uintptr_t)sums[i].sums);
        free_powers(p, sums[i].cols);
    }
    free_powers(p, rows);
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
