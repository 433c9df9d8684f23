/* Reductions of two models' logits over the vocabulary: the scalar reference. */
#include "kernels/numerics/pair_lanes.h"

#include <assert.h>
#include <math.h>

#include "kernels/numerics/ops_scalar.h"
#include "kernels/numerics/terms.h"

/** What rounding may leave of a divergence that is 0; it stays far below that. */
static const double rounding = 1e-9;

static const uint8_t top_sizes[KERN_N_TOPS] = {1, 5, 10};

static void pair_lane(struct kern_pair_lanes *state, const struct kern_pair_block *block,
                      size_t lane)
{
    double cross = 0.0, mass = 0.0, reverse = 0.0;
    for (size_t i = 0; i < block->base->n_rows; i++) {
        double a = (double)block->base->logits[i * block->base->stride + lane];
        double b = (double)block->other->logits[i * block->other->stride + lane];
        bool is_cut = a <= block->cut; /* a NaN is not */
        double e = is_cut ? 0.0 : block->base_exps->exps[i][lane];
        mass += e;
        cross = fma(e, is_cut ? 0.0 : a - b, cross);
        reverse =
            fma(block->other_exps->exps[i][lane], b == -(double)INFINITY ? 0.0 : a - b, reverse);
    }
    double base_rescale = block->base_exps->rescale[lane];
    state->cross[lane] = fma(state->cross[lane], base_rescale, cross);
    state->mass[lane] = fma(state->mass[lane], base_rescale, mass);
    state->reverse[lane] = fma(state->reverse[lane], block->other_exps->rescale[lane], reverse);
}

void kern_scalar_score_pair(struct kern_pair_lanes *state, const struct kern_pair_block *block)
{
    assert(block->base->n_rows == block->other->n_rows);
    for (size_t lane = 0; lane < KERN_LANES; lane++)
        pair_lane(state, block, lane);
}

/** Put a logit that is larger than the last one of the list into its place. */
static void top_insert(struct kern_top_lanes *state, size_t lane, float logit, int32_t token)
{
    size_t place = KERN_TOP_MAX - 1;
    for (; place > 0 && logit > state->logit[place - 1][lane]; place--) {
        state->logit[place][lane] = state->logit[place - 1][lane];
        state->token[place][lane] = state->token[place - 1][lane];
    }
    state->logit[place][lane] = logit;
    state->token[place][lane] = token;
}

void kern_scalar_score_top(struct kern_top_lanes *state, const struct kern_logit_tile *tile)
{
    for (size_t i = 0; i < tile->n_rows; i++) {
        const float *logits = tile->logits + i * tile->stride;
        for (size_t lane = 0; lane < KERN_LANES; lane++)
            if (logits[lane] > state->logit[KERN_TOP_MAX - 1][lane])
                top_insert(state, lane, logits[lane], tile->first_row + (int32_t)i);
    }
}

void kern_scalar_score_js(struct kern_js_lanes *state, const struct kern_logit_tile *base,
                          const struct kern_logit_tile *other)
{
    assert(base->n_rows == other->n_rows);
    for (size_t i = 0; i < base->n_rows; i++) {
        for (size_t lane = 0; lane < KERN_LANES; lane++) {
            double log_p =
                kern_log_prob(base->logits[i * base->stride + lane], state->base_shift[lane]);
            double log_q =
                kern_log_prob(other->logits[i * other->stride + lane], state->other_shift[lane]);
            struct kern_js_terms terms = kern_js_terms_of(log_p, log_q);
            state->sum[lane] += terms.divergence;
            state->distance[lane] += terms.distance;
        }
    }
}

void kern_pair_lanes_init(struct kern_pair_lanes *state)
{
    *state = (struct kern_pair_lanes){0};
}

void kern_top_lanes_init(struct kern_top_lanes *state)
{
    for (size_t place = 0; place < KERN_TOP_MAX; place++) {
        for (size_t lane = 0; lane < KERN_LANES; lane++) {
            state->logit[place][lane] = -INFINITY;
            state->token[place][lane] = -1;
        }
    }
}

/** How many of the first n tokens of one list are among the first n of the other. */
static uint8_t count_common(const struct kern_top_lanes *a, const struct kern_top_lanes *b,
                            size_t n, size_t lane)
{
    uint8_t n_common = 0;
    for (size_t i = 0; i < n && a->token[i][lane] >= 0; i++)
        for (size_t j = 0; j < n; j++)
            n_common += a->token[i][lane] == b->token[j][lane];
    return n_common;
}

static double without_rounding(double divergence)
{
    return divergence > -rounding && divergence <= 0.0 ? 0.0 : divergence;
}

static void finish_live(struct kern_pair_score *out, const struct kern_pair_sums *sums, size_t lane)
{
    double sum_a = sums->base->sum[lane];
    double sum_b = sums->other->sum[lane];
    double gap = (double)sums->other->max[lane] - (double)sums->base->max[lane];
    double forward = gap + kern_log1p((sum_b - sum_a) / sum_a);
    double backward = kern_log1p((sum_a - sum_b) / sum_b) - gap;
    out->kl = without_rounding(sums->pair->cross[lane] / sum_a + forward);
    out->reverse_kl = without_rounding(backward - sums->pair->reverse[lane] / sum_b);
}

static void finish_stored(struct kern_pair_score *out, const struct kern_pair_sums *sums,
                          size_t lane)
{
    const struct kern_pair_lanes *pair = sums->pair;
    double sum_b = sums->other->sum[lane];
    double normaliser = (double)sums->other->max[lane] + kern_log(sum_b);
    double scale = fmath_exp_f64((double)sums->base->max[lane]);
    out->kl = scale * fma(pair->mass[lane], normaliser, pair->cross[lane]);
    out->reverse_kl = -pair->reverse[lane] / sum_b - normaliser;
}

void kern_pair_finish(struct kern_pair_score *out, const struct kern_pair_sums *sums, size_t lane)
{
    *out = (struct kern_pair_score){.kl = (double)NAN, .reverse_kl = (double)NAN};
    if (!(sums->base->sum[lane] > 0.0 && sums->other->sum[lane] > 0.0))
        return;
    if (sums->stored)
        finish_stored(out, sums, lane);
    else
        finish_live(out, sums, lane);
    for (size_t i = 0; i < KERN_N_TOPS; i++)
        out->common_top[i] = count_common(sums->base_top, sums->other_top, top_sizes[i], lane);
}

void kern_js_finish(struct kern_pair_score *out, const struct kern_js_lanes *state, size_t lane)
{
    bool is_bad = isnan(state->base_shift[lane]) || isnan(state->other_shift[lane]);
    double distance = state->distance[lane];
    if (distance > 1.0 && distance < 1.0 + rounding)
        distance = 1.0;
    out->js = is_bad ? (double)NAN : without_rounding(0.5 * state->sum[lane]);
    out->tv = is_bad ? (double)NAN : distance;
}
