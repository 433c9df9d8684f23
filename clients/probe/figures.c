#include "clients/probe/figures.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/moments.h"

/* Values below are as good as impossible; differences of such tokens mean nothing. */
static const double least_log = -80;

static double at_least(double log_value)
{
    return log_value > least_log ? log_value : least_log;
}

/** p ln(p / q) of the bins that are not listed, where both have something left. */
static double rest(double p_mass, double q_mass)
{
    const double least = 1e-6; /* what is below is rounding */
    double p = 1 - p_mass, q = 1 - q_mass;
    return p > least && q > least ? p * log(p / q) : 0;
}

/**
 * The least exact value of the likelier half. A server lists what it finds likely: near the end of
 * its list the values that it overrates are in, others are not, and a slope over all is too low.
 * Without memory it is the least of all.
 */
static double fitted_from(const double *log_p, size_t n)
{
    enum { LEAST_FITTED = 5 };
    size_t used = n / 2 > LEAST_FITTED ? n / 2 : LEAST_FITTED;
    double *values = used < n ? malloc(n * sizeof *values) : NULL;
    if (!values)
        return least_log;
    memcpy(values, log_p, n * sizeof *values);
    base_sort(values, n);
    double least = values[n - used];
    free(values);
    return fmax(least, least_log);
}

static void fit(struct probe_figures *f, const double *log_q, const double *log_p, size_t n)
{
    double x = 0, y = 0, xx = 0, xy = 0, from = fitted_from(log_p, n);
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        if (log_q[i] > least_log && log_p[i] >= from) {
            x += log_p[i];
            y += log_q[i];
            used++;
        }
    f->slope = f->offset = (double)NAN;
    if (used < 3)
        return;
    x /= (double)used;
    y /= (double)used;
    for (size_t i = 0; i < n; i++)
        if (log_q[i] > least_log && log_p[i] >= from) {
            xx += (log_p[i] - x) * (log_p[i] - x);
            xy += (log_p[i] - x) * (log_q[i] - y);
        }
    if (xx < 1e-6)
        return;
    f->slope = xy / xx;
    f->offset = y - f->slope * x;
}

struct probe_figures probe_figures_of(const double *log_q, const double *log_p, size_t n)
{
    struct probe_figures f = {.bound = 0};
    double squares = 0;
    size_t top_p = 0, top_q = 0;
    for (size_t i = 0; i < n; i++) {
        top_p = log_p[i] > log_p[top_p] ? i : top_p;
        top_q = log_q[i] > log_q[top_q] ? i : top_q;
        double p = exp(log_p[i]), q = exp(log_q[i]);
        double off = at_least(log_q[i]) - at_least(log_p[i]);
        f.p_mass += p;
        f.q_mass += q;
        f.bound -= p * off;
        f.mean += p * off;
        squares += p * off * off;
        if (p > 0.01)
            f.largest = fmax(f.largest, fabs(off));
    }
    f.bound = fmax(f.bound + rest(f.p_mass, f.q_mass), 0);
    f.mean = f.p_mass > 0 ? f.mean / f.p_mass : (double)NAN;
    f.rms = f.p_mass > 0 ? sqrt(squares / f.p_mass) : (double)NAN;
    f.flip = n ? log_p[top_p] - log_p[top_q] : 0;
    fit(&f, log_q, log_p, n);
    return f;
}

double probe_flat(const double *log_a, const double *log_b, const double *log_p, size_t n)
{
    enum { LEAST_TOKENS = 5 };
    double a = 0, b = 0, products = 0, count = n ? (double)n : 1;
    for (size_t i = 0; i < n; i++) {
        double off_a = at_least(log_a[i]) - at_least(log_p[i]);
        double off_b = at_least(log_b[i]) - at_least(log_p[i]);
        a += off_a;
        b += off_b;
        products += off_a * off_b;
    }
    return (products - (n < LEAST_TOKENS ? 0 : a * b / count)) / count;
}

double probe_correlation(const double *log_a, const double *log_b, const double *log_p, size_t n)
{
    if (!log_b)
        return (double)NAN;
    double product = probe_flat(log_a, log_a, log_p, n) * probe_flat(log_b, log_b, log_p, n);
    return product > 0 ? probe_flat(log_a, log_b, log_p, n) / sqrt(product) : (double)NAN;
}

double probe_residual(const double *log_q, const double *log_p, size_t n, double slope,
                      double offset)
{
    double mass = 0, sum = 0, squares = 0;
    bool fitted = isnan(offset);
    for (size_t i = 0; i < n; i++) {
        double p = exp(log_p[i]);
        double off = at_least(log_q[i]) - slope * at_least(log_p[i]) - (fitted ? 0 : offset);
        mass += p;
        sum += p * off;
        squares += p * off * off;
    }
    if (!(mass > 0))
        return (double)NAN;
    double mean = fitted ? sum / mass : 0;
    return sqrt(fmax(squares / mass - mean * mean, 0));
}

/** Whether all are multiples of a step, but for the rounding of the text that they were read from.
 */
static bool are_multiples(const double *values, size_t n, double step)
{
    for (size_t i = 0; i < n; i++) {
        double steps = values[i] / step;
        if (fabs(steps - round(steps)) > 1e-6 + 1e-13 * fabs(steps))
            return false;
    }
    return true;
}

double probe_step(const double *log_q, size_t n)
{
    if (n < 3)
        return 0;
    for (int digits = 0; digits <= 6; digits++)
        if (are_multiples(log_q, n, pow(10, -digits)))
            return 0.5 * pow(10, -digits);
    for (int bits = 0; bits <= 8; bits++)
        if (are_multiples(log_q, n, ldexp(1, -bits)))
            return ldexp(0.5, -bits);
    return 0;
}

double probe_median(double *values, size_t n)
{
    base_sort(values, n);
    return n ? base_quantile(values, n, 0.5) : (double)NAN;
}

void probe_way_add(struct probe_way *way, const double *log_q, const double *log_p,
                   const double *log_other, size_t n, double weight)
{
    double along = probe_flat(log_q, log_other, log_p, n);
    double length = probe_flat(log_other, log_other, log_p, n);
    way->along += weight * along;
    way->length += weight * length;
    way->along_squares += weight * along * along;
    way->products += weight * along * length;
    way->length_squares += weight * length * length;
    way->n += weight;
}

double probe_way_share(const struct probe_way *way)
{
    return way->length > 0 ? way->along / way->length : (double)NAN;
}

double probe_way_error(const struct probe_way *way)
{
    double share = probe_way_share(way), n = way->n;
    double squares =
        way->along_squares - 2 * share * way->products + share * share * way->length_squares;
    return way->n > 1 ? sqrt(fmax(squares, 0) * n / (n - 1)) / way->length : (double)NAN;
}
