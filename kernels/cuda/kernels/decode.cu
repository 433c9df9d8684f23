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

const void *kern_cuda_decode_function(enum gguf_type type)
{
    switch (type) {
    case GGUF_TYPE_F32:
        return (const void *)decode<GGUF_TYPE_F32>;
    case GGUF_TYPE_F16:
        return (const void *)decode<GGUF_TYPE_F16>;
    case GGUF_TYPE_BF16:
        return (const void *)decode<GGUF_TYPE_BF16>;
    case GGUF_TYPE_Q4_0:
        return (const void *)decode<GGUF_TYPE_Q4_0>;
    case GGUF_TYPE_Q4_1:
        return (const void *)decode<GGUF_TYPE_Q4_1>;
    case GGUF_TYPE_Q5_0:
        return (const void *)decode<GGUF_TYPE_Q5_0>;
    case GGUF_TYPE_Q5_1:
        return (const void *)decode<GGUF_TYPE_Q5_1>;
    case GGUF_TYPE_Q8_0:
        return (const void *)decode<GGUF_TYPE_Q8_0>;
    case GGUF_TYPE_Q2_K:
        return (const void *)decode<GGUF_TYPE_Q2_K>;
    case GGUF_TYPE_Q3_K:
        return (const void *)decode<GGUF_TYPE_Q3_K>;
    case GGUF_TYPE_Q4_K:
        return (const void *)decode<GGUF_TYPE_Q4_K>;
    case GGUF_TYPE_Q5_K:
        return (const void *)decode<GGUF_TYPE_Q5_K>;
    case GGUF_TYPE_Q6_K:
        return (const void *)decode<GGUF_TYPE_Q6_K>;
    case GGUF_TYPE_IQ2_XXS:
        return (const void *)decode<GGUF_TYPE_IQ2_XXS>;
    case GGUF_TYPE_IQ2_XS:
        return (const void *)decode<GGUF_TYPE_IQ2_XS>;
    case GGUF_TYPE_IQ3_XXS:
        return (const void *)decode<GGUF_TYPE_IQ3_XXS>;
    case GGUF_TYPE_IQ1_S:
        return (const void *)decode<GGUF_TYPE_IQ1_S>;
    case GGUF_TYPE_IQ4_NL:
        return (const void *)decode<GGUF_TYPE_IQ4_NL>;
    case GGUF_TYPE_IQ3_S:
        return (const void *)decode<GGUF_TYPE_IQ3_S>;
    case GGUF_TYPE_IQ2_S:
        return (const void *)decode<GGUF_TYPE_IQ2_S>;
    case GGUF_TYPE_IQ4_XS:
        return (const void *)decode<GGUF_TYPE_IQ4_XS>;
    case GGUF_TYPE_IQ1_M:
        return (const void *)decode<GGUF_TYPE_IQ1_M>;
    case GGUF_TYPE_TQ1_0:
        return (const void *)decode<GGUF_TYPE_TQ1_0>;
    case GGUF_TYPE_TQ2_0:
        return (const void *)decode<GGUF_TYPE_TQ2_0>;
    case GGUF_TYPE_MXFP4:
        return (const void *)decode<GGUF_TYPE_MXFP4>;
    case GGUF_TYPE_NVFP4:
        return (const void *)decode<GGUF_TYPE_NVFP4>;
    case GGUF_TYPE_Q1_0:
        return (const void *)decode<GGUF_TYPE_Q1_0>;
    case GGUF_TYPE_Q2_0:
        return (const void *)decode<GGUF_TYPE_Q2_0>;
    case GGUF_TYPE_LIMIT:
        break;
    }
    return nullptr;
}
