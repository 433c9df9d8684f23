/** One evaluation of what a server was asked: log-probabilities for all of its lists. */
#ifndef PROBE_PASS_H
#define PROBE_PASS_H

#include "clients/probe/ask/lists.h"
#include "clients/probe/exact/exact.h"

/** Zero-initialise but for what is wanted. */
struct probe_pass {
    const struct model *model;
    struct kern_backend *backend; /* of host memory */
    const struct probe_window *windows;
    const struct probe_lists *lists;
    enum probe_finding change; /* NO_BOS, TWO_BOS, TOKEN_LESS; else as the windows are */
    enum probe_rounding rounding;
    uint64_t seed;               /* which errors */
    struct probe_ties *ties;     /* of the windows, told of the experts; NULL: they do not matter */
    model_progress_fn *progress; /* of a window; may be NULL */
    void (*window_done)(void *user); /* may be NULL */
    void *user;
};

/**
 * Evaluate each window once. values: of all entries, as in `lists`; NaN where the change leaves
 * nothing that a list could follow. unlisted: [n lists]; NULL: it is not wanted.
 * Fails: as probe_evaluate.
 */
enum status probe_pass_run(const struct probe_pass *pass, double *values,
                           struct probe_unlisted *unlisted, struct status_why *why);

#endif
