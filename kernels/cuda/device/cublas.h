/**
 * Products by cuBLASLt. The library is loaded when the first product is asked for, so that the
 * program starts, and computes exactly, on machines without it.
 */
#ifndef KERNELS_CUDA_DEVICE_CUBLAS_H
#define KERNELS_CUDA_DEVICE_CUBLAS_H

#include "kernels/cuda/device/device.h"

struct kern_cublas;

/** What NVIDIA recommends for Hopper in the documentation of cublasSetWorkspace(). */
enum { KERN_CUBLAS_WORKSPACE = 32 << 20 };

/**
 * For the current device.   workspace: KERN_CUBLAS_WORKSPACE bytes of its memory, the caller's.
 * Fails: STATUS_DEVICE (no library, or it fails), STATUS_MEMORY.
 */
enum status kern_cublas_open(struct kern_cublas **out, void *workspace, struct status_why *why);
/** NULL is allowed. */
void kern_cublas_close(struct kern_cublas *blas);

/**
 * A product, as struct kern_cuda_gemm has it; stream: a cudaStream_t, always the same one, since
 * products share the workspace.
 * Fails: STATUS_UNSUPPORTED (there is no such algorithm, or it does not take this shape),
 *        STATUS_DEVICE, STATUS_MEMORY.
 */
enum status kern_cublas_multiply(struct kern_cublas *blas, const struct kern_cuda_gemm *gemm,
                                 void *stream, struct status_why *why);

#endif
