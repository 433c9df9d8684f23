/* Figures of a list beside the exact one: against their definitions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probe/figures.h"
#include "tests/harness/rng.h"

enum { V = 64, K = 20 };

static void assert_near(double found, double expected, double within)
{
    if (!(fabs(found - expected) <= within))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

/** Log-probabilities of V tokens, from logits. */
static void softmax(const double *logits, double *log_p)
{
    double sum = 0;
    for (size_t i = 0; i < V; i++)
        sum += exp(logits[i]);
    for (size_t i = 0; i < V; i++)
        log_p[i] = logits[i] - log(sum);
}

struct rows {
    double p[V], q[V];
};

/** Two predictions that are some way apart. */
static struct rows draw(struct rng *r, double noise, double temperature)
{
    struct rows rows;
    double a[V], b[V];
    for (size_t i = 0; i < V; i++) {
        a[i] = 2 * (double)rng_normal(r);
        b[i] = a[i] / temperature + noise * (double)rng_normal(r);
    }
    softmax(a, rows.p);
    softmax(b, rows.q);
    return rows;
}

static double kl(const double *p, const double *q)
{
    double sum = 0;
    for (size_t i = 0; i < V; i++)
        sum += exp(p[i]) * (p[i] - q[i]);
    return sum;
}

static void the_bound_is_below_the_divergence(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    for (size_t i = 0; i < 200; i++) {
        struct rows rows = draw(&r, 0.3, 1);
        struct probe_figures f = probe_figures_of(rows.q, rows.p, K);
        double rest_p = 1 - f.p_mass, rest_q = 1 - f.q_mass, bins = rest_p * log(rest_p / rest_q);
        for (size_t k = 0; k < K; k++)
            bins += exp(rows.p[k]) * (rows.p[k] - rows.q[k]);
        assert_near(f.bound, bins, 1e-12);
        assert_true(f.bound <= kl(rows.p, rows.q) + 1e-12);
        assert_true(f.reverse <= kl(rows.q, rows.p) + 1e-12);
        struct probe_figures whole = probe_figures_of(rows.q, rows.p, V);
        assert_near(whole.bound, kl(rows.p, rows.q), 1e-12);
    }
}

static void equal_lists_have_no_distance(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    struct rows rows = draw(&r, 0, 1);
    struct probe_figures f = probe_figures_of(rows.p, rows.p, K);
    assert_near(f.bound, 0, 1e-15);
    assert_near(f.rms, 0, 1e-15);
    assert_near(f.slope, 1, 1e-12);
    assert_near(f.offset, 0, 1e-12);
}

static void a_temperature_is_the_slope(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3);
    struct rows rows = draw(&r, 0, 1.25);
    struct probe_figures f = probe_figures_of(rows.q, rows.p, K);
    assert_near(f.slope, 0.8, 1e-12);
    assert_near(probe_residual(rows.q, rows.p, K, 0.8, (double)NAN), 0, 1e-7);
    assert_true(probe_residual(rows.q, rows.p, K, 1, (double)NAN) > 1e-3);
}

/* What servers write for minus infinity must not make figures that are none. */
static void impossible_tokens_are_bounded(void **state)
{
    (void)state;
    const double p[] = {log(0.5), log(0.3), -200}, q[] = {log(0.6), -1e4, -1e4};
    struct probe_figures f = probe_figures_of(q, p, 3);
    assert_true(isfinite(f.bound) && f.bound > 10);
    assert_true(isfinite(f.rms) && f.rms > 10);
    struct probe_figures empty = probe_figures_of(q, p, 0);
    assert_true(isnan(empty.rms) && isnan(empty.slope));
}

static void another_likeliest_token_is_a_flip(void **state)
{
    (void)state;
    const double p[] = {log(0.4), log(0.3), log(0.1)}, q[] = {log(0.2), log(0.1), log(0.3)};
    assert_near(probe_figures_of(q, p, 3).flip, log(4), 1e-15);
    assert_near(probe_figures_of(p, p, 3).flip, 0, 0);
}

static void steps_are_seen(void **state)
{
    (void)state;
    const double decimals[] = {-0.12, -3.5, -7.01, -9.99}, halves[] = {-0.125, -3.5, -7.0078125};
    const double none[] = {-0.1234567891, -1.9876543211, -3.14159265358};
    assert_near(probe_step(decimals, 4), 0.005, 1e-15);
    assert_near(probe_step(halves, 3), 0.5 / 128, 1e-15);
    assert_near(probe_step(none, 3), 0, 0);
}

static void the_way_tells_which_of_two(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 4);
    struct probe_way at_first = {0}, at_other = {0}, same = {0};
    for (size_t i = 0; i < 100; i++) {
        struct rows rows = draw(&r, 0.05, 1);
        double near[V];
        for (size_t k = 0; k < V; k++)
            near[k] = rows.q[k] + 0.02 * (double)rng_normal(&r);
        probe_way_add(&at_other, near, rows.p, rows.q, K);
        probe_way_add(&at_first, rows.p, rows.p, rows.q, K);
        probe_way_add(&same, near, rows.p, rows.p, K);
    }
    assert_near(probe_way_share(&at_other), 1, 0.1);
    assert_near(probe_way_share(&at_first), 0, 1e-12);
    assert_true(isnan(probe_way_share(&same)));
}

static void medians(void **state)
{
    (void)state;
    double odd[] = {3, 1, 2}, even[] = {4, 1, 2, 3};
    assert_near(probe_median(odd, 3), 2, 0);
    assert_near(probe_median(even, 4), 2.5, 0);
    assert_true(isnan(probe_median(odd, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_is_below_the_divergence),
        cmocka_unit_test(equal_lists_have_no_distance),
        cmocka_unit_test(a_temperature_is_the_slope),
        cmocka_unit_test(impossible_tokens_are_bounded),
        cmocka_unit_test(another_likeliest_token_is_a_flip),
        cmocka_unit_test(steps_are_seen),
        cmocka_unit_test(the_way_tells_which_of_two),
        cmocka_unit_test(medians),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
