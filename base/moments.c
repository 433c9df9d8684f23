#include "base/moments.h"

#include <math.h>
#include <stdlib.h>

void base_moments_add(struct base_moments *m, double x)
{
    m->n++;
    m->sum += x;
    double distance = x - m->mean;
    m->mean += distance / (double)m->n;
    m->spread += distance * (x - m->mean);
}

/** The current lot becomes one of those before. */
static void end_lot(struct base_moments *m)
{
    struct base_lots *l = &m->lots;
    if (m->n == l->n_before)
        return;
    double n = (double)(m->n - l->n_before), mean = (m->sum - l->sum_before) / n;
    double distance = mean - l->mean, weight = n * n;
    l->weight += weight;
    l->mean += distance * weight / l->weight;
    l->spread += weight * distance * (mean - l->mean);
    l->n_before = m->n;
    l->sum_before = m->sum;
    l->n++;
}

void base_moments_lot(struct base_moments *m, size_t lot)
{
    if (lot != m->lots.current)
        end_lot(m);
    m->lots.current = lot;
}

double base_moments_mean(const struct base_moments *m)
{
    return m->n ? m->sum / (double)m->n : 0;
}

double base_moments_variance(const struct base_moments *m)
{
    double n = (double)m->n;
    return m->n < BASE_LEAST_VALUES ? 0 : m->spread / n / (n - 1);
}

double base_moments_lot_variance(const struct base_moments *m)
{
    struct base_moments all = *m;
    end_lot(&all);
    const struct base_lots *l = &all.lots;
    double n = (double)m->n, n_lots = (double)l->n, shift = base_moments_mean(m) - l->mean;
    if (l->n < BASE_LEAST_VALUES)
        return 0;
    return (l->spread + l->weight * shift * shift) / (n * n) * n_lots / (n_lots - 1);
}

struct base_estimate base_moments_estimate(const struct base_moments *m)
{
    return (struct base_estimate){base_moments_mean(m), sqrt(base_moments_variance(m)),
                                  sqrt(base_moments_lot_variance(m))};
}

double base_estimate_error(struct base_estimate x)
{
    return x.lot_error == 0 ? x.error : x.lot_error;
}

double base_estimate_lot_error(struct base_estimate x)
{
    return x.lot_error == 0 && x.error != 0 ? (double)NAN : x.lot_error;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

void base_sort(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
}

double base_quantile(const double *sorted, size_t n, double f)
{
    if (n == 0)
        return 0;
    double at = f * (double)(n - 1);
    size_t i = (size_t)at;
    double part = at - (double)i;
    if (i + 1 >= n || part == 0)
        return sorted[i];
    return (1 - part) * sorted[i] + part * sorted[i + 1];
}

/**
 * The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's
 * method. It converges fast for x < (a + 1) / (a + b + 2).
 */
static double fraction(double a, double b, double x)
{
    const double least = 1e-300;
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), product = d;
    for (int m = 1; m < 400; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double before = product;
        for (int i = 0; i < 2; i++) {
            double term = i ? odd : even;
            d = 1 + term * d;
            d = 1 / (fabs(d) < least ? least : d);
            c = 1 + term / c;
            c = fabs(c) < least ? least : c;
            product *= c * d;
        }
        if (fabs(product - before) <= 1e-15 * product)
            break;
    }
    return product;
}

/** How likely t or more is: half of the incomplete beta function of v / 2 and 1 / 2. */
static double tail_of(double v, double t)
{
    const double a = v / 2, b = 0.5, x = v / (v + t * t), y = t * t / (v + t * t);
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
    if (x < (a + 1) / (a + b + 2))
        return front * fraction(a, b, x) / a / 2;
    return 0.5 - front * fraction(b, a, y) / b / 2;
}

double base_student(size_t freedom, double tail)
{
    const double v = (double)freedom;
    double low = 0, high = 1;
    while (tail_of(v, high) > tail && high < 1e150) {
        low = high;
        high *= 2;
    }
    while (high - low > 1e-10 * high) {
        double middle = (low + high) / 2;
        if (tail_of(v, middle) > tail)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}
