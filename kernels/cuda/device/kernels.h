/** What a device must know of each kernel to launch it; kernels/list.h names them. */
#ifndef KERNELS_CUDA_DEVICE_KERNELS_H
#define KERNELS_CUDA_DEVICE_KERNELS_H

#include "kernels/cuda/device/device.h"

struct kern_cuda_kernel_info {
    const char *name;
    unsigned n_threads; /* of a block */
    size_t args_bytes;
    size_t shared_bytes; /* of a block; 0: none, or the launch says how many */
};

/** Static storage. */
const struct kern_cuda_kernel_info *kern_cuda_kernel_info(enum kern_cuda_kernel kernel);

/** Shared memory of a block that decodes this type. */
size_t kern_cuda_decode_shared(enum gguf_type type);
/** Shared memory of a block that attends with heads of this size. */
size_t kern_cuda_attention_shared(size_t head_size);
/** Shared memory of a block that has a recurrent state with keys of this size. */
size_t kern_cuda_recur_shared(size_t k_size, bool by_channel);
/** Attention's on tensor cores: heads padded to 64, 128 or 256 elements, in 2 or 3 parts. */
size_t kern_cuda_flash_shared(size_t dims, size_t parts, size_t tiles);

#ifdef __cplusplus
extern "C" {
#endif

/** The device's functions, for its launcher; type: DECODE only. NULL if there is none. */
const void *kern_cuda_function(enum kern_cuda_kernel kernel, enum gguf_type type);
/** Those of DECODE. */
const void *kern_cuda_decode_function(enum gguf_type type);

#ifdef __cplusplus
}
#endif

#endif
