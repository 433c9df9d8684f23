#include "imatrix/units.h"

static const struct imat_units *of(const struct eval_units *units)
{
    return (const struct imat_units *)(const void *)units->kind;
}

static const struct eval_windows *windows_of(const struct eval_units *units)
{
    return (const struct eval_windows *)units;
}

void imat_units_widen(struct eval_plan *plan)
{
    plan->n_inputs = plan->window;
}

/** A head of no rows is no head: there is one at least. */
static struct eval_size scored_size(const struct imat_units *u, struct eval_size n)
{
    if (u->scored == IMAT_SCORED_ALL)
        n.n_rows = n.n_tokens;
    if (u->scored == IMAT_SCORED_NONE)
        n.n_rows = n.n_targets = 1;
    return n;
}

static struct eval_size size(const struct eval_units *units, size_t item)
{
    return scored_size(of(units), of(units)->windows->size(units, item));
}

static struct eval_size longest(const struct eval_units *units, size_t *n_sequences)
{
    return scored_size(of(units), of(units)->windows->longest(units, n_sequences));
}

static double n_bytes(const struct eval_units *units)
{
    return of(units)->windows->n_bytes(units) + imat_collector_bytes(of(units)->collector);
}

/** A window without scores: its first row enters the head, because one has to. */
static void lay_bare(const struct eval_units *units, size_t w, struct eval_batch *batch)
{
    const struct eval_windows *windows = windows_of(units);
    size_t n = eval_plan_n_inputs(windows->plan, w);
    size_t start = eval_batch_add_segment(batch, n, 0, -1);
    for (size_t p = 0; p < n; p++)
        batch->tokens[start + p] = eval_plan_input(windows->plan, windows->stream, w, p);
    eval_batch_add_row(batch, start, 0);
    eval_batch_add_target(batch, batch->tokens[start]);
}

/** Positions that the plan does not score, after those that it does. */
static void lay_rest(const struct eval_units *units, size_t w, struct eval_batch *batch)
{
    const struct eval_plan *plan = windows_of(units)->plan;
    size_t start = batch->segments[batch->n.n_segments - 1].start, i = 0;
    size_t n_scored = eval_plan_n_scored(plan, w);
    for (size_t p = 0; p < eval_plan_n_inputs(plan, w); p++)
        if (i < n_scored && eval_plan_position(plan, w, i) == p)
            i++;
        else
            eval_batch_add_row(batch, start + p, 0);
}

static void lay(const struct eval_units *units, size_t item, struct eval_batch *batch)
{
    const struct imat_units *u = of(units);
    size_t w = windows_of(units)->left[item];
    imat_collector_begin(u->collector);
    if (u->scored == IMAT_SCORED_NONE)
        lay_bare(units, w, batch);
    else
        u->windows->lay(units, item, batch);
    if (u->scored == IMAT_SCORED_ALL)
        lay_rest(units, w, batch);
    batch->segments[batch->n.n_segments - 1].n_unwanted = 0;
}

static void take(struct eval_units *units, size_t item, const struct eval_scores *scores)
{
    if (of(units)->scored != IMAT_SCORED_NONE)
        of(units)->windows->take(units, item, scores);
}

void imat_units_begin(struct imat_units *u, struct eval_windows *windows,
                      struct imat_collector *collector, enum imat_scored scored)
{
    const struct eval_unit_kind *kind = windows->units.kind;
    *u = (struct imat_units){
        .kind = *kind, .windows = kind, .collector = collector, .scored = scored};
    u->kind.longest = longest;
    u->kind.n_bytes = n_bytes;
    u->kind.size = size;
    u->kind.lay = lay;
    u->kind.take = take;
    windows->units.kind = &u->kind;
}
