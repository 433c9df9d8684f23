/* Figures of a list beside the exact one: against their definitions. */
#include <math.h>
#include <stdlib.h>

#include "clients/probe/bounds.h"
#include "clients/probe/figures.h"
#include "tests/harness/cmocka.h"
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
        probe_way_add(&at_other, near, rows.p, rows.q, K, 1);
        probe_way_add(&at_first, rows.p, rows.p, rows.q, K, 1);
        probe_way_add(&same, near, rows.p, rows.p, K, 1);
    }
    assert_near(probe_way_share(&at_other), 1, 0.1);
    assert_near(probe_way_share(&at_first), 0, 1e-12);
    assert_true(isnan(probe_way_share(&same)));
    struct rows rows = draw(&r, 0.05, 1);
    struct probe_way quarter = {0};
    assert_true(isnan(probe_way_error(&quarter)));
    for (size_t i = 0; i < 4; i++)
        probe_way_add(&quarter, i ? rows.p : rows.q, rows.p, rows.q, K, 1);
    assert_near(probe_way_share(&quarter), 0.25, 1e-12);
    assert_near(probe_way_error(&quarter), 0.25, 1e-12); /* as of 0, 0, 0 and 1 */
}

/* Each list's mean is taken off, but of short ones; all tokens count alike. */
static void flat_deviations(void **state)
{
    (void)state;
    const double p[] = {-1, -2, -3, -4, -5, -6}, q[] = {0, -1, -2, -4, -5, -6};
    const double up[] = {0, -1, -2, -3, -4, -5};
    assert_near(probe_flat(q, q, p, 6), 0.25, 1e-12);
    assert_near(probe_flat(q, q, p, 4), 0.75, 1e-12);
    assert_near(probe_flat(up, up, p, 6), 0, 1e-12);
    assert_near(probe_flat(up, q, p, 6), 0, 1e-12);
    assert_near(probe_flat(q, q, p, 0), 0, 0);
}

static void medians(void **state)
{
    (void)state;
    double odd[] = {3, 1, 2}, even[] = {4, 1, 2, 3};
    assert_near(probe_median(odd, 3), 2, 0);
    assert_near(probe_median(even, 4), 2.5, 0);
    assert_true(isnan(probe_median(odd, 0)));
}

/** The k likeliest tokens of p and one more, as a base lists them; the rest as the model has it. */
struct base_row {
    struct rows rows; /* sorted by p */
    struct probe_listed list;
    double log_p[V], log_q[V];
};

static int descending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

static void draw_base(struct base_row *b, struct rng *r, double noise, size_t k, size_t extra)
{
    double logits[V];
    for (size_t i = 0; i < V; i++)
        logits[i] = 2 * (double)rng_normal(r);
    qsort(logits, V, sizeof *logits, descending);
    softmax(logits, b->rows.p);
    for (size_t i = 0; i < V; i++)
        logits[i] += noise * (double)rng_normal(r);
    softmax(logits, b->rows.q);
    const double none = (double)INFINITY;
    b->list = (struct probe_listed){.log_p = b->log_p, .log_q = b->log_q, .dropped = -none};
    b->list.unlisted = (struct probe_unlisted){-none, none};
    for (size_t i = 0; i < V; i++) {
        double q = b->rows.q[i];
        if (i < k || i == extra) {
            b->log_p[b->list.n] = b->rows.p[i];
            b->log_q[b->list.n++] = q;
            continue;
        }
        b->list.unlisted.most = fmax(b->list.unlisted.most, q);
        b->list.unlisted.least = fmin(b->list.unlisted.least, q);
    }
    if (b->list.n == V)
        b->list.unlisted.least = -none;
}

static void the_divergence_is_between_the_bounds(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 8);
    for (size_t i = 0; i < 2000; i++) {
        struct base_row b;
        size_t k = 1 + i % 25;
        draw_base(&b, &r, i % 2 ? 0.2 : 2, k, i % 3 ? V : 40);
        double true_kl = kl(b.rows.p, b.rows.q);
        struct probe_bound found = probe_bound_of(&b.list);
        assert_true(found.least <= true_kl + 1e-12 && true_kl <= found.most + 1e-12);
        assert_true(found.top_known && found.least >= 0);
        size_t top = 0;
        for (size_t t = 0; t < V; t++)
            top = b.rows.q[t] > b.rows.q[top] ? t : top;
        assert_int_equal(found.same_top, top == 0);
        /* What is not understood, or has fallen together, only widens them. */
        b.list.merged = true;
        assert_true(probe_bound_of(&b.list).most >= found.most);
        b.list.merged = false;
        b.list.dropped = -0.1;
        struct probe_bound wide = probe_bound_of(&b.list);
        assert_true(wide.most >= found.most && wide.least == found.least);
        assert_int_equal(wide.top_known, b.rows.p[0] > -0.1);
    }
}

static void whole_lists_leave_nothing_open(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 9);
    struct base_row b;
    draw_base(&b, &r, 0.5, V, V);
    struct probe_bound found = probe_bound_of(&b.list);
    assert_near(found.least, kl(b.rows.p, b.rows.q), 1e-12);
    assert_near(found.most, found.least, 0);
}

/* Rounded to few digits, a list may sum to more than 1, or leave nothing over. */
static void rounded_masses_make_no_divergence(void **state)
{
    (void)state;
    const double p[] = {log(0.7), log(0.3001)}, q[] = {log(0.6999), log(0.2999)};
    struct probe_listed list = {p, q, 2, {log(1e-4), log(1e-5)}, -(double)INFINITY, false};
    struct probe_bound b = probe_bound_of(&list);
    assert_near(b.least, 2e-4, 1.1e-4);
    assert_near(b.p_mass, 1, 0);
    assert_true(b.most >= b.least && b.most < 3e-4);
    const double impossible[] = {0, -1e4};
    list.log_p = impossible;
    assert_true(isfinite(probe_bound_of(&list).most));
}

static void lists_of_a_base_are_settled(void **state)
{
    (void)state;
    double log_q[] = {-1, -2, -3, -4, 0, 0};
    struct probe_sample items[] = {
        {.window = 1, .length = 8, .position = 8, .first = 0, .n = 1},
        {.window = 0, .length = 8, .position = 4, .first = 1, .n = 1},
        {.window = 0, .length = 8, .position = 3, .first = 1, .n = 1},
        {.window = 1, .length = 9, .position = 8, .first = 2, .n = 1},
        {.window = 1, .length = 9, .position = 9, .first = 3, .n = 1, .miscounted = true},
        {.window = 2, .length = 9, .position = 9, .first = 4, .n = 2},
    };
    struct probe_lists lists = {.items = items, .log_q = log_q, .n = 6, .n_entries = 6};
    struct probe_base base = {.lists = &lists};
    probe_base_settle(&base);
    assert_int_equal(lists.n, 2);
    assert_int_equal(items[0].position, 4);
    assert_int_equal(items[1].first, 0);
    assert_int_equal(base.n_windows, 2);
    assert_int_equal(base.n_early + base.n_again + base.n_miscounted, 3);
    assert_int_equal(lists.n_spoilt, 1); /* it sums to 2 */
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
        cmocka_unit_test(flat_deviations),
        cmocka_unit_test(medians),
        cmocka_unit_test(the_divergence_is_between_the_bounds),
        cmocka_unit_test(whole_lists_leave_nothing_open),
        cmocka_unit_test(rounded_masses_make_no_divergence),
        cmocka_unit_test(lists_of_a_base_are_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
