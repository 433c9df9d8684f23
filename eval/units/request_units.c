/* Requests as units of a run: their sequences are grouped by what beginnings they share. */
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "eval/units/requests.h"

static struct eval_request_scores *of(const struct eval_units *units)
{
    return (struct eval_request_scores *)(uintptr_t)units;
}

static struct eval_size longest(const struct eval_units *units, size_t *n_sequences)
{
    const struct eval_sequences *all = &of(units)->sequences;
    size_t n = 0;
    *n_sequences = 0;
    for (size_t i = 0; i < all->n; i++)
        if (all->items[i].owner >= units->n_finished) {
            n = base_max(n, all->items[i].n_tokens - 1);
            ++*n_sequences;
        }
    return (struct eval_size){.n_tokens = n, .n_rows = n, .longest = n};
}

/** Finished are the requests before the first of which a sequence is left. */
static void count_finished(struct eval_units *units)
{
    while (units->n_finished < units->n && of(units)->items[units->n_finished].n_left == 0)
        units->n_finished++;
}

/** Nothing is left of the requests that the journal had: their sequences go. */
static enum status make_items(struct eval_units *units, struct status_why *why)
{
    struct eval_request_scores *r = of(units);
    struct eval_sequences *all = &r->sequences;
    size_t first = 0;
    while (first < all->n && all->items[first].owner < units->n_finished)
        first++;
    if (first)
        memmove(all->items, all->items + first, (all->n - first) * sizeof *all->items);
    all->n -= first;
    free(all->groups);
    all->groups = NULL;
    enum status status = eval_sequences_group(all, units->batch_tokens, why);
    count_finished(units);
    return status;
}

static double n_bytes(const struct eval_units *units)
{
    const struct eval_sequences *all = &of(units)->sequences;
    double n = 0;
    for (size_t i = 0; i < all->n; i++)
        n += (double)all->items[i].n_tokens * sizeof(double);
    return n;
}

static void finish(struct eval_units *units, size_t item)
{
    struct eval_request_scores *r = of(units);
    const struct eval_sequence_group *group = &r->sequences.groups[item];
    for (size_t i = group->first; i < group->first + group->n; i++) {
        const struct eval_sequence *sequence = &r->sequences.items[i];
        struct eval_request_score *s = &r->items[sequence->owner];
        s->greedy = s->greedy && sequence->greedy;
        s->n_left--;
    }
    count_finished(units);
}

static size_t n_values(const struct eval_units *units, size_t unit)
{
    return of(units)->items[unit].n_scored + 1;
}

static enum status save(const struct eval_units *units, size_t unit, double *values,
                        struct status_why *why)
{
    (void)why;
    const struct eval_request_score *s = &of(units)->items[unit];
    memcpy(values, s->log_probs, s->n_scored * sizeof *values);
    values[s->n_scored] = s->greedy;
    return STATUS_OK;
}

static enum status restore(struct eval_units *units, size_t unit, const double *values,
                           bool *restored, struct status_why *why)
{
    (void)why;
    struct eval_request_score *s = &of(units)->items[unit];
    memcpy(s->log_probs, values, s->n_scored * sizeof *values);
    s->greedy = values[s->n_scored] == 1;
    s->n_left = 0;
    *restored = true;
    return STATUS_OK;
}

static const struct eval_unit_kind kind = {
    .name = "request",
    .longest = longest,
    .make_items = make_items,
    .check_ids = eval_sequences_check_ids,
    .n_bytes = n_bytes,
    .size = eval_group_size,
    .lay = eval_group_lay,
    .take = eval_group_take,
    .finish = finish,
    .n_values = n_values,
    .save = save,
    .restore = restore,
};

void eval_request_units_open(struct eval_request_scores *scores)
{
    scores->sequences.units = (struct eval_units){.kind = &kind, .n = scores->n};
}
