/** Two models' logits: the sums of kernels/numerics/pair_lanes.h. A body. */
#ifndef KERNELS_CPU_SIMD_PAIR_OPS_H
#define KERNELS_CPU_SIMD_PAIR_OPS_H

#include <assert.h>

#include "kernels/cpu/simd/fmath.h"
#include "kernels/numerics/pair_lanes.h"

static inline vec_d load_logits(const struct kern_logit_tile *tile, size_t row, size_t lane)
{
    return load_wide(tile->logits + row * tile->stride + lane);
}

static void fold(double *state, vec_d rescale, vec_d sum)
{
    V(storeu_pd)(state, V(fmadd_pd)(V(loadu_pd)(state), rescale, sum));
}

static void pair_group(struct kern_pair_lanes *state, const struct kern_pair_block *block,
                       size_t lane)
{
    const vec_d minus_infinity = V(set1_pd)(-(double)INFINITY);
    const vec_d cut = V(set1_pd)(block->cut);
    vec_d cross = V(setzero_pd)(), mass = cross, reverse = cross;
    for (size_t i = 0; i < block->base->n_rows; i++) {
        vec_d a = load_logits(block->base, i, lane), b = load_logits(block->other, i, lane);
        vec_d gap = V(sub_pd)(a, b);
        lanes_d kept = COMPARE_D(a, cut, _CMP_NLE_UQ);
        vec_d e = keep_d(kept, V(loadu_pd)(&block->base_exps->exps[i][lane]));
        mass = V(add_pd)(mass, e);
        cross = V(fmadd_pd)(e, keep_d(kept, gap), cross);
        gap = keep_d(COMPARE_D(b, minus_infinity, _CMP_NEQ_UQ), gap);
        e = V(loadu_pd)(&block->other_exps->exps[i][lane]);
        reverse = V(fmadd_pd)(e, gap, reverse);
    }
    vec_d rescale = V(loadu_pd)(block->base_exps->rescale + lane);
    fold(state->cross + lane, rescale, cross);
    fold(state->mass + lane, rescale, mass);
    fold(state->reverse + lane, V(loadu_pd)(block->other_exps->rescale + lane), reverse);
}

static void score_pair(struct kern_pair_lanes *state, const struct kern_pair_block *block)
{
    assert(block->base->n_rows == block->other->n_rows);
    for (size_t lane = 0; lane < KERN_LANES; lane += VEC_DOUBLES)
        pair_group(state, block, lane);
}

static inline vec_d log_prob(vec_d logit, vec_d shift)
{
    vec_d x = V(sub_pd)(logit, shift);
    x = V(max_pd)(V(set1_pd)(KERN_LOWEST_DIFFERENCE), x); /* a NaN stays */
    return V(min_pd)(V(set1_pd)(KERN_HIGHEST_LOG_PROB), x);
}

/* kern_js_terms_of: adds the distance to *distances, returns the divergence. */
static inline vec_d js_term(vec_d log_p, vec_d log_q, vec_d *distances)
{
    const vec_d sign = V(set1_pd)(-0.0), one = V(set1_pd)(1.0), half = V(set1_pd)(0.5);
    vec_d minus_d = V(or_pd)(sign, V(sub_pd)(log_p, log_q));
    vec_d x = exp_d(minus_d);
    vec_d r = V(div_pd)(one, V(add_pd)(one, x));
    vec_d t = V(mul_pd)(V(sub_pd)(one, x), r);
    vec_d mean = V(add_pd)(half, V(mul_pd)(half, x));
    mean = V(mul_pd)(mean, exp_d(V(max_pd)(log_p, log_q)));
    *distances = V(add_pd)(*distances, V(mul_pd)(mean, t));
    lanes_d far = COMPARE_D(t, V(set1_pd)(KERN_JS_FAR), _CMP_GT_OQ);
    vec_d minus_square = V(xor_pd)(sign, V(mul_pd)(t, t));
    vec_d log = log_near_one(select_d(far, V(fmsub_pd)(t, half, half), minus_square));
    vec_d near_f = V(fnmadd_pd)(t, minus_d, log);
    vec_d far_f = V(mul_pd)(V(set1_pd)(2.0), V(add_pd)(log, V(set1_pd)(FMATH_LN2_HIGH_F64)));
    far_f = V(fmadd_pd)(minus_d, V(mul_pd)(V(add_pd)(x, x), r), far_f);
    return V(mul_pd)(mean, select_d(far, far_f, near_f));
}

static void score_js(struct kern_js_lanes *state, const struct kern_logit_tile *base,
                     const struct kern_logit_tile *other)
{
    assert(base->n_rows == other->n_rows);
    for (size_t lane = 0; lane < KERN_LANES; lane += VEC_DOUBLES) {
        vec_d base_shift = V(loadu_pd)(state->base_shift + lane);
        vec_d other_shift = V(loadu_pd)(state->other_shift + lane);
        vec_d sum = V(loadu_pd)(state->sum + lane);
        vec_d distance = V(loadu_pd)(state->distance + lane);
        for (size_t i = 0; i < base->n_rows; i++) {
            vec_d log_p = log_prob(load_logits(base, i, lane), base_shift);
            vec_d log_q = log_prob(load_logits(other, i, lane), other_shift);
            sum = V(add_pd)(sum, js_term(log_p, log_q, &distance));
        }
        V(storeu_pd)(state->sum + lane, sum);
        V(storeu_pd)(state->distance + lane, distance);
    }
}

#endif
