/**
 * What runs the kernels of a device made of host memory: run_kernel.c as plain C; tests/ptx the
 * code that a compiler made of them, which is told of all else that happens to the memory.
 */
#ifndef TESTS_HARNESS_RUN_KERNEL_H
#define TESTS_HARNESS_RUN_KERNEL_H

#include "kernels/cuda/device/device.h"

/** Run the blocks of a launch; backwards: from the last to the first. */
void run_kernel_launch(const struct kern_cuda_launch *launch, bool backwards);

enum run_kernel_event {
    RUN_KERNEL_NEW,   /* memory was allocated */
    RUN_KERNEL_FREED, /* and is about to be freed */
    RUN_KERNEL_WRITTEN,
    RUN_KERNEL_READ /* by a product: it must have been written */
};

/** Something other than a kernel did this with memory of the device. */
void run_kernel_memory(enum run_kernel_event event, const void *memory, size_t n_bytes);

/** A scene of a test begins: it looks at nothing that the one before left on the device. */
void run_kernel_scene(void);

/** Whether a test should do without what shows a kernel nothing new: see tests/ptx/README.md. */
bool run_kernel_is_slow(void);

#endif
