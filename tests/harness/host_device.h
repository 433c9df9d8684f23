/**
 * A device made of the host's memory: it runs the CUDA backend's kernels as C, and multiplies
 * halves in plain float32. Work is queued as on a real device and done in the order that is chosen,
 * so that a missing wait shows; new memory holds NaN; every call can be made to fail.
 */
#ifndef TESTS_HARNESS_HOST_DEVICE_H
#define TESTS_HARNESS_HOST_DEVICE_H

#include "kernels/cuda/device/device.h"

/** When queued work is done. */
enum host_device_order {
    HOST_DEVICE_AT_ONCE,
    HOST_DEVICE_UPLOADS_LATE, /* uploads only when something waits for them */
    HOST_DEVICE_COMPUTE_LATE  /* computing only when something waits for it; uploads early */
};

/** How the product behaves, beside being right. */
enum host_device_gemm {
    HOST_DEVICE_GEMM_EVEN,         /* a row's bits are the same wherever it is */
    HOST_DEVICE_GEMM_BY_NUMBER,    /* they depend on the numbers of rows */
    HOST_DEVICE_GEMM_BY_MIDDLE,    /* they are others where rows are fewer, but more than half */
    HOST_DEVICE_GEMM_PLANNED_ONLY, /* fewer rows than planned are not supported */
    HOST_DEVICE_GEMM_BY_PLACE,     /* they depend on the row's number */
    /* Five algorithms, of which the odd ones have other bits; the later the faster, or slower. */
    HOST_DEVICE_GEMM_FASTER,
    HOST_DEVICE_GEMM_SLOWER
};

struct host_device_options {
    size_t memory_bytes; /* 0: 1 GiB */
    size_t shared_bytes; /* of a block, at most; 0: 99 KiB */
    enum host_device_order order;
    enum host_device_gemm gemm;
    bool backwards; /* blocks of a launch run from the last to the first */
    size_t fail_at; /* the call of this number fails, counted from 1; 0: none */
};

/** What a device has seen; must outlive it. */
struct host_device_log {
    size_t n_calls; /* that can fail */
    size_t n_launches[KERN_CUDA_N_KERNELS], n_gemms;
    size_t n_copies_in, n_copies_out, n_allocs;
    unsigned last_algorithm; /* of a product */
    size_t n_left;           /* allocations that were not freed before close */
    size_t peak_bytes;
};

/** NULL if memory is short. log: may be NULL. */
struct kern_cuda_device *host_device_open(const struct host_device_options *options,
                                          struct host_device_log *log);

#endif
