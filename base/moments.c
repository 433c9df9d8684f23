#include "base/moments.h"

#include <math.h>
#include <stdlib.h>

enum { MIN_VALUES = 11 };

void base_moments_add(struct base_moments *m, double x)
{
    m->n++;
    m->sum += x;
    double distance = x - m->mean;
    m->mean += distance / (double)m->n;
    m->spread += distance * (x - m->mean);
}

double base_moments_mean(const struct base_moments *m)
{
    return m->n ? m->sum / (double)m->n : 0;
}

double base_moments_variance(const struct base_moments *m)
{
    double n = (double)m->n;
    return m->n < MIN_VALUES ? 0 : m->spread / n / (n - 1);
}

struct base_estimate base_moments_estimate(const struct base_moments *m)
{
    return (struct base_estimate){base_moments_mean(m), sqrt(base_moments_variance(m))};
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
