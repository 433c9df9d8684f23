/** The device's kernels on the host, as plain C. */
#ifndef TESTS_HARNESS_RUN_KERNEL_H
#define TESTS_HARNESS_RUN_KERNEL_H

#include "kernels/cuda/device/device.h"

/** Run one block of a launch. shared: as many bytes as the launch says, aligned to 64. */
void run_kernel_block(const struct kern_cuda_launch *launch, size_t block, void *shared);

#endif
