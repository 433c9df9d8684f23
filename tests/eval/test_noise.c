/* How far runs are apart: figures by their definition, and intervals that cover the truth. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/moments.h"
#include "eval/metrics/runs/noise.h"
#include "eval/metrics/runs/records.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

static struct eval_noise noise_of(const double *x, size_t n_windows, size_t n_scored)
{
    struct eval_noise out;
    assert_int_equal(eval_noise(&out, x, n_windows, n_scored, NULL), STATUS_OK);
    return out;
}

static double *exponentials(struct rng *rng, size_t n)
{
    double *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = -log((double)rng_float(rng, 1e-6F, 1));
    return x;
}

static void figures_are_those_of_all_tokens(void **state)
{
    (void)state;
    struct rng rng = rng_open(rng_seed(), 1);
    static const size_t shapes[][2] = {{1, 1}, {1, 5}, {3, 7}, {12, 31}, {40, 8}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        size_t n = shapes[s][0] * shapes[s][1];
        double *x = exponentials(&rng, n), sum = 0;
        struct eval_noise found = noise_of(x, shapes[s][0], shapes[s][1]);
        for (size_t i = 0; i < n; i++)
            sum += x[i];
        assert_true(fabs(found.mean.value - sum / (double)n) < 1e-12);
        base_sort(x, n);
        assert_true(found.max == x[n - 1]);
        for (size_t i = 0; i < EVAL_NOISE_LEVELS; i++) {
            double expected = base_quantile(x, n, eval_noise_levels[i]);
            assert_true(fabs(found.quantiles[i].value - expected) < 1e-12);
            assert_true(isnan(found.mean.low) == (found.n_blocks < 2));
            assert_false(found.quantiles[i].low > found.quantiles[i].high);
        }
        free(x);
    }
}

static void few_windows_are_parted(void **state)
{
    (void)state;
    static const size_t cases[][3] = {{2, 100, 12},  {5, 100, 15}, {11, 100, 11},
                                      {30, 100, 30}, {2, 3, 6},    {1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double x[3000] = {0};
        struct eval_noise found = noise_of(x, cases[i][0], cases[i][1]);
        assert_int_equal(found.n_blocks, cases[i][2]);
        assert_true(found.mean.value == 0 && found.max == 0);
    }
}

/** 95 % intervals cover the mean of 1 and the median of ln 2 about as often. */
static void intervals_cover(void **state)
{
    (void)state;
    enum { ROUNDS = 200, N_WINDOWS = 30, N_SCORED = 20 };
    size_t n_mean = 0, n_median = 0;
    struct rng rng = rng_open(rng_seed(), 2);
    for (size_t i = 0; i < ROUNDS; i++) {
        double *x = exponentials(&rng, N_WINDOWS * N_SCORED);
        struct eval_noise found = noise_of(x, N_WINDOWS, N_SCORED);
        const struct eval_interval *mean = &found.mean, *median = &found.quantiles[0];
        n_mean += mean->low < 1 && 1 < mean->high;
        n_median += median->low < log(2) && log(2) < median->high;
        free(x);
    }
    assert_true(n_mean > 0.87 * ROUNDS && n_mean < ROUNDS);
    assert_true(n_median > 0.87 * ROUNDS && n_median < ROUNDS);
}

enum { N_TOKENS = 3001, HEADER = 8 };

/** A record of random codes; *log_p: what they say. */
static unsigned char *record(struct rng *rng, long double *log_p)
{
    unsigned char *bytes = malloc(HEADER + 2 * N_TOKENS);
    assert_non_null(bytes);
    float scale = rng_float(rng, 1e-4F, 3e-4F), floor = rng_float(rng, -20, -15);
    memcpy(bytes, &scale, sizeof scale);
    memcpy(bytes + sizeof scale, &floor, sizeof floor);
    for (size_t i = 0; i < N_TOKENS; i++) {
        uint16_t code = (uint16_t)rng_below(rng, 1 << 16);
        memcpy(bytes + HEADER + 2 * i, &code, sizeof code);
        log_p[i] = (long double)scale * code + (long double)floor;
    }
    return bytes;
}

static void a_record_diverges_from_another(void **state)
{
    (void)state;
    static long double p[N_TOKENS], q[N_TOKENS];
    struct rng rng = rng_open(rng_seed(), 3);
    for (int round = 0; round < 10; round++) {
        unsigned char *a = record(&rng, p), *b = record(&rng, q);
        long double p_sum = 0, q_sum = 0, cross = 0;
        for (size_t i = 0; i < N_TOKENS; i++) {
            p_sum += expl(p[i]);
            q_sum += expl(q[i]);
            cross += expl(p[i]) * (p[i] - q[i]);
        }
        long double expected = cross / p_sum + logl(q_sum / p_sum);
        double found = eval_records_apart(a, b, N_TOKENS);
        assert_true(fabsl((long double)found - expected) < 1e-12L * (1 + expected));
        assert_true(eval_records_apart(a, a, N_TOKENS) == 0);
        free(a);
        free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_all_tokens),
        cmocka_unit_test(few_windows_are_parted),
        cmocka_unit_test(intervals_cover),
        cmocka_unit_test(a_record_diverges_from_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
