/**
 * The logits of the targets, which are wanted before the vocabulary is walked.
 *
 *   target  one chain of multiply-adds per target: 2 K operations, 8 K bytes
 *   take    the tile's own logits of the targets, where the library computed them
 */
#ifndef KERNELS_CUDA_KERNELS_SCORE_TARGETS_H
#define KERNELS_CUDA_KERNELS_SCORE_TARGETS_H

#include <math.h>
#include <stdbool.h>

#include "kernels/cuda/kernels/product.h"
#include "kernels/numerics/fmath.h"
#include "kernels/numerics/terms.h"

enum {
    KERN_TARGET_SIDE = 16, /* targets of a block */
    KERN_TARGET_PITCH = KERN_TARGET_SIDE + 1,
    KERN_TARGET_DEPTH = 128, /* columns in shared memory at a time */
    KERN_TARGET_WARP = 32,   /* threads in front of those that fill shared memory */
    KERN_TARGET_FILLERS = 256,
    KERN_TARGET_RUN = KERN_TARGET_SIDE * KERN_TARGET_DEPTH / KERN_TARGET_FILLERS,
    KERN_TARGET_THREADS = KERN_TARGET_WARP + KERN_TARGET_FILLERS,
    KERN_TAKE_THREADS = 128
};

/** A target of the current rows. */
struct kern_cuda_target {
    uint32_t row;
    int32_t token;
    size_t slot; /* of ranks; its lane is row % KERN_LANES */
};

/**
 * The logits of `weights` rows i after hidden rows targets[i].row. A block has KERN_TARGET_SIDE
 * targets: as many threads of the first warp add a chain each, in the order of the columns, while
 * the other warps bring the next columns to shared memory.
 */
struct kern_target_args {
    const struct kern_cuda_target *targets;
    size_t n_targets;
    const float *hidden;  /* [rows, n_cols] */
    const float *weights; /* [targets, n_cols] */
    /* With halves: the operands are rounded as the product of the tile rounds them. */
    const uint32_t *hidden_largest, *weights_largest; /* NULL: exact */
    size_t n_cols;
    const float *bias;     /* [V] or NULL */
    float scale, soft_cap; /* soft_cap 0: none */
    struct kern_rank_lanes *ranks;
};

/** Columns of a block's targets, turned. */
struct kern_target_columns {
    float hidden[KERN_TARGET_DEPTH][KERN_TARGET_PITCH];
    float weights[KERN_TARGET_DEPTH][KERN_TARGET_PITCH];
};

struct kern_target_shared {
    struct kern_target_columns columns[2]; /* one is added, one is filled */
    struct kern_cuda_target targets[KERN_TARGET_SIDE];
    int hidden_exponent[KERN_TARGET_SIDE], weights_exponent[KERN_TARGET_SIDE];
    unsigned n; /* targets */
};

/** x as a product of halves sees it: scaled and rounded. */
KERN_INLINE float kern_as_half(float x, int exponent)
{
    return kern_half_to_float(kern_half_from_float(kern_scale_by(x, exponent)));
}

KERN_INLINE void kern_target_begin(const struct kern_target_args *a, struct kern_target_shared *s,
                                   size_t first, unsigned t)
{
    if (t == 0)
        s->n = a->n_targets - first < KERN_TARGET_SIDE ? (unsigned)(a->n_targets - first)
                                                       : KERN_TARGET_SIDE;
    if (t >= KERN_TARGET_SIDE || first + t >= a->n_targets)
        return;
    s->targets[t] = a->targets[first + t];
    bool halves = a->hidden_largest != NULL;
    s->hidden_exponent[t] =
        halves ? kern_row_exponent(a->hidden_largest[a->targets[first + t].row]) : 0;
    s->weights_exponent[t] = halves ? kern_row_exponent(a->weights_largest[first + t]) : 0;
}

/** Columns from k on; thread t of those that fill has a column of every other target. */
KERN_INLINE void kern_target_fill(const struct kern_target_args *a,
                                  const struct kern_target_shared *s,
                                  struct kern_target_columns *to, size_t first, size_t k,
                                  unsigned t)
{
    float hidden[KERN_TARGET_RUN], weights[KERN_TARGET_RUN]; /* on their way together */
    unsigned column = t % KERN_TARGET_DEPTH;
    KERN_UNROLL
    for (unsigned j = 0; j < KERN_TARGET_RUN; j++) {
        unsigned i = j * (KERN_TARGET_FILLERS / KERN_TARGET_DEPTH) + t / KERN_TARGET_DEPTH;
        bool real = i < s->n && k + column < a->n_cols;
        hidden[j] = real ? a->hidden[s->targets[i].row * a->n_cols + k + column] : 0.0f;
        weights[j] = real ? a->weights[(first + i) * a->n_cols + k + column] : 0.0f;
    }
    KERN_UNROLL
    for (unsigned j = 0; j < KERN_TARGET_RUN; j++) {
        unsigned i = j * (KERN_TARGET_FILLERS / KERN_TARGET_DEPTH) + t / KERN_TARGET_DEPTH;
        if (i >= s->n)
            continue;
        bool halves = a->hidden_largest != NULL;
        to->hidden[column][i] = halves ? kern_as_half(hidden[j], s->hidden_exponent[i]) : hidden[j];
        to->weights[column][i] =
            halves ? kern_as_half(weights[j], s->weights_exponent[i]) : weights[j];
    }
}

KERN_INLINE float kern_target_add(const struct kern_target_columns *c, unsigned n, unsigned t,
                                  float sum)
{
    for (unsigned k = 0; k < n; k++)
        sum = fmaf(c->weights[k][t], c->hidden[k][t], sum);
    return sum;
}

KERN_INLINE void kern_target_block(const struct kern_target_args *a, size_t block, void *shared)
{
    struct kern_target_shared *s = (struct kern_target_shared *)shared;
    size_t first = block * KERN_TARGET_SIDE;
    float sums[KERN_SLOTS(KERN_TARGET_THREADS)];
    for (unsigned t = kern_thread_begin(); t < KERN_TARGET_THREADS;
         t += kern_thread_step(KERN_TARGET_THREADS)) {
        kern_target_begin(a, s, first, t);
        sums[kern_slot(t)] = 0.0f;
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_TARGET_THREADS;
         t += kern_thread_step(KERN_TARGET_THREADS)) {
        if (t >= KERN_TARGET_WARP)
            kern_target_fill(a, s, &s->columns[0], first, 0, t - KERN_TARGET_WARP);
    }
    kern_barrier();
    for (size_t k = 0, i = 0; k < a->n_cols; k += KERN_TARGET_DEPTH, i++) {
        size_t left = a->n_cols - k;
        unsigned n = left < KERN_TARGET_DEPTH ? (unsigned)left : KERN_TARGET_DEPTH;
        for (unsigned t = kern_thread_begin(); t < KERN_TARGET_THREADS;
             t += kern_thread_step(KERN_TARGET_THREADS)) {
            if (t < s->n)
                sums[kern_slot(t)] = kern_target_add(&s->columns[i % 2], n, t, sums[kern_slot(t)]);
            else if (t >= KERN_TARGET_WARP && left > KERN_TARGET_DEPTH)
                kern_target_fill(a, s, &s->columns[(i + 1) % 2], first, k + KERN_TARGET_DEPTH,
                                 t - KERN_TARGET_WARP);
        }
        kern_barrier();
    }
    for (unsigned t = kern_thread_begin(); t < KERN_TARGET_THREADS;
         t += kern_thread_step(KERN_TARGET_THREADS)) {
        if (t >= s->n)
            continue;
        int exponent = s->hidden_exponent[t] + s->weights_exponent[t];
        struct kern_cuda_target target = s->targets[t];
        const float *bias = a->bias ? a->bias + target.token : NULL;
        float logit =
            kern_finished(kern_scale_by(sums[kern_slot(t)], -exponent), a->scale, bias, NULL);
        if (a->soft_cap > 0.0f)
            logit = fmath_soft_cap_f32(logit, a->soft_cap, 1.0f / a->soft_cap);
        a->ranks[target.slot].logit[target.row % KERN_LANES] = logit;
    }
}

/**
 * The targets within the tile; a block takes KERN_TAKE_THREADS of them. Ranks are counted against
 * the logits of kern_target_block, which are there before the tiles are; a log-probability is that
 * of the logit that the sums hold.
 */
struct kern_take_args {
    const struct kern_cuda_target *targets;
    size_t n_targets;
    const float *logits; /* [n_vocab, stride] */
    size_t stride, n_vocab;
    int32_t first_token;
    float *taken; /* [slots][KERN_LANES] */
};

KERN_INLINE void kern_take_block(const struct kern_take_args *a, size_t block, void *shared)
{
    (void)shared;
    for (unsigned t = kern_thread_begin(); t < KERN_TAKE_THREADS;
         t += kern_thread_step(KERN_TAKE_THREADS)) {
        size_t i = block * KERN_TAKE_THREADS + t;
        if (i >= a->n_targets)
            continue;
        struct kern_cuda_target target = a->targets[i];
        int64_t row = (int64_t)target.token - a->first_token;
        if (row >= 0 && row < (int64_t)a->n_vocab)
            a->taken[target.slot * KERN_LANES + target.row % KERN_LANES] =
                a->logits[(size_t)row * a->stride + target.row];
    }
}

#endif
