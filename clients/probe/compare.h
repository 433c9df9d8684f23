/** From the lists of a server to a verdict: evaluates what was asked, exactly and with rounding. */
#ifndef PROBE_COMPARE_H
#define PROBE_COMPARE_H

#include "clients/probe/api/api.h"
#include "clients/probe/ask/lists.h"
#include "clients/probe/exact/exact.h"
#include "clients/probe/pass.h"

/** Another file that may be served. */
struct probe_other {
    const char *path;
    const struct model *model;
};

struct probe_material {
    const struct model *model;
    struct kern_backend *backend; /* of host memory, precision exact */
    const struct probe_window *windows;
    size_t n_windows;
    const struct probe_lists *lists;
    enum probe_arithmetic arithmetic;
    size_t n_passes; /* that round, of each kind */
    double most_rms; /* agrees coarsely up to here, instead of what coarse passes are off; NaN */
    const struct probe_other *others;
    size_t n_others;
    /** How much of the arithmetic is done, 0 to 1. May be NULL. */
    void (*progress)(void *user, double fraction);
    void *user;
};

/** Arrays are in the order of the lists. Zero-initialise; release with probe_comparison_free. */
struct probe_comparison {
    struct probe_verdict verdict;
    struct probe_judged *judged;     /* [n] */
    double *log_p;                   /* exact, of all entries */
    struct probe_unlisted *unlisted; /* [n] */
    double *other_rms;      /* [n_others]: as verdict.rms, from that file; NaN: not known */
    struct probe_way *ways; /* [n_others]: to it */
    double nll_difference;  /* mean of ln p - ln q of the tokens that come next in the text */
    size_t n_next;          /* lists that have it */
    size_t n_forgotten;     /* lists that lack a token which is clearly likelier than some */
};

/**
 * Evaluate and judge. The windows are evaluated once exactly, n_passes times with each
 * rounding, and once as the engine that is simulated; other explanations are evaluated where the
 * lists depart. Fails: as probe_evaluate.
 */
enum status probe_compare(struct probe_comparison *out, const struct probe_material *material,
                          struct status_why *why);
void probe_comparison_free(struct probe_comparison *comparison);

#endif
