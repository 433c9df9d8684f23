/**
 * Trials as units of a run: one variant of a model on the windows of one batch. A batch passes
 * through all variants before the next one begins, so that what enters a layer is kept for all
 * of them. A trial ends in the tally of its variant, of all batches up to its own: what assay kld
 * makes of the same windows, with the same bits.
 */
#ifndef EVAL_UNITS_TRIALS_H
#define EVAL_UNITS_TRIALS_H

#include "eval/input/window.h"
#include "eval/metrics/kld.h"
#include "eval/run/unit.h"

/** A variant after some batches. */
struct eval_trial {
    struct eval_kld_tally tally;
    struct base_moments excess; /* KLD less that of the reference, token by token */
};

/**
 * Fill in the first part, then call eval_trials_open; everything is borrowed. Two heads are scored:
 * the base's and the candidate's. Variants should be in the order of their stages.
 */
struct eval_trials {
    struct eval_units units;
    const struct eval_plan *plan;
    const struct eval_stream *stream;
    size_t batch_windows; /* of each batch but the last */
    size_t n_variants;
    const double *costs; /* [n_variants] of a window */
    bool has_reference;  /* variant 0 is the candidate itself; the others are paired with it */

    /* The units' own. */

    size_t first_unit;       /* that item 0 is */
    struct eval_trial *done; /* [units] */
    double *reference;       /* [scored tokens of all windows]: KLD of the reference */
    double **taken;          /* [units]: scores of tokens on their way into a tally */
    bool out_of_memory;      /* for some of them */
};

/** Fails: STATUS_MEMORY. Close it in any case. */
enum status eval_trials_open(struct eval_trials *trials, struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_trials_close(struct eval_trials *trials);

/**
 * A variant after all batches that all variants have been through; while there is none, after the
 * first one. NULL: not even that.
 */
const struct eval_trial *eval_trials_result(const struct eval_trials *trials, size_t variant);

#endif
