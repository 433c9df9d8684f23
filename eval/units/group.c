/* Which sequences share a beginning: the division that leaves the fewest tokens to evaluate. */
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "eval/units/sequences.h"

enum { MAX_GROUP = 1024 }; /* sequences; bounds the search */

static int compare_numbers(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

/** Long ones apart, then by bytes: any order will do that brings equal beginnings side by side. */
static int compare_sequences(const void *left, const void *right)
{
    const struct eval_sequence *a = left, *b = right;
    size_t n = base_min(a->n_tokens, b->n_tokens);
    int order = compare_numbers(a->is_long, b->is_long);
    if (order == 0)
        order = memcmp(a->ids, b->ids, n * sizeof *a->ids);
    if (order == 0)
        order = compare_numbers(a->n_tokens, b->n_tokens);
    if (order == 0)
        order = compare_numbers(a->first_scored, b->first_scored);
    return order ? order : compare_numbers(a->owner, b->owner);
}

/** Tokens that both begin with and evaluate: the last token of neither. */
static size_t n_common(const struct eval_sequence *a, const struct eval_sequence *b)
{
    size_t i = 0;
    if (a->is_long != b->is_long)
        return 0;
    while (i + 1 < a->n_tokens && i + 1 < b->n_tokens && a->ids[i] == b->ids[i])
        i++;
    return i;
}

/** The best division of the first sequences: its cost, and its last group. */
struct division {
    size_t cost; /* tokens to evaluate */
    struct eval_sequence_group last;
};

/** Extend divisions by the groups that end with sequence `end` - 1; best[end] is the result. */
static void divide(struct division *best, const struct eval_sequence *s, const size_t *common,
                   size_t end, size_t max_tokens)
{
    size_t first = end - 1, own = s[first].n_tokens - 1, shared = 0;
    best[end] = (struct division){best[first].cost + own, {first, 1, 0, 0}};
    for (size_t n = 2; first > 0 && n <= MAX_GROUP; n++) {
        size_t c = common[first--];
        shared = n == 2 || c < shared ? c : shared;
        if (shared == 0)
            return;
        own += s[first].n_tokens - 1;
        size_t cost = own - (n - 1) * shared;
        if (cost > max_tokens)
            return;
        if (best[first].cost + cost < best[end].cost)
            best[end] = (struct division){best[first].cost + cost, {first, n, shared, 0}};
    }
}

static int compare_groups(const void *left, const void *right)
{
    const struct eval_sequence_group *a = left, *b = right;
    int order = compare_numbers(a->owner, b->owner);
    return order ? order : compare_numbers(a->first, b->first);
}

/** Take the groups of the best division, last to first, and put them in order. */
static void take_groups(struct eval_sequences *out, const struct division *best)
{
    for (size_t end = out->n; end > 0; end = best[end].last.first) {
        struct eval_sequence_group *g = &out->groups[out->units.n_items++];
        *g = best[end].last;
        g->owner = out->items[g->first].owner;
        for (size_t i = g->first; i < end; i++)
            g->owner = base_min(g->owner, out->items[i].owner);
    }
    qsort(out->groups, out->units.n_items, sizeof *out->groups, compare_groups);
}

enum status eval_sequences_group(struct eval_sequences *out, size_t max_tokens,
                                 struct status_why *why)
{
    size_t n = out->n;
    out->units.n_items = 0;
    struct division *best = calloc(n + 1, sizeof *best);
    size_t *common = calloc(n + 1, sizeof *common);
    out->groups = calloc(n + 1, sizeof *out->groups);
    enum status status = STATUS_OK;
    if (!best || !common || !out->groups) {
        status = status_fail(why, STATUS_MEMORY, "no memory to group %zu sequences", n);
    } else if (n) {
        for (size_t i = 0; i < n; i++)
            out->items[i].is_long = eval_sequence_is_long(&out->items[i], &out->units);
        qsort(out->items, n, sizeof *out->items, compare_sequences);
        for (size_t i = 1; i < n; i++)
            common[i] = n_common(&out->items[i - 1], &out->items[i]);
        for (size_t end = 1; end <= n; end++)
            divide(best, out->items, common, end, max_tokens);
        take_groups(out, best);
    }
    free(best);
    free(common);
    return status;
}
