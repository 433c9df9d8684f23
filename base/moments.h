/**
 * Means and their standard errors, summed in the order in which values come; quantiles; what a mean
 * of few numbers may be off by.
 */
#ifndef BASE_MOMENTS_H
#define BASE_MOMENTS_H

#include <stddef.h>

/** The error of a mean of fewer values, or lots, is not told: their spread says too little. */
enum { BASE_LEAST_VALUES = 11 };

/** A figure and its uncertainty: one standard error, which is told in two ways. */
struct base_estimate {
    double value;
    double error;     /* as if all values were independent, as llama-perplexity has it */
    double lot_error; /* as if lots of them were; 0: there were too few lots to tell */
};

/** The error that holds: lots', or, where that is not known, the values'. */
double base_estimate_error(struct base_estimate x);
/** The error of lots, NaN where it is not known; what does not vary has none: 0. */
double base_estimate_lot_error(struct base_estimate x);

/** Lots: values that hang together, as those of a window's tokens; lots do not. */
struct base_lots {
    size_t current;  /* the lot that values are added to */
    size_t n;        /* lots before it */
    size_t n_before; /* their values, and the sum of these */
    double sum_before;
    double weight;       /* sum of the squares of how many values each has */
    double mean, spread; /* of the lots' means, by these weights */
};

/** Running mean of a quantity. Zero-initialise. */
struct base_moments {
    size_t n;
    double sum;
    double mean, spread; /* Welford: mean so far, sum of squared distances from the mean */
    struct base_lots lots;
};

void base_moments_add(struct base_moments *m, double x);

/** What is added from now on belongs to this lot. A lot's values follow one another. */
void base_moments_lot(struct base_moments *m, size_t lot);

/** sum / n; 0 for none. */
double base_moments_mean(const struct base_moments *m);

/**
 * Variance of the mean: (mean(x^2) - mean(x)^2) / (n - 1), or 0 for fewer than
 * BASE_LEAST_VALUES (as in llama-perplexity).
 */
double base_moments_variance(const struct base_moments *m);

/**
 * The same where lots are independent, values within a lot are not: the sum of the squares of
 * n_l (x_l - mean), for lots of n_l values and mean x_l, over n^2, times L / (L - 1). 0 for fewer
 * than BASE_LEAST_VALUES lots.
 */
double base_moments_lot_variance(const struct base_moments *m);

/** Mean and the square roots of its variances. */
struct base_estimate base_moments_estimate(const struct base_moments *m);

/** Sort n values, ascending; what is no number comes last. */
void base_sort(double *values, size_t n);
/** Quantile f of n sorted values: linear interpolation at f * (n - 1); 0 for none. */
double base_quantile(const double *sorted, size_t n, double f);

/**
 * The value that Student's t exceeds with probability `tail`, to 1e-9 of itself.
 * freedom: above 0.   tail: above 0, below 1/2.
 */
double base_student(size_t freedom, double tail);

#endif
