/** A CPU backend and a CUDA backend on a device made of host memory, side by side. */
#ifndef TESTS_KERNELS_CUDA_PAIR_H
#define TESTS_KERNELS_CUDA_PAIR_H

#include "kernels/backend.h"
#include "kernels/cuda/cuda.h"
#include "tests/harness/host_device.h"

struct cuda_pair {
    struct kern_backend *cpu, *cuda;
    struct host_device_log log;
};

/**
 * Open both; a failure ends the test. Little memory in small panels, so that everything that the
 * backend does for large models happens: panels are streamed through slots, tokens cut in chunks.
 */
void cuda_pair_open(struct cuda_pair *p, enum kern_precision precision,
                    const struct host_device_options *options);
/** Fail if device memory was lost. */
void cuda_pair_close(struct cuda_pair *p);

/**
 * Floats that an operation of the CUDA backend has written (n of them from y on) once all queued
 * work is done. Host arrays serve as memory of this device.
 */
void cuda_pair_wait(struct cuda_pair *p, float *y);

/** The ways in which the device may do its work: every order, forwards and backwards. */
enum { CUDA_PAIR_N_WAYS = 6 };
struct host_device_options cuda_pair_way(size_t i);

#endif
