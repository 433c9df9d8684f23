/** Attention on the CPU backend: what is attended to, how it is computed, and that all ways agree.
 */
#ifndef TESTS_KERNELS_ATTENTION_SCENE_H
#define TESTS_KERNELS_ATTENTION_SCENE_H

#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm/rounded.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/harness/rng.h"
#include "tests/kernels/attention_truth.h"

struct scene {
    struct kern_attention op;
    struct attention_sinks sinks;
    struct guard q, k, v, out;
    size_t n_tokens; /* rows of q, k, v and out */
};

/** How the tests' backends compute. */
static enum kern_precision precision;
static enum kern_amx amx = KERN_AMX_EMULATED;

static struct kern_backend *backend_open(enum kern_isa cap, unsigned n_threads)
{
    struct kern_cpu_options options = {
        .n_threads = n_threads, .isa_cap = cap, .precision = precision, .amx = amx};
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

static void scene_open(struct scene *s, struct rng *r, const struct attention_shape *shape,
                       size_t n_tokens)
{
    s->op = attention_shape_op(shape, r, &s->sinks);
    size_t d = s->op.head_size, dv = s->op.value_size;
    s->n_tokens = n_tokens;
    s->q = random_rows(r, n_tokens, shape->n_heads * d);
    s->k = random_rows(r, n_tokens, shape->n_kv_heads * d);
    s->v = random_rows(r, n_tokens, shape->n_kv_heads * dv);
    s->out = guard_open(n_tokens * shape->n_heads * dv * sizeof(float), 0);
    s->op.q = (const float *)(void *)s->q.data;
    s->op.k = (const float *)(void *)s->k.data;
    s->op.v = (const float *)(void *)s->v.data;
    s->op.out = (float *)(void *)s->out.data;
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

static bool in_integers(void)
{
    return precision == KERN_PRECISION_FAST && amx != KERN_AMX_EMULATED;
}

static bool is_emulated(void)
{
    return precision != KERN_PRECISION_EXACT && amx == KERN_AMX_EMULATED;
}

/**
 * Products in triples add 3 * 2^-16 of the sum of magnitudes, to scores and to values. An integer
 * is off by half a step, and by three roundings of at most 5792 steps: 0.5 + 3 * 5792 * 2^-24.
 */
static void check_against_truth(const struct kern_attention *op)
{
    const struct attention_rounding rounding = {
        .product = is_emulated() ? 3 * 0x1p-16 : 0,
        .operand = in_integers() ? 0.5011 / KERN_ATTENTION_MOST : 0,
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
    size_t row_floats = s->op.n_heads * s->op.value_size;
    size_t n = s->n_tokens * row_floats;
    float *expected = malloc(n * sizeof(float));
    memcpy(expected, s->op.out, n * sizeof(float));
    bool slow = is_emulated(); /* fewer combinations */
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        for (unsigned n_threads = slow ? 2 : 1; n_threads <= 4; n_threads *= 2) {
            if (slow && (isa == KERN_ISA_SCALAR + 1 || n_threads > 2))
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

#endif
