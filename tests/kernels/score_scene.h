/**
 * Scenes for the tests of scoring and recording: heads over one vocabulary with random hidden
 * rows and matrices, and their logits by the definition. A failure ends the test.
 */
#ifndef TESTS_KERNELS_SCORE_SCENE_H
#define TESTS_KERNELS_SCORE_SCENE_H

#include "kernels/scoring.h"
#include "tests/harness/cpu_backend.h"
#include "tests/harness/rng.h"

enum { SCENE_HEADS = 3, SCENE_TARGETS = 200 };

/** Heads over one vocabulary and the rows and targets to score. */
struct scene {
    size_t n_vocab;
    struct kern_weight matrices[SCENE_HEADS], biases[SCENE_HEADS];
    struct kern_head heads[SCENE_HEADS];
    float *memory[3 * SCENE_HEADS]; /* hidden, matrix, bias of each head */
    float *logits[SCENE_HEADS];     /* [n_rows, V], by the definition */
    struct kern_target targets[SCENE_TARGETS];
    struct kern_score op;
};

struct scene_size {
    size_t n_heads, n_rows, n_vocab;
    size_t times; /* as wide */
};

/** Rows of a vocabulary; widths, scales, biases and soft caps differ between the heads. */
void scene_open(struct scene *s, uint64_t stream, size_t n_heads, size_t n_rows, size_t n_vocab);
/** The same, the widths a multiple of what they are there. */
void scene_open_wide(struct scene *s, uint64_t stream, const struct scene_size *size);
void scene_close(struct scene *s);

/** The heads of a scene in two parts; what they point to is in it. */
struct scene_cut {
    struct kern_weight matrices[2][SCENE_HEADS], biases[2][SCENE_HEADS];
    struct kern_head heads[SCENE_HEADS], beyond[SCENE_HEADS];
};

/** The first n rows of each, and of all but head 0 the others beyond them. Targets move to the
 * former. */
void scene_cut(struct scene_cut *cut, struct scene *s, size_t n);

/** Recompute the logits of a head from what its buffers hold. */
void scene_define_logits(struct scene *s, size_t h);

/** Score on a backend of its own. */
void scene_run(enum kern_isa isa, unsigned n_threads, const struct kern_score *op);

/**
 * The record of a row of logits, as struct kern_recorded describes it, in plain double
 * arithmetic. record: kern_record_codes(n_vocab) codes.
 */
void scene_encode(uint16_t *record, const float *logits, size_t n_vocab);

/**
 * With u = 2^-53: a term exp(l - max) is off by at most 2 u relatively (the difference of two
 * floats is at most u |l - max| off, the weight of such a term in the sum falls faster than
 * that grows), n additions and a rescaling per block add (n + 2 n / 32) u: a relative error
 * e = (2 n + 8) u of the sum, an absolute one of its logarithm. Sums of weighted differences
 * (moment, cross) have the same relative error in the sum of magnitudes.
 */
long double scene_sum_error(size_t n);

/** Fail unless |found - expected| <= bound. */
void scene_assert_near(double found, long double expected, long double bound, const char *what);

#endif
