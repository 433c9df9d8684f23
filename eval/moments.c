#include "eval/moments.h"

#include <math.h>

enum { MIN_VALUES = 11 };

void eval_moments_add(struct eval_moments *m, double x)
{
    m->n++;
    m->sum += x;
    double distance = x - m->mean;
    m->mean += distance / (double)m->n;
    m->spread += distance * (x - m->mean);
}

double eval_moments_mean(const struct eval_moments *m)
{
    return m->n ? m->sum / (double)m->n : 0;
}

double eval_moments_variance(const struct eval_moments *m)
{
    double n = (double)m->n;
    return m->n < MIN_VALUES ? 0 : m->spread / n / (n - 1);
}

struct eval_estimate eval_moments_estimate(const struct eval_moments *m)
{
    return (struct eval_estimate){eval_moments_mean(m), sqrt(eval_moments_variance(m))};
}
