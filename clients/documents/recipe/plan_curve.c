#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/documents/recipe/plan.h"

static enum status add_point(struct doc_plan_curve *curve, const struct doc_plan *p,
                             const size_t *chosen, struct status_why *why)
{
    struct doc_plan_point *point = &curve->points[curve->n];
    if (base_array_new(point->chosen, p->sweep->n_groups, "groups", why))
        return STATUS_MEMORY;
    memcpy(point->chosen, chosen, p->sweep->n_groups * sizeof *chosen);
    point->figures = doc_plan_figures(p, chosen);
    curve->n++;
    return STATUS_OK;
}

/* For each of n_wanted sizes the steps of the front that fit. */
static enum status walk(struct doc_plan_curve *curve, const struct doc_plan *p, size_t n_wanted,
                        const struct doc_knapsack *k, struct status_why *why)
{
    struct doc_selection at = {0};
    struct doc_step *steps = NULL;
    size_t n_steps = 0;
    enum status status = base_array_new(at.chosen, k->n_groups, "groups", why);
    if (!status)
        status = doc_knapsack_front(k, &at, &steps, &n_steps, why);
    int64_t range = 0, weight = 0;
    for (size_t t = 0; t < n_steps; t++)
        range += steps[t].weight;
    for (size_t i = 0, t = 0, last = SIZE_MAX; i < n_wanted && !status; i++) {
        double limit = (double)range * (double)i / (double)(n_wanted - 1);
        for (; t < n_steps && (i + 1 == n_wanted || (double)(weight + steps[t].weight) <= limit);
             t++) {
            at.chosen[steps[t].group] = steps[t].choice;
            weight += steps[t].weight;
        }
        if (t != last)
            status = add_point(curve, p, at.chosen, why);
        last = t;
    }
    free(steps);
    free(at.chosen);
    return status;
}

enum status doc_plan_curve_make(struct doc_plan_curve *out, const struct doc_plan *p,
                                size_t n_wanted, struct status_why *why)
{
    struct doc_choice *choices = NULL;
    *out = (struct doc_plan_curve){0};
    enum status status = base_array_new(out->points, n_wanted, "points", why);
    if (!status)
        status = doc_plan_choices(p, NULL, &choices, why);
    if (!status)
        status = walk(out, p, n_wanted,
                      &(struct doc_knapsack){p->sweep->n_groups, p->first, choices}, why);
    free(choices);
    return status;
}

void doc_plan_curve_free(struct doc_plan_curve *curve)
{
    for (size_t i = 0; i < curve->n; i++)
        free(curve->points[i].chosen);
    free(curve->points);
    *curve = (struct doc_plan_curve){0};
}
