/**
 * Small arrays that every layer needs again: positions, ranges, tasks, runs. Each is uploaded when
 * its bytes are new, and found by its bytes from then on, whatever memory of the host it is in.
 */
#ifndef KERNELS_CUDA_TABLES_H
#define KERNELS_CUDA_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Those of a batch: four tiles, each with a few for every kind of attention in the model. */
enum { KERN_CUDA_N_TABLES = 32 };

struct kern_cuda_table {
    void *bytes, *memory; /* of the host and of the device; or NULL */
    size_t n_bytes, capacity;
    uint64_t last_used;
};

struct kern_cuda_tables {
    struct kern_cuda_table all[KERN_CUDA_N_TABLES];
    uint64_t n_uses;
};

struct kern_cuda;
struct kern_cuda_array;

/**
 * Where each array is on the device, in arrays[i].to; NULL for one of no bytes. At most
 * KERN_CUDA_N_TABLES; valid until the next call.   Fails: STATUS_MEMORY, STATUS_DEVICE.
 */
enum status kern_cuda_tables_put(struct kern_cuda *cuda, struct kern_cuda_array *arrays,
                                 size_t n_arrays, struct status_why *why);

void kern_cuda_tables_close(struct kern_cuda *cuda);

#endif
