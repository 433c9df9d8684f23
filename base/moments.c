#include "base/moments.h"

#include <math.h>

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
