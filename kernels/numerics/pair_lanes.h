/**
 * Reductions of two models' logits over the vocabulary: divergences, and the most likely
 * tokens, which are compared at the end. Lanes as in lanes.h.
 */
#ifndef KERNELS_NUMERICS_PAIR_LANES_H
#define KERNELS_NUMERICS_PAIR_LANES_H

#include "kernels/numerics/lanes.h"

/** Log-probabilities above this, which only a broken record has, count as this. */
#define KERN_HIGHEST_LOG_PROB 700.0
/** Where the Jensen-Shannon terms change their formula; below sqrt(2) - 1 in any case. */
#define KERN_JS_FAR 0.4296875

/** Running sums over a, the logits of the base, and b, those of the other. */
struct kern_pair_lanes {
    double cross[KERN_LANES];   /* sum e^(a - max a) (a - b), over what is not cut */
    double mass[KERN_LANES];    /* sum e^(a - max a), over what is not cut */
    double reverse[KERN_LANES]; /* sum e^(b - max b) (a - b) */
};

/**
 * At most KERN_SCORE_BLOCK rows of both. A token with a <= cut is left out of cross and mass;
 * cut = -infinity leaves out those without probability. A token with b = -infinity has none
 * under the other and is left out of reverse.
 */
struct kern_pair_block {
    const struct kern_logit_tile *base, *other; /* the same rows, strides of their own */
    const struct kern_block_exps *base_exps, *other_exps;
    double cut; /* not NaN */
};

/** The most likely tokens so far, best first; of equals the lower id first. */
struct kern_top_lanes {
    float logit[KERN_TOP_MAX][KERN_LANES];
    int32_t token[KERN_TOP_MAX][KERN_LANES]; /* -1: none yet; NaN and -infinity never enter */
};

/** Running Jensen-Shannon divergence and total variation, when the normalisers are known. */
struct kern_js_lanes {
    double base_shift[KERN_LANES], other_shift[KERN_LANES]; /* ln p = logit - shift */
    double sum[KERN_LANES];      /* twice the divergence: sum_i m_i f(t_i), see kern_js_terms_of */
    double distance[KERN_LANES]; /* total variation: sum_i |p_i - q_i| / 2 */
};

void kern_pair_lanes_init(struct kern_pair_lanes *state);
void kern_top_lanes_init(struct kern_top_lanes *state);

/**
 * What is known of a row after the last tile. With the normalised sums of base and other:
 *   kl         = cross / sum_a + (max_b - max_a) + ln(sum_b / sum_a)
 *   reverse_kl = -reverse / sum_b + (max_a - max_b) + ln(sum_a / sum_b)
 * the logarithms as ln(1 + difference / divisor), which keeps what nearly equal models differ
 * by. For a stored base, whose logits are log-probabilities that need not add up to 1:
 *   kl         = e^max_a (cross + mass (max_b + ln sum_b))
 *   reverse_kl = -reverse / sum_b - (max_b + ln sum_b)
 */
struct kern_pair_sums {
    const struct kern_pair_lanes *pair;
    const struct kern_score_lanes *base, *other;
    const struct kern_top_lanes *base_top, *other_top;
    bool stored; /* the base comes from a file */
};

/**
 * The pair score of one lane; js and tv are set to 0. NaN, and nothing in common, if either row has
 * no distribution (kern_score_finish); infinity if one gives probability 0 to what the other does
 * not.
 */
void kern_pair_finish(struct kern_pair_score *out, const struct kern_pair_sums *sums, size_t lane);

/** Set js and tv to what one lane has. NaN if a shift is. */
void kern_js_finish(struct kern_pair_score *out, const struct kern_js_lanes *state, size_t lane);

#endif
