/*
 * Attention on the CPU backend: against a float64 evaluation within a derived bound, and to
 * the bit for any ISA, any number of threads, queries one at a time, prefixes shared or not.
 * All of it in float32, in bfloat16 triples as AMX computes them (in software), and in integers.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arithmetic.h"
#include "tests/harness/cmocka.h"
#include "tests/kernels/attention_scene.h"

static const struct attention_shape shapes[] = {
    {1, 1, 1, 0},
    {2, 1, 7, 0},
    {4, 2, 16, 0},
    {3, 3, 33, 0},
    {8, 2, 64, 0},
    {2, 1, 80, 5},
    {4, 4, 16, 64},
    {2, 2, 24, 1},
    {2, 1, 128, 100},
    {2, 1, 24, .value_size = 16},
    {2, 1, 16, .value_size = 40, .sliding_window = 30},
    {4, 2, 16, .soft_cap = 5},
    {4, 1, 8, .sinks = true},
    {2, 1, 16, .chunk = 50},
    {1, 1, 16, .chunk = 64, .sliding_window = 30, .soft_cap = 3, .sinks = true},
    {20, 1, 5, .sinks = true}, /* heads of several tasks */
    {1, 1, 300, .value_size = 270},
};
enum { N_FIXED = sizeof shapes / sizeof shapes[0], N_SHAPES = N_FIXED + 7 };

/** The fixed ones, then random mixtures. What comes in integers has heads of multiples of 32. */
static struct attention_shape shape_at(struct rng *r, size_t i)
{
    struct attention_shape shape = i < N_FIXED ? shapes[i] : attention_shape_random(r, 50);
    if (in_integers()) {
        shape.head_size = base_round_up(shape.head_size, KERN_ROUNDED_COLUMNS);
        shape.value_size = base_round_up(shape.value_size, KERN_ROUNDED_COLUMNS);
    }
    return shape;
}

/** The next shape to be tested: emulation and sanitizers are slow. */
static size_t next_shape(size_t i)
{
    return i + (precision == KERN_PRECISION_EXACT && !ASSAY_SANITIZED ? 1 : 3);
}

/** Segments of awkward lengths, one of them with only its tail as queries. */
static void test_segments(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 31, 32, 33, 64, 65, 150};
    enum { N = sizeof lengths / sizeof lengths[0] };
    for (size_t i = 0; i < N_SHAPES; i = next_shape(i)) {
        struct rng r = rng_open(rng_seed(), i);
        struct kern_query_range ranges[N];
        size_t n_tokens = 0;
        for (size_t j = 0; j < N; j++) {
            ranges[j] =
                (struct kern_query_range){.q_row = n_tokens, .n_q = lengths[j], .kv_row = n_tokens};
            n_tokens += lengths[j];
        }
        struct scene s;
        struct attention_shape shape = shape_at(&r, i);
        scene_open(&s, &r, &shape, n_tokens);
        s.op.ranges = ranges;
        s.op.n_ranges = N;
        run(KERN_ISA_COUNT - 1, 2, &s.op);
        check_against_truth(&s.op);
        check_invariance(&s);
        scene_close(&s);
    }
}

/** Copy row `from` of q, k and v to row `to`. */
static void copy_row(struct scene *s, size_t from, size_t to)
{
    struct guard *all[] = {&s->q, &s->k, &s->v};
    for (size_t i = 0; i < 3; i++) {
        size_t row_bytes = all[i]->n_bytes / s->n_tokens;
        memcpy(all[i]->data + to * row_bytes, all[i]->data + from * row_bytes, row_bytes);
    }
}

/**
 * A prefix and two endings that share it; then the same texts written out as two segments of
 * their own. The endings must come out the same to the bit.
 */
static void test_shared_prefix(void **state)
{
    (void)state;
    enum { PREFIX = 77, A = 40, B = 3, SHARED = PREFIX + A + B, WHOLE_A = SHARED };
    enum { WHOLE_B = WHOLE_A + PREFIX + A, N = WHOLE_B + PREFIX + B };
    for (size_t i = 0; i < N_SHAPES; i = next_shape(i)) {
        struct rng r = rng_open(rng_seed(), 100 + i);
        struct scene s;
        struct attention_shape shape = shape_at(&r, i);
        scene_open(&s, &r, &shape, N);
        for (size_t t = 0; t < PREFIX + A; t++)
            copy_row(&s, t, WHOLE_A + t);
        for (size_t t = 0; t < PREFIX + B; t++)
            copy_row(&s, t < PREFIX ? t : t + A, WHOLE_B + t);
        const struct kern_query_range ranges[] = {
            {.q_row = 0, .n_q = PREFIX, .kv_row = 0},
            {.q_row = PREFIX, .n_q = A, .kv_row = PREFIX, .n_parent = PREFIX},
            {.q_row = PREFIX + A, .n_q = B, .kv_row = PREFIX + A, .n_parent = PREFIX},
            {.q_row = WHOLE_A, .n_q = PREFIX + A, .kv_row = WHOLE_A},
            {.q_row = WHOLE_B, .n_q = PREFIX + B, .kv_row = WHOLE_B},
        };
        s.op.ranges = ranges;
        s.op.n_ranges = 5;
        run(KERN_ISA_COUNT - 1, 2, &s.op);
        check_against_truth(&s.op);
        size_t width = s.op.n_heads * s.op.value_size;
        const float *out = s.op.out;
        assert_same(out, out + WHOLE_A * width, (PREFIX + A) * width, "first ending");
        assert_same(out + (PREFIX + A) * width, out + (WHOLE_B + PREFIX) * width, B * width,
                    "second ending");
        check_invariance(&s);
        scene_close(&s);
    }
}

/** What a token holds must not reach the queries before it, not even as 0 times infinity. */
static void test_later_tokens_are_not_seen(void **state)
{
    (void)state;
    enum { N = 100, BAD = 70, D = 32 };
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        struct rng r = rng_open(rng_seed(), 200);
        struct attention_shape shape = {2, 1, D, 0};
        struct scene s;
        scene_open(&s, &r, &shape, N);
        const struct kern_query_range range = {.n_q = N};
        s.op.ranges = &range;
        s.op.n_ranges = 1;
        run(KERN_ISA_COUNT - 1, 1, &s.op);
        size_t width = shape.n_heads * shape.head_size;
        float *expected = malloc(s.out.n_bytes);
        memcpy(expected, s.out.data, s.out.n_bytes);
        ((float *)(void *)s.k.data)[BAD * D + 5] = bad[i];
        ((float *)(void *)s.v.data)[BAD * D + 3] = bad[i];
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            run((enum kern_isa)isa, 1, &s.op);
            assert_same(s.op.out, expected, BAD * width, "queries before the bad token");
            for (size_t c = 3; c < width; c += D)
                assert_false(isfinite(s.op.out[BAD * width + c]));
        }
        free(expected);
        scene_close(&s);
    }
}

/** With a window, a token that has passed out of sight leaves no trace either. */
static void test_earlier_tokens_are_forgotten(void **state)
{
    (void)state;
    enum { N = 100, BAD = 30, WINDOW = 20, D = 32 };
    struct rng r = rng_open(rng_seed(), 300);
    struct attention_shape shape = {2, 1, D, WINDOW};
    struct scene s;
    scene_open(&s, &r, &shape, N);
    const struct kern_query_range range = {.n_q = N};
    s.op.ranges = &range;
    s.op.n_ranges = 1;
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    size_t width = shape.n_heads * shape.head_size, after = (BAD + WINDOW) * width;
    float *expected = malloc(s.out.n_bytes);
    memcpy(expected, s.out.data, s.out.n_bytes);
    ((float *)(void *)s.v.data)[BAD * D + 3] = NAN;
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    assert_same(s.op.out, expected, BAD * width, "queries before");
    assert_same(s.op.out + after, expected + after, N * width - after, "queries behind");
    free(expected);
    scene_close(&s);
}

/** The largest heads: latent attention, where all heads share one key head. */
static void test_large_heads(void **state)
{
    (void)state;
    static const struct attention_shape all[] = {{18, 1, 576, .value_size = 512}, {1, 1, 1024}};
    for (size_t i = 0; i < 2; i++) {
        struct rng r = rng_open(rng_seed(), 330 + i);
        struct scene s;
        scene_open(&s, &r, &all[i], 40);
        const struct kern_query_range range = {.n_q = 40};
        s.op.ranges = &range;
        s.op.n_ranges = 1;
        run(KERN_ISA_COUNT - 1, 2, &s.op);
        check_against_truth(&s.op);
        check_invariance(&s);
        scene_close(&s);
    }
}

/** What is never reached changes no bit: a wide window, a large chunk, sinks without a share. */
static void test_neutral_fields(void **state)
{
    (void)state;
    enum { N = 130 };
    struct rng r = rng_open(rng_seed(), 350);
    struct attention_shape shape = {4, 2, 16, .sinks = true};
    struct scene s;
    scene_open(&s, &r, &shape, N);
    const struct kern_query_range range = {.n_q = N};
    s.op.ranges = &range;
    s.op.n_ranges = 1;
    const struct kern_weight *sinks = s.op.sinks;
    s.op.sinks = NULL;
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    size_t n = s.out.n_bytes / sizeof(float);
    float *expected = malloc(s.out.n_bytes);
    memcpy(expected, s.out.data, s.out.n_bytes);
    for (size_t i = 0; i < 4; i++)
        s.sinks.sinks[i] = -INFINITY;
    s.op.sinks = sinks;
    s.op.sliding_window = s.op.chunk = N;
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    assert_same(s.op.out, expected, n, "with neutral fields");
    s.sinks.sinks[1] = NAN;
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    for (size_t i = 0; i < n; i++)
        assert_true(isnan(s.op.out[i]) == (i / 16 % 4 == 1));
    free(expected);
    scene_close(&s);
}

/** Keys and values of blocks that no query sees are not even read: they may be inaccessible. */
static void test_unseen_blocks_are_skipped(void **state)
{
    (void)state;
    enum { N = 400, FIRST = 352, D = 1024, PAGE = 4096, CUT = 256 };
    static_assert(D * sizeof(float) == PAGE, "a row is a page");
    static const struct attention_shape all[] = {
        {1, 1, D, .sliding_window = 70}, {1, 1, D, .chunk = 128}, {1, 1, D, .chunk = 256}};
    for (size_t i = 0; i < 3; i++) {
        struct rng r = rng_open(rng_seed(), 370 + i);
        struct scene s;
        scene_open(&s, &r, &all[i], N);
        const struct kern_query_range range = {.q_row = FIRST, .n_q = N - FIRST, .q_offset = FIRST};
        s.op.ranges = &range;
        s.op.n_ranges = 1;
        assert_int_equal(mprotect(s.k.data, CUT * PAGE, PROT_NONE), 0);
        assert_int_equal(mprotect(s.v.data, CUT * PAGE, PROT_NONE), 0);
        run(KERN_ISA_COUNT - 1, 1, &s.op);
        assert_int_equal(mprotect(s.k.data, CUT * PAGE, PROT_READ | PROT_WRITE), 0);
        assert_int_equal(mprotect(s.v.data, CUT * PAGE, PROT_READ | PROT_WRITE), 0);
        check_against_truth(&s.op);
        scene_close(&s);
    }
}

/** Scores so large that only the maximum's subtraction keeps them finite. */
static void test_large_scores(void **state)
{
    (void)state;
    enum { N = 130 };
    struct rng r = rng_open(rng_seed(), 400);
    struct attention_shape shape = {1, 1, 8, 0};
    struct scene s;
    scene_open(&s, &r, &shape, N);
    for (size_t i = 0; i < N * shape.head_size; i++)
        ((float *)(void *)s.q.data)[i] *= 1000.0f;
    const struct kern_query_range range = {.n_q = N};
    s.op.ranges = &range;
    s.op.n_ranges = 1;
    run(KERN_ISA_COUNT - 1, 2, &s.op);
    check_against_truth(&s.op);
    check_invariance(&s);
    scene_close(&s);
}

static void test_cancel_and_checks(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 500);
    struct attention_shape shape = {4, 2, 16, 0};
    struct scene s;
    scene_open(&s, &r, &shape, 64);
    const struct kern_query_range range = {.n_q = 64};
    s.op.ranges = &range;
    s.op.n_ranges = 1;
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    atomic_bool cancel = true;
    kern_set_cancel(b, &cancel);
    assert_int_equal(kern_attention(b, &s.op, NULL), STATUS_CANCELLED);
    kern_set_cancel(b, NULL);
    assert_int_equal(kern_attention(b, &s.op, NULL), STATUS_OK);
    s.op.n_kv_heads = 3;
    struct status_why why = {{0}};
    assert_int_equal(kern_attention(b, &s.op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "attention: 4 heads cannot share 3 key heads evenly");
    s.op.n_kv_heads = 2;
    static const float bad_caps[] = {-1.0f, INFINITY, NAN};
    for (size_t i = 0; i < 3; i++) {
        s.op.soft_cap = bad_caps[i];
        assert_int_equal(kern_attention(b, &s.op, &why), STATUS_USAGE);
        assert_non_null(strstr(why.text, "expected a positive number, or 0 for none"));
    }
    s.op.soft_cap = 0.0f;
    s.sinks.weight.n_cols = 5;
    s.op.sinks = &s.sinks.weight;
    assert_int_equal(kern_attention(b, &s.op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "attention: sinks: shape 1 x 5; expected 1 x 4");
    kern_close(b);
    scene_close(&s);
}

/** Enough queries under enough heads that a task of few threads has many blocks of them. */
static void test_tasks_of_many_blocks(void **state)
{
    (void)state;
    enum { N = 370 };
    static const struct attention_shape shape = {16, 16, 4, .sliding_window = 290};
    struct rng r = rng_open(rng_seed(), 700);
    struct scene s;
    scene_open(&s, &r, &shape, N);
    s.op.ranges = &(const struct kern_query_range){.n_q = N};
    s.op.n_ranges = 1;
    run(KERN_ISA_COUNT - 1, 16, &s.op);
    check_against_truth(&s.op);
    check_invariance(&s);
    scene_close(&s);
}

/** Even where products are one bfloat16, attention's are triples: the same bits as in high. */
static void test_fast_is_high(void **state)
{
    (void)state;
    enum { N = 70 };
    struct rng r = rng_open(rng_seed(), 600);
    struct attention_shape shape = {4, 2, 16, 0};
    struct scene s;
    scene_open(&s, &r, &shape, N);
    const struct kern_query_range range = {.n_q = N};
    s.op.ranges = &range;
    s.op.n_ranges = 1;
    precision = KERN_PRECISION_HIGH;
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    float *expected = malloc(s.out.n_bytes);
    memcpy(expected, s.out.data, s.out.n_bytes);
    precision = KERN_PRECISION_EXACT;
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    assert_true(compare_bits(s.op.out, expected, s.out.n_bytes / sizeof(float)) <
                s.out.n_bytes / sizeof(float));
    precision = KERN_PRECISION_FAST;
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    assert_same(s.op.out, expected, s.out.n_bytes / sizeof(float), "fast");
    free(expected);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_shared_prefix),
        cmocka_unit_test(test_later_tokens_are_not_seen),
        cmocka_unit_test(test_earlier_tokens_are_forgotten),
        cmocka_unit_test(test_large_heads),
        cmocka_unit_test(test_neutral_fields),
        cmocka_unit_test(test_unseen_blocks_are_skipped),
        cmocka_unit_test(test_large_scores),
        cmocka_unit_test(test_cancel_and_checks),
        cmocka_unit_test(test_tasks_of_many_blocks),
    };
    const struct CMUnitTest integers[] = {
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_shared_prefix),
        cmocka_unit_test(test_later_tokens_are_not_seen),
        cmocka_unit_test(test_earlier_tokens_are_forgotten),
        cmocka_unit_test(test_large_heads),
        cmocka_unit_test(test_unseen_blocks_are_skipped),
    };
    const struct CMUnitTest modes[] = {cmocka_unit_test(test_fast_is_high)};
    precision = KERN_PRECISION_EXACT;
    int n_failed = cmocka_run_group_tests_name("float32", tests, NULL, NULL);
    precision = KERN_PRECISION_HIGH;
    n_failed += cmocka_run_group_tests_name("bf16 triples", tests, NULL, NULL);
    n_failed += cmocka_run_group_tests_name("modes", modes, NULL, NULL);
    precision = KERN_PRECISION_FAST;
    amx = KERN_AMX_NONE;
    return n_failed + cmocka_run_group_tests_name("integers", integers, NULL, NULL);
}
