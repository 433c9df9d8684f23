/*
 * Attention on the CPU backend: against a float64 evaluation within a derived bound, and to
 * the bit for any ISA, any number of threads, queries one at a time, prefixes shared or not.
 * All of it in float32, and in bfloat16 triples as AMX computes them (in software).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cpu/cpu.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/harness/rng.h"
#include "tests/kernels/attention_truth.h"

struct scene {
    struct kern_attention op;
    struct guard q, k, v, out;
    size_t n_tokens; /* rows of q, k, v and out */
};

struct shape {
    size_t n_heads, n_kv_heads, head_size, sliding_window;
};

/** How the tests' backends compute. */
static enum kern_precision precision;

static struct kern_backend *backend_open(enum kern_isa cap, unsigned n_threads)
{
    struct kern_cpu_options options = {
        .n_threads = n_threads, .isa_cap = cap, .precision = precision, .amx = KERN_AMX_EMULATED};
    struct kern_backend *b = NULL;
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    return b;
}

static struct guard random_rows(struct rng *r, size_t n_rows, size_t width)
{
    struct guard g = guard_open(n_rows * width * sizeof(float), 0);
    for (size_t i = 0; i < n_rows * width; i++)
        ((float *)(void *)g.data)[i] = 1.5f * rng_normal(r);
    return g;
}

static void scene_open(struct scene *s, struct rng *r, const struct shape *shape, size_t n_tokens)
{
    size_t d = shape->head_size;
    s->n_tokens = n_tokens;
    s->q = random_rows(r, n_tokens, shape->n_heads * d);
    s->k = random_rows(r, n_tokens, shape->n_kv_heads * d);
    s->v = random_rows(r, n_tokens, shape->n_kv_heads * d);
    s->out = guard_open(n_tokens * shape->n_heads * d * sizeof(float), 0);
    s->op = (struct kern_attention){.q = (const float *)(void *)s->q.data,
                                    .k = (const float *)(void *)s->k.data,
                                    .v = (const float *)(void *)s->v.data,
                                    .out = (float *)(void *)s->out.data,
                                    .n_heads = shape->n_heads,
                                    .n_kv_heads = shape->n_kv_heads,
                                    .head_size = d,
                                    .scale = 1.0f / sqrtf((float)d),
                                    .sliding_window = shape->sliding_window};
}

static void scene_close(struct scene *s)
{
    struct guard *all[] = {&s->q, &s->k, &s->v, &s->out};
    for (size_t i = 0; i < 4; i++) {
        assert_true(guard_intact(all[i]));
        guard_close(all[i]);
    }
}

static void run(enum kern_isa isa, unsigned n_threads, const struct kern_attention *op)
{
    struct kern_backend *b = backend_open(isa, n_threads);
    assert_int_equal(kern_attention(b, op, NULL), STATUS_OK);
    kern_close(b);
}

/** Products in triples add 3 * 2^-16 of the sum of magnitudes, to scores and to values. */
static void check_against_truth(const struct kern_attention *op)
{
    const struct attention_rounding rounding = {
        .product = precision == KERN_PRECISION_EXACT ? 0 : 3 * 0x1p-16,
        .unit = 0x1p-24,
        .n_products = 1,
        .key_block = KERN_KEY_BLOCK};
    (void)attention_truth_check(op, &rounding);
}

static void assert_same(const float *found, const float *expected, size_t n, const char *what)
{
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s: element %zu is %a, expected %a", what, i, (double)found[i],
                 (double)expected[i]);
}

/** All ISAs and threads give one result; so do the queries one at a time, in ranges of one. */
static void check_invariance(struct scene *s)
{
    size_t row_floats = s->op.n_heads * s->op.head_size;
    size_t n = s->n_tokens * row_floats;
    float *expected = malloc(n * sizeof(float));
    memcpy(expected, s->op.out, n * sizeof(float));
    bool slow = precision != KERN_PRECISION_EXACT; /* the emulation: fewer combinations */
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        for (unsigned n_threads = slow ? 2 : 1; n_threads <= 4; n_threads *= 2) {
            if (slow && (isa == KERN_ISA_AVX2 || n_threads > 2))
                continue;
            run((enum kern_isa)isa, n_threads, &s->op);
            assert_same(s->op.out, expected, n, kern_isa_name((enum kern_isa)isa));
        }
    }
    if (!slow)
        memset(s->op.out, 0xff, n * sizeof(float));
    struct kern_attention op = s->op;
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 1);
    for (size_t i = 0; i < s->op.n_ranges; i++) {
        for (size_t query = 0; query < s->op.ranges[i].n_q; query += slow ? 11 : 1) {
            struct kern_query_range one = s->op.ranges[i];
            one.q_row += query;
            one.q_offset += query;
            one.n_q = 1;
            op.ranges = &one;
            op.n_ranges = 1;
            assert_int_equal(kern_attention(b, &op, NULL), STATUS_OK);
        }
    }
    kern_close(b);
    assert_same(s->op.out, expected, n, "one query at a time");
    free(expected);
}

static const struct shape shapes[] = {{1, 1, 1, 0},   {2, 1, 7, 0},  {4, 2, 16, 0},
                                      {3, 3, 33, 0},  {8, 2, 64, 0}, {2, 1, 80, 5},
                                      {4, 4, 16, 64}, {2, 2, 24, 1}, {2, 1, 128, 100}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/** The next shape to be tested: the emulation is slow. */
static size_t next_shape(size_t i)
{
    return i + (precision == KERN_PRECISION_EXACT ? 1 : 2);
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
        scene_open(&s, &r, &shapes[i], n_tokens);
        s.op.ranges = ranges;
        s.op.n_ranges = N;
        run(KERN_ISA_SCALAR, 1, &s.op);
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
        scene_open(&s, &r, &shapes[i], N);
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
        size_t width = s.op.n_heads * s.op.head_size;
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
    enum { N = 100, BAD = 70 };
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        struct rng r = rng_open(rng_seed(), 200);
        struct shape shape = {2, 1, 16, 0};
        struct scene s;
        scene_open(&s, &r, &shape, N);
        const struct kern_query_range range = {.n_q = N};
        s.op.ranges = &range;
        s.op.n_ranges = 1;
        run(KERN_ISA_COUNT - 1, 1, &s.op);
        size_t width = shape.n_heads * shape.head_size;
        float *expected = malloc(s.out.n_bytes);
        memcpy(expected, s.out.data, s.out.n_bytes);
        ((float *)(void *)s.k.data)[BAD * 16 + 5] = bad[i];
        ((float *)(void *)s.v.data)[BAD * 16 + 3] = bad[i];
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            run((enum kern_isa)isa, 1, &s.op);
            assert_same(s.op.out, expected, BAD * width, "queries before the bad token");
            for (size_t c = 3; c < width; c += 16)
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
    enum { N = 100, BAD = 30, WINDOW = 20 };
    struct rng r = rng_open(rng_seed(), 300);
    struct shape shape = {2, 1, 16, WINDOW};
    struct scene s;
    scene_open(&s, &r, &shape, N);
    const struct kern_query_range range = {.n_q = N};
    s.op.ranges = &range;
    s.op.n_ranges = 1;
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    size_t width = shape.n_heads * shape.head_size, after = (BAD + WINDOW) * width;
    float *expected = malloc(s.out.n_bytes);
    memcpy(expected, s.out.data, s.out.n_bytes);
    ((float *)(void *)s.v.data)[BAD * 16 + 3] = NAN;
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    assert_same(s.op.out, expected, BAD * width, "queries before");
    assert_same(s.op.out + after, expected + after, N * width - after, "queries behind");
    free(expected);
    scene_close(&s);
}

/** Scores so large that only the maximum's subtraction keeps them finite. */
static void test_large_scores(void **state)
{
    (void)state;
    enum { N = 130 };
    struct rng r = rng_open(rng_seed(), 400);
    struct shape shape = {1, 1, 8, 0};
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
    struct shape shape = {4, 2, 16, 0};
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
    kern_close(b);
    scene_close(&s);
}

/** Even where products may be coarse, attention's are not: the same bits as in high. */
static void test_fast_is_high(void **state)
{
    (void)state;
    enum { N = 70 };
    struct rng r = rng_open(rng_seed(), 600);
    struct shape shape = {4, 2, 16, 0};
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
        cmocka_unit_test(test_large_scores),
        cmocka_unit_test(test_cancel_and_checks),
    };
    const struct CMUnitTest modes[] = {cmocka_unit_test(test_fast_is_high)};
    precision = KERN_PRECISION_EXACT;
    int n_failed = cmocka_run_group_tests_name("float32", tests, NULL, NULL);
    precision = KERN_PRECISION_HIGH;
    n_failed += cmocka_run_group_tests_name("bf16 triples", tests, NULL, NULL);
    return n_failed + cmocka_run_group_tests_name("modes", modes, NULL, NULL);
}
