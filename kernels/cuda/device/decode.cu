/* The decoding kernel for each block format: a program of its own, its format a constant. */
#include "kernels/cuda/device/kernels.h"
#include "kernels/cuda/kernels/decode.h"

namespace
{

template <enum gguf_type type>
__global__ void __launch_bounds__(KERN_DECODE_THREADS) decode(struct kern_decode_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_decode_block(type, &args, blockIdx.x, shared);
}

} // namespace

#define FUNCTION(TYPE, ...)                                                                        \
    case GGUF_TYPE_##TYPE:                                                                         \
        return (const void *)decode<GGUF_TYPE_##TYPE>;

const void *kern_cuda_decode_function(enum gguf_type type)
{
    switch (type) {
        KERN_DECODE_FLOATS(FUNCTION)
        KERN_DECODE_BLOCKS(FUNCTION)
    default:
        break;
    }
    return nullptr;
}
