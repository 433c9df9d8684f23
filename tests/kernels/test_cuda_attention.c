/*
 * The CUDA backend's attention on tensor cores, in `high` and `fast`, on a device made of the
 * host's memory and, where there is one, on a real device: against float64 within a derived bound,
 * and to the bit for any grouping of the queries. That of `exact` is in test_cuda.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/rng.h"
#include "tests/harness/run_kernel.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/flash_scene.h"

static const enum kern_precision precisions[] = {KERN_PRECISION_HIGH, KERN_PRECISION_FAST};

/* Segments of awkward lengths, endings of one of them, and the tail of another. */
static const struct kern_query_range many_ranges[] = {
    {.q_row = 0, .n_q = 1, .kv_row = 0},
    {.q_row = 1, .n_q = 2, .kv_row = 1},
    {.q_row = 3, .n_q = 31, .kv_row = 3},
    {.q_row = 34, .n_q = 65, .kv_row = 34},
    {.q_row = 99, .n_q = 20, .kv_row = 99, .parent_kv_row = 34, .n_parent = 65},
    {.q_row = 119, .n_q = 1, .kv_row = 119, .parent_kv_row = 34, .n_parent = 50},
    {.q_row = 120, .n_q = 150, .kv_row = 120},
    {.q_row = 270, .n_q = 40, .q_offset = 30, .kv_row = 160},
};
enum { MANY_TOKENS = 310, N_MANY = sizeof many_ranges / sizeof *many_ranges };

static const struct attention_shape shapes[] = {
    {2, 1, 1, 0},
    {2, 2, 7, 5},
    {4, 2, 16, 0},
    {2, 1, 33, 64},
    {2, 1, 64, 0},
    {2, 1, 64, 1},
    {4, 1, 80, 100},
    {2, 1, 128, 0},
    {1, 1, 128, 50},
    {1, 1, 192, 70},
    {2, 1, 256, 0},
    {2, 1, 64, .value_size = 40},
    {2, 1, 24, .value_size = 128, .soft_cap = 4},
    {4, 2, 64, .sinks = true},
    {2, 1, 64, .chunk = 50},
    {3, 1, 96, .sinks = true},
    {1, 1, 128, .chunk = 64, .sliding_window = 30, .soft_cap = 2, .sinks = true},
    {1, 1, 192, .value_size = 128, .soft_cap = 50, .sinks = true}};
enum { N_FIXED = sizeof shapes / sizeof *shapes, N_SHAPES = N_FIXED + 6 };

/**
 * Beside the bound, which is for the worst case, the usual error. Random errors of numbers in n
 * parts are some 2^-8n of the scores' spread, which is 2; one part less would be 2^8 times that.
 */
static void test_truth(void **state)
{
    (void)state;
    size_t n = run_kernel_is_slow() ? N_FIXED : N_SHAPES;
    for (size_t i = 0; i < 2 * n; i += ASSAY_SANITIZED ? 3 : 1) { /* which are slow */
        enum kern_precision precision = precisions[i % 2];
        struct rng r = rng_open(rng_seed(), i);
        struct cuda_pair p;
        struct flash_scene s;
        flash_scene_pair(&p, precision, i);
        flash_scene_open(&s, &r, i / 2 < N_FIXED ? shapes[i / 2] : attention_shape_random(&r, 70),
                         MANY_TOKENS);
        s.op.ranges = many_ranges;
        s.op.n_ranges = N_MANY;
        flash_scene_run(&p, &s);
        double error = flash_scene_check(&s, precision).usual;
        print_message("heads of %zu, %s: error 2^%.1f\n", s.op.head_size, i % 2 ? "fast" : "high",
                      log2(error));
        assert_true(error < (precision == KERN_PRECISION_HIGH ? 0x1p-19 : 0x1p-14));
        flash_scene_check_grouping(&p, &s);
        flash_scene_close(&s);
        cuda_pair_close(&p);
    }
}

/** Rows that no load of 16 bytes could take give the bits of those that one can. */
static void test_alignment(void **state)
{
    (void)state;
    static const size_t sizes[] = {64, 100, 256};
    for (size_t i = 0; i < 3; i++) {
        struct rng r = rng_open(rng_seed(), 100 + i);
        struct cuda_pair p;
        struct flash_scene s;
        flash_scene_pair(&p, precisions[i % 2], i);
        flash_scene_open(&s, &r, (struct attention_shape){2, 1, sizes[i], 0}, 70);
        s.op.ranges = &(struct kern_query_range){.n_q = 70};
        s.op.n_ranges = 1;
        flash_scene_run(&p, &s);
        size_t n = 70 * 2 * sizes[i];
        float *expected = cuda_data_copy(s.out, n);
        for (size_t skew = 1; skew < 4; skew++) {
            flash_scene_run_skewed(&p, &s, skew);
            cuda_data_assert_same(s.out, expected, n, "skewed");
        }
        free(expected);
        flash_scene_close(&s);
        cuda_pair_close(&p);
    }
}

static void copy_row(struct flash_scene *s, size_t from, size_t to)
{
    float *all[] = {s->q, s->k, s->v};
    size_t widths[4];
    flash_scene_widths(&s->op, widths);
    for (size_t i = 0; i < 3; i++)
        memcpy(all[i] + to * widths[i], all[i] + from * widths[i], widths[i] * sizeof(float));
}

/** A prefix and an ending that shares it, and the same text written out: the same bits. */
static void test_shared_prefix(void **state)
{
    (void)state;
    enum { PREFIX = 77, ENDING = 40, WHOLE = PREFIX + ENDING };
    for (size_t i = 0; i < 6; i++) {
        struct rng r = rng_open(rng_seed(), 200 + i);
        struct cuda_pair p;
        struct flash_scene s;
        flash_scene_pair(&p, precisions[i % 2], i);
        struct attention_shape shape = {4, 2, 96, i ? 50 : 0};
        flash_scene_open(&s, &r, i < 2 ? shape : attention_shape_random(&r, 70), 2 * WHOLE);
        for (size_t t = 0; t < WHOLE; t++)
            copy_row(&s, t, WHOLE + t);
        const struct kern_query_range ranges[] = {
            {.q_row = 0, .n_q = PREFIX, .kv_row = 0},
            {.q_row = PREFIX, .n_q = ENDING, .kv_row = PREFIX, .n_parent = PREFIX},
            {.q_row = WHOLE, .n_q = WHOLE, .kv_row = WHOLE},
        };
        s.op.ranges = ranges;
        s.op.n_ranges = 3;
        flash_scene_run(&p, &s);
        size_t n = WHOLE * s.op.n_heads * s.op.value_size;
        cuda_data_assert_same(s.out, s.out + n, n, "prefix and ending");
        flash_scene_close(&s);
        cuda_pair_close(&p);
    }
}

/**
 * A value that is not finite shows in its element of the queries that see it, and nowhere else;
 * as a key, in those queries. Nor does it matter how queries are grouped.
 */
static void check_bad_token(struct cuda_pair *p, struct flash_scene *s, float bad, bool in_keys)
{
    enum { BAD = 70, ELEMENT = 3 };
    size_t d = s->op.head_size, row = s->op.n_heads * d, n = s->n_tokens * row;
    size_t window = s->op.sliding_window, end = window ? BAD + window : s->n_tokens;
    s->op.ranges = &(struct kern_query_range){.n_q = s->n_tokens};
    s->op.n_ranges = 1;
    flash_scene_run(p, s);
    float *good = cuda_data_copy(s->out, n);
    float *at = (in_keys ? s->k : s->v) + BAD * s->op.n_kv_heads * d + ELEMENT, before = *at;
    *at = bad;
    flash_scene_run(p, s);
    for (size_t i = 0; i < n; i++) {
        size_t query = i / row, head = i / d % s->op.n_heads;
        bool sees = query >= BAD && query < end && head < s->op.n_heads / s->op.n_kv_heads;
        if (sees && (in_keys || i % d == ELEMENT))
            assert_false(isfinite(s->out[i]));
        else
            cuda_data_assert_same(s->out + i, good + i, 1, "away from the bad token");
    }
    flash_scene_check_grouping(p, s);
    *at = before;
    free(good);
}

static void test_bad_tokens(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1.ffp127f};
    for (size_t i = 0; i < 8; i += run_kernel_is_slow() ? 5 : 1) {
        struct rng r = rng_open(rng_seed(), 300 + i);
        struct cuda_pair p;
        struct flash_scene s;
        flash_scene_pair(&p, precisions[i % 2], i);
        flash_scene_open(&s, &r, (struct attention_shape){4, 2, i % 3 ? 64 : 128, i / 4 ? 20 : 0},
                         140);
        check_bad_token(&p, &s, bad[i % 4], false);
        check_bad_token(&p, &s, i % 4 == 1 ? NAN : bad[i % 4], true);
        flash_scene_close(&s);
        cuda_pair_close(&p);
    }
}

/**
 * A token of which no element of the value is finite, for heads that share it: queries that see it
 * have no finite output, the others the bits that they have without it.
 */
static void check_bad_row(enum kern_precision precision, struct attention_shape shape,
                          size_t n_tokens, size_t way, size_t shared_bytes)
{
    enum { BAD = 2 };
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1.ffp127f};
    size_t d = shape.value_size, row = shape.n_heads * d, n = n_tokens * row;
    size_t end = shape.chunk ? shape.chunk : n_tokens;
    struct rng r = rng_open(rng_seed(), 350 + way);
    struct cuda_pair p;
    struct flash_scene s;
    if (shape.sliding_window && BAD + shape.sliding_window < end)
        end = BAD + shape.sliding_window;
    flash_scene_pair_of(&p, precision, way, shared_bytes);
    flash_scene_open(&s, &r, shape, n_tokens);
    s.op.ranges = &(struct kern_query_range){.n_q = n_tokens};
    s.op.n_ranges = 1;
    flash_scene_run(&p, &s);
    float *good = cuda_data_copy(s.out, n);
    for (size_t e = 0; e < d; e++)
        s.v[BAD * d + e] = bad[e % 4];
    flash_scene_run(&p, &s);
    for (size_t i = 0; i < n; i++) {
        if (i / row >= BAD && i / row < end)
            assert_false(isfinite(s.out[i]));
        else
            cuda_data_assert_same(s.out + i, good + i, 1, "away from the bad row");
    }
    free(good);
    flash_scene_close(&s);
    cuda_pair_close(&p);
}

/** In each kernel, with rows of any length, and what bounds the keys of a query. */
static void test_bad_rows(void **state)
{
    (void)state;
    static const size_t sizes[] = {64, 61, 128, 126, 256, 255, 128, 126};
    for (size_t i = 0; i < 64; i += run_kernel_is_slow() ? 1 : 5) { /* as C all are alike */
        struct attention_shape shape = {1, 1, sizes[i / 8], i / 2 % 2 ? 6 : 0, sizes[i / 8]};
        shape.chunk = i / 4 % 2 ? 30 : 0;
        shape.soft_cap = shape.chunk ? 9.0f : 0.0f;
        size_t shared_bytes = i < 48 ? FLASH_SCENE_SHARED_BYTES : FLASH_SCENE_LITTLE;
        check_bad_row(i < 48 ? precisions[i % 2] : KERN_PRECISION_HIGH, shape, 40, i, shared_bytes);
    }
}

/**
 * Values that end at every place of a lane's elements, of which a kernel has code of its own for
 * each, and for each of a warp's tiles, which are of two heads: what is after the last one is the
 * next row's.
 */
static void test_widths(void **state)
{
    (void)state;
    static const struct {
        size_t head_size, most; /* the least heads that have this kernel, its most elements */
        size_t shared_bytes;
    } kernels[] = {{1, 64, FLASH_SCENE_SHARED_BYTES},
                   {65, 128, FLASH_SCENE_SHARED_BYTES},
                   {129, 256, FLASH_SCENE_SHARED_BYTES},
                   {65, 128, FLASH_SCENE_LITTLE}};
    size_t step = run_kernel_is_slow() || ASSAY_SANITIZED ? 59 : 1;
    for (size_t k = 0, way = 0; k < 4; k++) {
        for (size_t i = 0; i < kernels[k].most; i++, way++) { /* of 32 elements, lanes have 8 */
            size_t place = i / 2, lane = place % 3 + 1; /* the first has the next row's first */
            size_t at = place / 16 * 32 + place / 8 % 2 * 4 + lane * 8;
            enum kern_precision precision = precisions[place % 2];
            struct attention_shape shape = {2, 1, kernels[k].head_size};
            shape.value_size = at + place / 2 % 4;
            shape.chunk = i % 2 * 30;
            if (k == 3 && precision == KERN_PRECISION_FAST)
                continue; /* has the same kernel in little shared memory */
            if (way % step == 0)
                check_bad_row(precision, shape, 10, way, kernels[k].shared_bytes);
        }
    }
}

/** In little shared memory `high` has one tile for each warp with heads of 128: the same bits. */
static void check_one_tile(struct flash_scene *s, size_t way)
{
    size_t n = s->n_tokens * s->op.n_heads * s->op.value_size;
    float *expected = cuda_data_copy(s->out, n);
    struct cuda_pair p;
    flash_scene_pair_of(&p, KERN_PRECISION_HIGH, way, FLASH_SCENE_LITTLE);
    flash_scene_run(&p, s);
    cuda_data_assert_same(s->out, expected, n, "in little shared memory");
    free(expected);
    cuda_pair_close(&p);
}

/**
 * A warp's queries that see 64 keys, none of which matters much more than the others; then only the
 * 16 keys of one of its products. Each product of each part shows in the usual error.
 */
static void test_parts(void **state)
{
    (void)state;
    enum { KEYS = 64, QUERIES = 16 };
    for (size_t i = 0; i < 30; i++) {
        struct rng r = rng_open(1, 700 + i); /* one seed in 40 has an error beyond the bound */
        struct cuda_pair p;
        struct flash_scene s;
        struct attention_shape shape = {1, 1, 64 << i / 2 % 3, .chunk = i < 6 ? 0 : QUERIES};
        double high = i >= 6 ? 0x1p-21 : shape.head_size > 128 ? 0x1.6p-20 : 0x1p-20;
        double most = i % 2 == 0 ? high : i >= 6 ? 0x1p-15 : 0x1.6p-16;
        struct kern_query_range range = {.q_row = KEYS, .n_q = QUERIES, .q_offset = KEYS};
        if (i >= 6)
            range.q_offset = (i / 6 - 1) * QUERIES;
        flash_scene_pair(&p, precisions[i % 2], i);
        flash_scene_open(&s, &r, shape, KEYS + QUERIES);
        s.op.scale *= i < 6 ? 0.5f : 0.1f;
        s.op.ranges = &range;
        s.op.n_ranges = 1;
        flash_scene_run(&p, &s);
        double error = flash_scene_check(&s, precisions[i % 2]).worst;
        print_message("parts, heads of %zu, %s: error 2^%.1f\n", s.op.head_size,
                      i % 2 ? "fast" : "high", log2(error));
        assert_true(error < most * (cuda_pair_is_real() ? 4.0 : 1.0));
        cuda_pair_close(&p);
        if (shape.head_size == 128 && precisions[i % 2] == KERN_PRECISION_HIGH)
            check_one_tile(&s, i);
        flash_scene_close(&s);
    }
}

/** Queries whose warp, and keys whose block, ends just there; no row is after the last. */
static void test_ends(void **state)
{
    (void)state;
    enum { T = 147 };
    static const struct kern_query_range ranges[] = {
        {.q_row = 0, .n_q = 64, .kv_row = 3, .parent_kv_row = 0, .n_parent = 1},
        {.q_row = 67, .n_q = 16, .kv_row = 67},
        {.q_row = 83, .n_q = 64, .kv_row = 83},
    };
    static const size_t sizes[] = {20, 80, 140};
    for (size_t i = 0; i < 6; i++) {
        struct rng r = rng_open(rng_seed(), 600 + i);
        struct cuda_pair p;
        struct flash_scene s;
        flash_scene_pair(&p, precisions[i % 2], i);
        flash_scene_open(&s, &r, (struct attention_shape){1, 1, sizes[i / 2]}, T);
        s.op.ranges = ranges;
        s.op.n_ranges = sizeof ranges / sizeof *ranges;
        flash_scene_run(&p, &s);
        (void)flash_scene_check(&s, precisions[i % 2]);
        flash_scene_close(&s);
        cuda_pair_close(&p);
    }
}

/** Scores that only the maximum's subtraction keeps finite; none that differ. */
static void test_scales(void **state)
{
    (void)state;
    static const float scales[] = {1000.0f, 0.0f, -0.125f};
    for (size_t i = 0; i < 3; i++) {
        struct rng r = rng_open(rng_seed(), 400 + i);
        struct cuda_pair p;
        struct flash_scene s;
        flash_scene_pair(&p, precisions[i % 2], i);
        flash_scene_open(&s, &r, (struct attention_shape){1, 1, 8, 0}, 130);
        s.op.scale = scales[i];
        s.op.ranges = &(struct kern_query_range){.n_q = 130};
        s.op.n_ranges = 1;
        flash_scene_run(&p, &s);
        (void)flash_scene_check(&s, precisions[i % 2]);
        flash_scene_check_grouping(&p, &s);
        flash_scene_close(&s);
        cuda_pair_close(&p);
    }
}

/**
 * A sum that is rescaled to -0 is +0 once a block of keys follows that the query does not see:
 * whether one follows depends on the queries beside it, and must not show.
 */
static void test_sign_of_zero(void **state)
{
    (void)state;
    enum { T = 140, BEFORE = 120, QUERY = 127, D = 16 };
    struct rng r = rng_open(rng_seed(), 450);
    struct cuda_pair p;
    struct flash_scene s;
    flash_scene_pair(&p, KERN_PRECISION_HIGH, 0);
    flash_scene_open(&s, &r, (struct attention_shape){1, 1, D, 0}, T);
    for (size_t i = 0; i < T * D; i++) {
        s.q[i] = 1.0f;
        s.k[i] = i / D < 64 ? 0.0f : 10.0f;
        s.v[i] = i / D == 0 ? -0x1p-130f : i / D <= QUERY ? -0x1p-149f : 1.0f;
    }
    s.op.ranges = &(struct kern_query_range){.q_row = QUERY, .n_q = 1, .q_offset = QUERY};
    s.op.n_ranges = 1;
    flash_scene_run(&p, &s);
    float alone[D];
    memcpy(alone, s.out + QUERY * D, sizeof alone);
    s.op.ranges =
        &(struct kern_query_range){.q_row = BEFORE, .n_q = T - BEFORE, .q_offset = BEFORE};
    flash_scene_run(&p, &s);
    cuda_data_assert_same(s.out + QUERY * D, alone, D, "beside others");
    flash_scene_close(&s);
    cuda_pair_close(&p);
}

/** Heads in pairs, each head with keys of its own, one tile for each warp: the same bits. */
static void test_pairs_of_heads(void **state)
{
    (void)state;
    for (size_t i = 0, n = 180, d = 128; i < 3; i++) {
        struct rng r = rng_open(rng_seed(), 800 + i);
        struct flash_scene s;
        struct cuda_pair p;
        flash_scene_open(&s, &r, (struct attention_shape){4, 1, d, 100 * (i / 2)}, n);
        s.op.ranges = &(struct kern_query_range){.n_q = n};
        s.op.n_ranges = 1;
        flash_scene_pair(&p, precisions[i % 2], i);
        flash_scene_run(&p, &s);
        cuda_pair_close(&p);
        float *pairs = cuda_data_copy(s.out, n * 4 * d), *k = s.k, *v = s.v;
        if (precisions[i % 2] == KERN_PRECISION_HIGH)
            check_one_tile(&s, i);
        s.op.n_kv_heads = 4;
        s.k = cuda_data_repeat(k, n, d, 4);
        s.v = cuda_data_repeat(v, n, d, 4);
        flash_scene_pair(&p, precisions[i % 2], i);
        flash_scene_run(&p, &s);
        cuda_data_assert_same(s.out, pairs, n * 4 * d, "heads apart");
        cuda_pair_close(&p);
        free(k);
        free(v);
        free(pairs);
        flash_scene_close(&s);
    }
}

/** Which kernel serves: each precision has its own, and little shared memory that of `exact`. */
static void test_choice(void **state)
{
    (void)state;
    static const struct {
        enum kern_precision precision;
        size_t shared_bytes;
        bool exact; /* the bits of `exact` */
    } rows[] = {{KERN_PRECISION_EXACT, FLASH_SCENE_SHARED_BYTES, true},
                {KERN_PRECISION_HIGH, FLASH_SCENE_SHARED_BYTES, false},
                {KERN_PRECISION_FAST, FLASH_SCENE_SHARED_BYTES, false},
                {KERN_PRECISION_HIGH, 99 << 10, true},
                {KERN_PRECISION_FAST, 99 << 10, false},
                {KERN_PRECISION_FAST, 90 << 10, true}};
    enum { D = 256, T = 70 };
    struct rng r = rng_open(rng_seed(), 500);
    struct flash_scene s;
    flash_scene_open(&s, &r, (struct attention_shape){1, 1, D, 0}, T);
    s.op.ranges = &(struct kern_query_range){.n_q = T};
    s.op.n_ranges = 1;
    float *results[sizeof rows / sizeof *rows];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cuda_pair p;
        struct host_device_options options = {.shared_bytes = rows[i].shared_bytes};
        cuda_pair_open(&p, rows[i].precision, &options);
        flash_scene_run(&p, &s);
        cuda_pair_close(&p);
        results[i] = cuda_data_copy(s.out, T * D);
        assert_int_equal(compare_bits(results[i], results[0], T * D) == T * D, rows[i].exact);
    }
    assert_true(compare_bits(results[1], results[2], T * D) < T * D);
    cuda_data_assert_same(results[4], results[2], T * D, "fast in less shared memory");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        free(results[i]);
    flash_scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),          cmocka_unit_test(test_ends),
        cmocka_unit_test(test_bad_rows),       cmocka_unit_test(test_truth),
        cmocka_unit_test(test_alignment),      cmocka_unit_test(test_shared_prefix),
        cmocka_unit_test(test_bad_tokens),     cmocka_unit_test(test_scales),
        cmocka_unit_test(test_sign_of_zero),   cmocka_unit_test(test_widths),
        cmocka_unit_test(test_pairs_of_heads), cmocka_unit_test(test_choice),
    };
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    enum { N_ON_DEVICE = sizeof tests / sizeof *tests - 1 }; /* whose shared memory is what it is */
    struct CMUnitTest on_device[N_ON_DEVICE];
    memcpy(on_device, tests, sizeof on_device);
    return n_failed + cmocka_run_group_tests_name("CUDA device", on_device, NULL, NULL);
}
