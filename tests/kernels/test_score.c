/*
 * Scores on the CPU backend (pair scores: test_pair_scores.c). Logits by the definition (a chain of
 * fmaf), their reductions in long double: maxima, ranks and argmax exactly, sums within a derived
 * bound. And the same bits for any ISA, threads, split of the rows and company of other heads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/kernels/score_scene.h"

struct truth {
    long double max, log_sum, moment; /* moment: mean of |l - max| */
    int32_t argmax;
};

static struct truth reduce(const float *logits, size_t n)
{
    struct truth t = {.max = -HUGE_VALL, .argmax = -1};
    for (size_t i = 0; i < n; i++) {
        if ((long double)logits[i] > t.max) {
            t.max = (long double)logits[i];
            t.argmax = (int32_t)i;
        }
    }
    long double sum = 0.0L, moment = 0.0L;
    for (size_t i = 0; i < n; i++) {
        long double d = (long double)logits[i] - t.max;
        sum += expl(d);
        moment += expl(d) * -d;
    }
    t.log_sum = logl(sum);
    t.moment = moment / sum;
    return t;
}

static void check_row(const struct scene *s, size_t h, size_t row)
{
    const struct kern_row_score *found = &s->op.rows[h * s->op.n_rows + row];
    const float *b = s->logits[h] + row * s->n_vocab;
    struct truth t = reduce(b, s->n_vocab);
    long double e = scene_sum_error(s->n_vocab);
    assert_true((long double)found->max_logit == t.max);
    assert_int_equal(found->argmax, t.argmax);
    scene_assert_near(found->log_sum, t.log_sum, e + fabsl(t.log_sum) * 0x1p-52L, "log_sum");
    scene_assert_near(found->entropy, t.log_sum + t.moment,
                      e * (1.0L + 2.0L * t.moment) + (t.log_sum + t.moment) * 0x1p-51L, "entropy");
}

static void check_target(const struct scene *s, size_t h, size_t i)
{
    const struct kern_target *target = &s->op.targets[i];
    const struct kern_target_score *found = &s->op.target_scores[h * s->op.n_targets + i];
    const float *logits = s->logits[h] + target->row * s->n_vocab;
    float logit = logits[target->token];
    struct truth t = reduce(logits, s->n_vocab);
    long double log_prob = (long double)logit - t.max - t.log_sum;
    scene_assert_near(found->log_prob, log_prob,
                      scene_sum_error(s->n_vocab) + fabsl(log_prob) * 0x1p-51L, "log_prob");
    uint32_t rank = 1;
    for (size_t v = 0; v < s->n_vocab; v++)
        rank += logits[v] > logit || (logits[v] == logit && (int32_t)v < target->token);
    assert_int_equal(found->rank, rank);
}

static void check_against_truth(const struct scene *s)
{
    for (size_t h = 0; h < s->op.n_heads; h++) {
        for (size_t row = 0; row < s->op.n_rows; row++)
            check_row(s, h, row);
        for (size_t i = 0; i < s->op.n_targets; i++)
            check_target(s, h, i);
    }
}

static void test_against_long_double(void **state)
{
    (void)state;
    static const struct {
        size_t n_heads, n_rows, n_vocab;
    } shapes[] = {{1, 1, 1},   {1, 1, 31},   {2, 3, 32},   {1, 33, 257},
                  {3, 16, 33}, {3, 17, 600}, {2, 70, 300}, {1, 2, 2000}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct scene s;
        scene_open(&s, i, shapes[i].n_heads, shapes[i].n_rows, shapes[i].n_vocab);
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            scene_run((enum kern_isa)isa, 2, &s.op);
            check_against_truth(&s);
        }
        scene_close(&s);
    }
}

/** A soft cap by its definition in long double: tanh is off by 2.5 ulp, the rest by 4 half ulps. */
static void test_soft_cap(void **state)
{
    (void)state;
    static const float caps[] = {30.0f, 2.0f, 0.125f};
    for (size_t i = 0; i < 3; i++) {
        struct scene s;
        scene_open(&s, 50 + i, 3, 9, 400);
        for (size_t h = 0; h < 3; h++) {
            s.heads[h].soft_cap = 0.0f;
            scene_define_logits(&s, h);
            s.heads[h].soft_cap = caps[i];
        }
        scene_run(KERN_ISA_COUNT - 1, 1, &s.op);
        for (size_t t = 0; t < 3 * s.op.n_targets; t++) {
            const struct kern_target *target = &s.targets[t % s.op.n_targets];
            const float *logits = s.logits[t / s.op.n_targets] + target->row * s.n_vocab;
            long double cap = (long double)caps[i], sum = 0.0L;
            for (size_t v = 0; v < s.n_vocab; v++)
                sum += expl(cap * tanhl((long double)logits[v] / cap));
            long double expected = cap * tanhl((long double)logits[target->token] / cap);
            scene_assert_near(s.op.target_scores[t].log_prob, expected - logl(sum),
                              2 * 9.05L * 0x1p-24L * cap, "log_prob under a soft cap");
        }
        scene_close(&s);
    }
}

/** The padding after the ids keeps memcmp() from comparing the structs whole. */
static void assert_same_row(const struct kern_row_score *a, const struct kern_row_score *b)
{
    assert_memory_equal(&a->max_logit, &b->max_logit, sizeof a->max_logit);
    assert_memory_equal(&a->log_sum, &b->log_sum, sizeof a->log_sum);
    assert_memory_equal(&a->entropy, &b->entropy, sizeof a->entropy);
    assert_int_equal(a->argmax, b->argmax);
}

static void assert_same_target(const struct kern_target_score *a, const struct kern_target_score *b)
{
    assert_memory_equal(&a->log_prob, &b->log_prob, sizeof a->log_prob);
    assert_int_equal(a->rank, b->rank);
}

static void test_isa_and_threads_do_not_matter(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 100, 3, 45, 700);
    struct kern_score again = s.op;
    again.rows = calloc(3 * s.op.n_rows, sizeof *again.rows);
    again.target_scores = calloc(3 * s.op.n_targets, sizeof *again.target_scores);
    scene_run(KERN_ISA_SCALAR, 1, &s.op);
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        for (unsigned n_threads = 1; n_threads <= 4; n_threads *= 2) {
            scene_run((enum kern_isa)isa, n_threads, &again);
            for (size_t i = 0; i < 3 * s.op.n_rows; i++)
                assert_same_row(&again.rows[i], &s.op.rows[i]);
            for (size_t i = 0; i < 3 * s.op.n_targets; i++)
                assert_same_target(&again.target_scores[i], &s.op.target_scores[i]);
        }
    }
    free(again.rows);
    free(again.target_scores);
    scene_close(&s);
}

/** The most likely tokens: each as a target has the rank of its place, and the same bits. */
static void test_tops_are_the_first_ranks(void **state)
{
    (void)state;
    static const size_t n_vocab[] = {700, 7};
    for (size_t round = 0; round < 4; round++) {
        struct scene s;
        scene_open(&s, 150 + round, 2, 45, n_vocab[round % 2]);
        size_t n = s.op.n_rows * KERN_TOP_MAX, n_targets = 0;
        struct kern_top *tops = calloc(n, sizeof *tops), *again = calloc(n, sizeof *again);
        struct kern_target *targets = calloc(n, sizeof *targets);
        struct kern_score op = s.op;
        op.tops = tops;
        op.pairs = round < 2 ? s.op.pairs : NULL;
        op.want_js = false;
        scene_run(KERN_ISA_SCALAR, 1, &op);
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            op.tops = again;
            scene_run((enum kern_isa)isa, 2, &op);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(again[i].token, tops[i].token);
                assert_memory_equal(&again[i].log_prob, &tops[i].log_prob, sizeof(double));
            }
        }
        for (size_t i = 0; i < n; i++) {
            assert_true((tops[i].token >= 0) == (i % KERN_TOP_MAX < s.n_vocab));
            if (tops[i].token >= 0)
                targets[n_targets++] =
                    (struct kern_target){(uint32_t)(i / KERN_TOP_MAX), tops[i].token};
        }
        op.targets = targets;
        op.n_targets = n_targets;
        op.tops = NULL;
        op.target_scores = calloc(2 * n_targets, sizeof *op.target_scores);
        scene_run(KERN_ISA_COUNT - 1, 2, &op);
        for (size_t i = 0, t = 0; i < n; i++) {
            if (tops[i].token < 0)
                continue;
            const struct kern_target_score *score = &op.target_scores[n_targets + t++];
            assert_int_equal(score->rank, i % KERN_TOP_MAX + 1);
            assert_memory_equal(&score->log_prob, &tops[i].log_prob, sizeof(double));
        }
        free(op.target_scores);
        free(targets);
        free(again);
        free(tops);
        scene_close(&s);
    }
}

/**
 * More rows than share a walk, a vocabulary of more than one tile: each row must be as if it
 * were scored alone, under one head, in one tile.
 */
static void test_rows_do_not_matter_to_each_other(void **state)
{
    (void)state;
    enum { N_ROWS = 2048 + 37 };
    struct scene s;
    scene_open(&s, 200, 2, N_ROWS, 1100);
    scene_run(KERN_ISA_COUNT - 1, 2, &s.op);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 1);
    for (size_t i = 0; i < s.op.n_targets; i++) {
        for (size_t h = 0; h < 2; h++) {
            size_t row = s.targets[i].row;
            struct kern_head head = s.heads[h];
            struct kern_row_score row_score;
            struct kern_target_score target_score;
            struct kern_target target = {0, s.targets[i].token};
            head.hidden += row * s.matrices[h].n_cols;
            struct kern_score one = {.n_heads = 1,
                                     .heads = &head,
                                     .n_rows = 1,
                                     .n_targets = 1,
                                     .targets = &target,
                                     .rows = &row_score,
                                     .target_scores = &target_score};
            assert_int_equal(kern_score(b, &one, NULL), STATUS_OK);
            assert_same_row(&row_score, &s.op.rows[h * N_ROWS + row]);
            assert_same_target(&target_score, &s.op.target_scores[h * s.op.n_targets + i]);
        }
    }
    kern_close(b);
    scene_close(&s);
}

static void test_same_head_has_no_divergence(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 300, 2, 20, 500);
    s.heads[1] = s.heads[0];
    scene_run(KERN_ISA_COUNT - 1, 2, &s.op);
    for (size_t row = 0; row < s.op.n_rows; row++) {
        assert_true(s.op.pairs[s.op.n_rows + row].kl == 0.0);
        assert_same_row(&s.op.rows[row], &s.op.rows[s.op.n_rows + row]);
    }
    scene_close(&s);
}

/** Equal logits: the first is the argmax, ranks and the most likely tokens follow the ids. */
static void test_equal_logits(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 400, 1, 3, 100);
    memset(s.memory[1], 0, s.n_vocab * s.matrices[0].n_cols * sizeof(float));
    scene_define_logits(&s, 0);
    struct kern_top tops[3 * KERN_TOP_MAX];
    s.op.tops = tops;
    scene_run(KERN_ISA_COUNT - 1, 1, &s.op);
    check_against_truth(&s);
    for (size_t i = 0; i < s.op.n_targets; i++)
        assert_int_equal(s.op.target_scores[i].rank, s.targets[i].token + 1);
    assert_int_equal(s.op.rows[0].argmax, 0);
    for (size_t i = 0; i < 3 * KERN_TOP_MAX; i++)
        assert_int_equal(tops[i].token, i % KERN_TOP_MAX);
    scene_close(&s);
}

/** One bad hidden row, one that makes all logits NaN: NaN there, the others as before. */
static void test_nonfinite_rows(void **state)
{
    (void)state;
    enum { BAD = 5 };
    static const float bad[] = {NAN, INFINITY};
    for (size_t i = 0; i < 4; i++) {
        struct scene s;
        scene_open(&s, 500, 2, 20, 300);
        s.heads[0].soft_cap = i / 2 ? 7.0f : 0.0f; /* it does not hide what is infinite */
        s.memory[0][BAD * s.matrices[0].n_cols + 2] = bad[i % 2];
        for (size_t t = 0; t < s.op.n_targets; t++)
            s.targets[t].row = (uint32_t)(t % s.op.n_rows);
        scene_define_logits(&s, 0);
        scene_run(KERN_ISA_COUNT - 1, 2, &s.op);
        assert_true(isnan(s.op.rows[BAD].log_sum) && isnan(s.op.rows[BAD].entropy));
        assert_true(isnan(s.op.pairs[s.op.n_rows + BAD].kl));
        if (isnan(bad[i % 2]))
            assert_int_equal(s.op.rows[BAD].argmax, -1);
        for (size_t t = 0; t < s.op.n_targets; t++) {
            if (s.targets[t].row == BAD)
                assert_true(isnan(s.op.target_scores[t].log_prob));
            else
                check_target(&s, 0, t);
        }
        for (size_t row = 0; row < s.op.n_rows; row++) {
            if (row != BAD)
                check_row(&s, 0, row);
        }
        scene_close(&s);
    }
}

/** A head with more rows: what they have of the whole, and nothing else, is known of them. */
static void test_rows_beyond_the_vocabulary(void **state)
{
    (void)state;
    enum { V = 201, V_ALL = 300 };
    struct scene s;
    scene_open(&s, 170, 3, 45, V_ALL);
    struct scene_cut cut;
    scene_cut(&cut, &s, V);
    struct kern_head first[SCENE_HEADS];
    memcpy(first, cut.heads, sizeof first);
    struct kern_score op = s.op, plain = s.op;
    op.heads = cut.heads;
    plain.heads = first;
    for (size_t h = 0; h < 3; h++)
        first[h].beyond = NULL;
    plain.rows = calloc(3 * s.op.n_rows, sizeof *plain.rows);
    plain.pairs = calloc(3 * s.op.n_rows, sizeof *plain.pairs);
    scene_run(KERN_ISA_SCALAR, 1, &plain);
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        scene_run((enum kern_isa)isa, 2, &op);
        for (size_t i = 0; i < 3 * s.op.n_rows; i++) {
            const float *logits = s.logits[i / s.op.n_rows] + i % s.op.n_rows * V_ALL;
            struct truth whole = reduce(logits, V_ALL), part = reduce(logits, V);
            long double kept = expl(part.max + part.log_sum - whole.max - whole.log_sum);
            assert_same_row(&op.rows[i], &plain.rows[i]);
            assert_memory_equal(&op.pairs[i].kl, &plain.pairs[i].kl, sizeof(double));
            assert_true(plain.rows[i].beyond == 0);
            if (i < s.op.n_rows)
                assert_true(op.rows[i].beyond == 0);
            else
                scene_assert_near(op.rows[i].beyond, 1 - kept, 4 * scene_sum_error(V_ALL),
                                  "beyond");
        }
    }
    free(plain.rows);
    free(plain.pairs);
    scene_close(&s);
}

static void test_cancel_and_checks(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 600, 2, 4, 60);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    atomic_bool cancel = true;
    kern_set_cancel(b, &cancel);
    assert_int_equal(kern_score(b, &s.op, NULL), STATUS_CANCELLED);
    kern_set_cancel(b, NULL);
    struct status_why why = {{0}};
    s.targets[3] = (struct kern_target){.row = 4, .token = 0};
    assert_int_equal(kern_score(b, &s.op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "score: target 3 is of row 4 of 4");
    s.targets[3] = (struct kern_target){.row = 0, .token = 60};
    assert_int_equal(kern_score(b, &s.op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "score: target 3 is token 60 of a vocabulary of 60");
    s.targets[3].token = -1;
    assert_int_equal(kern_score(b, &s.op, &why), STATUS_USAGE);
    s.targets[3].token = 0;
    s.matrices[1].n_rows = 59;
    assert_int_equal(kern_score(b, &s.op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "score: a head of 59 tokens beside one of 60");
    s.matrices[1].n_rows = 60;
    s.heads[1].soft_cap = -2.0f;
    assert_int_equal(kern_score(b, &s.op, &why), STATUS_USAGE);
    assert_string_equal(why.text, "score: a head: a soft cap of -2; expected a positive number, or "
                                  "0 for none");
    s.heads[1].soft_cap = 12.0f;
    s.op.n_targets = 0;
    assert_int_equal(kern_score(b, &s.op, NULL), STATUS_OK);
    check_against_truth(&s);
    kern_close(b);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_long_double),
        cmocka_unit_test(test_soft_cap),
        cmocka_unit_test(test_isa_and_threads_do_not_matter),
        cmocka_unit_test(test_tops_are_the_first_ranks),
        cmocka_unit_test(test_rows_do_not_matter_to_each_other),
        cmocka_unit_test(test_same_head_has_no_divergence),
        cmocka_unit_test(test_equal_logits),
        cmocka_unit_test(test_nonfinite_rows),
        cmocka_unit_test(test_rows_beyond_the_vocabulary),
        cmocka_unit_test(test_cancel_and_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
