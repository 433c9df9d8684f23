/**
 * How far a model is from a base of which only the likeliest tokens are known, as bounds. p: the
 * base's prediction, known of the listed tokens; q: the model's, known of all. Natural logarithms.
 * docs/server-check.md derives them.
 */
#ifndef PROBE_BOUNDS_H
#define PROBE_BOUNDS_H

#include <stdbool.h>

#include "base/moments.h"
#include "clients/probe/pass.h"
#include "eval/metrics.h"

/** A list of the base beside the model's values. */
struct probe_listed {
    const double *log_p, *log_q; /* [n], n above 0 */
    size_t n;
    struct probe_unlisted unlisted; /* the model's */
    double dropped;                 /* as in struct probe_sample */
    bool merged;
};

/** What it says of KL(p || q), in nats, and of the likeliest token. */
struct probe_bound {
    double least;   /* it is no less: that of the listed tokens and the rest as one bin */
    double most;    /* it is no more: the rest where q expects it least, no token of it above the
                       least listed one */
    double p_mass;  /* what is listed of p, at most 1 */
    bool top_known; /* the base's likeliest token is listed */
    bool same_top;
};

/** Lists that sum to more are no distribution. */
#define PROBE_MOST_MASS 1.01

struct probe_bound probe_bound_of(const struct probe_listed *list);

/** Over all lists of a base. */
struct probe_bounds {
    size_t n, n_top, n_next; /* lists; those that say the likeliest token; the next of the text */
    struct base_estimate least, most, same_top;
    struct base_estimate nll_difference; /* ln p - ln q of the next token, where it is listed */
    double quantiles[EVAL_N_QUANTILES];  /* of `least` */
    double p_mass;                       /* mean */
};

/** Those of the lists that a server gave which are compared. */
struct probe_base {
    struct probe_lists *lists; /* what is left out is taken out of it */
    const struct probe_window *windows;
    size_t n_windows;    /* that have a list */
    size_t n_early;      /* left out: of the first half of a prompt */
    size_t n_again;      /* of a place that has one already */
    size_t n_miscounted; /* of prompts in which the server counts other tokens */
    bool tail_twice;     /* the server counted what it does not list twice; that is mended */
};

/**
 * Keep one list for each place in the second half of a prompt, in order of window and position; and
 * none that sums to more than PROBE_MOST_MASS, which is spoilt. Where two lists of a place have
 * other numbers of entries, and values that differ as those do whose tail was counted twice, the
 * values of all lists are mended.
 */
void probe_base_settle(struct probe_base *base);

/** The pass has the base's lists, of which there is one at least. Fails: as probe_pass_run. */
enum status probe_base_compare(struct probe_bounds *out, const struct probe_pass *pass,
                               struct status_why *why);

#endif
