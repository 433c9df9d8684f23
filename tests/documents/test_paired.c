/*
 * Paired comparison: McNemar's test as scipy (binomtest) and statsmodels (mcnemar) have it, and
 * the bootstrap as NumPy computes it from the same generator (RandomState, Lemire's draw).
 */
#include <math.h>

#include "clients/documents/compare/paired.h"
#include "tests/harness/cmocka.h"

static void assert_near(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * fabs(expected)))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

/* lgamma of some ten thousand is good to 1e-11 absolute, the rest to rounding: 1e-9 allows both.
   At equal counts statsmodels corrects past zero (1/n); R and we stop there: 0. */
static void mcnemar_is_that_of_statsmodels(void **state)
{
    (void)state;
    static const struct {
        struct doc_pair_counts counts;
        double exact_p, chi_square, chi_square_p, difference, error;
    } cases[] = {
        {{190, 5, 12, 93},
         0.143463134765625,
         2.1176470588235294,
         0.1456100953968629,
         0.023333333333333334,
         0.013700355465229833},
        {{3, 1, 0, 1}, 1, 0, 1, -0.2, 0.2},
        {{50, 7, 7, 36}, 1, 0, 1, 0, 0.03760507165451775},
        {{5000, 300, 350, 4350},
         0.05452994175892356,
         3.693846153846154,
         0.05461354395068888,
         0.005,
         0.0025491468798367616},
        {{1, 0, 30, 1},
         1.862645149230957e-09,
         28.033333333333335,
         1.1924366854416797e-07,
         0.9375,
         0.04347552147751577},
        {{40000, 1500, 1700, 10000},
         0.00043334035939974455,
         12.3753125,
         0.0004350479837552725,
         0.0037593984962406013,
         0.001063203533239534},
        {{0, 25, 9, 0},
         0.00904118549078703,
         6.617647058823529,
         0.010097314647507242,
         -0.47058823529411764,
         0.15359793172561576},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct doc_mcnemar m = doc_mcnemar(&cases[i].counts);
        assert_near(m.exact_p, cases[i].exact_p, 1e-9);
        assert_near(m.chi_square, cases[i].chi_square, 1e-13);
        assert_near(m.chi_square_p, cases[i].chi_square_p, 1e-12);
        assert_near(m.difference, cases[i].difference, 1e-13);
        assert_near(m.error, cases[i].error, 1e-12);
    }
}

static void without_a_difference_nothing_is_told(void **state)
{
    (void)state;
    static const struct doc_pair_counts counts[] = {{10, 0, 0, 2}, {1, 0, 0, 0}, {0, 0, 0, 1}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct doc_mcnemar m = doc_mcnemar(&counts[i]);
        assert_true(m.exact_p == 1 && m.chi_square == 0 && m.chi_square_p == 1);
        assert_true(m.difference == 0 && m.error == 0);
    }
    struct doc_mcnemar one = doc_mcnemar(&(struct doc_pair_counts){.only_b = 1});
    assert_true(one.exact_p == 1 && one.difference == 1 && one.error == 0);
}

static const double n_tokens[] = {4, 4, 2, 4, 3};
static const double sums_a[] = {8.5, .25, 9.25, .5, 3.5, .125, 10, .75, 6.5, .375};
static const double sums_b[] = {8.75, .5, 9, .25, 4, .25, 11, .5, 6.25, .625};

static void exp_and_root(double *figures, const double *means)
{
    figures[0] = exp(means[0]);
    figures[1] = sqrt(means[1]);
}

static const struct doc_pair pair = {.n_windows = 5,
                                     .n_tokens = n_tokens,
                                     .n_sums = 2,
                                     .sums = {sums_a, sums_b},
                                     .n_figures = 2,
                                     .figures = exp_and_root,
                                     .n_resamples = 1000,
                                     .seed = 1};

/* The same draws and sums of five terms: only the order of rounding differs. */
static void bootstrap_is_that_of_numpy(void **state)
{
    (void)state;
    static const struct {
        uint32_t seed;
        double error[2], low[2], high[2];
    } cases[] = {
        {1,
         {0.6722809938680163, 0.04331122940978459},
         {-0.38608540707158845, -0.07007652568182493},
         {2.1296415503392483, 0.10242716454376039}},
        {2,
         {0.6301769688527629, 0.045963013562917814},
         {-0.37659211340690213, -0.0664132244112041},
         {2.098679737427876, 0.10252715712503055}},
    };
    static const double a[] = {9.212748536138392, 0.3429971702850177};
    static const double b[] = {9.915683019162888, 0.3535533905932738};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct doc_pair with_seed = pair;
        with_seed.seed = cases[i].seed;
        struct doc_pair_figure found[2];
        assert_int_equal(doc_pair_bootstrap(found, &with_seed, NULL), STATUS_OK);
        for (size_t k = 0; k < 2; k++) {
            assert_near(found[k].a, a[k], 1e-14);
            assert_near(found[k].b, b[k], 1e-14);
            assert_near(found[k].difference, b[k] - a[k], 1e-12);
            assert_near(found[k].error, cases[i].error[k], 1e-12);
            assert_near(found[k].low, cases[i].low[k], 1e-12);
            assert_near(found[k].high, cases[i].high[k], 1e-12);
        }
    }
}

static void one_resample_is_an_interval_of_its_own(void **state)
{
    (void)state;
    struct doc_pair once = pair;
    once.n_resamples = 1;
    once.seed = 7;
    struct doc_pair_figure found[2];
    assert_int_equal(doc_pair_bootstrap(found, &once, NULL), STATUS_OK);
    assert_near(found[0].low, 0.6822868873518964, 1e-12);
    assert_near(found[1].high, -0.03178735323697662, 1e-12);
    assert_true(found[0].low == found[0].high && found[0].error == 0);
}

/* What both have in common cancels: a result and itself differ by exactly nothing. */
static void itself_differs_by_nothing(void **state)
{
    (void)state;
    struct doc_pair same = pair;
    same.sums[1] = sums_a;
    struct doc_pair_figure found[2];
    assert_int_equal(doc_pair_bootstrap(found, &same, NULL), STATUS_OK);
    for (size_t k = 0; k < 2; k++)
        assert_true(found[k].difference == 0 && found[k].error == 0 && found[k].low == 0 &&
                    found[k].high == 0);
}

static void too_many_resamples_are_a_status(void **state)
{
    (void)state;
    struct doc_pair many = pair;
    many.n_resamples = SIZE_MAX / 8;
    struct doc_pair_figure found[2];
    struct status_why why = {""};
    assert_int_equal(doc_pair_bootstrap(found, &many, &why), STATUS_MEMORY);
    assert_true(*why.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mcnemar_is_that_of_statsmodels),
        cmocka_unit_test(without_a_difference_nothing_is_told),
        cmocka_unit_test(bootstrap_is_that_of_numpy),
        cmocka_unit_test(one_resample_is_an_interval_of_its_own),
        cmocka_unit_test(itself_differs_by_nothing),
        cmocka_unit_test(too_many_resamples_are_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
