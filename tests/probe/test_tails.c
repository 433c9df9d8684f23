/* Lists whose tokens that are not listed count twice, and right ones that are as far off. */
#include <math.h>

#include "clients/probe/verdict.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

enum { MOST_LISTS = 108, K = 60, V = 300 };

/** The first K log-probabilities of logits that are off. */
static void predict(const double logits[V], struct rng *r, double noise, double out[K])
{
    double sum = 0;
    for (size_t k = 0; k < V; k++) {
        double value = logits[k] + noise * (double)rng_normal(r);
        sum += exp(value);
        if (k < K)
            out[k] = value;
    }
    for (size_t k = 0; k < K; k++)
        out[k] -= log(sum);
}

/** Lists of a server whose logits are off by `noise`, as is known of it. */
static void judge_tails(struct probe_verdict *v, struct rng *r, size_t n, double noise, bool twice)
{
    static double p[MOST_LISTS][K], q[MOST_LISTS][K];
    static struct probe_judged items[MOST_LISTS];
    double logits[V];
    for (size_t i = 0; i < n; i++) {
        double tail = 1;
        for (size_t k = 0; k < V; k++)
            logits[k] = 2 * (double)rng_normal(r) + (k < K ? 3.5 : 0);
        predict(logits, r, 0, p[i]);
        predict(logits, r, noise, q[i]);
        for (size_t k = 0; k < K; k++)
            tail -= exp(q[i][k]);
        for (size_t k = 0; k < K; k++)
            q[i][k] -= twice ? log1p(tail) : 0;
        items[i] = (struct probe_judged){.length = 16 * i,
                                         .position = 16 * i,
                                         .log_q = q[i],
                                         .log_p = p[i],
                                         .n = K,
                                         .fine = noise,
                                         .coarse = noise,
                                         .flat_fine = noise,
                                         .flat_coarse = noise};
    }
    probe_judge(v, &(struct probe_evidence){.items = items, .n = n});
}

/* Noise of a real model is as large as a tail, and lowers each list's mean as a tail does. */
static void a_tail_is_told_beside_noise(void **state)
{
    (void)state;
    static const double noises[] = {0.01, 0.1, 0.25, 0.4, 0.44, 0.48};
    struct rng r = rng_open(rng_seed(), 15);
    for (size_t i = 0; i < 12 * sizeof noises / sizeof *noises; i++) {
        double noise = noises[i / 12];
        size_t n = i % 2 ? MOST_LISTS / 3 : MOST_LISTS;
        struct probe_verdict v;
        judge_tails(&v, &r, n, noise, false);
        assert_int_equal(v.outcome, PROBE_AGREES);
        judge_tails(&v, &r, n, noise, true);
        if (noise < (n == MOST_LISTS ? 0.3 : 0.2))
            assert_int_equal(v.finding, PROBE_TAIL_TWICE);
    }
}

/* One list with a large tail, among those that have next to none, draws the share to itself. */
static void a_single_tail_names_nobody(void **state)
{
    (void)state;
    enum { LISTS = 8 };
    double p[LISTS][2], q[LISTS][2];
    struct probe_judged items[LISTS];
    for (size_t i = 0; i < LISTS; i++) {
        double tail = i ? 1e-4 : 0.3, off = i ? (i % 2 ? 0.1 : -0.1) : -log1p(tail);
        for (size_t k = 0; k < 2; k++) {
            p[i][k] = log((1 - tail) * (k ? 0.4 : 0.6));
            q[i][k] = p[i][k] + off;
        }
        items[i] = (struct probe_judged){.position = 16 * i,
                                         .log_q = q[i],
                                         .log_p = p[i],
                                         .n = 2,
                                         .fine = 0.1,
                                         .coarse = 0.1,
                                         .flat_fine = 0.1,
                                         .flat_coarse = 0.1};
    }
    struct probe_verdict v = {.finding = PROBE_NOTHING};
    probe_judge(&v, &(struct probe_evidence){.items = items, .n = LISTS});
    assert_int_not_equal(v.finding, PROBE_TAIL_TWICE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tail_is_told_beside_noise),
        cmocka_unit_test(a_single_tail_names_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
