/* The kernels on a device, except decoding: each a shell around the call of its row in list.h. */
#include "kernels/cuda/device/all.h"
#include "kernels/cuda/device/kernels.h"

#define SHELL(id, name, args_tag, n_threads, n_resident, shared_bytes, call)                       \
    __global__ void __launch_bounds__(n_threads, n_resident) run_##id(struct args_tag args)        \
    {                                                                                              \
        extern __shared__ __align__(16) unsigned char shared[];                                    \
        const struct args_tag *a = &args;                                                          \
        size_t block = blockIdx.x;                                                                 \
        call;                                                                                      \
    }

#define NO_SHELL(...)

namespace
{

KERN_CUDA_KERNELS(NO_SHELL, SHELL)

} // namespace

#define DECODE_FUNCTION(id, ...)                                                                   \
    case KERN_CUDA_##id:                                                                           \
        return kern_cuda_decode_function(type);

#define FUNCTION(id, ...)                                                                          \
    case KERN_CUDA_##id:                                                                           \
        return (const void *)run_##id;

const void *kern_cuda_function(enum kern_cuda_kernel kernel, enum gguf_type type)
{
    switch (kernel) {
        KERN_CUDA_KERNELS(DECODE_FUNCTION, FUNCTION)
    case KERN_CUDA_N_KERNELS:
        break;
    }
    return nullptr;
}
