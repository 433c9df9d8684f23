/**
 * What the CUDA backend needs of a device: memory, copies, launches, one library product, and the
 * order between two streams. A real device is device.c. Tests have one made of the host's memory
 * (tests/harness/host_device.h), on which every kernel runs as C.
 *
 * Work is queued on two streams. COMPUTE runs launches, products and copies in order. COPY runs
 * large copies beside it, which are waited for through events. When a call returns, its work is
 * queued and need not be done, except where that is said. So a failure may be reported by a later
 * call.
 */
#ifndef KERNELS_CUDA_DEVICE_DEVICE_H
#define KERNELS_CUDA_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "gguf/type.h"
#include "kernels/cuda/kernels/list.h"

enum kern_cuda_stream { KERN_CUDA_COMPUTE, KERN_CUDA_COPY, KERN_CUDA_N_STREAMS };

/** Events are numbers below this; each can be signalled again and again. So are marks. */
enum { KERN_CUDA_MAX_EVENTS = 256, KERN_CUDA_MAX_MARKS = 1024 };

#define KERN_CUDA_NUMBER(id, ...) KERN_CUDA_##id,

/** The kernels. Flash is attention on tensor cores: parts of a number, most elements of a head. */
enum kern_cuda_kernel { KERN_CUDA_KERNELS(KERN_CUDA_NUMBER, KERN_CUDA_NUMBER) KERN_CUDA_N_KERNELS };

struct kern_cuda_launch {
    enum kern_cuda_kernel kernel;
    enum gguf_type type; /* DECODE only */
    size_t n_blocks;     /* 0: nothing is done */
    size_t shared_bytes; /* of each block, at most the device's shared_bytes */
    const void *args;    /* the kernel's struct; read before the call returns */
};

/** Algorithms of the library that may be asked for. */
enum { KERN_CUDA_MAX_ALGORITHMS = 8 };

/**
 * c[j][i] = sum_k a[i][k] b[j][k], halves in, float32 sums. The library proposes
 * algorithms for a product of plan_a by plan_b rows, with rows of c side by side. Only those that
 * never split k are numbered. The same algorithm is used for fewer rows. STATUS_UNSUPPORTED if it
 * does not take them, or if there are not so many algorithms.
 */
struct kern_cuda_gemm {
    const uint16_t *a, *b; /* [n_a, n_k], [n_b, n_k] */
    float *c;              /* [n_b, c_stride], of which n_a are written */
    size_t c_stride;       /* 0: n_a */
    size_t n_a, n_b, n_k;
    size_t plan_a, plan_b;
    unsigned algorithm; /* which of them, in the library's order, from 0 */
};

/**
 * Rows in host memory, at equal distances; with `which` some of them, in any order. Rows of blocks
 * that a device cannot decode where they lie (kernels/quant/rows.h) are copied as such that it can.
 */
struct kern_cuda_rows {
    const void *first;
    size_t n_rows, row_bytes;
    size_t stride;             /* bytes from row to row */
    const int32_t *which;      /* [n_rows], numbers of rows; or NULL: all in their order */
    size_t n_cols;             /* of rows that are copied as blocks, else 0; */
    enum gguf_type type;       /* their type, */
    size_t first_row;          /* the number of the first of them in the bundle at `first`, */
    struct gguf_scales scales; /* theirs that lie apart, */
    size_t col_step;           /* and what is from one element to the next (struct kern_rows) */
};

struct kern_cuda_device;

struct kern_cuda_device_ops {
    /** Waits for everything and frees the device; memory must have been freed. */
    void (*close)(struct kern_cuda_device *d);
    /** Memory aligned to 256.  Fails: STATUS_MEMORY; the sentence has size asked and size free. */
    enum status (*alloc)(struct kern_cuda_device *d, void **out, size_t n_bytes,
                         struct status_why *why);
    /** Waits for what uses it. NULL is allowed. */
    void (*free)(struct kern_cuda_device *d, void *memory);
    /** Bytes that could be allocated now, about, and in all. */
    enum status (*memory)(struct kern_cuda_device *d, size_t *free_bytes, size_t *total_bytes,
                          struct status_why *why);
    /** Host to device, side by side. The rows may be changed as soon as the call returns. */
    enum status (*copy_in)(struct kern_cuda_device *d, enum kern_cuda_stream stream, void *to,
                           const struct kern_cuda_rows *rows, struct status_why *why);
    /**
     * Device to host, after all work of the stream; the bytes are there when the call returns. The
     * other stream goes on meanwhile.
     */
    enum status (*copy_out)(struct kern_cuda_device *d, enum kern_cuda_stream stream, void *to,
                            const void *from, size_t n_bytes, struct status_why *why);
    /** Fill with a byte, on COMPUTE. */
    enum status (*clear)(struct kern_cuda_device *d, void *to, int byte, size_t n_bytes,
                         struct status_why *why);
    enum status (*launch)(struct kern_cuda_device *d, const struct kern_cuda_launch *launch,
                          struct status_why *why);
    enum status (*gemm)(struct kern_cuda_device *d, const struct kern_cuda_gemm *gemm,
                        struct status_why *why);
    /** The event happens when the stream gets here; waits for its last signal before this call. */
    enum status (*signal)(struct kern_cuda_device *d, enum kern_cuda_stream stream, unsigned event,
                          struct status_why *why);
    enum status (*wait)(struct kern_cuda_device *d, enum kern_cuda_stream stream, unsigned event,
                        struct status_why *why);
    /** Note the time when COMPUTE gets here. */
    enum status (*mark)(struct kern_cuda_device *d, unsigned mark, struct status_why *why);
    /** Seconds from one mark to another, which is waited for. */
    enum status (*elapsed)(struct kern_cuda_device *d, unsigned from, unsigned to, double *seconds,
                           struct status_why *why);
};

/** First member of every implementation's own struct. */
struct kern_cuda_device {
    const struct kern_cuda_device_ops *ops;
    char name[256];              /* "NVIDIA H200 (sm_90, CUDA 13.0)" */
    size_t shared_bytes;         /* most of a block */
    unsigned compute_capability; /* 89: 8.9 */
};

/**
 * Open a real device.   index: as the driver counts.
 * Fails: STATUS_DEVICE (no driver, no such device, built without CUDA), STATUS_UNSUPPORTED (too
 * old), STATUS_MEMORY.
 */
enum status kern_cuda_device_open(struct kern_cuda_device **out, unsigned index,
                                  struct status_why *why);

/**
 * How many devices there are; 0 also without a driver or without CUDA in this build. Tests and
 * benchmarks ask, to tell a machine without a device from one whose device cannot be opened.
 */
unsigned kern_cuda_n_devices(void);

#endif
