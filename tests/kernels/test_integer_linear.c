/*
 * Whole products of quantised weights in integers, `high` and `fast` without AMX: against the exact
 * product, in double, with a bound that follows from the rounding; and the same bits on every ISA,
 * for any threads and any cut of the tokens. Every type, the head, and tokens that products of
 * integers and of floats share.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/backend.h"
#include "kernels/cpu/context.h"
#include "kernels/cpu/gemm/rounded.h"
#include "kernels/operations.h"
#include "kernels/quant/integers.h"
#include "kernels/quant/rows.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/random_blocks.h"

/** The precision under test, and its error with gaussian data (see test_accuracy). */
static const struct kind {
    const char *name;
    enum kern_precision precision;
    size_t block;
    double largest, error;
} kinds[] = {
    {"int16", KERN_PRECISION_HIGH, KERN_INT16_BLOCK, KERN_INT16_MAX, 2.3e-5},
    {"int8", KERN_PRECISION_FAST, KERN_INT8_BLOCK, KERN_INT8_MAX, 5.3e-3},
};
static const struct kind *kind;

/** Integers that are larger are multiplied as words without VNNI. */
enum { LARGE = 64 };

static struct kern_backend *backend_of(enum kern_precision precision, enum kern_isa cap,
                                       unsigned n_threads)
{
    struct kern_cpu_options options = {
        .n_threads = n_threads, .isa_cap = cap, .precision = precision};
    struct kern_backend *b = NULL;
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    return b;
}

static struct kern_backend *backend_open(enum kern_isa cap, unsigned n_threads)
{
    struct kern_backend *b = backend_of(kind->precision, cap, n_threads);
    assert_string_equal(kern_describe(b).products, kind->name);
    assert_string_equal(kern_describe(b).remarks, "");
    return b;
}

/** What tokens are rounded to for a type. */
static double largest_of(enum gguf_type type)
{
    const struct kern_integers *bytes = kern_integers_find(type, 8);
    if (kind->precision == KERN_PRECISION_FAST)
        return kind->largest - kern_rooms[bytes->room];
    return kern_integers_find(type, 16)->is_long ? KERN_INT16_LONG_MAX : kind->largest;
}

static float *floats_open(struct rng *r, size_t n)
{
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = rng_normal(r);
    return x;
}

/** A matrix of moderate numbers. */
static struct kern_weight weight_open(struct rng *r, enum gguf_type type, size_t n_rows,
                                      size_t n_cols)
{
    size_t row_bytes = random_blocks_row_bytes(type, n_cols);
    uint8_t *bytes = malloc(n_rows * row_bytes);
    struct random_blocks pool;
    assert_true(bytes && random_blocks_open(&pool, type, 0.1, 4096));
    pool.rng = *r;
    random_blocks_draw(&pool, bytes, n_rows, n_cols);
    *r = pool.rng;
    random_blocks_close(&pool);
    return (struct kern_weight){.type = type,
                                .n_rows = n_rows,
                                .n_cols = n_cols,
                                .row_bytes = row_bytes,
                                .data = bytes,
                                .scales = random_blocks_scales(type, 0.1),
                                .scale = 1.0f};
}

static void weight_close(struct kern_weight *w)
{
    free((void *)(uintptr_t)w->data);
}

static void assert_same(const float *found, const float *expected, size_t n, const char *what,
                        const struct kern_weight *w)
{
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s %zu x %zu, %s: element %zu of %zu is %a, expected %a", gguf_type_name(w->type),
                 w->n_rows, w->n_cols, what, i, n, (double)found[i], (double)expected[i]);
}

/** What rounding a token may add to an output: 0.506 steps of a block (test_rounded.c), times |w|.
 */
static double rounding_of(const float *x, const float *w, size_t n_k, double largest)
{
    double total = 0;
    for (size_t k = 0; k < n_k; k += kind->block) {
        double most = 0, of_w = 0;
        for (size_t i = k; i < n_k && i < k + kind->block; i++) {
            most = fmax(most, fabs((double)x[i]));
            of_w += fabs((double)w[i]);
        }
        total += 0.506 / largest * most * of_w;
    }
    return total;
}

/**
 * Every output within its bound, of which the largest share that was found is returned.
 * To rounding x comes float32: 1.01 (1 + n) 2^-24 of the magnitudes of terms, n being the additions
 * that a term is in (test_integer_tile.c). These are not above those of |scale integer x| and |min
 * x|. A min is added to scale * integer by the decoder, with one more rounding; so that sum is at
 * most
 * (|w| + 2 |min|) |x|.
 */
static double check_bound(const struct kern_linear *op)
{
    const struct kern_weight *weight = op->weight;
    bool bytes = kind->precision == KERN_PRECISION_FAST;
    const struct kern_integers *format = kern_integers_find(weight->type, bytes ? 8 : 16);
    size_t n_k = weight->n_cols, n_runs = n_k / format->run;
    size_t min_run = format->min_run > 0 ? format->min_run : format->run;
    size_t n_additions = kind->block / format->run + kind->block / min_run + n_k / kind->block + 1;
    double share = 0, largest = largest_of(weight->type);
    float *w = malloc(n_k * sizeof *w), *scales = malloc(n_runs * sizeof *scales);
    float *mins = calloc(n_k / min_run, sizeof *mins);
    void *copy = malloc(KERN_ROWS_WORK_BYTES * n_k);
    for (size_t row = 0; row < weight->n_rows; row++) {
        const struct kern_rows rows = {weight->type, weight->data, weight->row_bytes, NULL,
                                       weight->scales};
        kern_rows_decode(&rows, kern_quant_find(weight->type)->decode, row, 0, n_k, w);
        const void *blocks = kern_rows_blocks(&rows, row, 0, n_k, copy);
        kern_integers_scales(format, blocks, n_k, scales, mins);
        for (size_t t = 0; t < op->n_tokens; t++) {
            const float *x = op->x + t * n_k;
            double sum = 0, magnitude = 0, rounding = rounding_of(x, w, n_k, largest);
            for (size_t k = 0; k < n_k; k++) {
                double size = fabs((double)w[k]) + 2 * fabs((double)mins[k / min_run]);
                sum += (double)w[k] * (double)x[k];
                magnitude += size * fabs((double)x[k]);
            }
            double of_sums = 1.01 * (2 + (double)n_additions) * 0x1p-24 * (magnitude + rounding);
            double error = fabs((double)op->y[t * op->y_stride + row] - sum);
            share = fmax(share, error / (rounding + of_sums));
        }
    }
    free(w);
    free(scales);
    free(mins);
    free(copy);
    return share;
}

/** Large integers are multiplied as words where there is no VNNI; so they are here, on any
 * processor of which a set of kernels has that. */
static void check_words(const struct kern_linear *op, enum kern_isa isa, const float *expected)
{
    const struct kern_weight *w = op->weight;
    struct kern_backend *b = backend_open(isa, 1);
    struct kern_kernels *kernels = &kern_cpu_of(b)->kernels;
    const struct kern_integers *format = kern_integers_find(w->type, 8);
    if (kind->precision == KERN_PRECISION_FAST && format->largest > LARGE &&
        kernels->words_tile != kern_kernels_scalar.words_tile) {
        kernels->bytes_most = LARGE;
        assert_true(kern_cpu_product_of(kern_cpu_of(b), w->type)->words);
        assert_int_equal(kern_linear(b, op, NULL), STATUS_OK);
        assert_same(op->y, expected, op->n_tokens * w->n_rows, "words", w);
    }
    kern_close(b);
}

/** A product on every ISA, with any threads, in any pieces. */
static void check_product(struct rng *r, const struct kern_weight *w, const float *x,
                          size_t n_tokens)
{
    size_t n_rows = w->n_rows, n_cols = w->n_cols;
    float *expected = malloc(n_tokens * n_rows * sizeof *x);
    float *found = malloc(n_tokens * n_rows * sizeof *x);
    struct kern_linear op = {
        .weight = w, .x = x, .y = expected, .y_stride = n_rows, .n_tokens = n_tokens};
    struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 1);
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    kern_close(b);
    double share = check_bound(&op);
    print_message("  %-8s error %.2f of its bound\n", gguf_type_name(w->type), share);
    assert_true(share <= 1);
    op.y = found;
    for (int isa = 1; isa <= (int)kern_isa_detect(); isa++) {
        b = backend_open((enum kern_isa)isa, (unsigned)isa * 3 - 2);
        op.x = x;
        op.n_tokens = n_tokens;
        memset(found, 0xff, n_tokens * n_rows * sizeof *x);
        assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
        assert_same(found, expected, n_tokens * n_rows, kern_isa_name((enum kern_isa)isa), w);
        for (size_t t = 0; t < n_tokens; t += op.n_tokens) {
            op.n_tokens = 1 + rng_below(r, n_tokens - t);
            op.x = x + t * n_cols;
            assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
            assert_same(found, expected + t * n_rows, op.n_tokens * n_rows, "some tokens", w);
        }
        kern_close(b);
        op.x = x;
        op.n_tokens = n_tokens;
        memset(found, 0xff, n_tokens * n_rows * sizeof *x);
        check_words(&op, (enum kern_isa)isa, expected);
    }
    free(expected);
    free(found);
}

static void check_linear(struct rng *r, enum gguf_type type, size_t n_tokens, size_t n_rows,
                         size_t n_cols)
{
    struct kern_weight w = weight_open(r, type, n_rows, n_cols);
    float *x = floats_open(r, n_tokens * n_cols);
    check_product(r, &w, x, n_tokens);
    weight_close(&w);
    free(x);
}

/**
 * Gaussian data, 4096 columns. The largest of 64 is 2.6 standard deviations in the mean, of 32 2.3.
 * Rounding to 31743rd or 127th parts of it is off by 1 / sqrt(12) of these (root mean square):
 * 2.3e-5 or 5.3e-3 of ||y||. With 8 bits and room for the weight it is as much more as steps are
 * longer.
 */
static void check_accuracy(enum gguf_type type)
{
    enum { N_TOKENS = 32, N_ROWS = 40, N_COLS = 4096 };
    struct rng r = rng_open(rng_seed(), 7);
    struct kern_weight w = weight_open(&r, type, N_ROWS, N_COLS);
    float *x = floats_open(&r, (size_t)N_TOKENS * N_COLS), y[N_TOKENS][N_ROWS];
    float *row = malloc(N_COLS * sizeof *row);
    struct kern_linear op = {
        .weight = &w, .x = x, .y = y[0], .y_stride = N_ROWS, .n_tokens = N_TOKENS};
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 1);
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    kern_close(b);
    double error = 0, norm = 0;
    for (size_t i = 0; i < N_ROWS; i++) {
        kern_quant_find(w.type)->decode((const uint8_t *)w.data + i * w.row_bytes, row, N_COLS);
        for (size_t t = 0; t < N_TOKENS; t++) {
            double sum = 0;
            for (size_t k = 0; k < N_COLS; k++)
                sum += (double)row[k] * (double)x[t * N_COLS + k];
            error += ((double)y[t][i] - sum) * ((double)y[t][i] - sum);
            norm += sum * sum;
        }
    }
    double expected = kind->error * kind->largest / largest_of(type);
    print_message("  %s: ||y - y64|| / ||y64|| = %.2e\n", gguf_type_name(type), sqrt(error / norm));
    assert_true(sqrt(error / norm) < 1.15 * expected && sqrt(error / norm) > 0.85 * expected);
    weight_close(&w);
    free(x);
    free(row);
}

static void test_accuracy(void **state)
{
    (void)state;
    check_accuracy(GGUF_TYPE_Q8_0);
    check_accuracy(GGUF_TYPE_Q4_K);
    check_accuracy(GGUF_TYPE_Q6_K);
}

/** Rows and tokens that fill no tile, more columns than a slab. */
static void test_all_types(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    const struct kern_quant *quant;
    for (size_t i = 0; (quant = kern_quant_at(i)); i++)
        if (kern_integers_find(quant->type, 8))
            check_linear(&r, quant->type, 41,
                         base_round_up(37, gguf_type_info(quant->type)->bundle_rows), 768);
}

/** One block; tokens beyond a packing; few rows, so that threads share out the tokens. */
static void test_other_shapes(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    check_linear(&r, GGUF_TYPE_Q8_0, 1, 1, 32);
    check_linear(&r, GGUF_TYPE_Q4_0, 33, 50, 288);
    check_linear(&r, GGUF_TYPE_Q5_1, 4096 + 45, 3, 64);
    check_linear(&r, GGUF_TYPE_NVFP4, 1000, 20, 320);
}

/** Blocks of 256 columns of IQ4_XS and Q6_K whose integers are the largest, -4064 and -4096. */
static void put_largest(enum gguf_type type, uint8_t *block, size_t n_bytes)
{
    memset(block, 0, n_bytes);
    if (type == GGUF_TYPE_Q6_K)
        memset(block + 192, 0x80, 16);
    block[type == GGUF_TYPE_Q6_K ? n_bytes - 1 : 1] = 0x2c; /* a scale of 1/16 */
}

/** Some rows and tokens whose sums are beyond 32 bits, among others. */
static void test_long_sums(void **state)
{
    (void)state;
    enum { N_TOKENS = 70, N_ROWS = 61, N_COLS = 1024 };
    static const enum gguf_type types[] = {GGUF_TYPE_IQ4_XS, GGUF_TYPE_Q6_K};
    struct rng r = rng_open(rng_seed(), 9);
    for (size_t i = 0; i < 2; i++) {
        struct kern_weight w = weight_open(&r, types[i], N_ROWS, N_COLS);
        float *x = floats_open(&r, (size_t)N_TOKENS * N_COLS);
        size_t n_bytes = w.row_bytes / (N_COLS / 256);
        for (size_t row = 0; row < N_ROWS; row += 20)
            put_largest(types[i],
                        (uint8_t *)(uintptr_t)w.data + row * w.row_bytes + row / 20 * n_bytes,
                        n_bytes);
        for (size_t k = 0; k < N_COLS; k++) /* sums about 2^31, on both sides, and the largest */
            for (size_t t = 5; t < N_TOKENS; t += 7)
                x[t * N_COLS + k] =
                    k % 64 == 9 || t % 2 == 0 ? 28671.0f : 7700.0f + 4.0f * (float)t;
        check_product(&r, &w, x, N_TOKENS);
        weight_close(&w);
        free(x);
    }
}

/** Products with one x: weights of some types want floats of it, those of others integers. */
static void test_same_x(void **state)
{
    (void)state;
    static const enum gguf_type types[] = {GGUF_TYPE_Q4_K, GGUF_TYPE_F16,  GGUF_TYPE_F32,
                                           GGUF_TYPE_Q6_K, GGUF_TYPE_Q4_K, GGUF_TYPE_BF16};
    enum { N_TOKENS = 70, N_ROWS = 40, N_COLS = 512 };
    struct rng r = rng_open(rng_seed(), 3);
    float *x = floats_open(&r, (size_t)N_TOKENS * N_COLS);
    float *y = malloc(sizeof(float[N_TOKENS][N_ROWS]));
    float *expected = malloc(sizeof(float[N_TOKENS][N_ROWS]));
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct kern_weight w = weight_open(&r, types[i], N_ROWS, N_COLS);
        struct kern_linear op = {.weight = &w,
                                 .x = x,
                                 .y = y,
                                 .y_stride = N_ROWS,
                                 .n_tokens = N_TOKENS,
                                 .same_x = i > 0};
        assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
        struct kern_backend *fresh = backend_open(KERN_ISA_SCALAR, 1);
        op.y = expected;
        op.same_x = false;
        assert_int_equal(kern_linear(fresh, &op, NULL), STATUS_OK);
        kern_close(fresh);
        assert_same(y, expected, (size_t)N_TOKENS * N_ROWS, "x of the product before", &w);
        weight_close(&w);
    }
    kern_close(b);
    free(x);
    free(y);
    free(expected);
}

/** Weights that are no integers are multiplied as with `exact`. */
static void test_floats_are_exact(void **state)
{
    (void)state;
    static const enum gguf_type types[] = {GGUF_TYPE_F32, GGUF_TYPE_F16, GGUF_TYPE_BF16};
    struct rng r = rng_open(rng_seed(), 4);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct kern_weight w = weight_open(&r, types[i], 20, 96);
        float *x = floats_open(&r, 9 * 96), y[2][9 * 20];
        for (size_t high = 0; high < 2; high++) {
            struct kern_cpu_options options = {.n_threads = 1,
                                               .isa_cap = KERN_ISA_COUNT - 1,
                                               .precision =
                                                   high ? kind->precision : KERN_PRECISION_EXACT};
            struct kern_backend *b = NULL;
            assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
            assert_string_equal(kern_describe(b).products, high ? kind->name : "float32");
            struct kern_linear op = {
                .weight = &w, .x = x, .y = y[high], .y_stride = 20, .n_tokens = 9};
            assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
            kern_close(b);
        }
        assert_same(y[1], y[0], sizeof y[0] / sizeof(float), kind->name, &w);
        weight_close(&w);
        free(x);
    }
}

/** A NaN or infinity of a token makes that token's outputs NaN, and no others. */
static void test_nonfinite_stays_where_it_is(void **state)
{
    (void)state;
    enum { N_TOKENS = 40, N_ROWS = 20, N_COLS = 256 };
    struct rng r = rng_open(rng_seed(), 5);
    struct kern_weight w = weight_open(&r, GGUF_TYPE_Q5_K, N_ROWS, N_COLS);
    float *x = floats_open(&r, (size_t)N_TOKENS * N_COLS), y[N_TOKENS][N_ROWS];
    x[7 * N_COLS + 3] = NAN;
    x[33 * N_COLS + 200] = -INFINITY;
    struct kern_linear op = {
        .weight = &w, .x = x, .y = y[0], .y_stride = N_ROWS, .n_tokens = N_TOKENS};
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    kern_close(b);
    for (size_t t = 0; t < N_TOKENS; t++)
        for (size_t row = 0; row < N_ROWS; row++)
            assert_int_equal(!!isnan(y[t][row]), t == 7 || t == 33);
    weight_close(&w);
    free(x);
}

/** Scores of heads of several types: those of their logits with `high`, on every ISA. */
static void test_score(void **state)
{
    (void)state;
    enum { N_ROWS = 50, N_COLS = 256, N_VOCAB = 333, N_HEADS = 3 };
    static const enum gguf_type types[N_HEADS] = {GGUF_TYPE_F16, GGUF_TYPE_Q6_K, GGUF_TYPE_Q4_K};
    struct rng r = rng_open(rng_seed(), 6);
    float *hidden = floats_open(&r, (size_t)N_ROWS * N_COLS);
    float *logits = malloc(sizeof(float[N_ROWS][N_VOCAB]));
    struct kern_weight w[N_HEADS];
    struct kern_head heads[N_HEADS];
    struct kern_target targets[N_ROWS];
    struct kern_row_score rows[N_HEADS][N_ROWS];
    struct kern_target_score scores[N_HEADS][N_ROWS];
    struct kern_pair_score pairs[2][N_HEADS * N_ROWS];
    for (size_t h = 0; h < N_HEADS; h++) {
        w[h] = weight_open(&r, types[h], N_VOCAB, N_COLS);
        heads[h] = (struct kern_head){.hidden = hidden, .matrix = &w[h]};
    }
    for (uint32_t t = 0; t < N_ROWS; t++)
        targets[t] = (struct kern_target){t, (int32_t)rng_below(&r, N_VOCAB)};
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        struct kern_backend *b = backend_open((enum kern_isa)isa, 1 + (unsigned)isa);
        struct kern_score op = {.n_heads = N_HEADS,
                                .heads = heads,
                                .n_rows = N_ROWS,
                                .n_targets = N_ROWS,
                                .targets = targets,
                                .rows = rows[0],
                                .target_scores = scores[0],
                                .pairs = pairs[isa > 0]};
        assert_int_equal(kern_score(b, &op, NULL), STATUS_OK);
        for (size_t i = 0; i < sizeof pairs[0] / sizeof *pairs[0]; i++) {
            const struct kern_pair_score *found = &pairs[isa > 0][i], *expected = &pairs[0][i];
            assert_true(found->kl == expected->kl && found->reverse_kl == expected->reverse_kl);
            assert_memory_equal(found->common_top, expected->common_top, KERN_N_TOPS);
        }
        kern_close(b);
        b = backend_of(KERN_PRECISION_HIGH, (enum kern_isa)isa, 1);
        for (size_t h = 0; h < N_HEADS; h++) {
            struct kern_linear linear = {
                .weight = &w[h], .x = hidden, .y = logits, .y_stride = N_VOCAB, .n_tokens = N_ROWS};
            assert_int_equal(kern_linear(b, &linear, NULL), STATUS_OK);
            for (size_t t = 0; t < N_ROWS; t++) {
                const float *row = logits + t * N_VOCAB;
                struct kern_row_score score = rows[h][t];
                assert_true(score.max_logit == (double)row[score.argmax]);
                assert_true(scores[h][t].log_prob ==
                            (double)row[targets[t].token] - score.max_logit - score.log_sum);
            }
        }
        kern_close(b);
    }
    for (size_t h = 0; h < N_HEADS; h++)
        weight_close(&w[h]);
    free(hidden);
    free(logits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_other_shapes),
        cmocka_unit_test(test_long_sums),
        cmocka_unit_test(test_same_x),
        cmocka_unit_test(test_floats_are_exact),
        cmocka_unit_test(test_nonfinite_stays_where_it_is),
        cmocka_unit_test(test_score),
    };
    int n_failed = 0;
    for (kind = kinds; kind < kinds + sizeof kinds / sizeof kinds[0]; kind++)
        n_failed += cmocka_run_group_tests_name(kind->name, tests, NULL, NULL);
    return n_failed;
}
