/*
 * The knapsack of recipes: against all selections of small instances, against a table over all
 * weights for larger ones, and what is proved where it may not go on.
 */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clients/documents/recipe/knapsack.h"
#include "tests/harness/rng.h"

enum { MAX_GROUPS = 1000, MAX_CHOICES = 12 };

static size_t first[MAX_GROUPS + 1], chosen[MAX_GROUPS];
static struct doc_choice choices[MAX_GROUPS * MAX_CHOICES];
static struct doc_knapsack knapsack = {0, first, choices};

/* That the sums are those of what is chosen. */
static void check_sums(const struct doc_selection *s)
{
    int64_t weight = 0, cost = 0;
    for (size_t g = 0; g < knapsack.n_groups; g++) {
        assert_true(first[g] + s->chosen[g] < first[g + 1]);
        weight += choices[first[g] + s->chosen[g]].weight;
        cost += choices[first[g] + s->chosen[g]].cost;
    }
    assert_true(weight == s->weight && cost == s->cost && s->bound <= cost);
}

/* The least cost of all selections within the limit; INT64_MAX: none is. */
static int64_t brute_force(int64_t limit)
{
    size_t at[MAX_GROUPS] = {0}, g = 0;
    int64_t best = INT64_MAX;
    while (g < knapsack.n_groups) {
        int64_t weight = 0, cost = 0;
        for (g = 0; g < knapsack.n_groups; g++) {
            weight += choices[first[g] + at[g]].weight;
            cost += choices[first[g] + at[g]].cost;
        }
        if (weight <= limit && cost < best)
            best = cost;
        for (g = 0; g < knapsack.n_groups && ++at[g] == first[g + 1] - first[g]; g++)
            at[g] = 0;
    }
    return best;
}

/* A number from -range to range, in steps, so that there are ties. */
static int64_t number(struct rng *r, int64_t range, int64_t step)
{
    return (int64_t)(rng_next(r) % (uint64_t)(2 * range / step + 1)) * step - range;
}

static void make(struct rng *r, size_t n_groups, size_t max_choices, const int64_t range[2],
                 const int64_t step[2])
{
    knapsack.n_groups = n_groups;
    for (size_t g = 0; g < n_groups; g++) {
        size_t n = 1 + rng_below(r, max_choices);
        first[g + 1] = first[g] + n;
        for (size_t i = first[g]; i < first[g + 1]; i++)
            choices[i] =
                (struct doc_choice){number(r, range[0], step[0]), number(r, range[1], step[1])};
    }
}

static void test_all_selections(void **state)
{
    (void)state;
    static const int64_t ranges[][2][2] = {
        {{10, 10}, {1, 1}},
        {{1000, 1000}, {1, 1}},
        {{1000, 50}, {100, 1}},
        {{INT64_C(1) << 58, INT64_C(1) << 58}, {1, 1}},
        {{INT64_C(1) << 58, 3}, {1, 1}},
        {{3, INT64_C(1) << 58}, {1, INT64_C(1) << 40}},
    };
    for (uint64_t n = 0; n < 3000; n++) {
        struct rng r = rng_open(rng_seed(), n);
        size_t kind = n % (sizeof ranges / sizeof *ranges);
        make(&r, rng_below(&r, 7), 5, ranges[kind][0], ranges[kind][1]);
        int64_t range = 4 * ranges[kind][0][0];
        int64_t limit = number(&r, range, 1), best = brute_force(limit);
        struct doc_selection s = {.chosen = chosen};
        struct status_why why = {""};
        enum status status = doc_knapsack_solve(&knapsack, limit, 0, &s, &why);
        check_sums(&s);
        if (best == INT64_MAX && knapsack.n_groups) {
            assert_int_equal(status, STATUS_USAGE);
            assert_true(brute_force(s.weight) == s.cost && brute_force(s.weight - 1) == INT64_MAX);
            continue;
        }
        if (knapsack.n_groups == 0) {
            assert_true(s.cost == 0);
            continue;
        }
        assert_int_equal(status, STATUS_OK);
        assert_true(s.weight <= limit && s.cost == best && s.bound == best);
    }
}

/* Each selection of the front is the cheapest of its weight. */
static void test_front(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 1000; n++) {
        struct rng r = rng_open(rng_seed(), 100000 + n);
        int64_t range = n % 2 ? 12 : 1000;
        make(&r, 1 + rng_below(&r, 5), 5, (int64_t[]){range, range}, (int64_t[]){1, 1});
        struct doc_selection s = {.chosen = chosen};
        struct doc_step *steps;
        size_t n_steps;
        assert_int_equal(doc_knapsack_front(&knapsack, &s, &steps, &n_steps, NULL), STATUS_OK);
        for (size_t i = 0; i <= n_steps; i++) {
            check_sums(&(struct doc_selection){chosen, s.weight, s.cost, s.cost});
            assert_true(brute_force(s.weight) == s.cost);
            if (i == n_steps)
                break;
            assert_true(steps[i].weight > 0 && steps[i].cost < 0);
            chosen[steps[i].group] = steps[i].choice;
            s.weight += steps[i].weight;
            s.cost += steps[i].cost;
        }
        assert_true(brute_force(INT64_MAX / 2) == s.cost);
        free(steps);
    }
}

/* Weights up to `limit` only: the least cost for each of them, group after group. */
static int64_t by_table(size_t limit)
{
    int64_t *least = malloc((limit + 1) * sizeof *least),
            *next = malloc((limit + 1) * sizeof *next);
    assert_non_null(least);
    assert_non_null(next);
    memset(least, 0, (limit + 1) * sizeof *least);
    for (size_t g = 0; g < knapsack.n_groups; g++) {
        for (size_t w = 0; w <= limit; w++) {
            next[w] = INT64_MAX / 2;
            for (size_t i = first[g]; i < first[g + 1]; i++) {
                size_t weight = (size_t)choices[i].weight;
                if (weight <= w && least[w - weight] + choices[i].cost < next[w])
                    next[w] = least[w - weight] + choices[i].cost;
            }
        }
        int64_t *swap = least;
        least = next;
        next = swap;
    }
    int64_t cost = least[limit];
    free(least);
    free(next);
    return cost;
}

/* As sweeps are: few sizes, costs that fall with the size, from one to three layers alike. */
static void make_sweep(struct rng *r, size_t n_groups, bool alike)
{
    static const int64_t bits[MAX_CHOICES] = {2, 3, 4, 5, 6, 7, 9, 11, 13, 17, 18, 32};
    knapsack.n_groups = n_groups;
    for (size_t g = 0; g < n_groups; g++) {
        int64_t size = 1 + (int64_t)rng_below(r, alike ? 2 : 7);
        double scale = alike ? 1e6 : 1e3 * (double)(1 + rng_below(r, 1000));
        first[g + 1] = first[g] + MAX_CHOICES;
        for (size_t i = 0; i < MAX_CHOICES; i++)
            choices[first[g] + i] = (struct doc_choice){
                size * bits[i], (int64_t)(scale * (1 + (double)rng_float(r, 0, 0.1f)) /
                                          (double)(bits[i] * bits[i]))};
    }
}

static void test_sweeps(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 30; n++) {
        struct rng r = rng_open(rng_seed(), 200000 + n);
        make_sweep(&r, 20 + rng_below(&r, n < 25 ? 80 : MAX_GROUPS - 20), n % 3 == 0);
        struct doc_selection s = {.chosen = chosen};
        size_t limit = knapsack.n_groups * (8 + rng_below(&r, 80));
        struct status_why why = {""};
        enum status status = doc_knapsack_solve(&knapsack, (int64_t)limit, 0, &s, &why);
        int64_t best = by_table(limit);
        assert_int_equal(status, best < INT64_MAX / 4 ? STATUS_OK : STATUS_USAGE);
        if (status)
            continue;
        check_sums(&s);
        assert_true(s.weight <= (int64_t)limit && s.cost == best && s.bound == best);
    }
}

/* With few states: what is proved is true, and what is found is within the limit. */
static void test_few_states(void **state)
{
    (void)state;
    size_t n_cut = 0;
    for (uint64_t n = 0; n < 30; n++) {
        struct rng r = rng_open(rng_seed(), 300000 + n);
        make_sweep(&r, 200, n % 2 == 0);
        struct doc_selection s = {.chosen = chosen};
        size_t limit = 200 * (20 + rng_below(&r, 40));
        assert_int_equal(doc_knapsack_solve(&knapsack, (int64_t)limit, 1 + n, &s, NULL), STATUS_OK);
        int64_t best = by_table(limit);
        check_sums(&s);
        assert_true(s.weight <= (int64_t)limit && s.bound <= best && best <= s.cost);
        n_cut += s.bound < s.cost;
    }
    assert_true(n_cut > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_selections),
        cmocka_unit_test(test_front),
        cmocka_unit_test(test_sweeps),
        cmocka_unit_test(test_few_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
