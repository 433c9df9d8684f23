/**
 * Paired comparison: whether two results on the same inputs differ by more than chance.
 *
 * Both saw the same tasks or windows, so what these have in common cancels, and far smaller
 * differences show than the two uncertainties suggest. docs/results.md has the formulas.
 */
#ifndef DOCUMENTS_COMPARE_PAIRED_H
#define DOCUMENTS_COMPARE_PAIRED_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/** Tasks by which of both was right. */
struct doc_pair_counts {
    size_t both, only_a, only_b, neither;
};

/** McNemar's test of tasks that only one was right about, and the difference of the shares. */
struct doc_mcnemar {
    double difference, error; /* share(B) - share(A), and its paired standard error */
    double exact_p;           /* two-sided, binomial: only_a of only_a + only_b at 1/2 */
    double chi_square;        /* max(0, |only_a - only_b| - 1)^2 / (only_a + only_b) */
    double chi_square_p;      /* of that and more, with one degree of freedom */
};

/**
 * Without a task that only one was right about, both p are 1.
 * error: sqrt((mean(d^2) - mean(d)^2) / (n - 1)) of d = right(B) - right(A); 0 for n < 2.
 */
struct doc_mcnemar doc_mcnemar(const struct doc_pair_counts *counts);

/** Two results over the same windows, to be compared by a block bootstrap. */
struct doc_pair {
    size_t n_windows;       /* 2 or more, at most 2^32 - 1 */
    const double *n_tokens; /* [n_windows] */
    size_t n_sums;
    const double *sums[2]; /* of A and B: [n_windows][n_sums], each over the window's tokens */
    size_t n_figures;
    /* Figures of one result from the means of its sums over all tokens; pure. */
    void (*figures)(double *figures, const double *means);
    size_t n_resamples; /* 1 or more */
    uint32_t seed;
};

/** A figure of both, and the difference with its interval. */
struct doc_pair_figure {
    double a, b, difference; /* over all windows; b - a */
    double error;            /* standard deviation of the resampled differences */
    double low, high;        /* their 2.5 % and 97.5 % quantiles */
};

/**
 * Block bootstrap over windows: each resample draws n_windows of them with replacement, the same
 * ones for A and B, and computes the differences anew. Windows are drawn whole because tokens of
 * one depend on each other. The draws are base_twister_below of a twister seeded with `seed`, one
 * for each window of each resample in turn. Quantiles interpolate at f * (n_resamples - 1).
 * out: [n_figures].   Fails: STATUS_MEMORY.
 * Cost: O(n_resamples * (n_windows * n_sums + log n_resamples)).
 */
enum status doc_pair_bootstrap(struct doc_pair_figure *out, const struct doc_pair *pair,
                               struct status_why *why);

#endif
