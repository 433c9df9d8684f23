/** Choosing the experts of a token: the same code on the host and on a device. */
#ifndef KERNELS_EXPERTS_ROUTE_H
#define KERNELS_EXPERTS_ROUTE_H

#include <math.h>

#include "kernels/numerics/fmath.h"
#include "kernels/types.h"

/* What shares are divided by at least: the smallest normal half, about. */
#define KERN_ROUTE_LEAST_SUM 6.1e-5

/* How far a logit may be below the chosen one's, of the larger magnitude: twice the jitter that its
 * authors train with. */
#define KERN_ROUTE_NEAR 0.02

/** Doubles of memory for a token. */
KERN_INLINE size_t kern_route_doubles(size_t n_experts)
{
    return 2 * n_experts;
}

/** Index of the largest key, the first of equals; the key becomes NaN, which is passed over. */
KERN_INLINE size_t kern_route_take_best(double *keys, size_t n)
{
    size_t best = n;
    KERN_ROLLED
    for (size_t i = 0; i < n; i++)
        if (!isnan(keys[i]) && (best == n || keys[i] > keys[best]))
            best = i;
    keys[best] = (double)NAN;
    return best;
}

/** The largest key; NaN unless all are numbers below +infinity and one is above -infinity. */
KERN_INLINE double kern_route_largest_key(const double *keys, size_t n)
{
    double largest = -(double)INFINITY;
    KERN_ROLLED
    for (size_t i = 0; i < n; i++) {
        if (!(keys[i] < (double)INFINITY))
            return (double)NAN;
        largest = keys[i] > largest ? keys[i] : largest;
    }
    return largest > -(double)INFINITY ? largest : (double)NAN;
}

/** What p is proportional to, given the logit that exponentials are taken against. */
KERN_INLINE double kern_route_weight_of(enum kern_gating gating, double logit, double reference)
{
    if (gating == KERN_GATE_SIGMOID)
        return 1.0 / (1.0 + fmath_exp_f64(-logit));
    if (gating == KERN_GATE_SQRT_SOFTPLUS)
        return sqrt(fmath_softplus_f64(logit));
    return fmath_exp_f64(logit - reference);
}

/** Turn keys from logits into p + bias. total: what p is to be divided by. */
KERN_INLINE void kern_route_make_keys(const struct kern_route *op, const float *bias,
                                      double reference, double total, double *keys)
{
    KERN_ROLLED
    for (size_t i = 0; i < op->n_experts; i++) {
        if (op->gating != KERN_GATE_SOFTMAX_CHOSEN && op->gating != KERN_GATE_SPARSEMIXER)
            keys[i] = kern_route_weight_of(op->gating, keys[i], reference) / total;
        keys[i] += bias ? (double)bias[i] : 0.0;
    }
}

/** Make the keys NaN of all groups but the best. memory: n_groups doubles. */
KERN_INLINE void kern_route_close_groups(const struct kern_route *op, double *keys, double *memory)
{
    size_t n = op->n_experts / op->n_groups;
    KERN_ROLLED
    for (size_t g = 0; g < op->n_groups; g++) {
        double first = -(double)INFINITY, second = -(double)INFINITY;
        KERN_ROLLED
        for (size_t i = g * n; i < (g + 1) * n; i++) {
            second = keys[i] > first ? first : keys[i] > second ? keys[i] : second;
            first = keys[i] > first ? keys[i] : first;
        }
        memory[g] = n > 1 && !op->groups_by_best ? first + second : first;
    }
    KERN_ROLLED
    for (size_t i = 0; i < op->n_groups_used; i++)
        (void)kern_route_take_best(memory, op->n_groups);
    KERN_ROLLED
    for (size_t i = 0; i < op->n_experts; i++)
        if (!isnan(memory[i / n]))
            keys[i] = (double)NAN;
}

/** Whether expert e is among the first n of a token's. */
KERN_INLINE bool kern_route_is_among(const int32_t *experts, size_t n, size_t e)
{
    KERN_ROLLED
    for (size_t j = 0; j < n; j++)
        if ((size_t)experts[j] == e)
            return true;
    return false;
}

/** Shares of a sparse mixer's chosen experts, in turn. */
KERN_INLINE void kern_route_share_in_turn(const struct kern_route *op, const float *logits,
                                          const int32_t *experts, float *shares)
{
    double scale = op->scale == 0.0f ? 1.0 : (double)op->scale;
    KERN_ROLLED
    for (size_t j = 0; j < op->n_used; j++) {
        double top = (double)logits[experts[j]], sum = 1.0;
        KERN_ROLLED
        for (size_t i = 0; i < op->n_experts; i++) {
            double g = (double)logits[i];
            if (top - g <= KERN_ROUTE_NEAR * fmax(fabs(g), top) &&
                !kern_route_is_among(experts, j + 1, i))
                sum += fmath_exp_f64(g - top);
        }
        shares[j] = (float)(scale / sum);
    }
}

/** Shares of the chosen. total: of the weights of all experts (softmax), or 1. */
KERN_INLINE void kern_route_share(const struct kern_route *op, const float *logits,
                                  double reference, double total, const int32_t *experts,
                                  float *shares)
{
    bool chosen_only = op->gating == KERN_GATE_SOFTMAX_CHOSEN;
    double sum = 0.0;
    if (chosen_only) {
        reference = -(double)INFINITY;
        KERN_ROLLED
        for (size_t j = 0; j < op->n_used; j++)
            reference = fmax(reference, (double)logits[experts[j]]);
    }
    KERN_ROLLED
    for (size_t j = 0; j < op->n_used; j++)
        sum += kern_route_weight_of(op->gating, (double)logits[experts[j]], reference);
    if (!chosen_only)
        sum = !op->normalise    ? total
              : op->sum_eps > 0 ? sum + (double)op->sum_eps * total
                                : fmax(sum, KERN_ROUTE_LEAST_SUM * total);
    double scale = op->scale == 0.0f ? 1.0 : (double)op->scale;
    KERN_ROLLED
    for (size_t j = 0; j < op->n_used; j++) {
        double weight = kern_route_weight_of(op->gating, (double)logits[experts[j]], reference);
        shares[j] = (float)(weight / sum * scale);
    }
}

/**
 * The experts and shares of token t, as kern_route() has them.
 * logits: the token's.   bias: op->selection_bias decoded and scaled, or NULL.
 * memory: kern_route_doubles().
 */
KERN_INLINE void kern_route_token(const struct kern_route *op, size_t t, const float *logits,
                                  const float *bias, double *memory)
{
    size_t n = op->n_experts;
    int32_t *experts = op->experts + t * op->n_used;
    float *shares = op->shares + t * op->n_used;
    double *keys = memory, total = 1.0;
    KERN_ROLLED
    for (size_t i = 0; i < n; i++)
        keys[i] = (double)logits[i];
    double reference = kern_route_largest_key(keys, n);
    if (op->gating == KERN_GATE_SOFTMAX) {
        total = 0.0;
        KERN_ROLLED
        for (size_t i = 0; i < n; i++)
            total += fmath_exp_f64(keys[i] - reference);
    }
    bool by_logit = !bias && op->n_groups <= 1;
    if (!by_logit && !isnan(reference))
        kern_route_make_keys(op, bias, reference, total, keys);
    if (isnan(reference) || isnan(kern_route_largest_key(keys, n))) {
        KERN_ROLLED
        for (size_t j = 0; j < op->n_used; j++) {
            experts[j] = (int32_t)j;
            shares[j] = NAN;
        }
        return;
    }
    if (op->n_groups > 1)
        kern_route_close_groups(op, keys, memory + n);
    KERN_ROLLED
    for (size_t j = 0; j < op->n_used; j++)
        experts[j] =
            op->given ? op->given[t * op->n_used + j] : (int32_t)kern_route_take_best(keys, n);
    if (op->gating == KERN_GATE_SPARSEMIXER)
        kern_route_share_in_turn(op, logits, experts, shares);
    else
        kern_route_share(op, logits, reference, total, experts, shares);
}

#endif
