/** Attention's softmax and the reductions over the vocabulary of kernels/numerics/lanes.h. A body.
 */
#ifndef KERNELS_CPU_SIMD_LANE_OPS_H
#define KERNELS_CPU_SIMD_LANE_OPS_H

#include <assert.h>

#include "base/arithmetic.h"
#include "kernels/cpu/simd/fmath.h"
#include "kernels/numerics/lanes.h"

static_assert(KERN_LANES % VEC_FLOATS == 0, "lanes are whole vectors of floats");

/** The lanes from `lane` on. `masked`, a constant at both calls: some of them do not see all keys.
 */
static inline __attribute__((always_inline)) void
softmax_group(const struct kern_softmax_block *block, size_t lane, bool masked)
{
    const vec_f scale = V(set1_ps)(block->scale);
    const vec_f minus_infinity = V(set1_ps)(-INFINITY);
    vec_i begin = load_i(block->begin + lane), end = load_i(block->end + lane);
    vec_f old_max = V(loadu_ps)(block->max + lane);
    vec_f max = old_max;
    for (size_t j = 0; j < block->n_keys; j++) {
        float *s = block->s + j * block->stride + lane;
        vec_f scaled = V(mul_ps)(V(loadu_ps)(s), scale);
        V(storeu_ps)(s, scaled);
        if (masked)
            scaled = select_f(in_range(begin, end, V(set1_epi32)((int)j)), scaled, minus_infinity);
        max = V(max_ps)(scaled, max); /* keeps max where scaled is NaN */
    }
    vec_f reference = keep_f(COMPARE_F(max, minus_infinity, _CMP_NEQ_UQ), max);
    vec_f sum = V(setzero_ps)();
    for (size_t j = 0; j < block->n_keys; j++) {
        float *s = block->s + j * block->stride + lane;
        vec_f p = exp_f(V(sub_ps)(V(loadu_ps)(s), reference));
        if (masked)
            p = keep_f(in_range(begin, end, V(set1_epi32)((int)j)), p);
        V(storeu_ps)(s, p);
        sum = V(add_ps)(sum, p);
    }
    lanes_f first = COMPARE_F(old_max, minus_infinity, _CMP_EQ_OQ);
    vec_f rescale = select_f(first, V(set1_ps)(1.0f), exp_f(V(sub_ps)(old_max, max)));
    V(storeu_ps)(block->rescale + lane, rescale);
    V(storeu_ps)(block->sum + lane, V(fmadd_ps)(V(loadu_ps)(block->sum + lane), rescale, sum));
    V(storeu_ps)(block->max + lane, max);
}

static bool sees_all(const struct kern_softmax_block *block, size_t lane)
{
    lanes_f late = greater_i(load_i(block->begin + lane), V(set1_epi32)(0));
    lanes_f early = greater_i(V(set1_epi32)((int)block->n_keys), load_i(block->end + lane));
    return !any_lane(late | early);
}

static void softmax_block(const struct kern_softmax_block *block)
{
    for (size_t lane = 0; lane < KERN_LANES; lane += VEC_FLOATS) {
        if (sees_all(block, lane))
            softmax_group(block, lane, false);
        else
            softmax_group(block, lane, true);
    }
}

/** What exponents are taken against, as two vectors of doubles, before and after a block. */
struct references {
    vec_d now[2];
    vec_d rise[2];
};

static inline struct references references_of(vec_f old_max, vec_f max)
{
    const vec_f minus_infinity = V(set1_ps)(-INFINITY);
    float now[VEC_FLOATS], old[VEC_FLOATS];
    max = keep_f(COMPARE_F(max, minus_infinity, _CMP_NEQ_UQ), max);
    V(storeu_ps)(now, max);
    V(storeu_ps)(old, select_f(COMPARE_F(old_max, minus_infinity, _CMP_EQ_OQ), max, old_max));
    struct references r = {.now = {load_wide(now), load_wide(now + VEC_DOUBLES)}};
    r.rise[0] = V(sub_pd)(r.now[0], load_wide(old));
    r.rise[1] = V(sub_pd)(r.now[1], load_wide(old + VEC_DOUBLES));
    return r;
}

/** logit - reference, but not below the lowest; a NaN stays. */
static inline vec_d difference(const float *logit, vec_d reference)
{
    return V(max_pd)(V(set1_pd)(KERN_LOWEST_DIFFERENCE), V(sub_pd)(load_wide(logit), reference));
}

/** Where the maximum rose, the first row of the block that holds it. */
static void update_argmax(int32_t *argmax, const struct kern_logit_tile *block, vec_f old_max,
                          vec_f max)
{
    lanes_f missing = COMPARE_F(max, old_max, _CMP_GT_OQ);
    if (!any_lane(missing))
        return;
    vec_i found = load_i(argmax);
    for (size_t i = 0; i < block->n_rows && any_lane(missing); i++) {
        vec_f logit = V(loadu_ps)(block->logits + i * block->stride);
        lanes_f here = missing & COMPARE_F(logit, max, _CMP_EQ_OQ);
        found = select_i(here, V(set1_epi32)(block->first_row + (int32_t)i), found);
        missing ^= here;
    }
    store_i(argmax, found);
}

/** Fold VEC_DOUBLES lanes of a block into the state; exps may be NULL. */
static inline void fold_sums(struct kern_score_lanes *state, size_t lane, vec_d rise, vec_d sum,
                             vec_d moment, struct kern_block_exps *exps)
{
    vec_d rescale = exp_d(V(xor_pd)(rise, V(set1_pd)(-0.0)));
    vec_d old_sum = V(loadu_pd)(state->sum + lane);
    vec_d old_moment = V(fnmadd_pd)(rise, old_sum, V(loadu_pd)(state->moment + lane));
    V(storeu_pd)(state->moment + lane, V(fmadd_pd)(old_moment, rescale, moment));
    V(storeu_pd)(state->sum + lane, V(fmadd_pd)(old_sum, rescale, sum));
    if (exps)
        V(storeu_pd)(&exps->rescale[lane], rescale);
}

/** VEC_FLOATS lanes, whose logits the block has; exps may be NULL. */
static void update_block(struct kern_score_lanes *state, size_t lane,
                         const struct kern_logit_tile *block, struct kern_block_exps *exps)
{
    vec_f old_max = V(loadu_ps)(state->max + lane);
    vec_f max = old_max;
    for (size_t i = 0; i < block->n_rows; i++)
        max = V(max_ps)(V(loadu_ps)(block->logits + i * block->stride), max);
    update_argmax(state->argmax + lane, block, old_max, max);
    V(storeu_ps)(state->max + lane, max);
    struct references reference = references_of(old_max, max);

    vec_d sum0 = V(setzero_pd)(), sum1 = sum0, moment0 = sum0, moment1 = sum0;
    for (size_t i = 0; i < block->n_rows; i++) {
        const float *logit = block->logits + i * block->stride;
        vec_d d0 = difference(logit, reference.now[0]);
        vec_d d1 = difference(logit + VEC_DOUBLES, reference.now[1]);
        vec_d e0 = exp_d(d0), e1 = exp_d(d1);
        sum0 = V(add_pd)(sum0, e0);
        sum1 = V(add_pd)(sum1, e1);
        moment0 = V(fmadd_pd)(e0, d0, moment0);
        moment1 = V(fmadd_pd)(e1, d1, moment1);
        if (exps) {
            V(storeu_pd)(&exps->exps[i][lane], e0);
            V(storeu_pd)(&exps->exps[i][lane + VEC_DOUBLES], e1);
        }
    }
    fold_sums(state, lane, reference.rise[0], sum0, moment0, exps);
    fold_sums(state, lane + VEC_DOUBLES, reference.rise[1], sum1, moment1, exps);
}

static void score_update(struct kern_score_lanes *state, const struct kern_logit_tile *tile,
                         struct kern_block_exps *exps)
{
    assert(!exps || tile->n_rows <= KERN_SCORE_BLOCK);
    for (size_t row = 0; row < tile->n_rows; row += KERN_SCORE_BLOCK) {
        for (size_t lane = 0; lane < KERN_LANES; lane += VEC_FLOATS) {
            struct kern_logit_tile block = {.logits = tile->logits + row * tile->stride + lane,
                                            .stride = tile->stride,
                                            .n_rows =
                                                base_min(tile->n_rows - row, KERN_SCORE_BLOCK),
                                            .first_row = tile->first_row + (int32_t)row};
            update_block(state, lane, &block, exps);
        }
    }
}

static void score_rank(struct kern_rank_lanes *state, const struct kern_logit_tile *tile)
{
    for (size_t lane = 0; lane < KERN_LANES; lane += VEC_FLOATS) {
        vec_f target = V(loadu_ps)(state->logit + lane);
        vec_i token = load_i(state->token + lane), above = load_i(state->above + lane);
        for (size_t i = 0; i < tile->n_rows; i++) {
            vec_f logit = V(loadu_ps)(tile->logits + i * tile->stride + lane);
            vec_i row = V(set1_epi32)(tile->first_row + (int32_t)i);
            above = count_rows(above, COMPARE_F(logit, target, _CMP_GT_OQ),
                               COMPARE_F(logit, target, _CMP_EQ_OQ), token, row);
        }
        store_i(state->above + lane, above);
    }
}

#endif
