/* Reductions of logits over the vocabulary, one token per lane: the scalar reference. */
#include <assert.h>
#include <math.h>

#include "base/arithmetic.h"
#include "kernels/numerics/ops_scalar.h"
#include "kernels/numerics/terms.h"

/* One block; exps may be NULL. */
static void update_lane(struct kern_score_lanes *state, size_t lane,
                        const struct kern_logit_tile *block, struct kern_block_exps *exps)
{
    const float *logits = block->logits + lane;
    size_t stride = block->stride, n_rows = block->n_rows;
    float old_max = state->max[lane];
    float max = old_max;
    for (size_t i = 0; i < n_rows; i++) {
        float l = logits[i * stride];
        if (l > max) {
            max = l;
            state->argmax[lane] = block->first_row + (int32_t)i;
        }
    }
    double reference = kern_reference_of(max, 0.0f);
    double sum = 0.0;
    double moment = 0.0;
    for (size_t i = 0; i < n_rows; i++) {
        double d = kern_difference(logits[i * stride], reference);
        double e = fmath_exp_f64(d);
        sum += e;
        moment = fma(e, d, moment);
        if (exps)
            exps->exps[i][lane] = e;
    }
    /* From sums relative to the old maximum to sums relative to the new one. */
    double rise = reference - kern_reference_of(old_max, (float)reference);
    double rescale = fmath_exp_f64(-rise);
    double old_moment = fma(-rise, state->sum[lane], state->moment[lane]);
    state->moment[lane] = fma(old_moment, rescale, moment);
    state->sum[lane] = fma(state->sum[lane], rescale, sum);
    state->max[lane] = max;
    if (exps)
        exps->rescale[lane] = rescale;
}

void kern_scalar_score_update(struct kern_score_lanes *state, const struct kern_logit_tile *tile,
                              struct kern_block_exps *exps)
{
    assert(!exps || tile->n_rows <= KERN_SCORE_BLOCK);
    for (size_t row = 0; row < tile->n_rows; row += KERN_SCORE_BLOCK) {
        struct kern_logit_tile block = {.logits = tile->logits + row * tile->stride,
                                        .stride = tile->stride,
                                        .n_rows = base_min(tile->n_rows - row, KERN_SCORE_BLOCK),
                                        .first_row = tile->first_row + (int32_t)row};
        for (size_t lane = 0; lane < KERN_LANES; lane++)
            update_lane(state, lane, &block, exps);
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
