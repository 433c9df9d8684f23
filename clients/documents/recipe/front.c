/* The relaxed problem: lower convex hulls of the groups, and all their steps by steepness. */
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "clients/documents/recipe/knapsack.h"

__extension__ typedef __int128 wide;

/* By weight, and of the same weight by cost. */
static int lighter(const struct doc_choice *a, const struct doc_choice *b)
{
    if (a->weight != b->weight)
        return a->weight < b->weight ? -1 : 1;
    return (a->cost > b->cost) - (a->cost < b->cost);
}

/* Steeper first; then by group and weight, so that the order is the same in every run. */
static int by_steepness(const void *x, const void *y)
{
    const struct doc_step *a = x, *b = y;
    wide of_a = (wide)a->cost * b->weight, of_b = (wide)b->cost * a->weight;
    if (of_a != of_b)
        return of_a < of_b ? -1 : 1;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->choice > b->choice) - (a->choice < b->choice);
}

/* Whether a lies on the line from `from` to b, or above it. */
static bool is_above(const struct doc_choice *from, const struct doc_choice *a,
                     const struct doc_choice *b)
{
    return (wide)(a->cost - from->cost) * (b->weight - from->weight) >=
           (wide)(b->cost - from->cost) * (a->weight - from->weight);
}

/*
 * The steps of a group from its lightest choice on: each goes to the choice that is reached most
 * steeply from the last one. Returns how many; *lightest is where they begin.
 */
static size_t steps_of(const struct doc_knapsack *k, size_t group, size_t *lightest,
                       struct doc_step *out)
{
    const struct doc_choice *c = k->choices + k->first[group];
    size_t n = k->first[group + 1] - k->first[group], at = 0, n_steps = 0;
    for (size_t i = 1; i < n; i++)
        if (lighter(&c[i], &c[at]) < 0)
            at = i;
    *lightest = at;
    for (;;) {
        size_t next = at;
        for (size_t i = 0; i < n; i++) {
            if (c[i].weight <= c[at].weight || c[i].cost >= c[at].cost)
                continue;
            /* The heaviest of the choices on one line is taken. */
            bool steeper = next == at || !is_above(&c[at], &c[i], &c[next]);
            bool farther =
                next != at && is_above(&c[at], &c[next], &c[i]) && lighter(&c[next], &c[i]) < 0;
            if (steeper || farther)
                next = i;
        }
        if (next == at)
            return n_steps;
        out[n_steps++] = (struct doc_step){group, next, c[next].weight - c[at].weight,
                                           c[next].cost - c[at].cost};
        at = next;
    }
}

enum status doc_knapsack_front(const struct doc_knapsack *k, struct doc_selection *lightest,
                               struct doc_step **steps, size_t *n_steps, struct status_why *why)
{
    *n_steps = 0;
    if (base_array_new(*steps, k->first[k->n_groups] + 1, "choices", why))
        return STATUS_MEMORY;
    lightest->weight = lightest->cost = 0;
    for (size_t g = 0; g < k->n_groups; g++) {
        *n_steps += steps_of(k, g, &lightest->chosen[g], *steps + *n_steps);
        const struct doc_choice *c = &k->choices[k->first[g] + lightest->chosen[g]];
        lightest->weight += c->weight;
        lightest->cost += c->cost;
    }
    lightest->bound = lightest->cost;
    qsort(*steps, *n_steps, sizeof **steps, by_steepness);
    return STATUS_OK;
}
