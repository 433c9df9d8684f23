/**
 * What scoring gives, on the CPU's backend and on CUDA's, and whether both are the same. A failure
 * ends the test.
 */
#ifndef TESTS_KERNELS_SCORE_RESULTS_H
#define TESTS_KERNELS_SCORE_RESULTS_H

#include "kernels/scoring.h"
#include "tests/kernels/cuda_pair.h"
#include "tests/kernels/score_scene.h"

/** What a call of score gives. */
struct results {
    struct kern_row_score *rows;
    struct kern_target_score *targets;
    struct kern_pair_score *pairs;
    struct kern_top *tops;
    size_t n_rows, n_targets; /* of all heads */
    size_t n_tops;
};

void results_close(struct results *r);

/** Score on a backend; hidden rows are its own. pairs: pairs of heads, too. */
struct results score(struct kern_backend *b, struct kern_score op, bool pairs);
/** score() by the CUDA backend; hidden rows are the host's. */
struct results score_cuda(struct cuda_pair *p, struct kern_score op, bool pairs);

/** The same bits, or both NaN. `what` and i tell which number it is. */
void assert_same_number(double found, double expected, const char *what, size_t i);
void assert_same(const struct results *found, const struct results *expected);

#endif
