/**
 * Student's t over windows: the mean of a difference that every window has, and how well it is
 * known. Tokens of a window depend on each other, windows hardly do, so the windows are counted.
 */
#ifndef EVAL_METRICS_PAIRED_H
#define EVAL_METRICS_PAIRED_H

#include <stddef.h>

/** A mean difference. What takes two windows is NaN for fewer. */
struct eval_paired {
    size_t n;          /* windows */
    double value;      /* mean over them */
    double spread;     /* standard deviation of a window's */
    double error;      /* standard error of the mean */
    double half_width; /* of its 95 % interval: error * eval_student(n - 1) */
    double z;          /* value / error; 0 for 0 of 0, infinite where windows do not differ */
};

/** Over x[n], a number for each window. */
struct eval_paired eval_paired_over(const double *x, size_t n);

/**
 * The 97.5 % quantile of Student's t, to 1e-3 of itself. freedom: above 0.
 */
double eval_student(size_t freedom);

/**
 * How many windows show a mean difference of `wanted` with a probability of 97.5 %, with the spread
 * that was found: those whose half width is half of it, 2 at least. 0: more than can be counted, or
 * not known. wanted: above 0.
 */
size_t eval_paired_needed(const struct eval_paired *paired, double wanted);

#endif
