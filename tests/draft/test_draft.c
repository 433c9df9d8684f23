/* What two distributions of a position come to, and the means of positions. */
#include "tests/harness/cmocka.h"
#include <math.h>

#include "clients/draft/figures.h"

#define NEAR(found, expected) assert_true(fabs((found) - (expected)) < 1e-6)

/* p = 1/2, 1/4, 1/8, 1/8; q = 1/4, 1/2, 1/4, 0. */
static const float p[] = {3, 2, 1, 1}, q[] = {1, 2, 1, -INFINITY};

static struct draft_position compared(const float *model, const float *block, int32_t target)
{
    float of_model[4], of_block[4];
    for (size_t i = 0; i < 4; i++) {
        of_model[i] = model[i] * logf(2);
        of_block[i] = block[i] * logf(2);
    }
    struct draft_position out;
    assert_true(draft_compare(of_model, of_block, 4, 0, target, &out));
    return out;
}

static void two_distributions(void **state)
{
    (void)state;
    struct draft_position d = compared(p, q, 1);
    assert_int_equal(d.guess, 1);
    assert_true(d.hits && !d.agrees);
    NEAR(d.guess_prob, 0.25);
    NEAR(d.accepted, 0.25 + 0.25 + 0.125);
    NEAR(d.log_p, log(0.25));
    NEAR(d.log_q, log(0.5));
    d = compared(p, p, 2);
    assert_int_equal(d.guess, 0);
    assert_true(!d.hits && d.agrees);
    NEAR(d.accepted, 1);
}

/* Both are capped; the first of equals is the guess. */
static void capped(void **state)
{
    (void)state;
    const float model[] = {100, 0}, block[] = {5, 5};
    struct draft_position d;
    assert_true(draft_compare(model, block, 2, 2, 1, &d));
    NEAR(d.log_p, -2 - log(1 + exp(-2)));
    assert_int_equal(d.guess, 0);
    NEAR(d.accepted, 0.5 + exp(-2) / (1 + exp(-2)));
}

static void not_finite(void **state)
{
    (void)state;
    const float good[] = {1, 2}, bad[] = {1, NAN}, none[] = {-INFINITY, -INFINITY};
    struct draft_position d;
    assert_false(draft_compare(bad, good, 2, 0, 0, &d));
    assert_false(draft_compare(good, bad, 2, 0, 0, &d));
    assert_false(draft_compare(good, none, 2, 0, 0, &d));
}

static void figures(void **state)
{
    (void)state;
    struct draft_sums sums = {0};
    for (size_t i = 0; i < 20; i++) {
        struct draft_position d = compared(i % 2 ? p : q, q, 1);
        draft_sums_add(&sums, &d, i);
    }
    struct draft_figures f = draft_figures(&sums);
    assert_int_equal(f.n, 20);
    NEAR(f.hits.value, 1);
    NEAR(f.agrees.value, 0.5);
    NEAR(f.agrees.error, sqrt(0.25 / 19));
    NEAR(f.agrees.lot_error, f.agrees.error);
    NEAR(f.guess_prob.value, (0.25 + 0.5) / 2);
    NEAR(f.accepted.value, (0.625 + 1) / 2);
    NEAR(f.tokens_greedy.value, 1.5);
    NEAR(f.tokens_sampled.value, 1 + (0.625 + 1) / 2);
    NEAR(f.tokens_sampled.error, f.accepted.error);
    NEAR(f.ppl.value, sqrt(4 * 2));
    NEAR(f.ppl_draft.value, 2);
    NEAR(f.ppl_draft.error, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_distributions),
        cmocka_unit_test(capped),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
