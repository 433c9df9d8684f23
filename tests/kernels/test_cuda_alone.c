/*
 * CUDA kernels that are launched by themselves, on a device made of the host's memory and, where
 * there is one, on a real device. Their sizes end at each place where a thread's work may end; the
 * results must be, to the bit, what a plain loop gives.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/backend.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels/exact/exact.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/rows.h"
#include "kernels/cuda/kernels/score/codes.h"
#include "kernels/cuda/kernels/score/targets.h"
#include "tests/harness/cmocka.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"

static void open_pair(struct cuda_pair *p)
{
    cuda_pair_open(p, KERN_PRECISION_EXACT, &(struct host_device_options){0});
}

/** A copy of so many bytes in the device's memory. */
static void *put(struct cuda_pair *p, const void *from, size_t n_bytes)
{
    void *copy;
    assert_int_equal(kern_alloc(p->cuda, &copy, n_bytes, NULL), STATUS_OK);
    assert_int_equal(kern_upload(p->cuda, copy, from, n_bytes, NULL), STATUS_OK);
    return copy;
}

static void launch(struct cuda_pair *p, enum kern_cuda_kernel kernel, size_t n_blocks,
                   const void *args)
{
    struct status_why why = {""};
    if (kern_cuda_run(kern_cuda_of(p->cuda), kernel, n_blocks, args, &why))
        fail_msg("%s", why.text);
}

/** Fail unless a copy has become what is expected; free it. */
static void take(struct cuda_pair *p, void *copy, const void *expected, size_t n_bytes)
{
    void *found = malloc(n_bytes);
    assert_non_null(found);
    assert_int_equal(kern_download(p->cuda, found, copy, n_bytes, NULL), STATUS_OK);
    assert_memory_equal(found, expected, n_bytes);
    kern_free(p->cuda, copy);
    free(found);
}

/** Where the last of the elements that a thread has in a round may be missing. */
static const size_t ends[] = {100, 256, 300, 600, 800, 1024, 4096 + 511};
enum { N_ENDS = sizeof ends / sizeof *ends };

static void test_fill(void **state)
{
    (void)state;
    struct cuda_pair p;
    open_pair(&p);
    for (size_t k = 0; k < N_ENDS; k++) {
        size_t n = ends[k], n_bytes = (n + 1) * sizeof(uint16_t);
        uint16_t *expected = calloc(n + 1, sizeof *expected);
        assert_non_null(expected);
        struct kern_fill_args a = {
            .to = put(&p, expected, n_bytes), .n_elems = n, .n_cols = 7, .period = 5, .seed = 3};
        for (size_t i = 0; i < n; i++)
            expected[i] =
                kern_half_from_float((float)(kern_mixed(i % 35 + 3) & 0xffffffu) * 0x1p-22f - 2.0f);
        launch(&p, KERN_CUDA_FILL, base_div_up(n, KERN_FILL_ELEMS), &a);
        take(&p, a.to, expected, n_bytes); /* what is after the last one stays */
        free(expected);
    }
    cuda_pair_close(&p);
}

/** Both sums: products are told apart by 64 bits. */
static void test_digest(void **state)
{
    (void)state;
    struct cuda_pair p;
    open_pair(&p);
    struct rng r = rng_open(rng_seed(), 101);
    for (size_t k = 0; k < N_ENDS; k++) {
        size_t n = ends[k];
        float *x = cuda_data_floats(&r, n, 1.0f), *device_x = put(&p, x, n * sizeof *x);
        uint32_t sums[2] = {7, 0xffff0000u};
        struct kern_digest_args a = {.x = device_x, .n = n, .digest = put(&p, sums, sizeof sums)};
        for (size_t i = 0; i < n; i++) {
            uint64_t z = kern_mixed((uint64_t)i << 32 | kern_bits_of(x[i]));
            sums[0] += (uint32_t)z;
            sums[1] += (uint32_t)(z >> 32);
        }
        launch(&p, KERN_CUDA_DIGEST, base_div_up(n, KERN_FILL_ELEMS), &a);
        take(&p, a.digest, sums, sizeof sums);
        kern_free(p.cuda, device_x);
        free(x);
    }
    cuda_pair_close(&p);
}

/** A product and what is added to it, to where row b of the result begins. */
static void multiply_plainly(const struct kern_exact_args *a, const float *x, const float *y,
                             const float *bias_a, const float *bias_b, float *out)
{
    for (size_t i = 0; i < a->n_a * a->n_b; i++) {
        size_t row_a = i % a->n_a, row_b = i / a->n_a;
        float *to = out + row_b * a->out_stride + row_a, sum = 0.0f;
        for (size_t k = 0; k < a->n_k; k++)
            sum = fmaf(x[row_a * a->n_k + k], y[row_b * a->n_k + k], sum);
        sum = a->scale != 1.0f ? sum * a->scale : sum;
        sum = bias_a ? sum + bias_a[row_a] : bias_b ? sum + bias_b[row_b] : sum;
        *to = a->accumulate ? sum + *to : sum;
    }
}

/** Squares whose rows end at each place of a thread's fours, with each thing that is added. */
static void test_exact(void **state)
{
    (void)state;
    static const size_t rows[] = {1, 61, 62, 63, 125, 126, 127, 128};
    enum { N_B = 128, N_ROWS = sizeof rows / sizeof *rows };
    struct cuda_pair p;
    open_pair(&p);
    struct rng r = rng_open(rng_seed(), 103);
    for (unsigned i = 0; i < 12 * N_ROWS; i++) {
        size_t n_a = rows[i / 12], n_k = (const size_t[]){4, 1, 3}[i % 3];
        size_t stride = n_a + i / 6 % 2, skew = i / 6 % 2, n_out = N_B * stride + skew;
        float *x = cuda_data_floats(&r, n_a * n_k, 1.0f),
              *y = cuda_data_floats(&r, N_B * n_k, 1.0f);
        float *bias = cuda_data_floats(&r, N_B + 1, 1.0f), *out = cuda_data_floats(&r, n_out, 1.0f);
        float *device_out = put(&p, out, n_out * sizeof *out);
        float *device_bias = put(&p, bias, (N_B + 1) * sizeof *bias);
        struct kern_exact_args a = {.a = put(&p, x, n_a * n_k * sizeof *x),
                                    .b = put(&p, y, N_B * n_k * sizeof *y),
                                    .out = device_out + skew,
                                    .out_stride = stride,
                                    .n_a = n_a,
                                    .n_b = N_B,
                                    .n_k = n_k,
                                    .bias_a = i % 3 == 1 ? device_bias + skew : NULL,
                                    .bias_b = i % 3 == 2 ? device_bias + skew : NULL,
                                    .scale = i / 3 % 2 ? 0.75f : 1.0f,
                                    .accumulate = i / 3 % 2};
        multiply_plainly(&a, x, y, a.bias_a ? bias + skew : NULL, a.bias_b ? bias + skew : NULL,
                         out + skew);
        launch(&p, KERN_CUDA_EXACT, 1, &a);
        take(&p, device_out, out, n_out * sizeof *out);
        const float *copies[] = {a.a, a.b, device_bias};
        for (size_t k = 0; k < 3; k++)
            kern_free(p.cuda, (void *)(uintptr_t)copies[k]);
        free(x);
        free(y);
        free(bias);
        free(out);
    }
    cuda_pair_close(&p);
}

/** Rows of as many elements as a block has threads, of one less, of more than a block takes. */
static void test_cap(void **state)
{
    (void)state;
    static const size_t widths[] = {KERN_ROWS_THREADS - 1, KERN_ROWS_THREADS, KERN_ROWS_THREADS + 1,
                                    KERN_ROWS_ELEMS + 1};
    enum { ROWS = 3 };
    struct cuda_pair p;
    open_pair(&p);
    struct rng r = rng_open(rng_seed(), 102);
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
        size_t width = widths[k], stride = width + 2, n = ROWS * stride;
        float *x = cuda_data_floats(&r, n, 9.0f);
        x[width - 1] = INFINITY;
        struct kern_cap_args a = {.x = put(&p, x, n * sizeof *x),
                                  .width = width,
                                  .stride = stride,
                                  .cap = 3.0f,
                                  .inverse = 1.0f / 3.0f};
        launch(&p, KERN_CUDA_CAP, ROWS * base_div_up(width, KERN_ROWS_ELEMS), &a);
        for (size_t i = 0; i < n; i++)
            x[i] = i % stride < width ? fmath_soft_cap_f32(x[i], 3.0f, 1.0f / 3.0f) : x[i];
        float *found = cuda_data_copy(x, n);
        assert_int_equal(kern_download(p.cuda, found, a.x, n * sizeof *x, NULL), STATUS_OK);
        cuda_data_assert_same(found, x, n, "soft cap"); /* NaN is NaN */
        kern_free(p.cuda, a.x);
        free(found);
        free(x);
    }
    cuda_pair_close(&p);
}

/** More targets than a block has threads, some of them not in the tile. */
static void test_take(void **state)
{
    (void)state;
    enum { N = KERN_TAKE_THREADS + 60, ROWS = 20, VOCAB = 50, FIRST = 10 };
    struct cuda_pair p;
    open_pair(&p);
    struct rng r = rng_open(rng_seed(), 103);
    float *logits = cuda_data_floats(&r, VOCAB * ROWS, 1.0f);
    float *taken = cuda_data_floats(&r, N * KERN_LANES, 1.0f);
    struct kern_cuda_target targets[N];
    for (size_t i = 0; i < N; i++)
        targets[i] = (struct kern_cuda_target){
            (uint32_t)rng_below(&r, ROWS), (int32_t)rng_below(&r, FIRST + VOCAB + 5), N - 1 - i};
    targets[KERN_TAKE_THREADS - 1].token = FIRST;
    struct kern_take_args a = {.targets = put(&p, targets, sizeof targets),
                               .n_targets = N,
                               .logits = put(&p, logits, VOCAB * ROWS * sizeof *logits),
                               .stride = ROWS,
                               .n_vocab = VOCAB,
                               .first_token = FIRST,
                               .taken = put(&p, taken, N * KERN_LANES * sizeof *taken)};
    launch(&p, KERN_CUDA_TAKE, base_div_up(N, KERN_TAKE_THREADS), &a);
    for (size_t i = 0; i < N; i++) {
        const struct kern_cuda_target *t = &targets[i];
        if (t->token >= FIRST && t->token < FIRST + VOCAB)
            taken[t->slot * KERN_LANES + t->row % KERN_LANES] =
                logits[(size_t)(t->token - FIRST) * ROWS + t->row];
    }
    take(&p, a.taken, taken, N * KERN_LANES * sizeof *taken);
    kern_free(p.cuda, (void *)(uintptr_t)a.targets);
    kern_free(p.cuda, (void *)(uintptr_t)a.logits);
    free(logits);
    free(taken);
    cuda_pair_close(&p);
}

/** Vocabularies that end in each of the loads that are on their way together. */
static void test_lowest(void **state)
{
    (void)state;
    enum { ROWS = 2 * KERN_LANES, STRIPS = KERN_LOWEST_THREADS / KERN_LANES };
    struct cuda_pair p;
    open_pair(&p);
    struct rng r = rng_open(rng_seed(), 104);
    for (size_t k = 0; k <= 2 * KERN_LOWEST_RUN; k++) {
        size_t n_vocab = k * STRIPS + (k % 2 ? STRIPS - 1 : 5), n = n_vocab * ROWS;
        float *logits = cuda_data_floats(&r, n + ROWS, 1.0f), lowest[ROWS];
        for (size_t i = 0; i < ROWS; i++) {
            logits[n + i] = -INFINITY; /* after the last row */
            lowest[i] = i % 3 == 0 ? -2.0f : INFINITY;
        }
        logits[1] = NAN;
        float *device = put(&p, logits, (n + ROWS) * sizeof *logits);
        struct kern_lowest_args a = {.logits = device,
                                     .stride = ROWS,
                                     .n_vocab = n_vocab,
                                     .lowest = put(&p, lowest, sizeof lowest)};
        launch(&p, KERN_CUDA_LOWEST, 2, &a);
        for (size_t i = 0; i < n; i++)
            lowest[i % ROWS] = logits[i] < lowest[i % ROWS] ? logits[i] : lowest[i % ROWS];
        take(&p, a.lowest, lowest, sizeof lowest);
        kern_free(p.cuda, device);
        free(logits);
    }
    cuda_pair_close(&p);
}

/** The magnitudes that rows of halves are scaled by. */
static uint32_t *largest_of(const float *x, size_t n_rows, size_t n_cols)
{
    uint32_t *largest = calloc(n_rows, sizeof *largest);
    assert_non_null(largest);
    for (size_t i = 0; i < n_rows * n_cols; i++) {
        uint32_t bits = kern_magnitude_bits(x[i]);
        largest[i / n_cols] = bits > largest[i / n_cols] ? bits : largest[i / n_cols];
    }
    return largest;
}

enum { TARGET_ROWS = 20, TARGET_VOCAB = 30 };

/** Target i's logit, a multiply-add after the other; a: the arguments, all in the host's memory. */
static float logit_of(const struct kern_target_args *a, size_t i)
{
    const struct kern_cuda_target *t = &a->targets[i];
    bool halves = a->hidden_largest;
    int e = halves ? kern_row_exponent(a->hidden_largest[t->row]) : 0;
    int f = halves ? kern_row_exponent(a->weights_largest[i]) : 0;
    float sum = 0.0f;
    for (size_t k = 0; k < a->n_cols; k++) {
        float x = a->hidden[t->row * a->n_cols + k], w = a->weights[i * a->n_cols + k];
        sum = fmaf(halves ? kern_as_half(w, f) : w, halves ? kern_as_half(x, e) : x, sum);
    }
    sum = kern_scale_by(sum, -(e + f)) * a->scale + (a->bias ? a->bias[t->token] : 0.0f);
    return a->soft_cap > 0.0f ? fmath_soft_cap_f32(sum, a->soft_cap, 1.0f / a->soft_cap) : sum;
}

/** Arguments in the host's memory, on the device; ranks to be compared. */
static void check_target(struct cuda_pair *p, const struct kern_target_args *host)
{
    size_t n = host->n_targets, n_cols = host->n_cols, n_ranks = n * sizeof *host->ranks;
    struct kern_target_args a = *host;
    const void *copies[] = {
        a.targets = put(p, host->targets, n * sizeof *host->targets),
        a.hidden = put(p, host->hidden, TARGET_ROWS * n_cols * sizeof(float)),
        a.weights = put(p, host->weights, n * n_cols * sizeof(float)),
        a.hidden_largest =
            a.hidden_largest ? put(p, a.hidden_largest, TARGET_ROWS * sizeof(uint32_t)) : NULL,
        a.weights_largest =
            a.hidden_largest ? put(p, a.weights_largest, n * sizeof(uint32_t)) : NULL,
        a.bias = a.bias ? put(p, a.bias, TARGET_VOCAB * sizeof(float)) : NULL,
    };
    a.ranks = put(p, host->ranks, n_ranks);
    launch(p, KERN_CUDA_TARGET, base_div_up(n, KERN_TARGET_SIDE), &a);
    for (size_t i = 0; i < n; i++)
        host->ranks[host->targets[i].slot].logit[host->targets[i].row % KERN_LANES] =
            logit_of(host, i);
    take(p, a.ranks, host->ranks, n_ranks);
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        kern_free(p->cuda, (void *)(uintptr_t)copies[i]);
}

static void check_targets(struct cuda_pair *p, struct rng *r, size_t n, size_t n_cols, bool halves)
{
    struct kern_cuda_target targets[40];
    for (size_t i = 0; i < n; i++)
        targets[i] = (struct kern_cuda_target){(uint32_t)rng_below(r, TARGET_ROWS),
                                               (int32_t)rng_below(r, TARGET_VOCAB), n - 1 - i};
    float *hidden = cuda_data_floats(r, TARGET_ROWS * n_cols, 1.0f);
    float *weights = cuda_data_floats(r, n * n_cols, 0.3f);
    float *bias = cuda_data_floats(r, TARGET_VOCAB, 1.0f);
    uint32_t *hidden_largest = largest_of(hidden, TARGET_ROWS, n_cols);
    uint32_t *weights_largest = largest_of(weights, n, n_cols);
    struct kern_rank_lanes *ranks = calloc(n, sizeof *ranks);
    assert_non_null(ranks);
    check_target(p, &(struct kern_target_args){
                        .targets = targets,
                        .n_targets = n,
                        .hidden = hidden,
                        .weights = weights,
                        .hidden_largest = halves ? hidden_largest : NULL,
                        .weights_largest = halves ? weights_largest : NULL,
                        .n_cols = n_cols,
                        .bias = n % 3 == 1 ? bias : NULL,
                        .scale = 1.25f,
                        .soft_cap = n % 3 == 2 ? 5.0f : 0.0f,
                        .ranks = ranks,
                    });
    free(hidden);
    free(weights);
    free(bias);
    free(hidden_largest);
    free(weights_largest);
    free(ranks);
}

/** Every number of targets that a block may have, in columns that end at and between its steps. */
static void test_target(void **state)
{
    (void)state;
    static const size_t n_cols[] = {1, 127, 128, 256, 257};
    struct cuda_pair p;
    open_pair(&p);
    struct rng r = rng_open(rng_seed(), 105);
    for (size_t n = 1; n <= KERN_TARGET_SIDE + 1; n++) {
        check_targets(&p, &r, n, KERN_TARGET_DEPTH + 3, true);
        check_targets(&p, &r, n, KERN_TARGET_DEPTH + 3, false);
    }
    for (size_t i = 0; i < sizeof n_cols / sizeof *n_cols; i++)
        check_targets(&p, &r, 4 + 7 * i, n_cols[i], i % 2 == 1);
    cuda_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),   cmocka_unit_test(test_digest), cmocka_unit_test(test_exact),
        cmocka_unit_test(test_cap),    cmocka_unit_test(test_take),   cmocka_unit_test(test_lowest),
        cmocka_unit_test(test_target),
    };
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
}
