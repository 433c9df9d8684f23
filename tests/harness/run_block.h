/** One block of a kernel's launch as plain C. */
#ifndef TESTS_HARNESS_RUN_BLOCK_H
#define TESTS_HARNESS_RUN_BLOCK_H

#include "kernels/cuda/device/device.h"

typedef void run_block_fn(const struct kern_cuda_launch *launch, size_t block, void *shared);

/** The same, compiled for every processor and for those with AVX2 and FMA: there fmaf() is an
 * instruction, and tests take half the time. */
run_block_fn run_block_plain, run_block_fma;

#endif
