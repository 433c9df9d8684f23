#include "eval/metrics/paired.h"

#include <math.h>

#include "base/moments.h"

/* Beyond the table: Cornish and Fisher's expansion in 1 / freedom, from the normal quantile. */
double eval_student(size_t freedom)
{
    static const double few[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                                 2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
    enum { N_FEW = sizeof few / sizeof *few };
    if (freedom <= N_FEW)
        return few[freedom - 1];
    const double z = 1.959963985, cube = z * z * z, fifth = cube * z * z;
    double v = (double)freedom;
    return z + (cube + z) / (4 * v) + (5 * fifth + 16 * cube + 3 * z) / (96 * v * v);
}

struct eval_paired eval_paired_over(const double *x, size_t n)
{
    struct base_moments m = {0};
    for (size_t i = 0; i < n; i++)
        base_moments_add(&m, x[i]);
    const double none = (double)NAN;
    struct eval_paired p = {n, n ? base_moments_mean(&m) : none, none, none, none, none};
    if (n < 2)
        return p;
    p.spread = sqrt(m.spread / (double)(n - 1));
    p.error = p.spread / sqrt((double)n);
    p.half_width = p.error * eval_student(n - 1);
    p.z = p.value == 0 ? 0 : p.value / p.error;
    return p;
}

size_t eval_paired_needed(const struct eval_paired *p, double wanted)
{
    const double most = 1e15;
    if (p->n < 2)
        return 0;
    double root = 2 * eval_student(p->n - 1) * p->spread / wanted, n = ceil(root * root);
    if (!(n <= most))
        return 0;
    return n < 2 ? 2 : (size_t)n;
}
