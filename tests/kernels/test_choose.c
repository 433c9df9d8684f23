/*
 * Choosing keys on the CPU backend: against the definition, to the bit for any ISA, number of
 * threads and grouping of the queries; and attention to the chosen keys, against float64.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/cpu_backend.h"
#include "tests/harness/guard.h"
#include "tests/kernels/attention_truth.h"
#include "tests/kernels/choose_scene.h"

static void choose(enum kern_isa isa, unsigned n_threads, const struct kern_choose *op)
{
    struct kern_backend *b = backend_open(isa, n_threads);
    assert_int_equal(kern_choose(b, op, NULL), STATUS_OK);
    kern_close(b);
}

static void test_definition(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHOOSE_SCENE_SHAPES; i++) {
        struct rng r = rng_open(rng_seed(), i);
        struct choose_shape shape = choose_scene_shape(i);
        struct choose_scene s;
        choose_scene_open(&s, &r, &shape);
        choose(KERN_ISA_SCALAR, 1, &s.op);
        choose_scene_check(&s, s.bits);
        choose_scene_close(&s);
    }
}

static void test_same_for_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHOOSE_SCENE_SHAPES; i++) {
        struct rng r = rng_open(rng_seed(), 50 + i);
        struct choose_shape shape = choose_scene_shape(i);
        struct choose_scene s;
        choose_scene_open(&s, &r, &shape);
        choose(KERN_ISA_SCALAR, 1, &s.op);
        size_t n_bytes = s.n_words * sizeof *s.bits;
        uint64_t *expected = malloc(n_bytes);
        memcpy(expected, s.bits, n_bytes);
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            memset(s.bits, 0x55, n_bytes);
            choose((enum kern_isa)isa, 3, &s.op);
            assert_memory_equal(s.bits, expected, n_bytes);
        }
        memset(s.bits, 0x55, n_bytes);
        struct kern_choose op = s.op;
        struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 1);
        for (size_t range = 0; range < s.op.n_ranges; range++)
            for (size_t query = 0; query < s.op.ranges[range].n_q; query++) {
                struct kern_query_range one = s.op.ranges[range];
                one.q_row += query;
                one.q_offset += query;
                one.n_q = 1;
                op.ranges = &one;
                op.n_ranges = 1;
                assert_int_equal(kern_choose(b, &op, NULL), STATUS_OK);
            }
        kern_close(b);
        assert_memory_equal(s.bits, expected, n_bytes);
        free(expected);
        choose_scene_close(&s);
    }
}

/** A prefix and an ending that shares it choose as the same text written out. */
static void test_shared_prefix(void **state)
{
    (void)state;
    enum { PREFIX = 60, ENDING = 40, WHOLE = PREFIX + ENDING, D = 12, HEADS = 3, WORDS = 2 };
    struct rng r = rng_open(rng_seed(), 90);
    float q[2 * WHOLE * HEADS * D], k[2 * WHOLE * D], w[2 * WHOLE * HEADS];
    for (size_t i = 0; i < WHOLE * HEADS * D; i++)
        q[i] = q[i + WHOLE * HEADS * D] = rng_normal(&r);
    for (size_t i = 0; i < WHOLE * D; i++)
        k[i] = k[i + WHOLE * D] = rng_normal(&r);
    for (size_t i = 0; i < WHOLE * HEADS; i++)
        w[i] = w[i + WHOLE * HEADS] = rng_normal(&r);
    const struct kern_query_range ranges[] = {
        {.q_row = 0, .n_q = PREFIX, .kv_row = 0},
        {.q_row = PREFIX, .n_q = ENDING, .kv_row = PREFIX, .n_parent = PREFIX},
        {.q_row = WHOLE, .n_q = WHOLE, .kv_row = WHOLE},
    };
    uint64_t bits[2 * WHOLE][WORDS];
    struct kern_choose op = {.q = q,
                             .k = k,
                             .weights = w,
                             .bits = bits[0],
                             .n_heads = HEADS,
                             .head_size = D,
                             .k_stride = D,
                             .n_best = 17,
                             .together = 1,
                             .most_keys = WHOLE,
                             .ranges = ranges,
                             .n_ranges = 3};
    choose(KERN_ISA_COUNT - 1, 2, &op);
    assert_memory_equal(bits[0], bits[WHOLE], sizeof bits / 2);
    for (size_t i = 0; i < WHOLE; i++)
        assert_int_equal(__builtin_popcountll(bits[i][0]) + __builtin_popcountll(bits[i][1]),
                         i < 17 ? i + 1 : 17);
}

/** A NaN is below all numbers; what is wrong with the arguments is said. */
static void test_nan_and_checks(void **state)
{
    (void)state;
    const float q = 1.0f, k[] = {NAN, -INFINITY, -1.0f, NAN};
    const uint32_t n_seen = 4;
    const struct kern_query_range range = {.n_q = 1};
    uint64_t bits;
    struct kern_choose op = {.q = &q,
                             .k = k,
                             .bits = &bits,
                             .n_heads = 1,
                             .head_size = 1,
                             .k_stride = 1,
                             .n_best = 3,
                             .together = 1,
                             .most_keys = 4,
                             .n_seen = &n_seen,
                             .ranges = &range,
                             .n_ranges = 1};
    choose(KERN_ISA_COUNT - 1, 1, &op);
    assert_int_equal(bits, 7);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    struct status_why why = {""};
    op.most_keys = 3;
    assert_int_equal(kern_choose(b, &op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "choose: queries of range 0 see more than the 3 keys that there "
                                  "is room for");
    op.most_keys = 4;
    atomic_bool cancel = true;
    kern_set_cancel(b, &cancel);
    assert_int_equal(kern_choose(b, &op, &why), STATUS_CANCELLED);
    kern_set_cancel(b, NULL);
    float out;
    struct kern_attention attention = {.q = &q,
                                       .k = k,
                                       .v = k,
                                       .out = &out,
                                       .n_heads = 1,
                                       .n_kv_heads = 1,
                                       .head_size = 1,
                                       .value_size = 1,
                                       .chosen = {&bits, 2, 4},
                                       .ranges = &range,
                                       .n_ranges = 1};
    assert_int_equal(kern_attention(b, &attention, &why), STATUS_USAGE);
    assert_string_equal(why.text, "attention: 2 sets of chosen keys; expected 1 or 1");
    attention.chosen.n_sets = 1;
    assert_int_equal(kern_attention(b, &attention, &why), STATUS_USAGE);
    assert_string_equal(why.text, "attention: a scale of 0 with chosen keys; expected more than 0");
    assert_true(kern_choose_bytes(b, &op) >= 32 * 4 * sizeof(float));
    kern_close(b);
}

/** Attention over segments of which queries have chosen keys at random, their own among them. */
struct scene {
    struct kern_attention op;
    struct attention_sinks sinks;
    float *arrays[4]; /* q, k, v, out */
    uint64_t *bits;
    size_t n_out, n_bits;
};
enum { TOKENS = 230 };

static const struct kern_query_range attention_ranges[] = {
    {.q_row = 0, .n_q = 150, .kv_row = 0},
    {.q_row = 150, .n_q = 33, .kv_row = 150, .n_parent = 150},
    {.q_row = 183, .n_q = 7, .kv_row = 183, .n_parent = 150},
    {.q_row = 190, .n_q = 40, .q_offset = 30, .kv_row = 160},
};

static void scene_open(struct scene *s, struct rng *r, const struct attention_shape *shape,
                       bool each)
{
    s->op = attention_shape_op(shape, r, &s->sinks);
    size_t d = s->op.head_size, dv = s->op.value_size, kv = s->op.n_kv_heads;
    const size_t widths[] = {s->op.n_heads * d, kv * d, kv * dv, s->op.n_heads * dv};
    for (size_t i = 0; i < 4; i++) {
        s->arrays[i] = malloc(TOKENS * widths[i] * sizeof(float));
        for (size_t e = 0; e < TOKENS * widths[i]; e++)
            s->arrays[i][e] = 1.5f * rng_normal(r);
    }
    s->n_out = TOKENS * widths[3];
    s->op.q = s->arrays[0];
    s->op.k = s->arrays[1];
    s->op.v = s->arrays[2];
    s->op.out = s->arrays[3];
    s->op.ranges = attention_ranges;
    s->op.n_ranges = sizeof attention_ranges / sizeof *attention_ranges;
    s->op.chosen = (struct kern_chosen){NULL, each ? kv : 1, TOKENS};
    size_t words = kern_chosen_words(TOKENS);
    s->n_bits = TOKENS * s->op.chosen.n_sets * words;
    s->bits = malloc(s->n_bits * sizeof *s->bits);
    for (size_t i = 0; i < s->n_bits; i++) /* some words are empty */
        s->bits[i] = rng_below(r, 3) ? rng_next(r) & rng_next(r) : 0;
    for (size_t i = 0; i < s->op.n_ranges; i++) {
        const struct kern_query_range *range = &attention_ranges[i];
        for (size_t q = 0; q < range->n_q * s->op.chosen.n_sets; q++) {
            size_t own = range->n_parent + range->q_offset + q / s->op.chosen.n_sets;
            s->bits[(range->q_row * s->op.chosen.n_sets + q) * words + own / 64] |= (uint64_t)1
                                                                                    << own % 64;
        }
    }
    s->op.chosen.bits = s->bits;
}

static void scene_close(struct scene *s)
{
    for (size_t i = 0; i < 4; i++)
        free(s->arrays[i]);
    free(s->bits);
}

static void attend(enum kern_isa isa, unsigned n_threads, const struct kern_attention *op)
{
    struct kern_cpu_options options = {
        .n_threads = n_threads, .isa_cap = isa, .precision = KERN_PRECISION_EXACT};
    struct kern_backend *b = NULL;
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    assert_int_equal(kern_attention(b, op, NULL), STATUS_OK);
    kern_close(b);
}

static void assert_same(const struct scene *s, const float *expected, const char *what)
{
    size_t i = compare_bits(s->op.out, expected, s->n_out);
    if (i < s->n_out)
        fail_msg("%s: element %zu is %a, expected %a", what, i, (double)s->op.out[i],
                 (double)expected[i]);
}

static float *copy_out(const struct scene *s)
{
    float *copy = malloc(s->n_out * sizeof *copy);
    memcpy(copy, s->op.out, s->n_out * sizeof *copy);
    return copy;
}

static const struct attention_shape shapes[] = {
    {4, 2, 16, 0},
    {2, 1, 24, .value_size = 16, .soft_cap = 4},
    {6, 3, 9, .sliding_window = 100, .sinks = true},
    {20, 1, 5, .chunk = 90},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
static const struct attention_rounding rounding = {
    .unit = 0x1p-24, .n_products = 1, .key_block = KERN_KEY_BLOCK};

static void test_attention_to_chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * N_SHAPES; i++) {
        struct rng r = rng_open(rng_seed(), 100 + i);
        struct scene s;
        scene_open(&s, &r, &shapes[i % N_SHAPES], i / N_SHAPES);
        attend(KERN_ISA_SCALAR, 1, &s.op);
        (void)attention_truth_check(&s.op, &rounding);
        float *expected = copy_out(&s);
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            attend((enum kern_isa)isa, 3, &s.op);
            assert_same(&s, expected, kern_isa_name((enum kern_isa)isa));
        }
        struct kern_attention op = s.op;
        for (size_t range = 0; range < s.op.n_ranges; range++)
            for (size_t query = 0; query < s.op.ranges[range].n_q; query += 9) {
                struct kern_query_range one = s.op.ranges[range];
                one.q_row += query;
                one.q_offset += query;
                one.n_q = 1;
                op.ranges = &one;
                op.n_ranges = 1;
                attend(KERN_ISA_COUNT - 1, 1, &op);
            }
        assert_same(&s, expected, "one query at a time");
        free(expected);
        scene_close(&s);
    }
}

/** Where every key is chosen the bits are those without a choice. */
static void test_all_chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct rng r = rng_open(rng_seed(), 130 + i);
        struct scene s;
        scene_open(&s, &r, &shapes[i], i / 2);
        memset(s.bits, 0xff, s.n_bits * sizeof *s.bits);
        attend(KERN_ISA_COUNT - 1, 2, &s.op);
        float *chosen = copy_out(&s);
        s.op.chosen.bits = NULL;
        attend(KERN_ISA_COUNT - 1, 2, &s.op);
        assert_same(&s, chosen, "all keys");
        free(chosen);
        scene_close(&s);
    }
}

/** A key that is not chosen leaves no trace, not even as 0 times infinity. */
static void test_bad_keys(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    enum { BAD = 70, D = 16 };
    const struct attention_shape shape = {2, 1, D, 0};
    struct rng r = rng_open(rng_seed(), 150);
    struct scene s;
    scene_open(&s, &r, &shape, false);
    attend(KERN_ISA_COUNT - 1, 1, &s.op);
    float *good = copy_out(&s);
    size_t words = kern_chosen_words(TOKENS);
    for (size_t i = 0; i < 3; i++) {
        s.arrays[1][BAD * D + 5] = s.arrays[2][BAD * D + 3] = bad[i];
        attend(KERN_ISA_COUNT - 1, 1, &s.op);
        for (size_t q = 0; q < 183; q++) { /* whose key index is the row */
            bool sees = q >= BAD && (s.bits[q * words + BAD / 64] >> BAD % 64 & 1);
            const float *out = s.op.out + q * 2 * D;
            if (sees)
                assert_false(isfinite(out[3]));
            else
                assert_int_equal(compare_bits(out, good + q * 2 * D, 2 * D), 2 * D);
        }
    }
    free(good);
    scene_close(&s);
}

/** Blocks of which no query has chosen a key are not even read. */
static void test_skipped_blocks(void **state)
{
    (void)state;
    enum { N = 256, FIRST = 200, D = 1024, PAGE = 4096, WORDS = N / 64 };
    static_assert(D * sizeof(float) == PAGE, "a row is a page");
    struct guard k = guard_open(N * PAGE, 0), q = guard_open((N - FIRST) * PAGE, 0);
    struct guard out = guard_open((N - FIRST) * PAGE, 0);
    const struct kern_query_range range = {.n_q = N - FIRST, .q_offset = FIRST};
    uint64_t bits[N - FIRST][WORDS];
    for (size_t i = 0; i < N - FIRST; i++) {
        memset(bits[i], 0, sizeof bits[i]);
        bits[i][1] = (uint64_t)1 << i;
        bits[i][3] = UINT64_MAX;
    }
    struct kern_attention op = {.q = (float *)(void *)q.data,
                                .k = (float *)(void *)k.data,
                                .v = (float *)(void *)k.data,
                                .out = (float *)(void *)out.data,
                                .n_heads = 1,
                                .n_kv_heads = 1,
                                .head_size = D,
                                .value_size = D,
                                .scale = 1,
                                .chosen = {bits[0], 1, N},
                                .ranges = &range,
                                .n_ranges = 1};
    memset(k.data, 0, N * PAGE);
    memset(q.data, 0, (N - FIRST) * PAGE);
    assert_int_equal(mprotect(k.data, 64 * PAGE, PROT_NONE), 0);
    assert_int_equal(mprotect(k.data + 128 * PAGE, 64 * PAGE, PROT_NONE), 0);
    attend(KERN_ISA_COUNT - 1, 2, &op);
    assert_int_equal(mprotect(k.data, N * PAGE, PROT_READ | PROT_WRITE), 0);
    for (size_t i = 0; i < (N - FIRST) * D; i++)
        assert_true(op.out[i] == 0.0f);
    guard_close(&k);
    guard_close(&q);
    guard_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_same_for_all),
        cmocka_unit_test(test_shared_prefix),
        cmocka_unit_test(test_nan_and_checks),
        cmocka_unit_test(test_attention_to_chosen),
        cmocka_unit_test(test_all_chosen),
        cmocka_unit_test(test_bad_keys),
        cmocka_unit_test(test_skipped_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
