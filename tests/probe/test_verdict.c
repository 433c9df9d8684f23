/* Verdicts of lists that are made here: honest ones agree, each fault gets its name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/probe/verdict.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

enum { N = 60, K = 20, V = 200 };
static const double fine = 1e-3, coarse = 2e-2;
static const size_t lengths[] = {1, 2, 31, 32, 33, 63, 64, 65, 511, 512, 513, 1025};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

/** Lists of exact values, of another model, and of a server that begins as the exact one. */
struct lists {
    struct probe_judged items[N];
    double logits[N][V], of_other[N][V];
    double p[N][K], q[N][K], other[N][K], share[N];
};

/** The first K log-probabilities of logits that are off, at a temperature. */
static void predict(const double logits[V], struct rng *r, double noise, double temperature,
                    double out[K])
{
    double values[V], sum = 0;
    for (size_t k = 0; k < V; k++) {
        values[k] = (logits[k] + noise * (double)rng_normal(r)) / temperature;
        sum += exp(values[k]);
    }
    for (size_t k = 0; k < K; k++)
        out[k] = values[k] - log(sum);
}

static void make(struct lists *l, struct rng *r, double noise)
{
    memset(l, 0, sizeof *l);
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < V; k++) {
            l->logits[i][k] = 2 * (double)rng_normal(r) + (k < K ? 3 : 0);
            l->of_other[i][k] = l->logits[i][k] + 0.05 * (double)rng_normal(r);
        }
        predict(l->logits[i], r, 0, 1, l->p[i]);
        predict(l->of_other[i], r, 0, 1, l->other[i]);
        predict(l->logits[i], r, noise, 1, l->q[i]);
        for (size_t k = 0; k < K; k++)
            l->share[i] += exp(l->p[i][k]);
        size_t length = lengths[i % N_LENGTHS];
        l->items[i] = (struct probe_judged){.window = i / N_LENGTHS % 2,
                                            .length = length,
                                            .position = length,
                                            .path = i % 3 == 2 ? PROBE_CACHED : PROBE_FRESH,
                                            .log_q = l->q[i],
                                            .log_p = l->p[i],
                                            .n = K,
                                            .first = i * K,
                                            .fine = fine,
                                            .coarse = coarse,
                                            .flat_fine = fine,
                                            .flat_coarse = coarse};
    }
}

static struct probe_verdict judge(struct lists *l, const struct probe_alternative *alternatives,
                                  size_t n)
{
    struct probe_verdict v;
    struct probe_evidence e = {
        .items = l->items, .n = N, .alternatives = alternatives, .n_alternatives = n};
    probe_judge(&v, &e);
    assert_true(strlen(v.sentence) > 20);
    return v;
}

static void assert_verdict(const struct probe_verdict *v, enum probe_outcome outcome,
                           enum probe_finding finding)
{
    if (v->outcome != outcome || v->finding != finding)
        fail_msg("%s (%s): %s", probe_outcome_name(v->outcome), probe_finding_name(v->finding),
                 v->sentence);
}

static void honest_lists_agree(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    struct lists l;
    for (size_t i = 0; i < 100; i++) {
        make(&l, &r, fine);
        struct probe_verdict v = judge(&l, NULL, 0);
        assert_verdict(&v, PROBE_AGREES, PROBE_NOTHING);
        make(&l, &r, coarse);
        v = judge(&l, NULL, 0);
        assert_verdict(&v, PROBE_COARSELY, PROBE_NOTHING);
    }
}

static void a_temperature_has_its_value(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    struct lists l;
    make(&l, &r, fine);
    for (size_t i = 0; i < N; i++)
        predict(l.logits[i], &r, fine, 1.03, l.q[i]);
    struct probe_verdict v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_TEMPERATURE);
    assert_true(fabs(v.temperature - 1.03) < 2e-3);
    make(&l, &r, fine);
    for (size_t i = 0; i < N; i++)
        predict(l.logits[i], &r, fine, 0.995, l.q[i]);
    v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_TEMPERATURE);
    assert_true(fabs(v.temperature - 0.995) < 5 * v.slope_error && v.slope_error < 1e-3);
}

/* Lists of what a server overrates look flat at their ends, and large errors flatten all. */
static void rounding_is_no_temperature(void **state)
{
    (void)state;
    enum { ALL = 120 };
    struct rng r = rng_open(rng_seed(), 13);
    struct lists l;
    make(&l, &r, fine);
    for (size_t i = 0; i < N; i++) {
        double p[ALL], q[ALL];
        for (size_t k = 0; k < ALL; k++) {
            p[k] = -0.05 * (double)k;
            q[k] = p[k] + 0.1 * (double)rng_normal(&r);
        }
        for (size_t k = 0; k < K; k++) { /* the likeliest of what the server says */
            size_t top = 0;
            for (size_t t = 1; t < ALL; t++)
                top = q[t] > q[top] ? t : top;
            l.p[i][k] = p[top] - 4;
            l.q[i][k] = q[top] - 4;
            q[top] = -100;
        }
        l.items[i].fine = l.items[i].flat_fine = 0.1;
        l.items[i].coarse = l.items[i].flat_coarse = 0.2;
    }
    struct probe_verdict v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_AGREES, PROBE_NOTHING);
    assert_true(fabs(v.slope - 1) < 5 * v.slope_error);
}

static void sums_that_are_off(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3);
    struct lists l;
    make(&l, &r, fine);
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < K; k++)
            l.q[i][k] = l.p[i][k] - log1p(1 - l.share[i]);
    struct probe_verdict v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_TAIL_TWICE);
    const char *apart = strstr(v.sentence, "Apart from that they are off by ");
    assert_non_null(apart);
    assert_true(strtod(apart + strlen("Apart from that they are off by "), NULL) < 1e-6);
    assert_non_null(strstr(v.sentence, "Without the lists' sums it computes what the file says"));
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < K; k++)
            l.q[i][k] = l.p[i][k] - log(l.share[i]);
    v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_CUT_LIST);
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < K; k++)
            l.q[i][k] = l.p[i][k] - 0.5 * log(l.share[i]);
    v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_CUT_LIST);
}

/** Makes some lists wrong. */
static void spoil(struct lists *l, struct rng *r, size_t i)
{
    predict(l->logits[i], r, 0.8, 1, l->q[i]);
}

static void groups_are_named(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 4);
    struct lists l;
    make(&l, &r, fine);
    for (size_t i = 0; i < N; i++)
        if (l.items[i].length >= 511)
            spoil(&l, &r, i);
    struct probe_verdict v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_FROM_LENGTH);
    assert_int_equal(v.from, 511);

    make(&l, &r, fine);
    for (size_t i = 0; i < N; i++)
        if (l.items[i].length % 32 == 0)
            spoil(&l, &r, i);
    v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_LENGTHS);
    assert_non_null(strstr(v.sentence, "32, 64, 512"));

    make(&l, &r, fine);
    for (size_t i = 0; i < N; i++)
        if (l.items[i].path == PROBE_CACHED)
            spoil(&l, &r, i);
    v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_CACHED_PROMPTS);

    make(&l, &r, fine);
    for (size_t i = 0; i < N; i += 7)
        spoil(&l, &r, i);
    v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_SCATTERED);

    make(&l, &r, 0.5);
    v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_EVERYWHERE);
}

/* Lists of the prompt itself: early positions of long prompts are right, or they are not. */
static void positions_are_told_from_lengths(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 5);
    struct lists l;
    for (int by_position = 0; by_position < 2; by_position++) {
        make(&l, &r, fine);
        for (size_t i = 0; i < N; i++) {
            l.items[i].path = PROBE_FRESH;
            l.items[i].length = 100 * (1 + i / 10);
            l.items[i].position = l.items[i].length / 10 * (1 + i % 10);
            size_t at = by_position ? l.items[i].position : l.items[i].length;
            if (at >= 300)
                spoil(&l, &r, i);
        }
        struct probe_verdict v = judge(&l, NULL, 0);
        assert_verdict(&v, PROBE_DIFFERS, by_position ? PROBE_FROM_POSITION : PROBE_FROM_LENGTH);
        assert_true(v.from >= 300 && v.from <= 320);
    }
}

static void another_file_is_told_within_the_noise(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 6);
    struct lists l;
    struct probe_alternative other = {PROBE_OTHER_FILE, "other.gguf", &l.other[0][0]};
    make(&l, &r, 0.5 * coarse);
    struct probe_verdict v = judge(&l, &other, 1);
    assert_verdict(&v, PROBE_COARSELY, PROBE_NOTHING);
    for (size_t i = 0; i < N; i++)
        predict(l.of_other[i], &r, 0.5 * coarse, 1, l.q[i]);
    v = judge(&l, &other, 1);
    assert_verdict(&v, PROBE_DIFFERS, PROBE_OTHER_FILE);
    assert_string_equal(v.file, "other.gguf");
}

/* A tail that is counted twice lowers whole lists; what is left of them tells the file. */
static void another_file_is_told_beside_its_tails(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 14);
    struct lists l;
    static double third[N][K];
    for (int served = 0; served < 2; served++) {
        make(&l, &r, fine);
        for (size_t i = 0; i < N; i++) {
            double listed = 0;
            if (served)
                predict(l.of_other[i], &r, fine, 1, l.q[i]);
            for (size_t k = 0; k < K; k++) {
                listed += exp(l.q[i][k]);
                third[i][k] = l.p[i][k] + 0.05 * (double)rng_normal(&r);
            }
            for (size_t k = 0; k < K; k++)
                l.q[i][k] -= log1p(1 - listed);
        }
        const struct probe_alternative others[] = {{PROBE_OTHER_FILE, "third.gguf", &third[0][0]},
                                                   {PROBE_OTHER_FILE, "other.gguf", &l.other[0][0]},
                                                   {PROBE_NO_BOS, NULL, &l.q[0][0]}};
        struct probe_verdict v = judge(&l, others, 3);
        assert_verdict(&v, PROBE_DIFFERS, served ? PROBE_OTHER_FILE : PROBE_TAIL_TWICE);
        if (served)
            assert_string_equal(v.file, "other.gguf");
        assert_non_null(strstr(v.sentence, "counts the tokens that are not listed twice"));
    }
}

/** Lists that are off by `size`, with that correlation to a simulated engine that is off by fine.
 */
static void simulate(struct lists *l, struct rng *r, double size, double correlation,
                     double simulated[N][K])
{
    static double near[N][V], common[V];
    make(l, r, 0);
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < V; k++) {
            common[k] = fine * (double)rng_normal(r);
            near[i][k] = l->logits[i][k] + size / fine * correlation * common[k];
            common[k] += l->logits[i][k];
        }
        predict(common, r, 0, 1, simulated[i]);
        predict(near[i], r, size * sqrt(1 - correlation * correlation), 1, l->q[i]);
        l->items[i].simulated = simulated[i];
        l->items[i].correlation_fine = 0.45;
        l->items[i].length = l->items[i].position = 16 * i; /* neighbours would count once */
        l->items[i].coarse = l->items[i].flat_coarse = 1.1 * fine;
    }
}

/* A small size agrees for a llama-server's quantised file only where it correlates as expected. */
static void directions_tell_other_files(void **state)
{
    (void)state;
    static const struct {
        double size, correlation, expected;
        enum probe_outcome outcome;
        enum probe_finding finding;
    } cases[] = {{1, 0.45, 0.45, PROBE_AGREES, PROBE_NOTHING},
                 {0.1, 0, 0.45, PROBE_AGREES, PROBE_NOTHING}, /* so exact that only size matters */
                 {1.1, 0.45, 0.45, PROBE_AGREES, PROBE_NOTHING},
                 {1, 0.45, 0.25, PROBE_AGREES, PROBE_NOTHING},
                 {1, 0.45, 0.75, PROBE_COARSELY, PROBE_OTHER_ARITHMETIC},
                 {1, 0.05, 0.45, PROBE_COARSELY, PROBE_OTHER_ARITHMETIC},
                 {0.65, 0, 0.45, PROBE_COARSELY, PROBE_OTHER_ARITHMETIC},
                 {1.6, 0.45, 0.45, PROBE_COARSELY, PROBE_OTHER_ARITHMETIC},
                 {1.6, 0.05, 0.45, PROBE_DIFFERS, PROBE_EVERYWHERE},
                 {2.6, 0.45, 0.45, PROBE_DIFFERS, PROBE_EVERYWHERE}};
    static double simulated[N][K];
    struct rng r = rng_open(rng_seed(), 10);
    struct lists l;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct probe_verdict v;
        simulate(&l, &r, cases[i].size * fine, cases[i].correlation, simulated);
        for (size_t k = 0; k < N; k++)
            l.items[k].correlation_fine = cases[i].expected;
        probe_judge(
            &v, &(struct probe_evidence){.items = l.items, .n = N, .known = PROBE_KNOWN_QUANTISED});
        assert_verdict(&v, cases[i].outcome, cases[i].finding);
        assert_true(fabs(v.correlation - cases[i].correlation) < 0.15);
        assert_int_equal(v.n_stretches, N);
    }
}

/* Copies and neighbours of a list add nothing: limits are those of one. */
static void neighbours_count_once(void **state)
{
    (void)state;
    static double simulated[N][K];
    struct rng r = rng_open(rng_seed(), 12);
    struct lists l;
    simulate(&l, &r, fine, 0.45, simulated);
    for (size_t i = 0; i < N; i++) {
        l.items[i].window = i / 30;
        l.items[i].position = 16 * (i / 3) + i % 3 + 15;
    }
    struct probe_verdict v;
    probe_judge(&v,
                &(struct probe_evidence){.items = l.items, .n = N, .known = PROBE_KNOWN_QUANTISED});
    assert_int_equal(v.n_stretches, N / 3);
    assert_true(fabs(l.items[0].weight - 1.0 / 3) < 1e-12);
    assert_true(fabs(v.most - (1 + 0.2 * sqrt(2) * pow(5, 0.25))) < 1e-9);
}

/* F16 files are judged by size alone; a cache makes more than a small fault. */
static void halves_have_their_limit(void **state)
{
    (void)state;
    static const struct {
        double size;
        enum probe_outcome outcome;
        enum probe_finding finding;
    } cases[] = {{0.8, PROBE_AGREES, PROBE_NOTHING},
                 {1.1, PROBE_AGREES, PROBE_NOTHING},
                 {1.8, PROBE_COARSELY, PROBE_OTHER_ARITHMETIC},
                 {8, PROBE_COARSELY, PROBE_NOTHING}};
    struct rng r = rng_open(rng_seed(), 11);
    struct lists l;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct probe_verdict v;
        make(&l, &r, cases[i].size * fine);
        for (size_t k = 0; k < N; k++)
            l.items[k].position = 16 * k;
        probe_judge(&v,
                    &(struct probe_evidence){.items = l.items, .n = N, .known = PROBE_KNOWN_HALF});
        assert_verdict(&v, cases[i].outcome, cases[i].finding);
    }
}

/* What follows a near tie of experts may be honestly off. */
static void near_ties_are_forgiven(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 7);
    struct lists l;
    make(&l, &r, fine);
    for (size_t i = 0; i < N; i++)
        if (l.items[i].window == 1 && l.items[i].length >= 31) {
            l.items[i].excused = true;
            predict(l.logits[i], &r, 0.14, 1, l.q[i]);
        }
    struct probe_verdict v = judge(&l, NULL, 0);
    assert_verdict(&v, PROBE_AGREES, PROBE_NOTHING);
    for (size_t i = 0; i < N; i++)
        l.items[i].excused = false;
    v = judge(&l, NULL, 0);
    assert_int_equal(v.outcome, PROBE_DIFFERS);
}

/* One list that is far off after a near tie is chance, a quarter of them is a fault. */
static void a_rare_departure_after_a_tie_is_forgiven(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 9);
    struct lists l;
    make(&l, &r, fine);
    for (size_t i = 0; i < N; i++)
        l.items[i].excused = true;
    predict(l.logits[N - 1], &r, 2, 1, l.q[N - 1]);
    struct probe_verdict v = judge(&l, NULL, 0);
    assert_int_equal(v.n_bad, 0);
    for (size_t i = 0; i < N / 4; i++)
        predict(l.logits[4 * i], &r, 2, 1, l.q[4 * i]);
    v = judge(&l, NULL, 0);
    assert_int_equal(v.outcome, PROBE_DIFFERS);
    assert_true(v.n_bad > N / 8);
}

static void too_little_is_no_result(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 8);
    struct lists l;
    struct probe_verdict v;
    make(&l, &r, fine);
    probe_judge(&v, &(struct probe_evidence){.items = l.items, .n = 7});
    assert_verdict(&v, PROBE_NO_RESULT, PROBE_NOTHING);
    probe_judge(&v, &(struct probe_evidence){.items = l.items, .n = N, .n_spoilt = N});
    assert_verdict(&v, PROBE_NO_RESULT, PROBE_NOTHING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest_lists_agree),
        cmocka_unit_test(a_temperature_has_its_value),
        cmocka_unit_test(rounding_is_no_temperature),
        cmocka_unit_test(sums_that_are_off),
        cmocka_unit_test(groups_are_named),
        cmocka_unit_test(positions_are_told_from_lengths),
        cmocka_unit_test(another_file_is_told_within_the_noise),
        cmocka_unit_test(another_file_is_told_beside_its_tails),
        cmocka_unit_test(directions_tell_other_files),
        cmocka_unit_test(neighbours_count_once),
        cmocka_unit_test(halves_have_their_limit),
        cmocka_unit_test(near_ties_are_forgiven),
        cmocka_unit_test(a_rare_departure_after_a_tie_is_forgiven),
        cmocka_unit_test(too_little_is_no_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
