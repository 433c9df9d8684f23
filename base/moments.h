/**
 * Means and their standard errors, summed in the order in which values come; quantiles; what a mean
 * of few numbers may be off by.
 */
#ifndef BASE_MOMENTS_H
#define BASE_MOMENTS_H

#include <stddef.h>

/** A figure and its uncertainty (one standard error). */
struct base_estimate {
    double value, error;
};

/** Running mean of a quantity. Zero-initialise. */
struct base_moments {
    size_t n;
    double sum;
    double mean, spread; /* Welford: mean so far, sum of squared distances from the mean */
};

void base_moments_add(struct base_moments *m, double x);

/** sum / n; 0 for none. */
double base_moments_mean(const struct base_moments *m);

/**
 * Variance of the mean: (mean(x^2) - mean(x)^2) / (n - 1), or 0 for 10 values and fewer, whose
 * spread says too little (as in llama-perplexity).
 */
double base_moments_variance(const struct base_moments *m);

/** Mean and the square root of its variance. */
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
