/*
 * eval/race/race.h on windows made by hand: what is clear ends the race, who is not needed
 * leaves it, and what is found is wrong no more often than stated. An argument is the number of
 * races per case (test_race 20000).
 */
#include <math.h>
#include <stdlib.h>

#include "eval/race/race.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

enum { MOST = 6 };
static size_t n_races = 150;

static struct eval_race open_race(struct eval_race_rules rules)
{
    struct eval_race race;
    assert_int_equal(eval_race_make(&race, &rules, NULL), STATUS_OK);
    return race;
}

static void looks_are_fixed_beforehand(void **state)
{
    (void)state;
    const struct eval_race_rules rules = {.n_windows = 100};
    static const size_t expected[] = {8, 12, 16, 24, 32, 48, 64, 96, 100, 100};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++)
        assert_int_equal(eval_race_look(&rules, k), expected[k]);
    assert_int_equal(eval_race_look(&(struct eval_race_rules){.n_windows = 5}, 0), 5);
    assert_int_equal(eval_race_look(&(struct eval_race_rules){.n_windows = 64}, 6), 64);
    assert_int_equal(eval_race_look(&(struct eval_race_rules){.n_windows = 64}, 7), 64);
}

/** Windows whose divergences differ a little from these means, the same for all and of each. */
static void run(struct eval_race *race, const double *means, double spread, size_t n)
{
    struct rng rng = {1};
    for (size_t w = 0; w < n && !race->over; w++) {
        double d[MOST], common = exp(0.3 * (double)rng_normal(&rng));
        for (size_t i = 0; i < race->rules.n; i++)
            d[i] = means[i] * common * (1 + spread * (double)rng_normal(&rng));
        eval_race_add(race, d);
    }
}

static void what_is_clear_ends_the_race(void **state)
{
    (void)state;
    static const double means[] = {0.1, 0.02, 0.0012, 0.001, 0.0001};
    struct eval_race race =
        open_race((struct eval_race_rules){5, 1000, .nats = 0.002, .alpha = 0.05});
    bool clear;
    run(&race, means, 0.1, 1000);
    assert_true(race.over && race.n_seen < 50);
    assert_int_equal(eval_race_answer(&race, &clear), 2);
    assert_true(clear);
    assert_int_equal(eval_race_relation(&race, 0, 2, &clear), EVAL_RACE_WORSE);
    assert_int_equal(eval_race_relation(&race, 2, 4, &clear), EVAL_RACE_AS_GOOD);
    assert_true(race.pairs[0 * 5 + 2].low > 0.01 && race.pairs[0 * 5 + 2].high < 0.3);
    assert_int_equal(eval_race_better(&race, 1), 4);
    assert_int_equal(eval_race_better(&race, 2), 5);
    assert_true(eval_race_survives(&race, 0, &clear) && eval_race_survives(&race, 2, &clear));
    assert_false(eval_race_survives(&race, 3, &clear));
    eval_race_free(&race);
}

static void who_is_not_needed_leaves(void **state)
{
    (void)state;
    static const double means[] = {0.5, 0.01, 0.01};
    struct eval_race race = open_race((struct eval_race_rules){3, 40, .share = 0, .alpha = 0.05});
    bool clear;
    run(&race, means, 0.1, 8);
    assert_true(!race.over && !race.running[0] && race.running[1] && race.running[2]);
    run(&race, means, 0.1, 32);
    assert_int_equal(race.means[0].n, 8);
    assert_int_equal(race.means[1].n, 40);
    assert_true(!race.over); /* the text does not tell which of two equal ones is better */
    eval_race_answer(&race, &clear);
    assert_false(clear);
    eval_race_free(&race);
}

static void the_smaller_of_equals_is_the_answer(void **state)
{
    (void)state;
    static const double means[] = {0.01, 0.01, 0.01};
    struct eval_race race =
        open_race((struct eval_race_rules){3, 900, .share = 0.1, .alpha = 0.05});
    bool clear;
    run(&race, means, 0.1, 900);
    assert_true(race.over && race.n_seen < 400);
    assert_int_equal(eval_race_answer(&race, &clear), 0);
    eval_race_free(&race);
}

static void what_is_not_finite_is_out(void **state)
{
    (void)state;
    struct eval_race race = open_race((struct eval_race_rules){2, 20, .alpha = 0.05});
    bool clear;
    for (size_t w = 0; w < 8; w++)
        eval_race_add(&race, (double[]){w == 3 ? (double)NAN : 0.1, 0.2 + (double)w * 0.01});
    assert_true(race.over && race.broken[0]);
    assert_int_equal(eval_race_answer(&race, &clear), 1);
    assert_int_equal(eval_race_relation(&race, 0, 1, &clear), EVAL_RACE_WORSE);
    eval_race_free(&race);
    race = open_race((struct eval_race_rules){1, 3, .alpha = 0.05});
    for (size_t w = 0; w < 3; w++)
        eval_race_add(&race, &(double){1});
    assert_true(race.over && eval_race_answer(&race, &clear) == 0 && clear);
    eval_race_free(&race);
}

/** What is drawn: means, and the standard deviations of logarithms, of all and of each. */
struct population {
    const char *name;
    size_t n;
    double means[MOST], common, own;
    double nats, share;
};

/** Whether all that the race knows is true. */
static bool is_true(const struct eval_race *race, const struct population *p)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < p->n; j++) {
            const struct eval_race_pair *pair = &race->pairs[i * p->n + j];
            double difference = p->means[i] - p->means[j];
            bool worse = p->means[i] - (1 + p->share) * p->means[j] - p->nats > 1e-15;
            if (i != j && (difference < pair->low || difference > pair->high ||
                           (pair->relation && (pair->relation == EVAL_RACE_WORSE) != worse)))
                return false;
        }
    return true;
}

/** Whether a race of a population ends without ever finding something that is not true. */
static bool is_right(const struct population *p, struct rng *rng, double *share_of_windows)
{
    struct eval_race race = open_race(
        (struct eval_race_rules){p->n, 200, .nats = p->nats, .share = p->share, .alpha = 0.05});
    bool right = true;
    size_t looks = 0, n_taken = 0;
    while (race.n_seen < 200 && !race.over) {
        double d[MOST], common = p->common * (double)rng_normal(rng);
        for (size_t i = 0; i < p->n; i++) {
            double own = p->own * (double)rng_normal(rng);
            d[i] = p->means[i] * exp(common + own - (p->common * p->common + p->own * p->own) / 2);
            n_taken += race.running[i];
        }
        eval_race_add(&race, d);
        right &= race.n_looks == looks || is_true(&race, p);
        looks = race.n_looks;
    }
    *share_of_windows += (double)n_taken / (double)(200 * p->n);
    eval_race_free(&race);
    return right;
}

/* The margin is exactly what some differ by: the hardest case. */
static void what_is_found_is_wrong_no_more_often_than_stated(void **state)
{
    (void)state;
    static const struct population populations[] = {
        {"equal", 4, {0.01, 0.01, 0.01, 0.01}, 0.3, 0.1, 0, 0},
        {"at the margin", 4, {0.012, 0.011, 0.011, 0.01}, 0.3, 0.1, 0.001, 0},
        {"at a relative margin", 3, {0.0105, 0.0105, 0.01}, 0.4, 0.2, 0, 0.05},
        {"as files are", 6, {0.09, 0.03, 0.006, 0.005, 0.0012, 0.0002}, 0.4, 0.2, 0.001, 0.05},
        {"skewed", 4, {0.0105, 0.01, 0.0105, 0.01}, 0.5, 0.6, 0, 0.05},
    };
    for (size_t k = 0; k < sizeof populations / sizeof *populations; k++) {
        const struct population *p = &populations[k];
        struct rng rng = {k + 7};
        size_t n_wrong = 0;
        double share = 0;
        for (size_t r = 0; r < n_races; r++)
            n_wrong += !is_right(p, &rng, &share);
        double rate = (double)n_wrong / (double)n_races;
        print_message("%-20s %zu races: wrong in %.4f, windows taken %.3f\n", p->name, n_races,
                      rate, share / (double)n_races);
        assert_true(rate <= 0.05);
    }
}

int main(int argc, char **argv)
{
    n_races = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : n_races;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_are_fixed_beforehand),
        cmocka_unit_test(what_is_clear_ends_the_race),
        cmocka_unit_test(who_is_not_needed_leaves),
        cmocka_unit_test(the_smaller_of_equals_is_the_answer),
        cmocka_unit_test(what_is_not_finite_is_out),
        cmocka_unit_test(what_is_found_is_wrong_no_more_often_than_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
