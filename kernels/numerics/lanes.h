/**
 * Vertical kernels: KERN_LANES queries or tokens side by side, one per lane, the reduction
 * running down the rows. A lane sees only its own numbers in a fixed order, so its bits do
 * not depend on what the other lanes hold, nor on the vector width of the ISA.
 */
#ifndef KERNELS_NUMERICS_LANES_H
#define KERNELS_NUMERICS_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/types.h"

enum {
    KERN_LANES = 16,
    KERN_SCORE_BLOCK = 32 /* vocabulary rows between two looks at the running maximum */
};

/**
 * A logit further than this below the maximum counts as this far below: e^x is 0 there, and
 * stays 0 when it is multiplied by x, which it would not with x = -infinity.
 */
#define KERN_LOWEST_DIFFERENCE (-1000.0)

/**
 * One block of attention scores for KERN_LANES queries, turned into probabilities in place.
 *
 * Key j of lane i is visible if begin[i] <= j < end[i] (both relative to the block; they may
 * lie outside 0 .. n_keys). With s' = s * scale, per lane:
 *   max'    = the larger of max and the visible s'
 *   rescale = exp(max - max'), 1 if the lane has seen no key before this block
 *   s       = exp(s' - max') where visible, 0 elsewhere
 *   sum     = fma(sum, rescale, the block's s added up in key order)
 * The caller multiplies what it accumulated so far by rescale, then adds s times v.
 * A lane starts with max = -infinity and sum = 0; a block that shows it no key changes
 * neither. A NaN or +infinity among the visible scores makes sum NaN.
 */
struct kern_softmax_block {
    float *s;      /* [n_keys, stride], lanes in columns 0..KERN_LANES-1 */
    size_t stride; /* floats from one key to the next */
    size_t n_keys;
    float scale;
    const int32_t *begin; /* [KERN_LANES] */
    const int32_t *end;   /* [KERN_LANES] */
    float *max;           /* [KERN_LANES], running */
    float *sum;           /* [KERN_LANES], running */
    float *rescale;       /* [KERN_LANES], out */
};

/** Consecutive vocabulary rows of logits, one token per lane. */
struct kern_logit_tile {
    const float *logits; /* [n_rows, stride], lanes in columns 0..KERN_LANES-1 */
    size_t stride;       /* floats from one row to the next */
    size_t n_rows;       /* a multiple of KERN_SCORE_BLOCK, except in a vocabulary's last tile */
    int32_t first_row;   /* token id of row 0 */
};

/**
 * Running reductions over the vocabulary. max takes the finite and infinite logits; a NaN or
 * +infinity logit makes sum NaN for good. -infinity is a legal logit of probability 0.
 */
struct kern_score_lanes {
    float max[KERN_LANES];
    int32_t argmax[KERN_LANES]; /* first row that holds max; -1 while all are -infinity or NaN */
    double sum[KERN_LANES];     /* sum e^(l - max) */
    double moment[KERN_LANES];  /* sum e^(l - max) (l - max), for the entropy */
};

/**
 * The exponentials of one score block as score_update computes them, for the kernels that put
 * two models' blocks together (pair_lanes.h).
 */
struct kern_block_exps {
    double exps[KERN_SCORE_BLOCK][KERN_LANES]; /* e^(l - max), max being that after the block */
    double rescale[KERN_LANES]; /* e^(max before - max after): what earlier sums are worth */
};

/** Targets whose rank is counted, at most one per lane; use several for more. */
struct kern_rank_lanes {
    float logit[KERN_LANES];    /* the target's own logit; NaN in a lane without target */
    int32_t token[KERN_LANES];  /* its row in the vocabulary */
    uint32_t above[KERN_LANES]; /* out: rows with a larger logit, or an equal one and a lower id */
};

void kern_score_lanes_init(struct kern_score_lanes *state);
/** Clears `above` and puts NaN into every `logit`, 0 into every `token`. */
void kern_rank_lanes_init(struct kern_rank_lanes *state);

/**
 * The row score of one lane after the last tile. log_sum and entropy are NaN
 * if a logit was NaN or +infinity or none was above -infinity.
 */
void kern_score_finish(struct kern_row_score *out, const struct kern_score_lanes *state,
                       size_t lane);

#endif
