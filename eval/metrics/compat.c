#include "eval/metrics/compat.h"

#include <math.h>

double eval_compat_strided_log_prob(double log_prob, double log_sum)
{
    /* exp(l - max) in float32, divided by a sum in double, rounded to float32 again. */
    float numerator = expf((float)(log_prob + log_sum));
    float probability = (float)((double)numerator / exp(log_sum));
    return (double)logf(probability);
}
