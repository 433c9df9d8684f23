/*
 * kern_route() against its definition in long double, for every gating, with and without a
 * selection bias, groups, normalisation and a scale; ties, and what is refused.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/cpu_backend.h"
#include "tests/harness/rng.h"

enum { MAX_E = 48, MAX_T = 40 };

/** p of every expert; of KERN_GATE_SOFTMAX_CHOSEN and KERN_GATE_SPARSEMIXER the logits. */
static void gate(const struct kern_route *op, const float *logits, long double *p)
{
    long double sum = 0;
    for (size_t i = 0; i < op->n_experts; i++) {
        long double g = (long double)logits[i];
        p[i] = op->gating == KERN_GATE_SIGMOID   ? 1 / (1 + expl(-g))
               : op->gating == KERN_GATE_SOFTMAX ? expl(g)
                                                 : g;
        sum += p[i];
    }
    for (size_t i = 0; op->gating == KERN_GATE_SOFTMAX && i < op->n_experts; i++)
        p[i] /= sum;
}

/** How many of n values come before value i: larger ones, and equal ones of a lower index. */
static size_t n_before(const long double *values, size_t n, size_t i)
{
    size_t n_larger = 0;
    for (size_t k = 0; k < n; k++)
        n_larger += values[k] > values[i] || (values[k] == values[i] && k < i);
    return n_larger;
}

/** Take the experts of all but the best groups out of s. */
static void close_groups(const struct kern_route *op, long double *s)
{
    size_t n = op->n_experts / op->n_groups;
    long double scores[MAX_E];
    for (size_t g = 0; g < op->n_groups; g++) {
        scores[g] = 0;
        for (size_t i = 0; i < n; i++)
            scores[g] += n_before(s + g * n, n, i) < 2 ? s[g * n + i] : 0;
    }
    for (size_t i = 0; i < op->n_experts; i++) {
        if (n_before(scores, op->n_groups, i / n) >= op->n_groups_used)
            s[i] = -(long double)INFINITY;
    }
}

/** The share of the chosen expert j by a sparse mixer. */
static long double mixed_share(const struct kern_route *op, const float *logits,
                               const size_t *experts, size_t j)
{
    long double top = (long double)logits[experts[j]], sum = 0;
    for (size_t i = 0; i < op->n_experts; i++) {
        long double g = (long double)logits[i];
        bool left = true;
        for (size_t k = 0; k < j; k++)
            left = left && experts[k] != i;
        if (left && top - g <= 0.02L * fmaxl(fabsl(g), top))
            sum += expl(g - top);
    }
    return 1 / sum;
}

/** The definition: experts and shares of a token. */
static void route(const struct kern_route *op, const float *logits, const float *bias,
                  size_t *experts, long double *shares)
{
    long double p[MAX_E], s[MAX_E], sum = 0;
    gate(op, logits, p);
    for (size_t i = 0; i < op->n_experts; i++)
        s[i] = p[i] + (bias ? (long double)bias[i] : 0);
    if (op->n_groups > 1)
        close_groups(op, s);
    for (size_t i = 0; i < op->n_experts; i++) {
        size_t place = n_before(s, op->n_experts, i);
        if (place < op->n_used)
            experts[place] = i;
    }
    for (size_t j = 0; j < op->n_used; j++) {
        long double x = p[experts[j]];
        shares[j] = op->gating == KERN_GATE_SOFTMAX_CHOSEN ? expl(x) : x;
        sum += shares[j];
    }
    for (size_t j = 0; op->gating == KERN_GATE_SPARSEMIXER && j < op->n_used; j++)
        shares[j] = mixed_share(op, logits, experts, j);
    if (op->gating == KERN_GATE_SPARSEMIXER)
        sum = 1;
    else if (op->gating != KERN_GATE_SOFTMAX_CHOSEN)
        sum = op->normalise ? fmaxl(sum, 6.1e-5L) : 1;
    for (size_t j = 0; j < op->n_used; j++) {
        shares[j] /= sum;
        shares[j] *= op->scale == 0.0f ? 1 : (long double)op->scale;
    }
}

/** A random operation of every kind, T tokens of it. */
static void check(struct kern_backend *b, struct rng *r, enum kern_gating gating)
{
    static float logits[MAX_T * MAX_E], bias[MAX_E], shares[MAX_T * MAX_E];
    static int32_t experts[MAX_T * MAX_E];
    struct kern_route op = {.logits = logits,
                            .n_tokens = 1 + rng_below(r, MAX_T),
                            .n_groups = rng_below(r, 5),
                            .gating = gating,
                            .normalise = rng_below(r, 2) == 1,
                            .scale = rng_below(r, 2) ? 0.0f : 2.5f,
                            .experts = experts,
                            .shares = shares};
    size_t n_groups = op.n_groups ? op.n_groups : 1, per_group = 1 + rng_below(r, MAX_E / 5);
    op.n_experts = n_groups * per_group;
    op.n_groups_used = 1 + rng_below(r, n_groups);
    op.n_used = 1 + rng_below(r, (op.n_groups > 1 ? op.n_groups_used : 1) * per_group);
    struct kern_weight bias_row = f32_row(bias, op.n_experts);
    bias_row.scale = 0.5f;
    op.selection_bias = rng_below(r, 2) ? &bias_row : NULL;
    for (size_t i = 0; i < op.n_tokens * op.n_experts; i++)
        logits[i] = 3.0f * rng_normal(r);
    for (size_t i = 0; i < op.n_experts; i++)
        bias[i] = rng_normal(r);
    assert_int_equal(kern_route(b, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < op.n_experts; i++)
        bias[i] *= bias_row.scale;
    for (size_t t = 0; t < op.n_tokens; t++) {
        size_t expected[MAX_E];
        long double truth[MAX_E];
        route(&op, logits + t * op.n_experts, op.selection_bias ? bias : NULL, expected, truth);
        for (size_t j = 0; j < op.n_used; j++) {
            assert_int_equal(experts[t * op.n_used + j], expected[j]);
            long double share = (long double)shares[t * op.n_used + j];
            assert_true(fabsl(share - truth[j]) <= 0x1.001p-24L * fabsl(truth[j]));
        }
    }
}

static void test_definition(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    static const enum kern_gating gatings[] = {KERN_GATE_SOFTMAX, KERN_GATE_SIGMOID,
                                               KERN_GATE_SOFTMAX_CHOSEN, KERN_GATE_SPARSEMIXER};
    for (unsigned n_threads = 1; n_threads <= 3; n_threads += 2) {
        struct kern_backend *b = backend_open(KERN_ISA_SCALAR, n_threads);
        for (int i = 0; i < 4000; i++)
            check(b, &r, gatings[i % 4]);
        kern_close(b);
    }
}

/** Two of four experts of one token. */
static void route_four(struct kern_route *op, const float *logits, int32_t *experts, float *shares)
{
    struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 1);
    op->logits = logits;
    op->n_tokens = 1;
    op->n_experts = 4;
    op->n_used = 2;
    op->experts = experts;
    op->shares = shares;
    assert_int_equal(kern_route(b, op, NULL), STATUS_OK);
    kern_close(b);
}

/** Logits so large that their sigmoids are all 1, and ones whose order p cannot hold. */
static void test_order_is_that_of_the_logits(void **state)
{
    (void)state;
    int32_t experts[2];
    float shares[2];
    struct kern_route op = {.gating = KERN_GATE_SIGMOID};
    route_four(&op, (const float[]){50.0f, 70.0f, 60.0f, 40.0f}, experts, shares);
    assert_true(experts[0] == 1 && experts[1] == 2 && shares[0] == 1.0f && shares[1] == 1.0f);
    op.gating = KERN_GATE_SOFTMAX;
    op.normalise = true;
    route_four(&op, (const float[]){1e-30f, 3e-30f, 2e-30f, -1.0f}, experts, shares);
    assert_true(experts[0] == 1 && experts[1] == 2 && shares[0] == 0.5f && shares[1] == 0.5f);
}

/** Shares so small that their sum counts as 6.1e-5, and a bias that chooses against the logits. */
static void test_small_sums(void **state)
{
    (void)state;
    int32_t experts[2];
    float shares[2];
    const float bias[] = {5.0f, 0.0f, 0.0f, 4.0f};
    struct kern_weight row = f32_row(bias, 4);
    const float logits[] = {-20.0f, 1.0f, 2.0f, -21.0f};
    for (int gating = KERN_GATE_SOFTMAX; gating <= KERN_GATE_SIGMOID; gating++) {
        struct kern_route op = {
            .gating = (enum kern_gating)gating, .normalise = true, .selection_bias = &row};
        route_four(&op, logits, experts, shares);
        assert_true(experts[0] == 0 && experts[1] == 3);
        double p = gating == KERN_GATE_SIGMOID ? 1 / (1 + exp(20.0))
                                               : 1 / (1 + exp(21.0) + exp(22.0) + exp(-1.0));
        assert_true(fabs((double)shares[0] - p / 6.1e-5) <= 1e-6 * p / 6.1e-5);
    }
    /* The softmax of the chosen has no such bound, and does not vanish. */
    struct kern_route op = {.gating = KERN_GATE_SOFTMAX_CHOSEN};
    const float far[] = {-2000.0f, 1.0f, 2.0f, -2001.0f}, large[] = {1e4f, 0.0f, 0.0f, 1e4f};
    row.data = large;
    op.selection_bias = &row;
    route_four(&op, far, experts, shares);
    assert_true(experts[0] == 0 && experts[1] == 3);
    assert_true(fabs((double)shares[0] - 1 / (1 + exp(-1.0))) < 1e-7);
}

/** No distribution, or a bias that is no number: shares that cannot be overlooked. */
static void test_not_numbers(void **state)
{
    (void)state;
    int32_t experts[2];
    float shares[2];
    const float bias[] = {0.0f, NAN, 0.0f, 0.0f};
    struct kern_weight row = f32_row(bias, 4);
    const float logits[3][4] = {{0.0f, NAN, 1.0f, 2.0f},
                                {0.0f, INFINITY, 1.0f, 2.0f},
                                {-INFINITY, -INFINITY, -INFINITY, -INFINITY}};
    for (int i = 0; i < 12; i++) {
        struct kern_route op = {.gating = (enum kern_gating)(i / 4),
                                .selection_bias = i % 4 == 3 ? &row : NULL};
        route_four(&op, i % 4 == 3 ? (const float[4]){1, 2, 3, 4} : logits[i % 4], experts, shares);
        assert_true(isnan(shares[0]) && isnan(shares[1]) && experts[0] == 0 && experts[1] == 1);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        size_t n_experts, n_used, n_groups, n_groups_used, n_bias;
        const char *said;
    } wrong[] = {{4, 0, 0, 0, 4, "0 of 4 experts"},       {4, 5, 0, 0, 4, "5 of 4 experts"},
                 {8, 5, 4, 2, 8, "5 of 4 experts"},       {8, 2, 3, 2, 8, "2 of 3 groups of 8"},
                 {8, 2, 4, 0, 8, "0 of 4 groups"},        {8, 2, 4, 5, 8, "5 of 4 groups"},
                 {4, 1, 0, 0, 5, "1 x 5; expected 1 x 4"}};
    struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 1);
    float x[8] = {0};
    int32_t experts[8];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct kern_weight row = f32_row(x, wrong[i].n_bias);
        struct kern_route op = {.logits = x,
                                .n_tokens = 1,
                                .n_experts = wrong[i].n_experts,
                                .n_used = wrong[i].n_used,
                                .n_groups = wrong[i].n_groups,
                                .n_groups_used = wrong[i].n_groups_used,
                                .selection_bias = &row,
                                .experts = experts,
                                .shares = x};
        struct status_why why = {""};
        assert_int_equal(kern_route(b, &op, &why), STATUS_USAGE);
        assert_non_null(strstr(why.text, wrong[i].said));
    }
    kern_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition), cmocka_unit_test(test_order_is_that_of_the_logits),
        cmocka_unit_test(test_small_sums), cmocka_unit_test(test_not_numbers),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
