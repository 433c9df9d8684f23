/**
 * What a list of log-probabilities says beside the exact ones of the same tokens. Pure functions.
 * log_q: the server's; log_p: exact; n entries each. All values are natural logarithms.
 */
#ifndef PROBE_FIGURES_H
#define PROBE_FIGURES_H

#include <stddef.h>

/** The figures of one position. One that the list does not give is NaN. */
struct probe_figures {
    double bound;   /* nats: KL(p || q) of the listed tokens and the rest as one bin */
    double rms;     /* of ln q - ln p, weighted by p */
    double mean;    /* the same weights */
    double largest; /* absolute, of tokens with p > 0.01; 0: there are none */
    double q_mass, p_mass;
    double flip; /* by how much ln p of the server's likeliest token is below the highest; 0: it is
                    it */
    /* ln q = slope * ln p + offset, of the half with the highest p; NaN with fewer than 3 tokens */
    double slope, offset;
};

struct probe_figures probe_figures_of(const double *log_q, const double *log_p, size_t n);

/**
 * How far two lists deviate from the exact one in common: the mean of (a - p)(b - p) over the
 * tokens, all alike, each deviation less its mean over the list; fewer than 5 tokens keep it. The
 * root of it, with a list twice, is how far that is off, flat. 0: there are no tokens.
 */
double probe_flat(const double *log_a, const double *log_b, const double *log_p, size_t n);
/** The correlation of these deviations; NaN: there is no second list, or one is not off. */
double probe_correlation(const double *log_a, const double *log_b, const double *log_p, size_t n);

/** RMS of ln q - slope * ln p - offset, weighted by p. offset NaN: the one that makes it least. */
double probe_residual(const double *log_q, const double *log_p, size_t n, double slope,
                      double offset);

/**
 * The error that the numbers have because they were written with few digits: half of 10^-d, where
 * all n are multiples of it and d is at most 6; half of 2^-b likewise. 0: no such step is seen.
 */
double probe_step(const double *log_q, size_t n);

/** The median of n values, which are sorted; NaN: there are none. */
double probe_median(double *values, size_t n);

/**
 * How far the server's values lie on the way from one model to another, flat: 0 at the first, 1 at
 * the other, as far as their difference explains them. Sums over positions; zero-initialise.
 */
struct probe_way {
    double along, length;                           /* of the server's way and of the whole */
    double along_squares, products, length_squares; /* of the two, position by position */
    double n;                                       /* sum of the weights */
};
void probe_way_add(struct probe_way *way, const double *log_q, const double *log_p,
                   const double *log_other, size_t n, double weight);
/** NaN: the two do not differ. */
double probe_way_share(const struct probe_way *way);
/** Its standard error, of how it scatters over the positions. NaN: there are fewer than 2. */
double probe_way_error(const struct probe_way *way);

#endif
