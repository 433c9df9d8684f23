/** What a device's library makes of products of halves at best: the ceiling of everything else. */
#ifndef BENCH_CUDA_CEILING_H
#define BENCH_CUDA_CEILING_H

#include <stddef.h>

#include "base/status.h"

struct cuda_ceiling {
    double rate;            /* operations a second, the median of some runs */
    double seconds, spread; /* of one product; largest less smallest, over the median */
    double flops;
    char detail[64]; /* "8192 x 8192 x 8192, algorithm 3" */
};

/**
 * The fastest of every algorithm at the layer shapes of an 8B model and at a large square, on
 * random halves, without anything around them: each run is several products between two events.
 * index: of the device. n_runs: at most CUDA_CEILING_RUNS count.
 * Fails: what the device reports; STATUS_UNSUPPORTED if no product could be computed.
 */
enum status cuda_ceiling_measure(struct cuda_ceiling *out, unsigned index, size_t n_runs,
                                 struct status_why *why);
enum { CUDA_CEILING_RUNS = 99 };

#endif
