/*
 * The CUDA backend's products in 16-bit integers, on a device made of the host's memory and, where
 * there is one, on a real device: the bits of the CPU's `high`, for every type, shape and form.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/gemm/rounded.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/integers/integers.h"
#include "kernels/cuda/kernels/integers/records.h"
#include "kernels/operations.h"
#include "kernels/quant/integers.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/random_blocks.h"
#include "tests/harness/run_kernel.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"

enum { PANEL = 64 << 10, LARGE_PANEL = 4 << 20 };

/** A weight of moderate numbers. */
static struct kern_weight moderate_weight(struct rng *r, enum gguf_type type, size_t n_rows,
                                          size_t n_cols)
{
    struct random_blocks pool;
    struct kern_weight w = cuda_data_random_weight(r, type, n_rows, n_cols);
    assert_true(random_blocks_open(&pool, type, 0.1, 4096));
    pool.rng = *r;
    w.row_bytes = random_blocks_row_bytes(type, n_cols);
    random_blocks_draw(&pool, (void *)(uintptr_t)w.data, n_rows, n_cols);
    random_blocks_close(&pool);
    if (gguf_type_info((uint32_t)type)->scale_elems > 0)
        w.scales = random_blocks_scales(type, 0.1);
    return w;
}

/** Tokens of all magnitudes: blocks of zeros and next to nothing, the largest of several. */
static float *tokens_of(struct rng *r, size_t n_tokens, size_t n_cols)
{
    static const float sizes[] = {1.0f, 3e-31f, 1e30f, 7e-31f, 0.0f, 1e-3f};
    float *x = cuda_data_floats(r, n_tokens * n_cols, 1.0f);
    for (size_t i = 0; i < n_tokens * n_cols; i++)
        x[i] *= sizes[(i / 64 + i / n_cols) % 6];
    return x;
}

/** What is added to a product. */
struct sum {
    size_t n_tokens;
    bool bias, accumulate, scale;
};

/** A product on both backends, bits compared. Behind the results of a single token is nothing. */
static void check_product(struct cuda_pair *p, struct rng *r, struct kern_weight *w, float *x,
                          const struct sum *sum)
{
    size_t y_stride = w->n_rows + (sum->n_tokens > 1 ? 3 : 0), n_y = sum->n_tokens * y_stride;
    size_t n_x = sum->n_tokens * w->n_cols;
    struct kern_weight bias = cuda_data_float_weight(r, 1, w->n_rows);
    float *y = cuda_data_floats(r, n_y, 1.0f), *expected = cuda_data_copy(y, n_y);
    w->scale = sum->scale ? 0.75f : 1.0f;
    struct kern_linear op = {.weight = w,
                             .bias = sum->bias ? &bias : NULL,
                             .x = x,
                             .y = expected,
                             .y_stride = y_stride,
                             .n_tokens = sum->n_tokens,
                             .accumulate = sum->accumulate};
    assert_int_equal(kern_linear(p->cpu, &op, NULL), STATUS_OK);
    float *device_x = cuda_pair_put(p, x, n_x), *device_y = op.y = cuda_pair_put(p, y, n_y);
    struct status_why why = {""};
    op.x = device_x;
    if (sum->n_tokens % 2) { /* tokens that are not aligned */
        op.x = device_x + 1; /* there is room */
        assert_int_equal(kern_upload(p->cuda, device_x + 1, x, n_x * sizeof *x, NULL), STATUS_OK);
    }
    if (kern_linear(p->cuda, &op, &why))
        fail_msg("%s", why.text);
    cuda_pair_take(p, device_y, y, n_y);
    cuda_pair_take(p, device_x, NULL, 0);
    cuda_data_assert_same(y, expected, n_y, gguf_type_name(w->type));
    cuda_data_weight_free(&bias);
    free(y);
    free(expected);
}

/** Moderate blocks, then random bits, with infinite and NaN scales among them; the same of tokens.
 */
static void check_type(struct cuda_pair *p, struct rng *r, enum gguf_type type, size_t n_cols)
{
    enum { TOKENS = 9 };
    size_t bundle = gguf_type_info((uint32_t)type)->bundle_rows;
    size_t n_rows = bundle * (1 + 20 / bundle);
    for (int i = 0; i < 2; i++) {
        struct kern_weight w = i == 0 ? moderate_weight(r, type, n_rows, n_cols)
                                      : cuda_data_random_weight(r, type, n_rows, n_cols);
        float *x = tokens_of(r, TOKENS, n_cols);
        if (i == 1) {
            x[n_cols - 1] = NAN;
            x[3 * n_cols] = -INFINITY;
        }
        check_product(p, r, &w, x, &(struct sum){.n_tokens = TOKENS});
        cuda_data_weight_free(&w);
        free(x);
    }
}

/** Every type that has integers, in rows that end with half a record where they can. */
static void test_types(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 41);
    const struct kern_quant *format;
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(1);
    cuda_pair_open_integers(&p, &way, PANEL);
    for (size_t i = 0; (format = kern_quant_at(i)) != NULL; i++) {
        bool is_integer = kern_integers_find(format->type, 16) != NULL;
        assert_int_equal(kern_cuda_uses_integers(kern_cuda_of(p.cuda), format->type), is_integer);
        size_t n = gguf_type_info((uint32_t)format->type)->block_elems;
        if (is_integer && (!run_kernel_is_slow() || format->type == format->plain))
            check_type(&p, &r, format->type, n < 64 ? 96 : n < 256 ? n : 256);
    }
    cuda_pair_close(&p);
}

/** A type for each kernel. */
static const enum gguf_type kinds[] = {
    GGUF_TYPE_Q8_0, GGUF_TYPE_Q5_1, GGUF_TYPE_Q6_K, GGUF_TYPE_IQ3_S,  GGUF_TYPE_Q4_K,
    GGUF_TYPE_Q3_K, GGUF_TYPE_Q2_K, GGUF_TYPE_Q5_K, GGUF_TYPE_IQ4_XS, GGUF_TYPE_NVFP4};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/** Tiles that end at each side, with all that a product adds, in every order of work. */
static void test_edges(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 42);
    for (size_t i = 0; i < N_KINDS; i++) {
        static const size_t n_rows[] = {129, 90, 64, 145}, n_tokens[] = {3, 65, 129, 34};
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i % CUDA_PAIR_N_WAYS);
        cuda_pair_open_integers(&p, &way, PANEL);
        for (size_t k = run_kernel_is_slow() ? 2 : 0; k < 4; k++) {
            struct kern_weight w = moderate_weight(&r, kinds[i], n_rows[(i + k) % 4], 256);
            float *x = tokens_of(&r, n_tokens[k], 256);
            check_product(&p, &r, &w, x,
                          &(struct sum){n_tokens[k], k > 0, k % 2 == 0, (i + k) % 2 == 1});
            cuda_data_weight_free(&w);
            free(x);
        }
        cuda_pair_close(&p);
    }
}

/** Products that end at each output that a thread may have last, along the rows and the tokens. */
static void test_ends(void **state)
{
    (void)state;
    enum { COLS = 256, ROWS = 64 };
    struct rng r = rng_open(rng_seed(), 48);
    for (size_t i = 0; i < N_KINDS; i++) {
        struct cuda_pair p;
        cuda_pair_open_integers(&p, &(struct host_device_options){0}, PANEL);
        struct kern_weight w = moderate_weight(&r, kinds[i], ROWS, COLS);
        float *x = tokens_of(&r, 32, COLS);
        for (size_t k = 0; k < 32; k++) {
            w.n_rows = k < 16 ? ROWS : 8 * ((k - 16) / 2) + 1;
            check_product(&p, &r, &w, x,
                          &(struct sum){.n_tokens = k < 16 ? 8 * (k / 4) + 2 + k / 2 % 2 : 1,
                                        .accumulate = k % 2 == 1});
        }
        cuda_data_weight_free(&w);
        free(x);
        cuda_pair_close(&p);
    }
}

/** More tiles along the rows than meet the same tokens one after another. */
static void test_groups(void **state)
{
    (void)state;
    enum { ROWS = 17 * 128 + 5, COLS = 32, TOKENS = 130 };
    struct rng r = rng_open(rng_seed(), 43);
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(3);
    cuda_pair_open_integers(&p, &way, LARGE_PANEL);
    struct kern_weight w = moderate_weight(&r, GGUF_TYPE_Q4_0, ROWS, COLS);
    float *x = tokens_of(&r, TOKENS, COLS);
    check_product(&p, &r, &w, x, &(struct sum){.n_tokens = TOKENS});
    cuda_data_weight_free(&w);
    free(x);
    cuda_pair_close(&p);
}

/** Records of tokens, in memory that they fill: what rounding is defined as. */
static void check_pack(enum gguf_type type, int largest)
{
    enum { TOKENS = 19, COLS = 96, CHUNKS = COLS / KERN_ROUNDED_COLUMNS };
    struct rng r = rng_open(rng_seed(), 49);
    struct cuda_pair p;
    cuda_pair_open_integers(&p, &(struct host_device_options){0}, PANEL);
    size_t n_bytes = kern_cuda_token_bytes(TOKENS, COLS);
    float *x = tokens_of(&r, TOKENS, COLS), *device_x = cuda_pair_put(&p, x, TOKENS * COLS);
    uint32_t *records = malloc(n_bytes);
    struct kern_int16_chunk *chunks = malloc(CHUNKS * sizeof *chunks);
    void *device;
    assert_true(records && chunks);
    assert_int_equal(kern_alloc(p.cuda, &device, n_bytes, NULL), STATUS_OK);
    assert_int_equal(
        kern_cuda_pack(kern_cuda_of(p.cuda), type, device_x, TOKENS, COLS, device, NULL),
        STATUS_OK);
    assert_int_equal(kern_download(p.cuda, records, device, n_bytes, NULL), STATUS_OK);
    const struct kern_panel_pack op = {.x = x,
                                       .x_stride = COLS,
                                       .n_lanes = TOKENS,
                                       .n_k = COLS,
                                       .largest = largest,
                                       .out = chunks};
    kern_scalar_int16_pack(&op);
    for (unsigned i = 0; i < TOKENS * COLS; i++) {
        unsigned t = i / COLS, k = i % COLS, at = k % 32;
        const struct kern_int16_chunk *chunk = &chunks[k / 32];
        const uint32_t *record = records + (t / 8 * 2 + k / 64) * KERN_TOKEN_WORDS;
        const uint32_t *words = record + k / 32 % 2 * 128 + t % 8 * 16 + at % 16 / 4 * 4 + at / 16;
        int high = (int8_t)(words[0] >> k % 4 * 8), low = (int8_t)(words[2] >> k % 4 * 8);
        assert_int_equal(256 * high + low, chunk->x[t / 16][at / 2][t % 16][at % 2]);
        cuda_data_assert_same((const float *)(const void *)(record + 256 + t % 8),
                              &chunk->of.scale[t], 1, "scale");
        cuda_data_assert_same(
            (const float *)(const void *)(record + KERN_TOKEN_SUMS + k % 64 / 16 * 8 + t % 8),
            &chunk->of.sum[at / 16][t], 1, "sum");
    }
    kern_free(p.cuda, device);
    cuda_pair_take(&p, device_x, NULL, 0);
    free(x);
    free(records);
    free(chunks);
    cuda_pair_close(&p);
}

static void test_pack(void **state)
{
    (void)state;
    check_pack(GGUF_TYPE_Q4_K, KERN_INT16_MAX);
    check_pack(GGUF_TYPE_Q6_K, KERN_INT16_LONG_MAX);
}

/** The largest integers and activations: sums at the ends of what the kernels hold. */
static void test_largest(void **state)
{
    (void)state;
    enum { COLS = 128, ROWS = 16, TOKENS = 8 };
    struct rng r = rng_open(rng_seed(), 44);
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(0);
    cuda_pair_open_integers(&p, &way, PANEL);
    struct kern_weight w = cuda_data_random_weight(&r, GGUF_TYPE_Q8_0, ROWS, COLS);
    for (size_t row = 0; row < ROWS; row++) {
        uint8_t *blocks = (uint8_t *)(uintptr_t)w.data + row * w.row_bytes;
        for (size_t i = 0; i < COLS / 32 * 34; i++)
            blocks[i] = i % 34 == 0 ? 0x00 : i % 34 == 1 ? 0x3c : row % 2 ? 0x80 : 0x7f;
    }
    float x[TOKENS * COLS];
    for (size_t i = 0; i < TOKENS * COLS; i++)
        x[i] =
            (i / COLS % 2 ? 1.0f : -1.0f) * (i / COLS < 4 ? 31743.0f : 31615.0f + (float)(i % 2));
    check_product(&p, &r, &w, x, &(struct sum){.n_tokens = TOKENS});
    cuda_data_weight_free(&w);
    cuda_pair_close(&p);
}

/** Sums beyond 32 bits: integers of -4096 and -4064, at ends of what activations are rounded to. */
static void test_long_sums(void **state)
{
    (void)state;
    enum { COLS = 256, ROWS = 16, TOKENS = 8 };
    static const enum gguf_type types[] = {GGUF_TYPE_Q6_K, GGUF_TYPE_IQ4_XS};
    struct rng r = rng_open(rng_seed(), 50);
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(0);
    cuda_pair_open_integers(&p, &way, PANEL);
    float x[TOKENS * COLS];
    for (size_t i = 0; i < TOKENS * COLS; i++)
        x[i] = (i / COLS % 2 ? 1.0f : -1.0f) * (28671.0f - (float)(i / COLS / 2 * (i % 3)));
    for (size_t i = 0; i < 2; i++) {
        struct kern_weight w = cuda_data_random_weight(&r, types[i], ROWS, COLS);
        for (size_t row = 0; row < ROWS; row++) {
            uint8_t *block = (uint8_t *)(uintptr_t)w.data + row * w.row_bytes;
            memset(block, 0, w.row_bytes);
            if (types[i] == GGUF_TYPE_Q6_K)
                memset(block + 192, 0x80, 16);
            block[types[i] == GGUF_TYPE_Q6_K ? w.row_bytes - 1 : 1] = 0x2c; /* a scale of 1/16 */
        }
        check_product(&p, &r, &w, x, &(struct sum){.n_tokens = TOKENS});
        cuda_data_weight_free(&w);
    }
    cuda_pair_close(&p);
}

/** How often tokens were packed by products of the same ones, with a product in halves and an
 * operation that uses scratch memory between them. */
static void test_same_x(void **state)
{
    (void)state;
    enum { COLS = 64, ROWS = 20, TOKENS = 5, N = 6 };
    static const struct {
        enum gguf_type type;
        bool hint;
        bool other; /* tokens */
        size_t n_packed;
    } products[N] = {{GGUF_TYPE_Q5_1, false, false, 1}, {GGUF_TYPE_Q8_0, true, false, 1},
                     {GGUF_TYPE_Q8_0, false, false, 2}, {GGUF_TYPE_F16, true, false, 2},
                     {GGUF_TYPE_Q8_0, true, false, 3},  {GGUF_TYPE_Q8_0, true, true, 4}};
    struct rng r = rng_open(rng_seed(), 45);
    struct cuda_pair p;
    cuda_pair_open_integers(&p, &(struct host_device_options){0}, PANEL);
    float *host = cuda_data_floats(&r, 2 * TOKENS * COLS, 1.0f);
    float *x = cuda_pair_put(&p, host, 2 * TOKENS * COLS);
    for (size_t i = 0; i < N; i++) {
        struct kern_weight w = moderate_weight(&r, products[i].type, ROWS, COLS);
        float found[TOKENS * ROWS] = {0}, expected[TOKENS * ROWS];
        size_t from = products[i].other ? TOKENS * COLS : 0;
        float *y = cuda_pair_put(&p, found, TOKENS * ROWS);
        struct kern_linear op = {.weight = &w,
                                 .x = host + from,
                                 .y = expected,
                                 .y_stride = ROWS,
                                 .n_tokens = TOKENS,
                                 .same_x = products[i].hint};
        assert_int_equal(kern_linear(p.cpu, &op, NULL), STATUS_OK);
        op.x = x + from;
        op.y = y;
        assert_int_equal(kern_linear(p.cuda, &op, NULL), STATUS_OK);
        cuda_pair_take(&p, y, found, TOKENS * ROWS);
        if (products[i].type != GGUF_TYPE_F16)
            cuda_data_assert_same(found, expected, TOKENS * ROWS, "tokens that are shared");
        if (!cuda_pair_is_real())
            assert_int_equal(p.log.n_launches[KERN_CUDA_PACK], products[i].n_packed);
        cuda_data_weight_free(&w);
    }
    cuda_pair_take(&p, x, NULL, 0);
    free(host);
    cuda_pair_close(&p);
}

/** Scores of a head of this type: those of the CPU, but for ranks, whose logits are of halves. */
static void check_head(struct cuda_pair *p, struct rng *r, enum gguf_type type, float soft_cap)
{
    enum { ROWS = 37, COLS = 256, VOCAB = 290, TARGETS = 40 };
    struct kern_weight w = moderate_weight(r, type, VOCAB, COLS);
    struct kern_weight bias = cuda_data_float_weight(r, 1, VOCAB);
    float *hidden = cuda_data_floats(r, (size_t)ROWS * COLS, 1.0f);
    struct kern_head head = {.hidden = hidden, .matrix = &w, .bias = &bias, .soft_cap = soft_cap};
    struct kern_target targets[TARGETS];
    struct kern_row_score rows[2][ROWS];
    struct kern_target_score scores[2][TARGETS];
    for (size_t i = 0; i < TARGETS; i++)
        targets[i] =
            (struct kern_target){(uint32_t)rng_below(r, ROWS), (int32_t)rng_below(r, VOCAB)};
    struct kern_score op = {.n_heads = 1,
                            .heads = &head,
                            .n_rows = ROWS,
                            .n_targets = TARGETS,
                            .targets = targets,
                            .rows = rows[0],
                            .target_scores = scores[0]};
    w.scale = 0.5f;
    assert_int_equal(kern_score(p->cpu, &op, NULL), STATUS_OK);
    float *device = cuda_pair_put(p, hidden, (size_t)ROWS * COLS);
    head.hidden = device;
    op.rows = rows[1];
    op.target_scores = scores[1];
    assert_int_equal(kern_preload_heads(p->cuda, &head, 1, NULL), STATUS_OK);
    assert_int_equal(kern_score(p->cuda, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < ROWS; i++) {
        assert_true(rows[0][i].max_logit == rows[1][i].max_logit);
        assert_true(rows[0][i].log_sum == rows[1][i].log_sum);
        assert_true(rows[0][i].entropy == rows[1][i].entropy);
        assert_int_equal(rows[0][i].argmax, rows[1][i].argmax);
    }
    for (size_t i = 0; i < TARGETS; i++)
        assert_true(scores[0][i].log_prob == scores[1][i].log_prob);
    cuda_pair_take(p, device, NULL, 0);
    cuda_data_weight_free(&w);
    cuda_data_weight_free(&bias);
    free(hidden);
}

static void test_head(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct rng r = rng_open(rng_seed(), 46);
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open_integers(&p, &way, PANEL);
        check_head(&p, &r, GGUF_TYPE_Q6_K, 0.0f);
        check_head(&p, &r, GGUF_TYPE_Q4_K, 30.0f);
        cuda_pair_close(&p);
    }
}

/** Weights that do not fit, or that are brought before: the same. */
static void test_streaming(void **state)
{
    (void)state;
    enum { N = 10 };
    struct rng r = rng_open(rng_seed(), 47);
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += CUDA_PAIR_N_WAYS - 1) {
        struct kern_weight weights[N];
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open_integers(&p, &way, PANEL);
        for (size_t k = 0; k < N; k++) {
            weights[k] = moderate_weight(&r, kinds[k % N_KINDS], 140, 768);
            if (k % 2)
                assert_int_equal(kern_preload(p.cuda, &weights[k], NULL), STATUS_OK);
        }
        assert_int_equal(p.log.n_gemms, 0); /* no trial of the library's */
        float *x = tokens_of(&r, 11, 768);
        for (size_t k = 0; k < 2 * N; k++)
            check_product(&p, &r, &weights[k % N], x, &(struct sum){.n_tokens = 11});
        cuda_pair_close(&p);
        for (size_t k = 0; k < N; k++)
            cuda_data_weight_free(&weights[k]);
        free(x);
    }
}

/** What results say, and which cards take integers of themselves. */
static void test_choice(void **state)
{
    (void)state;
    static const unsigned slow[] = {86, 89, 120}, fast[] = {0, 80, 87, 90, 100, 103};
    for (size_t i = 0; i < 3; i++)
        assert_true(kern_cuda_prefers_integers(slow[i]));
    for (size_t i = 0; i < 6; i++)
        assert_false(kern_cuda_prefers_integers(fast[i]));
    struct cuda_pair p;
    cuda_pair_open_integers(&p, &(struct host_device_options){0}, PANEL);
    assert_int_equal(strncmp(kern_describe(p.cuda).products, "int16 on ", 9), 0);
    cuda_pair_close(&p);
    cuda_pair_open(&p, KERN_PRECISION_HIGH, &(struct host_device_options){0});
    assert_int_equal(strncmp(kern_describe(p.cuda).products, "f16x3 on ", 9), 0);
    cuda_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),      cmocka_unit_test(test_types),
        cmocka_unit_test(test_edges),     cmocka_unit_test(test_ends),
        cmocka_unit_test(test_groups),    cmocka_unit_test(test_largest),
        cmocka_unit_test(test_long_sums), cmocka_unit_test(test_same_x),
        cmocka_unit_test(test_head),      cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_choice),
    };
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
}
