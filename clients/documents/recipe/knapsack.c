#include "clients/documents/recipe/knapsack.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

__extension__ typedef __int128 wide;

/** Cost that is saved or added for a weight above 0. Weight 0: no such choice is left. */
struct slope {
    int64_t cost, weight;
};

/** A group beside the choice that it has in the relaxed solution. */
struct core_group {
    size_t group;
    double distance; /* of its nearest choice from the steepness at the limit */
    /* What a heavier choice saves at most, and a lighter one adds at least, in this group and all
       after it. */
    struct slope saved, added;
};

/** A selection: the groups before this one are chosen, those after it are as relaxed. */
struct state {
    int64_t weight, cost;
    uint32_t parent, choice; /* the node that it comes from, and what its last group took */
};

/** A choice other than the relaxed one, and the choices before it. */
struct node {
    uint32_t parent, group, choice;
};

struct solver {
    const struct doc_knapsack *k;
    int64_t limit;
    struct doc_selection *best;
    size_t *relaxed; /* [n_groups] */
    int64_t weight, cost;
    struct slope steepness; /* at the limit */
    struct core_group *core;
    size_t n_core;
    struct state *states, *next;
    size_t n_states, n_next, capacity, next_capacity;
    struct node *nodes; /* number 0 is not used */
    size_t n_nodes, node_capacity, max_nodes;
    struct state best_state; /* its last choice is of group best_group; SIZE_MAX: of none */
    size_t best_group;
};

static bool is_steeper(struct slope a, struct slope b)
{
    return (wide)a.cost * b.weight > (wide)b.cost * a.weight;
}

static const struct doc_choice *choice_of(const struct solver *s, size_t group, size_t choice)
{
    return &s->k->choices[s->k->first[group] + choice];
}

static size_t n_choices(const struct solver *s, size_t group)
{
    return s->k->first[group + 1] - s->k->first[group];
}

/* What a choice adds to the relaxed one. */
static struct doc_choice beside(const struct solver *s, size_t group, size_t choice)
{
    const struct doc_choice *c = choice_of(s, group, choice),
                            *r = choice_of(s, group, s->relaxed[group]);
    return (struct doc_choice){c->weight - r->weight, c->cost - r->cost};
}

/*
 * Nothing that comes of a selection costs less. With weight to spare, at most `saved` is saved by
 * each unit of it; above the limit, each unit that must go adds `added` at least.
 */
static wide bound_of(const struct solver *s, int64_t weight, int64_t cost, struct slope saved,
                     struct slope added)
{
    wide spare = (wide)s->limit - weight;
    if (spare >= 0)
        return saved.weight ? cost - saved.cost * spare / saved.weight : cost;
    if (!added.weight)
        return (wide)1 << 100; /* it stays above the limit */
    return cost + (added.cost * -spare + added.weight - 1) / added.weight;
}

/* The relaxed solution without its mixture: steps as long as they fit. */
static enum status relax(struct solver *s, struct status_why *why)
{
    struct doc_step *steps;
    size_t n, i;
    enum status status = doc_knapsack_front(s->k, s->best, &steps, &n, why);
    if (status)
        return status;
    if (s->best->weight > s->limit)
        status = status_fail(why, STATUS_USAGE, "the lightest selection is above the limit");
    for (i = 0; i < n && !status && steps[i].weight <= s->limit - s->best->weight; i++) {
        s->best->chosen[steps[i].group] = steps[i].choice;
        s->best->weight += steps[i].weight;
        s->best->cost += steps[i].cost;
    }
    if (i < n)
        s->steepness = (struct slope){-steps[i].cost, steps[i].weight};
    free(steps);
    memcpy(s->relaxed, s->best->chosen, s->k->n_groups * sizeof *s->relaxed);
    s->weight = s->best->weight;
    s->cost = s->best->cost;
    return status;
}

/* A first good selection: the step that saves most of those that still fit, again and again. */
static void fill_up(struct solver *s)
{
    enum { MOST_STEPS = 100 }; /* more of them would only save a few states */
    struct doc_selection *b = s->best;
    for (int i = 0; i < MOST_STEPS; i++) {
        size_t group = SIZE_MAX, choice = 0;
        struct doc_choice most = {0};
        for (size_t g = 0; g < s->k->n_groups; g++)
            for (size_t c = 0; c < n_choices(s, g); c++) {
                const struct doc_choice *to = choice_of(s, g, c),
                                        *from = choice_of(s, g, b->chosen[g]);
                if (to->weight - from->weight > s->limit - b->weight ||
                    to->cost - from->cost >= most.cost)
                    continue;
                most = (struct doc_choice){to->weight - from->weight, to->cost - from->cost};
                group = g;
                choice = c;
            }
        if (group == SIZE_MAX)
            return;
        b->chosen[group] = choice;
        b->weight += most.weight;
        b->cost += most.cost;
    }
}

/* Whether a choice beside the relaxed one can be part of a better selection than the best. */
static bool is_open(const struct solver *s, struct doc_choice c)
{
    return bound_of(s, s->weight + c.weight, s->cost + c.cost, s->steepness, s->steepness) <
           s->best->cost;
}

static void add_slope(struct core_group *g, struct doc_choice c)
{
    if (c.weight > 0 && c.cost < 0) {
        struct slope slope = {-c.cost, c.weight};
        if (!g->saved.weight || is_steeper(slope, g->saved))
            g->saved = slope;
    } else if (c.weight < 0) {
        struct slope slope = {c.cost, -c.weight};
        if (!g->added.weight || is_steeper(g->added, slope))
            g->added = slope;
    }
}

static double value_of(struct slope s)
{
    return (double)s.cost / (double)s.weight;
}

static int by_distance(const void *x, const void *y)
{
    const struct core_group *a = x, *b = y;
    if (a->distance < b->distance || a->distance > b->distance)
        return a->distance < b->distance ? -1 : 1;
    return a->group < b->group ? -1 : 1;
}

/* The groups that have an open choice, the nearest first. */
static enum status make_core(struct solver *s, struct status_why *why)
{
    if (base_array_new(s->core, s->k->n_groups + 1, "groups", why))
        return STATUS_MEMORY;
    for (size_t group = 0; group < s->k->n_groups; group++) {
        struct core_group g = {.group = group};
        for (size_t c = 0; c < n_choices(s, group); c++)
            if (is_open(s, beside(s, group, c)))
                add_slope(&g, beside(s, group, c));
        if (!g.saved.weight && !g.added.weight)
            continue;
        double at = value_of(s->steepness);
        double below = g.saved.weight ? at - value_of(g.saved) : (double)INT64_MAX;
        double above = g.added.weight ? value_of(g.added) - at : (double)INT64_MAX;
        g.distance = below < above ? below : above;
        s->core[s->n_core++] = g;
    }
    qsort(s->core, s->n_core, sizeof *s->core, by_distance);
    s->core[s->n_core] = (struct core_group){0};
    for (size_t i = s->n_core; i-- > 0;) {
        struct core_group *g = &s->core[i], *next = &s->core[i + 1];
        if (next->saved.weight && (!g->saved.weight || is_steeper(next->saved, g->saved)))
            g->saved = next->saved;
        if (next->added.weight && (!g->added.weight || is_steeper(g->added, next->added)))
            g->added = next->added;
    }
    return STATUS_OK;
}

static int by_weight(const void *x, const void *y)
{
    const struct state *a = x, *b = y;
    if (a->weight != b->weight)
        return a->weight < b->weight ? -1 : 1;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    return (a->choice > b->choice) - (a->choice < b->choice);
}

/* Whether a state with groups up to core[at - 1] can become the best selection. */
static bool is_alive(const struct solver *s, const struct state *state, size_t at)
{
    return bound_of(s, state->weight, state->cost, s->core[at].saved, s->core[at].added) <
           s->best->cost;
}

/* All states with each open choice of the group core[at]. */
static enum status extend(struct solver *s, size_t at, struct status_why *why)
{
    size_t group = s->core[at].group;
    s->n_next = 0;
    for (size_t c = 0; c < n_choices(s, group); c++) {
        struct doc_choice add = beside(s, group, c);
        if (c != s->relaxed[group] && !is_open(s, add))
            continue;
        if (base_array_reserve(s->next, s->next_capacity, s->n_next + s->n_states,
                               "states of a recipe", why))
            return STATUS_MEMORY;
        for (size_t i = 0; i < s->n_states; i++) {
            struct state to = {s->states[i].weight + add.weight, s->states[i].cost + add.cost,
                               s->states[i].parent, (uint32_t)c};
            if (to.weight <= s->limit && to.cost < s->best->cost) {
                s->best_state = to;
                s->best_group = group;
                s->best->weight = to.weight;
                s->best->cost = to.cost;
            }
            if (is_alive(s, &to, at + 1))
                s->next[s->n_next++] = to;
        }
    }
    return STATUS_OK;
}

/* Keep what no other state is better than, and note what each of them chose. */
static enum status reduce(struct solver *s, size_t at, struct status_why *why)
{
    size_t group = s->core[at].group, n = 0;
    qsort(s->next, s->n_next, sizeof *s->next, by_weight);
    for (size_t i = 0; i < s->n_next; i++)
        if ((n == 0 || s->next[i].cost < s->next[n - 1].cost) && is_alive(s, &s->next[i], at + 1))
            s->next[n++] = s->next[i];
    if (base_array_reserve(s->nodes, s->node_capacity, s->n_nodes + n + 1, "nodes of a recipe",
                           why) ||
        base_array_reserve(s->states, s->capacity, n + 1, "states of a recipe", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < n; i++) {
        struct state *state = &s->states[i];
        *state = s->next[i];
        if (state->choice == s->relaxed[group])
            continue;
        s->nodes[++s->n_nodes] = (struct node){state->parent, (uint32_t)group, state->choice};
        state->parent = (uint32_t)s->n_nodes;
    }
    s->n_states = n;
    return STATUS_OK;
}

/* What is proved when the states in front of core[at] are not gone through. */
static int64_t proved(const struct solver *s, size_t at)
{
    wide bound = s->best->cost;
    for (size_t i = 0; i < s->n_states; i++) {
        const struct state *state = &s->states[i];
        wide b = bound_of(s, state->weight, state->cost, s->core[at].saved, s->core[at].added);
        bound = b < bound ? b : bound;
    }
    return (int64_t)bound;
}

/* The choices that lead to the best state, where one was found. */
static void trace_back(const struct solver *s)
{
    if (s->best_group == SIZE_MAX)
        return;
    memcpy(s->best->chosen, s->relaxed, s->k->n_groups * sizeof *s->relaxed);
    s->best->chosen[s->best_group] = s->best_state.choice;
    for (uint32_t n = s->best_state.parent; n; n = s->nodes[n].parent)
        s->best->chosen[s->nodes[n].group] = s->nodes[n].choice;
}

static enum status search(struct solver *s, struct status_why *why)
{
    enum status status = make_core(s, why);
    if (!status)
        status = base_array_reserve(s->states, s->capacity, 1, "states of a recipe", why);
    if (status)
        return status;
    s->states[0] = (struct state){s->weight, s->cost, 0, 0};
    s->n_states = 1;
    size_t at = 0;
    for (; at < s->n_core && s->n_states && s->n_nodes + s->n_states <= s->max_nodes && !status;
         at++) {
        status = extend(s, at, why);
        if (!status)
            status = reduce(s, at, why);
    }
    if (!status)
        s->best->bound = proved(s, at);
    trace_back(s);
    return status;
}

enum status doc_knapsack_solve(const struct doc_knapsack *k, int64_t limit, size_t max_states,
                               struct doc_selection *out, struct status_why *why)
{
    struct solver s = {.k = k,
                       .limit = limit,
                       .best = out,
                       .max_nodes = max_states ? max_states : DOC_KNAPSACK_STATES,
                       .best_group = SIZE_MAX};
    s.relaxed = malloc((k->n_groups + 1) * sizeof *s.relaxed);
    enum status status =
        s.relaxed ? relax(&s, why)
                  : status_fail(why, STATUS_MEMORY, "out of memory for %zu groups", k->n_groups);
    out->bound = out->cost;
    if (!status && s.steepness.weight) { /* else everything that saves anything fits */
        fill_up(&s);
        status = search(&s, why);
    }
    free(s.relaxed);
    free(s.core);
    free(s.states);
    free(s.next);
    free(s.nodes);
    return status;
}
