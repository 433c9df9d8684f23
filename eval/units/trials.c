#include "eval/units/trials.h"

#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "eval/units/windows.h"

/** What is taken of a token: struct eval_kld_token as numbers. */
enum { N_SCORES = 4 };

static const struct eval_trials *of(const struct eval_units *units)
{
    return (const struct eval_trials *)units;
}

static size_t first_window(const struct eval_trials *t, size_t unit)
{
    return unit / t->n_variants * t->batch_windows;
}

static size_t n_windows(const struct eval_trials *t, size_t unit)
{
    return base_min(t->batch_windows, t->plan->n_windows - first_window(t, unit));
}

/** How many tokens of the windows before w are scored. */
static size_t row_of(const struct eval_trials *t, size_t w)
{
    return eval_plan_row(t->plan, w);
}

static struct eval_size size(const struct eval_units *units, size_t item)
{
    const struct eval_trials *t = of(units);
    size_t unit = t->first_unit + item, first = first_window(t, unit), n = n_windows(t, unit);
    size_t n_rows = row_of(t, first + n) - row_of(t, first);
    struct eval_size s = {.n_segments = n, .n_rows = n_rows, .n_targets = n_rows};
    for (size_t w = first; w < first + n; w++) {
        s.n_tokens += eval_plan_n_inputs(t->plan, w);
        s.longest = base_max(s.longest, eval_plan_n_inputs(t->plan, w));
    }
    return s;
}

/** Batches are laid already: there is nothing to choose. */
static struct eval_size longest(const struct eval_units *units, size_t *n_sequences)
{
    const struct eval_plan *plan = of(units)->plan;
    *n_sequences = 0;
    return (struct eval_size){.n_tokens = plan->n_inputs,
                              .n_segments = 1,
                              .n_rows = plan->n_scored,
                              .n_targets = plan->n_scored,
                              .longest = plan->n_inputs};
}

static enum status make_items(struct eval_units *units, struct status_why *why)
{
    (void)why;
    ((struct eval_trials *)units)->first_unit = units->n_finished;
    units->n_items = units->n - units->n_finished;
    return STATUS_OK;
}

static enum status check_ids(const struct eval_units *units, const struct model *model,
                             struct status_why *why)
{
    return eval_window_check_ids(of(units)->plan, of(units)->stream, model, why);
}

static double n_bytes(const struct eval_units *units)
{
    const struct eval_trials *t = of(units);
    double scored = (double)row_of(t, t->plan->n_windows);
    double batch = (double)t->batch_windows * (double)t->plan->n_scored;
    return (double)units->n * (sizeof *t->done + sizeof *t->taken) + scored * sizeof(double) +
           2 * batch * N_SCORES * sizeof(double);
}

static size_t variant(const struct eval_units *units, size_t item)
{
    return (of(units)->first_unit + item) % of(units)->n_variants;
}

static double cost(const struct eval_units *units, size_t item)
{
    const struct eval_trials *t = of(units);
    return t->costs[variant(units, item)] * (double)n_windows(t, t->first_unit + item);
}

static void lay(const struct eval_units *units, size_t item, struct eval_batch *batch)
{
    const struct eval_trials *t = of(units);
    size_t unit = t->first_unit + item, first = first_window(t, unit);
    for (size_t w = first; w < first + n_windows(t, unit); w++)
        eval_window_lay(t->plan, t->stream, w, batch);
}

static void take(struct eval_units *units, size_t item, const struct eval_scores *scores)
{
    struct eval_trials *t = (struct eval_trials *)units;
    size_t n = size(units, item).n_rows;
    double *to = t->taken[t->first_unit + item] = malloc(n * N_SCORES * sizeof *to);
    for (size_t i = 0; to && i < n; i++, to += N_SCORES) {
        size_t row = scores->row_stride + i;
        to[0] = scores->targets[i].log_prob;
        to[1] = scores->targets[scores->target_stride + i].log_prob;
        to[2] = scores->pairs[row].kl;
        to[3] = scores->rows[row].argmax == scores->rows[i].argmax;
    }
}

static bool is_reference(const struct eval_trials *t, size_t unit)
{
    return t->has_reference && unit % t->n_variants == 0;
}

/** The reference's KLDs of the batch. */
static double *reference_of(const struct eval_trials *t, size_t unit)
{
    return t->reference + row_of(t, first_window(t, unit));
}

static void finish(struct eval_units *units, size_t item)
{
    struct eval_trials *t = (struct eval_trials *)units;
    size_t unit = t->first_unit + item;
    struct eval_trial *trial = &t->done[unit];
    const double *scores = t->taken[unit];
    double *reference = reference_of(t, unit);
    if (unit >= t->n_variants)
        *trial = t->done[unit - t->n_variants];
    t->out_of_memory |= !scores;
    size_t w = first_window(t, unit);
    for (size_t i = 0; scores && i < size(units, item).n_rows; i++, scores += N_SCORES) {
        const struct eval_kld_token token = {scores[0], scores[1], scores[2], scores[3]};
        while (i >= row_of(t, w + 1) - row_of(t, first_window(t, unit)))
            w++;
        eval_kld_tally_lot(&trial->tally, eval_plan_lot(t->plan, w));
        base_moments_lot(&trial->excess, eval_plan_lot(t->plan, w));
        eval_kld_tally_token(&trial->tally, &token);
        if (is_reference(t, unit))
            reference[i] = token.kl;
        base_moments_add(&trial->excess, token.kl - (t->has_reference ? reference[i] : 0));
    }
    trial->tally.n_windows += n_windows(t, unit);
    free(t->taken[unit]);
    t->taken[unit] = NULL;
    units->n_finished++;
}

/* The journal's entry: the trial as numbers; of the reference, also its KLDs of the batch. */

enum { N_STATE = sizeof(struct eval_trial) / sizeof(double) };
_Static_assert(sizeof(struct eval_trial) % sizeof(double) == 0, "no part of a number");

static size_t n_reference(const struct eval_trials *t, size_t unit)
{
    size_t first = first_window(t, unit);
    return is_reference(t, unit) ? row_of(t, first + n_windows(t, unit)) - row_of(t, first) : 0;
}

static size_t n_values(const struct eval_units *units, size_t unit)
{
    return N_STATE + n_reference(of(units), unit);
}

static enum status save(const struct eval_units *units, size_t unit, double *values,
                        struct status_why *why)
{
    (void)why;
    const struct eval_trials *t = of(units);
    memcpy(values, &t->done[unit], sizeof *t->done);
    memcpy(values + N_STATE, reference_of(t, unit), n_reference(t, unit) * sizeof *values);
    return STATUS_OK;
}

static enum status restore(struct eval_units *units, size_t unit, const double *values,
                           bool *restored, struct status_why *why)
{
    (void)why;
    const struct eval_trials *t = of(units);
    memcpy(&t->done[unit], values, sizeof *t->done);
    memcpy(reference_of(t, unit), values + N_STATE, n_reference(t, unit) * sizeof *values);
    *restored = true;
    return STATUS_OK;
}

static const struct eval_unit_kind kind = {
    .name = "trial",
    .longest = longest,
    .make_items = make_items,
    .check_ids = check_ids,
    .n_bytes = n_bytes,
    .size = size,
    .lay = lay,
    .cost = cost,
    .variant = variant,
    .take = take,
    .finish = finish,
    .n_values = n_values,
    .save = save,
    .restore = restore,
};

enum status eval_trials_open(struct eval_trials *t, struct status_why *why)
{
    size_t n_batches = (t->plan->n_windows + t->batch_windows - 1) / t->batch_windows, n;
    bool counted = !__builtin_mul_overflow(n_batches, t->n_variants, &n);
    t->units = (struct eval_units){.kind = &kind, .n = n};
    t->done = counted ? calloc(n + 1, sizeof *t->done) : NULL;
    t->taken = counted ? calloc(n + 1, sizeof *t->taken) : NULL;
    t->reference = calloc(row_of(t, t->plan->n_windows) + 1, sizeof *t->reference);
    return t->done && t->taken && t->reference
               ? STATUS_OK
               : status_fail(why, STATUS_MEMORY, "no memory for %zu trials", t->n_variants);
}

void eval_trials_close(struct eval_trials *t)
{
    for (size_t i = 0; t->taken && i < t->units.n; i++)
        free(t->taken[i]);
    free(t->taken);
    free(t->done);
    free(t->reference);
    t->taken = NULL;
    t->done = NULL;
    t->reference = NULL;
}

const struct eval_trial *eval_trials_result(const struct eval_trials *t, size_t variant)
{
    size_t whole = t->units.n_finished / t->n_variants;
    if (whole)
        return &t->done[(whole - 1) * t->n_variants + variant];
    return variant < t->units.n_finished ? &t->done[variant] : NULL;
}
