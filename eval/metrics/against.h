/**
 * Two recordings of the same windows against the exact rows of the same evaluation: which of them
 * is further from exact, by how much, and where.
 *
 * The difference of a token is KL(p || a) - KL(p || b), p being the exact prediction, a the one
 * that is judged, b the one that it is held against. Whatever both have in common, the loss of
 * their files above all, cancels in it. docs/validating.md has the rules.
 */
#ifndef EVAL_METRICS_AGAINST_H
#define EVAL_METRICS_AGAINST_H

#include <stdbool.h>

#include "base/moments.h"
#include "base/status.h"
#include "eval/metrics/table.h"

/**
 * A mean difference over windows, by Student's t: tokens of a window depend on each other, windows
 * hardly do, so the windows are counted. What takes two windows is NaN for fewer.
 */
struct eval_paired {
    size_t n;          /* windows */
    double value;      /* mean over them */
    double spread;     /* standard deviation of a window's */
    double error;      /* standard error of the mean */
    double half_width; /* of its 95 % interval: error * base_student(n - 1, 0.025) */
    double z;          /* value / error; 0 for 0 of 0, infinite where windows do not differ */
};

/** Over x[n], a number for each window. */
struct eval_paired eval_paired_over(const double *x, size_t n);

/**
 * How many windows show a mean difference of `wanted` with a probability of 97.5 %, with the spread
 * that was found: those whose half width is half of it, 2 at least. wanted: above 0.
 * Returns 0 for more than can be counted, and where the spread is not known.
 */
size_t eval_paired_needed(const struct eval_paired *paired, double wanted);

/** What is compared. Tables as eval_check_window leaves them; all of the same windows. */
struct eval_against_task {
    const struct eval_table *exact, *a, *b;
    bool same_bits;  /* both recordings are the same, to the bit */
    double resolve;  /* a difference that is to be found, in nats; NaN: none was named */
    double rounding; /* by which the exact evaluation's own rounding may move it; NaN: not known */
    double noise;    /* by which runs of one program differ; NaN: not known */
};

enum eval_against_verdict {
    EVAL_AGAINST_SAME_BITS,
    EVAL_AGAINST_NO_DIFFERENCE, /* none above the resolution */
    EVAL_AGAINST_FURTHER,       /* a is further from exact */
    EVAL_AGAINST_CLOSER,
    EVAL_AGAINST_UNDECIDED /* too few windows, or too much noise, to say that there is none */
};
/** "same bits", "no difference", "further", "closer", "undecided". */
const char *eval_against_name(enum eval_against_verdict verdict);

/** What differences are told apart by. */
enum eval_against_axis {
    EVAL_AGAINST_POSITION,   /* in the window */
    EVAL_AGAINST_CONFIDENCE, /* the likeliest token's exact probability */
    EVAL_AGAINST_AXES
};
enum { EVAL_AGAINST_POSITION_BINS = 8, EVAL_AGAINST_MOST_BINS = 10 };

/** Tokens from .. to - 1 of an axis: scored positions from 0 on, or tenths of the probability. */
struct eval_against_bin {
    size_t from, to, n_tokens;
    double a, b;                     /* mean divergences of its tokens */
    struct base_estimate difference; /* a - b; its error over windows */
};

/** The bins that a difference is concentrated in, one after the other. */
struct eval_against_place {
    bool found;
    size_t from, to; /* bins from .. to - 1 */
    double share;    /* of the difference; above 1 where the rest makes up for it */
    double tokens;   /* the share of the tokens */
};

struct eval_against_bins {
    size_t n;
    struct eval_against_bin items[EVAL_AGAINST_MOST_BINS];
    struct eval_against_place place;
};

struct eval_against_result {
    enum eval_against_verdict verdict;
    struct eval_paired kld, nll; /* a - b: of KL(p || .), of the right token's NLL */
    double resolution;           /* differences up to here are not told from 0; NaN: not known */
    size_t n_needed;             /* windows for task->resolve; 0: not known */
    struct eval_against_bins axes[EVAL_AGAINST_AXES];
};

/**
 * Over the windows that both have finished. A difference is told from 0 where it is above the half
 * width of its interval, half of what is to be found, the rounding and the noise. Fails:
 * STATUS_MEMORY. Cost: O(scored tokens).
 */
enum status eval_against(struct eval_against_result *out, const struct eval_against_task *task,
                         struct status_why *why);

/**
 * The mean of a column's difference a - b in each window that both have finished: out[n_windows],
 * the first *n of them are set.
 */
void eval_against_windows(double *out, size_t *n, const struct eval_table *a,
                          const struct eval_table *b, enum eval_column column);

#endif
