/** The CUDA backend: how to open it. docs/cuda.md says how it works. */
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include "kernels/cuda/device/device.h"
#include "kernels/precision.h"

struct kern_backend;

/** Whether `high` multiplies quantised weights in 16-bit integers, or all in halves. */
enum kern_cuda_integers {
    KERN_CUDA_INTEGERS_BY_CARD, /* kern_cuda_prefers_integers() */
    KERN_CUDA_INTEGERS_ALWAYS,
    KERN_CUDA_INTEGERS_NEVER
};

struct kern_cuda_options {
    enum kern_precision precision;
    /* What follows may be 0: chosen here. Tests set it, so that much happens in little memory. */
    enum kern_cuda_integers integers;
    size_t weight_bytes;   /* device memory for weights: packed, and decoded ones that are kept */
    size_t panel_size;     /* of a weight that is decoded at once: elements, and packed bytes */
    size_t n_slots;        /* staging slots for packed panels that do not stay; at least 4 */
    size_t product_tokens; /* tokens of a product */
    size_t product_step;   /* tokens that a smaller one is padded to a multiple of */
    size_t parts_bytes;    /* keys and values that attention splits into parts at a time */
};

/**
 * Open a backend on a device. The backend owns the device, also when this fails.
 * Fails: STATUS_MEMORY, and what the device reports.
 */
enum status kern_cuda_open(struct kern_backend **out, struct kern_cuda_device *device,
                           const struct kern_cuda_options *options, struct status_why *why);

#endif
