/**
 * Random operations of recurrent layers, what float64 makes of them one token at a time, and ways
 * to cut sequences into runs.
 */
#ifndef TESTS_KERNELS_RECURRENT_SCENE_H
#define TESTS_KERNELS_RECURRENT_SCENE_H

#include "kernels/recurrent.h"
#include "kernels/types.h"
#include "tests/harness/guard.h"
#include "tests/harness/rng.h"

struct recurrent_shape {
    size_t n_k_heads, n_heads, k_size, v_size;
    bool delta, alternate; /* delta: the gated delta rule, else Mamba-2 with a skip */
    enum kern_unit unit;
    float slowest; /* the median of exp(log decay) of a token */
    float dt_min;
    bool by_channel;
    float least_log; /* then rates are above 0 */
};

/** An operation and its arrays, in host memory. */
struct recurrent_scene {
    struct kern_recur recur;
    struct kern_convolve convolve;
    size_t n_tokens;
    struct guard x, q, gates, out, y; /* q: q, k, v side by side */
    float *vectors;
    struct kern_weight weights[5];
};

/** Random; n_taps and as many channels as q, k and v have for the convolution, bare with 3 taps. */
void recurrent_scene_open(struct recurrent_scene *s, struct rng *r,
                          const struct recurrent_shape *shape, size_t n_taps, size_t n_tokens);
/** Fail if something was written beside the arrays. */
void recurrent_scene_close(struct recurrent_scene *s);
/** Copy token `from` of all inputs to token `to`. */
void recurrent_scene_copy(struct recurrent_scene *s, size_t from, size_t to);

/** Columns of q, k and v together. */
size_t recurrent_scene_width(const struct recurrent_scene *s);

/**
 * The largest errors of recur's and convolve's outputs (no run of which goes on from a saved state)
 * relative to the root of the mean square of the head's, or channel's, outputs.
 */
double recurrent_truth_recur(const struct kern_recur *op);
double recurrent_truth_convolve(const struct kern_convolve *op);

#endif
