/* eval/metrics/kld.h on tables made by hand: the formulas as they are written down, the edges,
 * order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/metrics/kld.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

enum { N_WINDOWS = 5, N_CTX = 16, N_SCORED = 7, N_STREAM = N_WINDOWS * N_CTX };

/** Two tables over a stream of ids 0, 1, 2, ... that stand for 3 bytes each. */
struct pair {
    struct eval_plan plan;
    struct eval_stream stream;
    struct eval_table base, candidate;
    int32_t ids[N_STREAM];
    uint32_t n_text_bytes[N_STREAM];
};

static struct eval_kld_tables tables_of(const struct pair *p)
{
    return (struct eval_kld_tables){&p->plan, &p->stream, &p->base, &p->candidate};
}

static void pair_open(struct pair *p, size_t max_windows)
{
    *p = (struct pair){0};
    for (int32_t i = 0; i < N_STREAM; i++) {
        p->ids[i] = i;
        p->n_text_bytes[i] = 3;
    }
    p->stream = (struct eval_stream){.ids = p->ids, .n_text_bytes = p->n_text_bytes, .n = N_STREAM};
    struct eval_plan_options options = {.n_ctx = N_CTX, .bos = -1, .max_windows = max_windows};
    assert_int_equal(eval_plan_make(&p->plan, &options, N_STREAM, NULL), STATUS_OK);
    assert_int_equal(p->plan.n_scored, N_SCORED);
    size_t n = p->plan.n_windows;
    assert_int_equal(eval_table_make(&p->base, EVAL_N_COLUMNS, n, N_SCORED, NULL), STATUS_OK);
    assert_int_equal(eval_table_make(&p->candidate, EVAL_N_PAIR_COLUMNS, n, N_SCORED, NULL),
                     STATUS_OK);
}

static void pair_close(struct pair *p)
{
    eval_table_free(&p->base);
    eval_table_free(&p->candidate);
}

/** Any scores; the candidate's are the base's where `same`. */
static void fill(struct pair *p, bool same)
{
    struct rng rng = rng_open(7, 0);
    for (size_t w = 0; w < p->base.n_windows; w++) {
        for (size_t i = 0; i < N_SCORED; i++) {
            double log_p = -5 * (double)rng_float(&rng, 0, 1),
                   kl = 0.01 * (double)rng_float(&rng, 0, 1);
            double noise = 0.2 * (double)rng_float(&rng, 0, 1);
            bool agrees = rng_below(&rng, 10) < 8;
            eval_table_row(&p->base, EVAL_LOG_PROB, w)[i] = log_p;
            eval_table_row(&p->base, EVAL_RANK, w)[i] = 1 + (double)i;
            eval_table_row(&p->candidate, EVAL_LOG_PROB, w)[i] = same ? log_p : log_p - noise;
            eval_table_row(&p->candidate, EVAL_RANK, w)[i] = 1 + (double)i;
            eval_table_row(&p->candidate, EVAL_KL, w)[i] = same ? 0 : kl;
            eval_table_row(&p->candidate, EVAL_SAME_TOP, w)[i] = same || agrees;
            eval_table_row(&p->candidate, EVAL_COMMON_5, w)[i] = 5;
            eval_table_row(&p->candidate, EVAL_COMMON_10, w)[i] = 9;
            eval_table_row(&p->candidate, EVAL_BASE_TOP, w)[i] = log(0.05 + 0.1 * (double)i);
        }
        p->base.done[w] = p->candidate.done[w] = true;
    }
}

static void assert_close(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

/** Means of everything that the formulas need, in plain sums. */
struct sums {
    double n, q, p, qq, pp, qp, kl, kl2, dp, dp2, dp4, same;
};

static struct sums add_up(const struct pair *p)
{
    struct sums s = {0};
    for (size_t w = 0; w < p->base.n_windows; w++)
        for (size_t i = 0; i < N_SCORED; i++) {
            double log_q = eval_table_row(&p->candidate, EVAL_LOG_PROB, w)[i];
            double log_p = eval_table_row(&p->base, EVAL_LOG_PROB, w)[i];
            double kl = eval_table_row(&p->candidate, EVAL_KL, w)[i];
            double dp = exp(log_q) - exp(log_p);
            s.n++;
            s.q -= log_q, s.p -= log_p, s.qq += log_q * log_q, s.pp += log_p * log_p;
            s.qp += log_q * log_p, s.kl += kl, s.kl2 += kl * kl;
            s.dp += dp, s.dp2 += dp * dp, s.dp4 += dp * dp * dp * dp;
            s.same += eval_table_row(&p->candidate, EVAL_SAME_TOP, w)[i];
        }
    double *all = &s.q;
    for (size_t i = 0; i < sizeof s / sizeof(double) - 1; i++)
        all[i] /= s.n;
    return s;
}

/** The formulas of docs/divergence.md, with means and not Welford's sums. */
static void follows_the_formulas(void **state)
{
    (void)state;
    struct pair p;
    pair_open(&p, 0);
    fill(&p, false);
    struct sums s = add_up(&p);
    struct eval_kld_tables tables = tables_of(&p);
    struct eval_kld_result r;
    assert_int_equal(eval_kld(&r, &tables, 0, NULL), STATUS_OK);
    double less = s.n - 1;
    double unc_q = sqrt((s.qq - s.q * s.q) / less), unc_p = sqrt((s.pp - s.p * s.p) / less);
    double cov = (s.qp - s.q * s.p) / less;
    double log_unc = sqrt(unc_q * unc_q + unc_p * unc_p - 2 * cov);
    double ppl = exp(s.q), base = exp(s.p), ppl_unc = ppl * unc_q, base_unc = base * unc_p;
    assert_int_equal(r.n_tokens, N_WINDOWS * N_SCORED);
    assert_true(r.complete);
    assert_close(r.figures.ppl.value, ppl);
    assert_close(r.figures.ppl.error, ppl_unc);
    assert_close(r.figures.base_ppl.value, base);
    assert_close(r.figures.base_ppl.error, base_unc);
    assert_close(r.figures.correlation, cov / (unc_q * unc_p));
    assert_close(r.figures.log_ratio.value, s.q - s.p);
    assert_close(r.figures.log_ratio.error, log_unc);
    assert_close(r.figures.ratio.value, exp(s.q - s.p));
    assert_close(r.figures.ratio.error, exp(s.q - s.p) * log_unc);
    assert_close(r.figures.difference.value, ppl - base);
    assert_close(r.figures.difference.error,
                 sqrt(ppl_unc * ppl_unc + base_unc * base_unc - 2 * ppl * base * cov));
    assert_close(r.figures.kld.value, s.kl);
    assert_close(r.figures.kld.error, sqrt((s.kl2 - s.kl * s.kl) / less));
    assert_close(r.figures.dp.value, s.dp);
    assert_close(r.figures.dp.error, sqrt((s.dp2 - s.dp * s.dp) / less));
    assert_close(r.figures.rms_dp.value, sqrt(s.dp2));
    assert_close(r.figures.rms_dp.error, 0.5 / sqrt(s.dp2) * sqrt((s.dp4 - s.dp2 * s.dp2) / less));
    assert_close(r.figures.same_top.value, s.same);
    assert_close(r.figures.same_top.error, sqrt(s.same * (1 - s.same) / less));
    assert_close(r.common_5.value, 1);
    assert_close(r.common_10.value, 0.9);
    assert_close(r.bits_per_byte, s.q / log(2) / 3);
    assert_close(r.base_ranks.mean, 4);
    assert_close(r.base_ranks.median, 4);
    assert_close(r.base_ranks.first, 1.0 / 7);
    eval_kld_free(&r);
    pair_close(&p);
}

/** Exactly 0, 1 or 100 %: not nearly. */
static void finds_nothing_between_equals(void **state)
{
    (void)state;
    struct pair p;
    pair_open(&p, 0);
    fill(&p, true);
    struct eval_kld_tables tables = tables_of(&p);
    struct eval_kld_result r;
    assert_int_equal(eval_kld(&r, &tables, 3, NULL), STATUS_OK);
    const struct eval_kld_figures *f = &r.figures;
    const double zeros[] = {f->log_ratio.value,  f->log_ratio.error,  f->ratio.error,
                            f->difference.value, f->difference.error, f->kld.value,
                            f->kld.error,        f->dp.value,         f->dp.error,
                            f->rms_dp.value,     f->rms_dp.error,     f->same_top.error};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
        assert_true(zeros[i] == 0 && !signbit(zeros[i]));
    assert_true(f->ratio.value == 1 && f->correlation == 1 && f->same_top.value == 1);
    for (size_t i = 0; i < EVAL_N_QUANTILES; i++)
        assert_true(r.kld_quantiles[i].value == 0 && r.dp_quantiles[i].value == 0);
    assert_int_equal(r.n_worst, 3);
    assert_int_equal(r.worst[0].index, 0); /* the first of equals */
    assert_int_equal(r.worst[2].index, 2);
    eval_kld_free(&r);
    pair_close(&p);
}

/** Ten tokens and fewer have no uncertainty; nothing at all gives no NaN. */
static void says_nothing_of_few(void **state)
{
    (void)state;
    struct pair p;
    pair_open(&p, 1);
    fill(&p, false);
    struct eval_kld_tables tables = tables_of(&p);
    struct eval_kld_tally tally = {0};
    struct eval_kld_figures f = eval_kld_tally_figures(&tally);
    assert_true(f.ppl.value == 1 && f.kld.value == 0 && f.same_top.value == 0);
    assert_true(f.rms_dp.error == 0 && f.difference.error == 0);
    eval_kld_tally_add(&tally, &tables, 0);
    f = eval_kld_tally_figures(&tally);
    assert_true(f.kld.value > 0 && f.kld.error == 0 && f.ppl.error == 0 && f.rms_dp.error == 0);
    p.base.done[0] = p.candidate.done[0] = false;
    struct eval_kld_result r;
    assert_int_equal(eval_kld(&r, &tables, 5, NULL), STATUS_OK);
    assert_false(r.complete);
    assert_true(r.n_tokens == 0 && r.n_worst == 0 && r.kld_quantiles[0].value == 0);
    eval_kld_free(&r);
    pair_close(&p);
}

static void interpolates_quantiles(void **state)
{
    (void)state;
    const double sorted[] = {1, 2, 4, 8, 16};
    assert_true(base_quantile(sorted, 5, 0) == 1);
    assert_true(base_quantile(sorted, 5, 1) == 16);
    assert_true(base_quantile(sorted, 5, 0.5) == 4);
    assert_close(base_quantile(sorted, 5, 0.9), 8 + 0.6 * 8);
    assert_close(base_quantile(sorted, 5, 0.1), 1.4);
    assert_true(base_quantile(sorted, 1, 0.3) == 1);
    assert_true(base_quantile(sorted, 0, 0.5) == 0);
}

/** Values of lots of different sizes against the formula as it is written down. */
static void tells_errors_of_lots(void **state)
{
    (void)state;
    enum { N_LOTS = 13 };
    struct rng rng = rng_open(11, 0);
    struct base_moments m = {0};
    double sums[N_LOTS] = {0}, n[N_LOTS];
    for (size_t l = 0; l < N_LOTS; l++) {
        assert_true(base_moments_lot_variance(&m) == 0 || l >= BASE_LEAST_VALUES);
        n[l] = (double)(1 + l % 4 * 3);
        base_moments_lot(&m, 100 + 2 * l);
        double level = (double)rng_float(&rng, -1, 1);
        for (size_t i = 0; i < (size_t)n[l]; i++) {
            double x = 1e3 + level + (double)rng_float(&rng, -0.1F, 0.1F);
            base_moments_add(&m, x);
            sums[l] += x;
        }
    }
    double mean = base_moments_mean(&m), total = (double)m.n, variance = 0;
    for (size_t l = 0; l < N_LOTS; l++)
        variance += (sums[l] - n[l] * mean) * (sums[l] - n[l] * mean) / (total * total);
    variance *= (double)N_LOTS / (N_LOTS - 1);
    assert_true(fabs(base_moments_lot_variance(&m) / variance - 1) < 1e-9);
    struct base_estimate x = base_moments_estimate(&m);
    assert_true(base_estimate_error(x) == x.lot_error && x.lot_error > 1.3 * x.error);
    x.lot_error = 0;
    assert_true(base_estimate_error(x) == x.error);
}

/** Windows that are alike within and differ from one another: what their levels alone make. */
static void tells_errors_of_quantiles(void **state)
{
    (void)state;
    enum { N = 40, N_TOKENS = 5 };
    struct eval_table base, candidate;
    struct eval_plan plan = {.n_windows = N};
    struct eval_stream stream = {0};
    assert_int_equal(eval_table_make(&base, EVAL_N_COLUMNS, N, N_TOKENS, NULL), STATUS_OK);
    assert_int_equal(eval_table_make(&candidate, EVAL_N_PAIR_COLUMNS, N, N_TOKENS, NULL),
                     STATUS_OK);
    for (size_t w = 0; w < N; w++) {
        candidate.done[w] = true;
        for (size_t i = 0; i < N_TOKENS; i++)
            eval_table_row(&candidate, EVAL_KL, w)[i] = (double)(w + 1);
    }
    plan.n_scored = N_TOKENS;
    stream = (struct eval_stream){.n_text_bytes = calloc(N * 100, sizeof(uint32_t))};
    struct eval_kld_tables tables = {&plan, &stream, &base, &candidate};
    struct eval_kld_result r;
    assert_int_equal(eval_kld(&r, &tables, 0, NULL), STATUS_OK);
    /* Half of 40 levels are below: sqrt(0.25 / 39) of them is 3.2 levels. */
    struct base_estimate median = r.kld_quantiles[6];
    assert_true(fabs(median.lot_error - 40 * sqrt(0.25 / 39)) < 0.5);
    assert_true(fabs(median.error - 40 * sqrt(0.25 / 199)) < 0.5);
    assert_true(isnan(r.kld_quantiles[0].error) && isnan(r.kld_quantiles[12].error));
    assert_close(r.figures.kld.lot_error, sqrt((1600 - 1) / 12. / 39));
    eval_kld_free(&r);
    free((void *)stream.n_text_bytes);
    eval_table_free(&base);
    eval_table_free(&candidate);
}

static void sorts_tokens_by_confidence_position_and_divergence(void **state)
{
    (void)state;
    struct pair p;
    pair_open(&p, 0);
    fill(&p, false);
    eval_table_row(&p.candidate, EVAL_KL, 2)[3] = 9;
    eval_table_row(&p.candidate, EVAL_KL, 4)[6] = 10;
    struct eval_kld_tables tables = tables_of(&p);
    struct eval_kld_result r;
    assert_int_equal(eval_kld(&r, &tables, 2, NULL), STATUS_OK);
    assert_int_equal(r.n_worst, 2);
    assert_true(r.worst[0].window == 4 && r.worst[0].index == 6);
    assert_true(r.worst[1].window == 2 && r.worst[1].index == 3);
    for (size_t i = 0; i < EVAL_N_BUCKETS; i++) /* 0.05, 0.15, ... 0.65 */
        assert_int_equal(r.buckets[i].kld.n, i < N_SCORED ? N_WINDOWS : 0);
    assert_int_equal(r.positions[3].n, N_WINDOWS);
    assert_true(base_moments_mean(&r.positions[3]) > 9.0 / N_WINDOWS);
    assert_true(base_moments_mean(&r.positions[2]) < 0.01);
    eval_kld_free(&r);
    pair_close(&p);
}

static void names_what_is_not_finite(void **state)
{
    (void)state;
    struct pair p;
    pair_open(&p, 0);
    fill(&p, false);
    eval_table_row(&p.candidate, EVAL_KL, 1)[2] = (double)NAN;
    eval_table_row(&p.candidate, EVAL_KL, 3)[0] = (double)INFINITY;
    struct eval_kld_tables tables = tables_of(&p);
    struct eval_kld_result r;
    assert_int_equal(eval_kld(&r, &tables, 1, NULL), STATUS_OK);
    assert_int_equal(r.nonfinite.n, 2);
    assert_int_equal(r.nonfinite.window, 1);
    assert_int_equal(r.nonfinite.position, N_CTX / 2 + 2);
    assert_int_equal(r.nonfinite.token, N_CTX + N_CTX / 2 + 3);
    assert_true(isnan(r.figures.kld.value));
    assert_true(r.figures.ppl.value > 1);
    eval_kld_free(&r);
    pair_close(&p);
}

/** The formula of docs/divergence.md, its upper end, and equals. */
static void bounds_what_rounding_does(void **state)
{
    (void)state;
    assert_true(fabs(eval_kld_rounding(4e-3, 1600, 1e-8) - 1e-8 - 0.1 * sqrt(4e-11)) < 1e-20);
    assert_true(fabs(eval_kld_rounding(4e-3, 1, 1e-8) - 1e-8 - 2 * sqrt(4e-11)) < 1e-20);
    assert_true(eval_kld_rounding(0, 100, 4e-4) == 0);
    assert_true(isnan(eval_kld_rounding(4e-3, 100, (double)NAN)));
    /* Integers are of quantised weights alone; short floats are of all. */
    assert_true(eval_rounding_of("int8", false) > 1e4 * eval_rounding_of("int16", false));
    assert_true(eval_rounding_of("int16", true) == eval_rounding_of("float32", true));
    assert_true(eval_rounding_of("int8", true) >
                1e4 * eval_rounding_of("int16", true)); /* attention */
    assert_true(eval_rounding_of("bf16", true) == eval_rounding_of("bf16", false));
    assert_true(isnan(eval_rounding_of("f16x3 on NVIDIA H200", false)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_formulas),
        cmocka_unit_test(finds_nothing_between_equals),
        cmocka_unit_test(says_nothing_of_few),
        cmocka_unit_test(interpolates_quantiles),
        cmocka_unit_test(tells_errors_of_lots),
        cmocka_unit_test(tells_errors_of_quantiles),
        cmocka_unit_test(sorts_tokens_by_confidence_position_and_divergence),
        cmocka_unit_test(names_what_is_not_finite),
        cmocka_unit_test(bounds_what_rounding_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
