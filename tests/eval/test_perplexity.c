/*
 * Figures from a table, against numbers computed in Python from the formulas:
 *   m = sum(x)/n; error = sqrt((sum(a*a for a in x)/n - m*m) / (n-1)); ppl = exp(m)
 * over the first one, two and three windows of `nll` below.
 */
#include <float.h>
#include <math.h>

#include "eval/metrics/curve.h"
#include "eval/metrics/perplexity.h"
#include "tests/harness/cmocka.h"

enum { N_WINDOWS = 3, N_SCORED = 3, N_CTX = 7 };

static const double nll[N_WINDOWS][N_SCORED] = {
    {1.5, 2.25, 0.125}, {3.0, 0.5, 4.75}, {2.0, 2.0, 1.0}};

static int32_t ids[N_WINDOWS * N_CTX];
static uint32_t lengths[N_WINDOWS * N_CTX];
static const struct eval_stream stream = {
    .ids = ids, .n_text_bytes = lengths, .n = N_WINDOWS * N_CTX};
static struct eval_plan plan;
static struct eval_table table;

static int fill(void **state)
{
    (void)state;
    struct eval_plan_options options = {.n_ctx = N_CTX, .bos = -1};
    for (int32_t i = 0; i < N_WINDOWS * N_CTX; i++) {
        ids[i] = 100 + i;
        lengths[i] = 1 + (uint32_t)i % 5;
    }
    if (eval_plan_make(&plan, &options, stream.n, NULL) != STATUS_OK ||
        eval_table_make(&table, EVAL_N_COLUMNS, plan.n_windows, plan.n_scored, NULL) != STATUS_OK)
        return -1;
    for (size_t w = 0; w < N_WINDOWS; w++) {
        for (size_t i = 0; i < N_SCORED; i++)
            eval_table_row(&table, EVAL_LOG_PROB, w)[i] = -nll[w][i];
        table.done[w] = true;
    }
    return 0;
}

static int drop(void **state)
{
    (void)state;
    eval_table_free(&table);
    return 0;
}

/** A few roundings of doubles of this size. */
static void assert_close(double found, double expected)
{
    if (!(fabs(found - expected) <= 16 * DBL_EPSILON * fabs(expected)))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

static void running_figures(void **state)
{
    (void)state;
    static const struct eval_figures expected[N_WINDOWS] = {
        {{1.29166666666666667, 0.622216021794502993, 0},
         {3.63884624835352, 2.26414843657237895, 0}},
        {{2.02083333333333333, 0.698522746786229, 0}, {7.5446094893077995, 5.27008134390073, 0}},
        {{1.90277777777777778, 0.464811125852263982, 0}, {6.70449218953169, 3.11632256288394, 0}},
    };
    struct eval_tally tally = {0};
    assert_true(isnan(eval_tally_figures(&tally, EVAL_PROTOCOL_DEFAULT).ppl.value));
    for (size_t w = 0; w < N_WINDOWS; w++) {
        eval_tally_add(&tally, &plan, &stream, &table, w);
        struct eval_figures f = eval_tally_figures(&tally, EVAL_PROTOCOL_DEFAULT);
        assert_true(fabs(f.nll.value - expected[w].nll.value) < 1e-14);
        assert_true(fabs(f.nll.error - expected[w].nll.error) < 1e-14);
        assert_true(fabs(f.ppl.value - expected[w].ppl.value) < 2e-14 * f.ppl.value);
        assert_true(fabs(f.ppl.error - expected[w].ppl.error) < 2e-14 * f.ppl.value);
    }
}

/**
 * Targets of n_ctx 7 are tokens 4, 5, 6 of each window, of 5 1 2, 2 3 4 and 4 5 1 bytes: 27.
 * 17.125 nats are 24.7061525752235 bits.
 */
static void result_of_all_windows(void **state)
{
    (void)state;
    struct eval_perplexity_result r;
    eval_perplexity(&r, &plan, &stream, &table);
    assert_true(r.complete);
    assert_int_equal(r.n_windows, 3);
    assert_int_equal(r.n_tokens, 9);
    assert_int_equal(r.nonfinite.n, 0);
    assert_close(r.n_bytes, 27);
    assert_close(r.bits_per_byte, 24.70615257522350 / 27);
    assert_close(r.finite_nll, r.figures.nll.value);

    struct eval_window_sums sums = eval_window_sums(&table, 1);
    assert_int_equal(sums.n_tokens, 3);
    assert_close(sums.nll, 8.25);
    assert_close(sums.nll_squared, 9 + 0.25 + 22.5625);
}

/** All windows have one length, so the fixed protocol's mean of means is the mean. */
static void fixed_protocol_averages_windows(void **state)
{
    (void)state;
    struct eval_tally tally = {0};
    for (size_t w = 0; w < N_WINDOWS; w++)
        eval_tally_add(&tally, &plan, &stream, &table, w);
    double means = (1.29166666666666667 + 2.75 + 5.0 / 3) / 3;
    assert_close(eval_tally_figures(&tally, EVAL_PROTOCOL_FIXED).nll.value, means);
}

/** Windows that are not done do not count, wherever they are. */
static void unfinished_windows_are_left_out(void **state)
{
    (void)state;
    table.done[1] = false;
    struct eval_perplexity_result r;
    eval_perplexity(&r, &plan, &stream, &table);
    assert_false(r.complete);
    assert_int_equal(r.n_windows, 2);
    assert_int_equal(r.n_tokens, 6);
    assert_close(r.figures.nll.value, (3.875 + 5) / 6);
    table.done[0] = table.done[2] = false;
    eval_perplexity(&r, &plan, &stream, &table);
    assert_int_equal(r.n_tokens, 0);
    assert_true(isnan(r.bits_per_byte) && isnan(r.finite_nll));
}

/** The first is named in index order, with the position that predicts and the token scored. */
static void nonfinite_scores_are_named(void **state)
{
    (void)state;
    eval_table_row(&table, EVAL_LOG_PROB, 1)[2] = (double)NAN;
    eval_table_row(&table, EVAL_LOG_PROB, 2)[0] = -(double)INFINITY;
    struct eval_perplexity_result r;
    eval_perplexity(&r, &plan, &stream, &table);
    assert_int_equal(r.nonfinite.n, 2);
    assert_int_equal(r.nonfinite.window, 1);
    assert_int_equal(r.nonfinite.position, 5);
    assert_int_equal(r.nonfinite.token, 100 + 7 + 6);
    assert_false(isfinite(r.figures.ppl.value));
    assert_close(r.finite_nll, (17.125 - 4.75 - 2) / 7);
    assert_close(r.finite_ppl, exp(r.finite_nll));
}

/** Equal scores have no spread, where the textbook difference of sums may turn negative. */
static void equal_scores_have_no_error(void **state)
{
    (void)state;
    for (size_t w = 0; w < N_WINDOWS; w++)
        for (size_t i = 0; i < N_SCORED; i++)
            eval_table_row(&table, EVAL_LOG_PROB, w)[i] = -4.7;
    struct eval_perplexity_result r;
    eval_perplexity(&r, &plan, &stream, &table);
    assert_true(r.figures.nll.error >= 0 && r.figures.nll.error < 1e-15);
}

/** By position: columns of `nll`, with Python's formula over three values each. */
static void context_curve(void **state)
{
    (void)state;
    static const double mean[] = {2.16666666666666667, 1.58333333333333333, 1.95833333333333333};
    static const double error[] = {0.440958551844099, 0.5464532103585, 1.4185037108791};
    struct eval_curve curve;
    assert_int_equal(eval_curve_make(&curve, &table, NULL), STATUS_OK);
    assert_int_equal(curve.n_positions, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(curve.n[i], 3);
        assert_close(curve.nll[i].value, mean[i]);
        assert_true(fabs(curve.nll[i].error - error[i]) < 1e-12);
        struct base_estimate bin = eval_curve_bin(&table, EVAL_LOG_PROB, i, i + 1);
        assert_close(bin.value, -mean[i]);
        assert_true(fabs(bin.error - error[i]) < 1e-12);
    }
    eval_curve_free(&curve);
    assert_close(eval_curve_bin(&table, EVAL_LOG_PROB, 1, 3).value, -(mean[1] + mean[2]) / 2);

    table.done[0] = table.done[2] = false;
    assert_int_equal(eval_curve_make(&curve, &table, NULL), STATUS_OK);
    assert_int_equal(curve.n[2], 1);
    assert_close(curve.nll[2].value, 4.75);
    assert_true(curve.nll[2].error == 0);
    assert_true(eval_curve_bin(&table, EVAL_LOG_PROB, 2, 3).error == 0);
    eval_curve_free(&curve);
}

static void table_sizes(void **state)
{
    (void)state;
    struct eval_table huge;
    struct status_why why = {0};
    assert_int_equal(eval_table_make(&huge, EVAL_N_COLUMNS, SIZE_MAX / 8, 100, &why),
                     STATUS_MEMORY);
    assert_null(huge.cells);
    struct eval_table t = {.n_columns = EVAL_N_COLUMNS, .n_windows = 10, .n_rows = 10 * 100};
    assert_true(eval_table_bytes(&t) == 10 * 100 * 3 * 8 + 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(running_figures, fill, drop),
        cmocka_unit_test_setup_teardown(result_of_all_windows, fill, drop),
        cmocka_unit_test_setup_teardown(fixed_protocol_averages_windows, fill, drop),
        cmocka_unit_test_setup_teardown(unfinished_windows_are_left_out, fill, drop),
        cmocka_unit_test_setup_teardown(nonfinite_scores_are_named, fill, drop),
        cmocka_unit_test_setup_teardown(equal_scores_have_no_error, fill, drop),
        cmocka_unit_test_setup_teardown(context_curve, fill, drop),
        cmocka_unit_test(table_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
