/* Reductions of logits over the vocabulary, one token per lane: the scalar reference. */
#include <assert.h>
#include <math.h>

#include "kernels/cpu/fmath.h"
#include "kernels/cpu/ops_scalar.h"

static size_t block_rows(size_t n_rows, size_t row)
{
    return n_rows - row < KERN_SCORE_BLOCK ? n_rows - row : KERN_SCORE_BLOCK;
}

/* What exponents are taken against: the maximum, or 0 while that is -infinity. */
static double reference_of(float max, float fallback)
{
    return (double)(max == -INFINITY ? fallback : max);
}

static double difference(float logit, double reference)
{
    double d = (double)logit - reference;
    return KERN_LOWEST_DIFFERENCE > d ? KERN_LOWEST_DIFFERENCE : d;
}

static void update_lane(struct kern_score_lanes *state, size_t lane, const float *logits,
                        size_t stride, size_t n_rows, int32_t first_row)
{
    float old_max = state->max[lane];
    float max = old_max;
    for (size_t i = 0; i < n_rows; i++) {
        float l = logits[i * stride];
        if (l > max) {
            max = l;
            state->argmax[lane] = first_row + (int32_t)i;
        }
    }
    double reference = reference_of(max, 0.0f);
    double sum = 0.0;
    double moment = 0.0;
    for (size_t i = 0; i < n_rows; i++) {
        double d = difference(logits[i * stride], reference);
        double e = fmath_exp_f64(d);
        sum += e;
        moment = fma(e, d, moment);
    }
    /* From sums relative to the old maximum to sums relative to the new one. */
    double rise = reference - reference_of(old_max, (float)reference);
    double rescale = fmath_exp_f64(-rise);
    double old_moment = fma(-rise, state->sum[lane], state->moment[lane]);
    state->moment[lane] = fma(old_moment, rescale, moment);
    state->sum[lane] = fma(state->sum[lane], rescale, sum);
    state->max[lane] = max;
}

void kern_scalar_score_update(struct kern_score_lanes *state, const struct kern_logit_tile *tile)
{
    for (size_t row = 0; row < tile->n_rows; row += KERN_SCORE_BLOCK) {
        for (size_t lane = 0; lane < KERN_LANES; lane++) {
            update_lane(state, lane, tile->logits + row * tile->stride + lane, tile->stride,
                        block_rows(tile->n_rows, row), tile->first_row + (int32_t)row);
        }
    }
}

/* base and other point to the first row of a block. */
static void pair_lane(struct kern_pair_lanes *state, size_t lane, const float *base,
                      size_t base_stride, const float *other, size_t other_stride, size_t n_rows)
{
    float old_max = state->max[lane];
    float max = old_max;
    for (size_t i = 0; i < n_rows; i++) {
        max = base[i * base_stride] > max ? base[i * base_stride] : max;
    }
    double reference = reference_of(max, 0.0f);
    double cross = 0.0;
    for (size_t i = 0; i < n_rows; i++) {
        float a = base[i * base_stride];
        double e = fmath_exp_f64(difference(a, reference));
        /* A token without probability under the base contributes nothing. */
        double gap = a == -INFINITY ? 0.0 : (double)a - (double)other[i * other_stride];
        cross = fma(e, gap, cross);
    }
    double rise = reference - reference_of(old_max, (float)reference);
    state->cross[lane] = fma(state->cross[lane], fmath_exp_f64(-rise), cross);
    state->max[lane] = max;
}

void kern_scalar_score_pair(struct kern_pair_lanes *state, const struct kern_logit_tile *base,
                            const struct kern_logit_tile *other)
{
    assert(base->n_rows == other->n_rows);
    for (size_t row = 0; row < base->n_rows; row += KERN_SCORE_BLOCK) {
        for (size_t lane = 0; lane < KERN_LANES; lane++) {
            pair_lane(state, lane, base->logits + row * base->stride + lane, base->stride,
                      other->logits + row * other->stride + lane, other->stride,
                      block_rows(base->n_rows, row));
        }
    }
}

void kern_scalar_score_rank(struct kern_rank_lanes *state, const struct kern_logit_tile *tile)
{
    for (size_t lane = 0; lane < KERN_LANES; lane++) {
        float target = state->logit[lane];
        int32_t token = state->token[lane];
        uint32_t above = state->above[lane];
        for (size_t i = 0; i < tile->n_rows; i++) {
            float l = tile->logits[i * tile->stride + lane];
            int32_t row = tile->first_row + (int32_t)i;
            above += l > target || (l == target && row < token);
        }
        state->above[lane] = above;
    }
}

void kern_score_lanes_init(struct kern_score_lanes *state)
{
    for (size_t lane = 0; lane < KERN_LANES; lane++) {
        state->max[lane] = -INFINITY;
        state->argmax[lane] = -1;
        state->sum[lane] = 0.0;
        state->moment[lane] = 0.0;
    }
}

void kern_pair_lanes_init(struct kern_pair_lanes *state)
{
    for (size_t lane = 0; lane < KERN_LANES; lane++) {
        state->max[lane] = -INFINITY;
        state->cross[lane] = 0.0;
    }
}

void kern_rank_lanes_init(struct kern_rank_lanes *state)
{
    for (size_t lane = 0; lane < KERN_LANES; lane++) {
        state->logit[lane] = NAN;
        state->token[lane] = 0;
        state->above[lane] = 0;
    }
}

void kern_score_finish(struct kern_row_score *out, const struct kern_score_lanes *state,
                       size_t lane)
{
    double sum = state->sum[lane];
    /* A sum of 0 means that no logit was above -infinity: there is no distribution. */
    double log_sum = sum > 0.0 ? kern_log(sum) : (double)NAN;
    out->max_logit = (double)state->max[lane];
    out->log_sum = log_sum;
    out->entropy = log_sum - state->moment[lane] / sum;
    out->argmax = state->argmax[lane];
}

double kern_pair_finish(const struct kern_pair_lanes *pair, const struct kern_score_lanes *base,
                        const struct kern_score_lanes *other, size_t lane)
{
    double sum_a = base->sum[lane];
    double sum_b = other->sum[lane];
    double max_gap = (double)other->max[lane] - (double)base->max[lane];
    double log_ratio = kern_log1p((sum_b - sum_a) / sum_a);
    double kl = pair->cross[lane] / sum_a + (max_gap + log_ratio);
    return kl < 0.0 ? 0.0 : kl;
}
