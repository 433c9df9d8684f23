/**
 * Gathering rows of host memory for a device, by several threads, so that the host's memory is
 * read as fast as a device takes it. One thread copies 5 to 10 GB/s, and less from a mapping that
 * was not touched before. A device takes 25 to 60.
 */
#ifndef KERNELS_CUDA_DEVICE_STAGING_H
#define KERNELS_CUDA_DEVICE_STAGING_H

#include "base/pool.h"
#include "kernels/cuda/device/device.h"

enum { KERN_CUDA_STAGING_THREADS = 8 /* at most: then the memory is what is waited for */ };

/** Bytes of the rows when they lie side by side. */
static inline size_t kern_cuda_rows_total(const struct kern_cuda_rows *rows)
{
    return rows->n_rows * rows->row_bytes;
}

/**
 * Bytes begin .. begin + n_bytes - 1 of the rows when they lie side by side, to `to`.
 * pool: NULL for the calling thread alone; few bytes are copied by it in any case.
 */
void kern_cuda_rows_gather(struct base_pool *pool, const struct kern_cuda_rows *rows, size_t begin,
                           size_t n_bytes, void *to);

#endif
