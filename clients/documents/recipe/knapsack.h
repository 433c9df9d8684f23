/**
 * The multiple-choice knapsack, solved exactly: of each group one choice, so that the sum of the
 * weights is within a limit and the sum of the costs is least.
 *
 * The relaxed problem, in which a group may be a mixture of two choices, is solved by taking the
 * steepest steps of the groups' lower convex hulls first. Around its solution the groups are added
 * one by one to a list of states, those nearest to the steepness at the limit first. A state is
 * dropped where another one is no heavier and no dearer, or where the hulls prove that nothing
 * better than the best solution so far can come of it. After Dyer and Zemel (1984) and Pisinger
 * (1995). All in integers, so that what is proved is true.
 */
#ifndef DOCUMENTS_RECIPE_KNAPSACK_H
#define DOCUMENTS_RECIPE_KNAPSACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/** A choice of a group. Either may be negative. */
struct doc_choice {
    int64_t weight, cost;
};

/** The sums of the largest absolute weights and costs of the groups are below 2^62. */
struct doc_knapsack {
    size_t n_groups;
    const size_t *first;              /* [n_groups + 1]: choices first[g] to first[g + 1] - 1 */
    const struct doc_choice *choices; /* a group has one at least */
};

/** What was found. Numbers of choices count from the first of their group. */
struct doc_selection {
    size_t *chosen; /* [n_groups], the caller's */
    int64_t weight, cost;
    int64_t bound; /* nothing within the limit costs less; the cost itself: this is the optimum */
};

/** States that are kept at most, of 12 bytes each. */
enum { DOC_KNAPSACK_STATES = 1 << 22 };

/**
 * The cheapest selection within `limit`. max_states: where they do not suffice the best selection
 * that was found is returned, and `bound` is what is proved; 0: DOC_KNAPSACK_STATES.
 * Any of the selections that cost the same may be returned, the same one each time.
 * Fails: STATUS_USAGE (the lightest selection is above the limit: it is returned), STATUS_MEMORY.
 */
enum status doc_knapsack_solve(const struct doc_knapsack *k, int64_t limit, size_t max_states,
                               struct doc_selection *out, struct status_why *why);

/** A step of the front: this group takes this choice instead of the one it had. */
struct doc_step {
    size_t group, choice;
    int64_t weight, cost; /* what the step adds: more weight, less cost */
};

/**
 * The front: the lightest selection (of those the cheapest), and steps up to the cheapest one.
 * The selection after any number of steps is the cheapest one of its weight or less.
 * steps: the caller frees it.   Fails: STATUS_MEMORY.
 */
enum status doc_knapsack_front(const struct doc_knapsack *k, struct doc_selection *lightest,
                               struct doc_step **steps, size_t *n_steps, struct status_why *why);

#endif
