/*
 * Scores on the CPU backend. Logits by the definition (a chain of fmaf), their reductions in
 * long double: maxima, ranks and argmax exactly, sums within a derived bound. And the same bits
 * for any ISA, threads, split of the rows and company of other heads.
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
#include "tests/harness/rng.h"

enum { MAX_HEADS = 3, MAX_TARGETS = 200 };

/** Heads over one vocabulary and the rows and targets to score. */
struct scene {
    size_t n_vocab;
    struct kern_weight matrices[MAX_HEADS], biases[MAX_HEADS];
    struct kern_head heads[MAX_HEADS];
    float *memory[3 * MAX_HEADS]; /* hidden, matrix, bias of each head */
    float *logits[MAX_HEADS];     /* [n_rows, V], by the definition */
    struct kern_target targets[MAX_TARGETS];
    struct kern_score op;
};

static struct kern_backend *backend_open(enum kern_isa cap, unsigned n_threads)
{
    struct kern_cpu_options options = {.n_threads = n_threads, .isa_cap = cap};
    struct kern_backend *b = NULL;
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    return b;
}

static float *random_floats(struct rng *r, size_t n, float size)
{
    float *values = malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        values[i] = size * rng_normal(r);
    return values;
}

static struct kern_weight float_matrix(const float *data, size_t n_rows, size_t n_cols, float scale)
{
    return (struct kern_weight){.type = GGUF_TYPE_F32,
                                .n_rows = n_rows,
                                .n_cols = n_cols,
                                .row_bytes = n_cols * sizeof(float),
                                .data = data,
                                .scale = scale};
}

/** Recompute the logits of a head from what its buffers hold. */
static void define_logits(struct scene *s, size_t h)
{
    size_t width = s->matrices[h].n_cols;
    for (size_t row = 0; row < s->op.n_rows; row++) {
        for (size_t v = 0; v < s->n_vocab; v++) {
            float acc = 0.0f;
            for (size_t c = 0; c < width; c++)
                acc = fmaf(s->memory[3 * h + 1][v * width + c], s->memory[3 * h][row * width + c],
                           acc);
            if (s->matrices[h].scale != 1.0f)
                acc *= s->matrices[h].scale;
            if (s->heads[h].bias)
                acc += s->memory[3 * h + 2][v];
            s->logits[h][row * s->n_vocab + v] = acc;
        }
    }
}

/** Widths, scales and biases differ between the heads. */
static void scene_open(struct scene *s, uint64_t stream, size_t n_heads, size_t n_rows,
                       size_t n_vocab)
{
    static const size_t widths[MAX_HEADS] = {40, 33, 64};
    struct rng r = rng_open(rng_seed(), stream);
    s->n_vocab = n_vocab;
    s->op = (struct kern_score){.n_heads = n_heads,
                                .heads = s->heads,
                                .n_rows = n_rows,
                                .n_targets = n_rows < 100 ? 2 * n_rows : MAX_TARGETS,
                                .targets = s->targets};
    for (size_t h = 0; h < n_heads; h++) {
        s->memory[3 * h] = random_floats(&r, n_rows * widths[h], 1.0f);
        s->memory[3 * h + 1] = random_floats(&r, n_vocab * widths[h], 0.3f);
        s->memory[3 * h + 2] = random_floats(&r, n_vocab, 1.0f);
        s->matrices[h] =
            float_matrix(s->memory[3 * h + 1], n_vocab, widths[h], h == 1 ? 1.25f : 1.0f);
        s->biases[h] = float_matrix(s->memory[3 * h + 2], 1, n_vocab, 1.0f);
        s->heads[h] = (struct kern_head){.hidden = s->memory[3 * h],
                                         .matrix = &s->matrices[h],
                                         .bias = h == 2 ? &s->biases[h] : NULL};
        s->logits[h] = malloc(n_rows * n_vocab * sizeof(float));
        define_logits(s, h);
    }
    /* In no order, some rows with several targets and some without. */
    for (size_t i = 0; i < s->op.n_targets; i++)
        s->targets[i] = (struct kern_target){.row = (uint32_t)rng_below(&r, n_rows),
                                             .token = (int32_t)rng_below(&r, n_vocab)};
    s->op.rows = calloc(n_heads * n_rows, sizeof *s->op.rows);
    s->op.pairs = calloc(n_heads * n_rows, sizeof *s->op.pairs);
    s->op.target_scores = calloc(n_heads * s->op.n_targets + 1, sizeof *s->op.target_scores);
}

static void scene_close(struct scene *s)
{
    for (size_t h = 0; h < s->op.n_heads; h++) {
        for (size_t i = 0; i < 3; i++)
            free(s->memory[3 * h + i]);
        free(s->logits[h]);
    }
    free(s->op.rows);
    free(s->op.pairs);
    free(s->op.target_scores);
}

static void run(enum kern_isa isa, unsigned n_threads, const struct kern_score *op)
{
    struct kern_backend *b = backend_open(isa, n_threads);
    assert_int_equal(kern_score(b, op, NULL), STATUS_OK);
    kern_close(b);
}

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

/*
 * With u = 2^-53: a term exp(l - max) is off by at most 2 u relatively (the difference of two
 * floats is at most u |l - max| off, the weight of such a term in the sum falls faster than
 * that grows), n additions and a rescaling per block add (n + 2 n / 32) u: a relative error
 * e = (2 n + 8) u of the sum, an absolute one of its logarithm. Sums of weighted differences
 * (moment, cross) have the same relative error in the sum of magnitudes.
 */
static long double sum_error(size_t n)
{
    return (long double)(2 * n + 8) * 0x1p-53L;
}

static void assert_near(double found, long double expected, long double bound, const char *what)
{
    if (!(fabsl((long double)found - expected) <= bound))
        fail_msg("%s: %.17g, expected %.17Lg +- %.2Lg", what, found, expected, bound);
}

static void check_row(const struct scene *s, size_t h, size_t row)
{
    const struct kern_row_score *found = &s->op.rows[h * s->op.n_rows + row];
    const float *b = s->logits[h] + row * s->n_vocab;
    struct truth t = reduce(b, s->n_vocab);
    long double e = sum_error(s->n_vocab);
    assert_true((long double)found->max_logit == t.max);
    assert_int_equal(found->argmax, t.argmax);
    assert_near(found->log_sum, t.log_sum, e + fabsl(t.log_sum) * 0x1p-52L, "log_sum");
    assert_near(found->entropy, t.log_sum + t.moment,
                e * (1.0L + 2.0L * t.moment) + (t.log_sum + t.moment) * 0x1p-51L, "entropy");
    double found_kl = s->op.pairs[h * s->op.n_rows + row].kl;
    if (h == 0) {
        assert_true(found_kl == 0.0);
        return;
    }
    const float *a = s->logits[0] + row * s->n_vocab;
    struct truth ta = reduce(a, s->n_vocab);
    long double kl = 0.0L, magnitude = 0.0L;
    for (size_t i = 0; i < s->n_vocab; i++) {
        long double p = expl((long double)a[i] - ta.max - ta.log_sum);
        long double gap = (long double)a[i] - (long double)b[i];
        kl += p * gap;
        magnitude += p * fabsl(gap);
    }
    kl += t.max + t.log_sum - ta.max - ta.log_sum;
    magnitude += fabsl(t.max) + fabsl(ta.max) + fabsl(t.log_sum) + fabsl(ta.log_sum);
    assert_near(found_kl, kl, e * (2.0L + 2.0L * magnitude), "kl");
}

static void check_target(const struct scene *s, size_t h, size_t i)
{
    const struct kern_target *target = &s->op.targets[i];
    const struct kern_target_score *found = &s->op.target_scores[h * s->op.n_targets + i];
    const float *logits = s->logits[h] + target->row * s->n_vocab;
    float logit = logits[target->token];
    struct truth t = reduce(logits, s->n_vocab);
    long double log_prob = (long double)logit - t.max - t.log_sum;
    assert_near(found->log_prob, log_prob, sum_error(s->n_vocab) + fabsl(log_prob) * 0x1p-51L,
                "log_prob");
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
            run((enum kern_isa)isa, 2, &s.op);
            check_against_truth(&s);
        }
        scene_close(&s);
    }
}

/** The padding behind the ids keeps memcmp() from comparing the structs whole. */
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
    run(KERN_ISA_SCALAR, 1, &s.op);
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        for (unsigned n_threads = 1; n_threads <= 4; n_threads *= 2) {
            run((enum kern_isa)isa, n_threads, &again);
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
    run(KERN_ISA_COUNT - 1, 2, &s.op);
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
    run(KERN_ISA_COUNT - 1, 2, &s.op);
    for (size_t row = 0; row < s.op.n_rows; row++) {
        assert_true(s.op.pairs[s.op.n_rows + row].kl == 0.0);
        assert_same_row(&s.op.rows[row], &s.op.rows[s.op.n_rows + row]);
    }
    scene_close(&s);
}

/** Equal logits: the first is the argmax, ranks follow the ids. */
static void test_equal_logits(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, 400, 1, 3, 100);
    memset(s.memory[1], 0, s.n_vocab * s.matrices[0].n_cols * sizeof(float));
    define_logits(&s, 0);
    run(KERN_ISA_COUNT - 1, 1, &s.op);
    check_against_truth(&s);
    for (size_t i = 0; i < s.op.n_targets; i++)
        assert_int_equal(s.op.target_scores[i].rank, s.targets[i].token + 1);
    assert_int_equal(s.op.rows[0].argmax, 0);
    scene_close(&s);
}

/** One bad hidden row, one that makes all logits NaN: NaN there, the others as before. */
static void test_nonfinite_rows(void **state)
{
    (void)state;
    enum { BAD = 5 };
    static const float bad[] = {NAN, INFINITY};
    for (size_t i = 0; i < 2; i++) {
        struct scene s;
        scene_open(&s, 500, 2, 20, 300);
        s.memory[0][BAD * s.matrices[0].n_cols + 2] = bad[i];
        for (size_t t = 0; t < s.op.n_targets; t++)
            s.targets[t].row = (uint32_t)(t % s.op.n_rows);
        define_logits(&s, 0);
        run(KERN_ISA_COUNT - 1, 2, &s.op);
        assert_true(isnan(s.op.rows[BAD].log_sum) && isnan(s.op.rows[BAD].entropy));
        assert_true(isnan(s.op.pairs[s.op.n_rows + BAD].kl));
        if (isnan(bad[i]))
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
        cmocka_unit_test(test_isa_and_threads_do_not_matter),
        cmocka_unit_test(test_rows_do_not_matter_to_each_other),
        cmocka_unit_test(test_same_head_has_no_divergence),
        cmocka_unit_test(test_equal_logits),
        cmocka_unit_test(test_nonfinite_rows),
        cmocka_unit_test(test_cancel_and_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
