/*
 * Pair scores on the CPU backend: several heads against a live one or against recorded rows.
 * By the definition in long double within derived bounds; the same bits for any ISA, threads,
 * split of the rows and company of other heads; exact zeros for equal heads; records that lie.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/guard.h"
#include "tests/kernels/score_scene.h"

/** The records of a scene whose head 0 may be recorded. */
struct base {
    struct guard memory; /* ends where the last record does */
    uint16_t *records;
    struct kern_recorded recorded;
    float *log_p; /* [n_rows, V], as stored; NULL: head 0 is live */
};

/** Decode what the records hold now. */
static void base_decode(struct base *base, const struct scene *s)
{
    for (size_t i = 0; i < s->op.n_rows * s->n_vocab; i++) {
        const uint16_t *record = base->records + i / s->n_vocab * base->recorded.stride;
        float scale, floor;
        memcpy(&scale, record, sizeof scale);
        memcpy(&floor, record + 2, sizeof floor);
        base->log_p[i] = fmaf(scale, (float)record[4 + i % s->n_vocab], floor);
    }
}

/** Record head 0, its logits stretched so that some lie below the floor. */
static void base_open(struct base *base, struct scene *s, double cut)
{
    size_t stride = kern_record_codes(s->n_vocab), n_rows = s->op.n_rows;
    base->memory = guard_open(n_rows * stride * sizeof *base->records, 0);
    base->records = (uint16_t *)(void *)base->memory.data;
    base->log_p = malloc(n_rows * s->n_vocab * sizeof *base->log_p);
    for (size_t i = 0; i < n_rows * s->n_vocab; i++)
        s->logits[0][i] *= 4.0f;
    for (size_t row = 0; row < n_rows; row++)
        scene_encode(base->records + row * stride, s->logits[0] + row * s->n_vocab, s->n_vocab);
    base->recorded = (struct kern_recorded){base->records, stride, cut};
    s->heads[0] = (struct kern_head){.recorded = &base->recorded};
    base_decode(base, s);
}

static void base_close(struct base *base)
{
    if (base->log_p)
        guard_close(&base->memory);
    free(base->log_p);
}

/** ln of the sum of exponentials, and the first of the largest. */
static long double log_normaliser(const float *logits, size_t n, size_t *argmax)
{
    *argmax = 0;
    long double sum = 0.0L;
    for (size_t i = 0; i < n; i++)
        *argmax = logits[i] > logits[*argmax] ? i : *argmax;
    for (size_t i = 0; i < n; i++)
        sum += expl((long double)logits[i] - (long double)logits[*argmax]);
    return (long double)logits[*argmax] + logl(sum);
}

/** (1 + r) ln(1 + r) + (1 - r) ln(1 - r) with r = |p - q| / (p + q), d = |ln p - ln q|. */
static long double js_share(long double d)
{
    long double rest = 2.0L * expl(-d) / (1.0L + expl(-d));
    return (2.0L - rest) * log1pl(tanhl(d / 2.0L)) + (rest > 0.0L ? rest * logl(rest) : 0.0L);
}

/** How many are both among the k largest of a and of b. */
static unsigned count_common(const float *a, const float *b, size_t n, size_t k)
{
    unsigned n_common = 0;
    for (size_t i = 0; i < n; i++) {
        size_t above_a = 0, above_b = 0;
        for (size_t j = 0; j < n; j++) {
            above_a += a[j] > a[i] || (a[j] == a[i] && j < i);
            above_b += b[j] > b[i] || (b[j] == b[i] && j < i);
        }
        n_common += above_a < k && above_b < k;
    }
    return n_common;
}

/**
 * With e the error of a sum (score_scene.h): a divergence is a sum of gaps with weights that
 * are e off, and normalisers that are; `magnitude` bounds both. log-probabilities, too, are
 * e (1 + |l|) off, which the Jensen-Shannon terms feel as they feel d.
 */
static void check_row(const struct scene *s, const struct base *base, size_t h, size_t row)
{
    size_t n = s->n_vocab, argmax;
    const float *a = (base->log_p ? base->log_p : s->logits[0]) + row * n;
    const float *b = s->logits[h] + row * n;
    long double shift_a = base->log_p ? 0.0L : log_normaliser(a, n, &argmax);
    long double shift_b = log_normaliser(b, n, &argmax);
    long double cut = base->log_p ? (long double)base->recorded.cut : -(long double)INFINITY;
    long double kl = 0, reverse = 0, js = 0, tv = 0,
                magnitude = 1 + fabsl(shift_a) + fabsl(shift_b);
    for (size_t i = 0; i < n; i++) {
        long double log_p = (long double)a[i] - shift_a, log_q = (long double)b[i] - shift_b;
        long double p = expl(log_p), q = expl(log_q);
        kl += (long double)a[i] > cut ? p * (log_p - log_q) : 0.0L;
        reverse += q * (log_q - log_p);
        js += (p + q) / 4.0L * js_share(fabsl(log_p - log_q));
        tv += fabsl(p - q) / 2.0L;
        magnitude += (p + q) * fabsl((long double)a[i] - (long double)b[i]);
    }
    const struct kern_pair_score *found = &s->op.pairs[h * s->op.n_rows + row];
    long double bound = scene_sum_error(n) * (2.0L + 4.0L * magnitude);
    scene_assert_near(found->kl, kl, bound, "kl");
    scene_assert_near(found->reverse_kl, reverse, bound, "reverse_kl");
    scene_assert_near(found->js, s->op.want_js ? js : 0.0L, bound, "js");
    scene_assert_near(found->tv, s->op.want_js ? tv : 0.0L, bound, "tv");
    static const size_t sizes[KERN_N_TOPS] = {1, 5, 10};
    for (size_t k = 0; k < KERN_N_TOPS; k++)
        assert_int_equal(found->common_top[k], count_common(a, b, n, sizes[k]));
}

static void check_pairs(const struct scene *s, const struct base *base)
{
    static const struct kern_pair_score zero = {0};
    for (size_t row = 0; row < s->op.n_rows; row++) {
        const struct kern_pair_score *first = &s->op.pairs[row];
        assert_true(first->kl == 0.0 && first->reverse_kl == 0.0 && first->js == 0.0);
        assert_memory_equal(first->common_top, zero.common_top, sizeof zero.common_top);
        for (size_t h = 1; h < s->op.n_heads; h++)
            check_row(s, base, h, row);
    }
}

static const struct {
    size_t n_heads, n_rows, n_vocab;
} shapes[] = {{2, 1, 1}, {2, 3, 7}, {2, 16, 32}, {3, 17, 33}, {3, 35, 301}, {2, 3, 1999}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void test_live_base(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct scene s;
        struct base live = {0};
        scene_open(&s, i, shapes[i].n_heads, shapes[i].n_rows, shapes[i].n_vocab);
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            s.op.want_js = isa % 2 == 0;
            scene_run((enum kern_isa)isa, 2, &s.op);
            check_pairs(&s, &live);
        }
        scene_close(&s);
    }
}

/** The base's own scores: its log p are its logits, and a target's is what is stored. */
static void check_stored_scores(const struct scene *s, const struct base *base)
{
    for (size_t row = 0; row < s->op.n_rows; row++) {
        const float *log_p = base->log_p + row * s->n_vocab;
        const struct kern_row_score *found = &s->op.rows[row];
        size_t argmax;
        long double sum = log_normaliser(log_p, s->n_vocab, &argmax), entropy = 0.0L;
        for (size_t i = 0; i < s->n_vocab; i++)
            entropy -= expl((long double)log_p[i] - sum) * ((long double)log_p[i] - sum);
        assert_true(found->max_logit == (double)log_p[argmax]);
        assert_int_equal(found->argmax, argmax);
        long double error = scene_sum_error(s->n_vocab) * (3.0L + 2.0L * entropy);
        scene_assert_near(found->max_logit + found->log_sum, sum, error + 0x1p-50L, "log_sum");
        scene_assert_near(found->entropy, entropy, error + 0x1p-50L, "entropy");
    }
    for (size_t i = 0; i < s->op.n_targets; i++) {
        const struct kern_target *target = &s->op.targets[i];
        const float *log_p = base->log_p + target->row * s->n_vocab;
        float expected = log_p[target->token];
        uint32_t rank = 1;
        for (size_t v = 0; v < s->n_vocab; v++)
            rank += log_p[v] > expected || (log_p[v] == expected && (int32_t)v < target->token);
        assert_true(s->op.target_scores[i].log_prob == (double)expected);
        assert_int_equal(s->op.target_scores[i].rank, rank);
    }
}

static void test_recorded_base(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct scene s;
        struct base base;
        scene_open(&s, 100 + i, shapes[i].n_heads, shapes[i].n_rows, shapes[i].n_vocab);
        base_open(&base, &s, i % 2 == 0 ? -(double)INFINITY : -16.0);
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            s.op.want_js = isa % 2 == 1;
            scene_run((enum kern_isa)isa, 2, &s.op);
            check_pairs(&s, &base);
            check_stored_scores(&s, &base);
        }
        base_close(&base);
        scene_close(&s);
    }
}

/** The paddings keep memcmp() from comparing the structs whole. */
static void assert_same(const struct kern_score *a, size_t i, const struct kern_score *b, size_t j)
{
    const struct kern_pair_score *p = &a->pairs[i], *q = &b->pairs[j];
    assert_memory_equal(&p->kl, &q->kl, sizeof p->kl);
    assert_memory_equal(&p->reverse_kl, &q->reverse_kl, sizeof p->reverse_kl);
    assert_memory_equal(&p->js, &q->js, sizeof p->js);
    assert_memory_equal(&p->tv, &q->tv, sizeof p->tv);
    assert_memory_equal(p->common_top, q->common_top, sizeof p->common_top);
    const struct kern_row_score *x = &a->rows[i], *y = &b->rows[j];
    assert_memory_equal(&x->max_logit, &y->max_logit, sizeof x->max_logit);
    assert_memory_equal(&x->log_sum, &y->log_sum, sizeof x->log_sum);
    assert_memory_equal(&x->entropy, &y->entropy, sizeof x->entropy);
}

static void test_isa_and_threads_do_not_matter(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct scene s;
        struct base base = {0};
        scene_open(&s, 200, 3, 45, 701);
        if (round == 1)
            base_open(&base, &s, -16.0);
        s.op.want_js = true;
        struct kern_score again = s.op;
        again.rows = calloc(3 * s.op.n_rows, sizeof *again.rows);
        again.pairs = calloc(3 * s.op.n_rows, sizeof *again.pairs);
        scene_run(KERN_ISA_SCALAR, 1, &s.op);
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            for (unsigned n_threads = 1; n_threads <= 4; n_threads *= 2) {
                scene_run((enum kern_isa)isa, n_threads, &again);
                for (size_t i = 0; i < 3 * s.op.n_rows; i++)
                    assert_same(&again, i, &s.op, i);
            }
        }
        free(again.rows);
        free(again.pairs);
        base_close(&base);
        scene_close(&s);
    }
}

/** Some rows of some heads as an operation of its own must give what they give in company. */
static void check_alone(struct kern_backend *b, const struct scene *s, size_t h, size_t row)
{
    struct kern_row_score rows[2];
    struct kern_pair_score pairs[2];
    struct kern_head heads[2] = {s->heads[0], s->heads[h]};
    struct kern_recorded recorded;
    if (heads[0].recorded) {
        recorded = *heads[0].recorded;
        recorded.records += row * recorded.stride;
        heads[0].recorded = &recorded;
    } else {
        heads[0].hidden += row * s->matrices[0].n_cols;
    }
    heads[1].hidden += row * s->matrices[h].n_cols;
    struct kern_score one = {
        .n_heads = 2, .heads = heads, .n_rows = 1, .rows = rows, .pairs = pairs, .want_js = true};
    assert_int_equal(kern_score(b, &one, NULL), STATUS_OK);
    assert_same(&one, 0, &s->op, row);
    assert_same(&one, 1, &s->op, h * s->op.n_rows + row);
}

/** More rows than share a walk, a vocabulary of more than one tile. */
static void test_rows_do_not_matter_to_each_other(void **state)
{
    (void)state;
    enum { N_ROWS = 2048 + 37 };
    for (int round = 0; round < 2; round++) {
        struct scene s;
        struct base base = {0};
        scene_open(&s, 300, 3, N_ROWS, 1100);
        if (round == 1)
            base_open(&base, &s, -(double)INFINITY);
        s.op.want_js = true;
        scene_run(KERN_ISA_COUNT - 1, 2, &s.op);
        struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 1);
        for (size_t row = 0; row < N_ROWS; row += row < 2000 ? 61 : 7) {
            for (size_t h = 1; h < 3; h++)
                check_alone(b, &s, h, row);
        }
        kern_close(b);
        if (round == 1)
            check_stored_scores(&s, &base);
        base_close(&base);
        scene_close(&s);
    }
}

/** Whether pairs are wanted changes nothing else. */
static void test_pairs_cost_nothing_else(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 400, 2, 40, 500);
    struct kern_score plain = s.op;
    plain.pairs = NULL;
    plain.rows = calloc(2 * s.op.n_rows, sizeof *plain.rows);
    scene_run(KERN_ISA_COUNT - 1, 2, &s.op);
    scene_run(KERN_ISA_COUNT - 1, 2, &plain);
    plain.pairs = s.op.pairs;
    for (size_t i = 0; i < 2 * s.op.n_rows; i++)
        assert_same(&plain, i, &s.op, i);
    free(plain.rows);
    scene_close(&s);
}

static void test_equal_heads(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 500, 3, 37, 501);
    s.heads[1] = s.heads[2] = s.heads[0];
    s.op.want_js = true;
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        scene_run((enum kern_isa)isa, 2, &s.op);
        for (size_t i = s.op.n_rows; i < 3 * s.op.n_rows; i++) {
            static const uint8_t all[KERN_N_TOPS] = {1, 5, 10};
            const struct kern_pair_score *found = &s.op.pairs[i];
            assert_true(found->kl == 0.0 && found->reverse_kl == 0.0 && found->js == 0.0);
            assert_true(!signbit(found->kl) && !signbit(found->reverse_kl) && !signbit(found->js));
            assert_memory_equal(found->common_top, all, sizeof all);
        }
    }
    scene_close(&s);
}

/**
 * A model against its own record, to what 16 bits allow: a stored log p is at most half a unit
 * of 16 / 65535 and a rounding of the floor off, if it is not below the floor, where it is
 * raised to it and weighs less than V e^-16.
 */
static void test_own_record(void **state)
{
    (void)state;
    struct scene s;
    struct base base;
    scene_open(&s, 600, 2, 40, 777);
    s.matrices[0].scale = 4.0f;
    struct kern_head live = s.heads[0];
    base_open(&base, &s, -16.0); /* stretches the logits as the scale does */
    s.heads[1] = live;
    memcpy(s.logits[1], s.logits[0], s.op.n_rows * s.n_vocab * sizeof(float));
    s.op.want_js = true;
    scene_run(KERN_ISA_COUNT - 1, 2, &s.op);
    check_pairs(&s, &base);
    for (size_t row = 0; row < s.op.n_rows; row++) {
        const struct kern_pair_score *found = &s.op.pairs[s.op.n_rows + row];
        double unit = 16.0 / 65535.0 / 2.0 + 1e-5;
        assert_true(fabs(found->kl) < unit);
        assert_true(found->js >= 0.0 && found->js < unit * unit + 777 * 2e-7);
        assert_int_equal(found->common_top[0], 1);
    }
    base_close(&base);
    scene_close(&s);
}

/** Scales and floors that no recording writes: NaN for their rows, and for no others. */
static void test_hostile_records(void **state)
{
    (void)state;
    static const float wild[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    enum { N_WILD = sizeof wild / sizeof wild[0], N_ROWS = 2 * N_WILD + 6 };
    struct scene s;
    struct base base;
    scene_open(&s, 700, 2, N_ROWS, 333);
    base_open(&base, &s, -16.0);
    for (size_t i = 0; i < 2 * N_WILD; i++) /* scales, then floors */
        memcpy(base.records + i * base.recorded.stride + 2 * (i / N_WILD), &wild[i % N_WILD],
               sizeof wild[0]);
    base_decode(&base, &s);
    s.op.want_js = true;
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        scene_run((enum kern_isa)isa, 2, &s.op);
        for (size_t i = 0; i < 2 * N_WILD; i++) {
            const struct kern_pair_score *found = &s.op.pairs[N_ROWS + i];
            if (isfinite(wild[i % N_WILD]))
                continue; /* a number, whatever it means, and no crash */
            assert_true(isnan(found->kl) && isnan(found->reverse_kl) && isnan(found->js));
            assert_true(isnan(s.op.rows[i].log_sum) && found->common_top[0] == 0);
        }
        for (size_t row = 2 * N_WILD; row < N_ROWS; row++)
            check_row(&s, &base, 1, row);
    }
    base_close(&base);
    scene_close(&s);
}

static void test_checks(void **state)
{
    (void)state;
    struct scene s;
    struct base base;
    struct status_why why = {{0}};
    scene_open(&s, 800, 2, 4, 61);
    base_open(&base, &s, -(double)INFINITY);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    s.op.n_heads = 1;
    assert_int_equal(kern_score(b, &s.op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "score: recorded rows without a head beside them");
    s.op.n_heads = 2;
    base.recorded.stride = 68;
    assert_int_equal(kern_score(b, &s.op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "score: records of 68 codes; 61 tokens take 66");
    base.recorded.stride = 66;
    atomic_bool cancel = true;
    kern_set_cancel(b, &cancel);
    assert_int_equal(kern_score(b, &s.op, NULL), STATUS_CANCELLED);
    kern_set_cancel(b, NULL);
    size_t n_bytes = kern_score_bytes(b, &s.op);
    s.op.want_js = true;
    assert_true(n_bytes > 0 && kern_score_bytes(b, &s.op) > n_bytes);
    assert_int_equal(kern_score(b, &s.op, NULL), STATUS_OK);
    check_pairs(&s, &base);
    kern_close(b);
    base_close(&base);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_base),
        cmocka_unit_test(test_recorded_base),
        cmocka_unit_test(test_isa_and_threads_do_not_matter),
        cmocka_unit_test(test_rows_do_not_matter_to_each_other),
        cmocka_unit_test(test_pairs_cost_nothing_else),
        cmocka_unit_test(test_equal_heads),
        cmocka_unit_test(test_own_record),
        cmocka_unit_test(test_hostile_records),
        cmocka_unit_test(test_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
