/**
 * The block formats' headers, compiled for a GPU: one thread decodes one row. Only correctness
 * matters here; the backend's kernels share the headers, not this code.
 */
#include "tests/kernels/cuda_decode.h"

#include <cuda_runtime.h>

#include "gguf/type.h"
#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f32.h"
#include "kernels/quant/iq1_m.h"
#include "kernels/quant/iq1_s.h"
#include "kernels/quant/iq2_s.h"
#include "kernels/quant/iq2_xs.h"
#include "kernels/quant/iq2_xxs.h"
#include "kernels/quant/iq3_s.h"
#include "kernels/quant/iq3_xxs.h"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/mxfp4.h"
#include "kernels/quant/nvfp4.h"
#include "kernels/quant/q1_0.h"
#include "kernels/quant/q2_0.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"
#include "kernels/quant/tq1_0.h"
#include "kernels/quant/tq2_0.h"

namespace
{

__device__ void decode_row(int type, const void *blocks, float *y, size_t n)
{
    switch (type) {
    case GGUF_TYPE_F32:
        return kern_f32_row(blocks, y, n);
    case GGUF_TYPE_F16:
        return kern_f16_row(blocks, y, n);
    case GGUF_TYPE_BF16:
        return kern_bf16_row(blocks, y, n);
    case GGUF_TYPE_Q4_0:
        return kern_q4_0_row(blocks, y, n);
    case GGUF_TYPE_Q4_1:
        return kern_q4_1_row(blocks, y, n);
    case GGUF_TYPE_Q5_0:
        return kern_q5_0_row(blocks, y, n);
    case GGUF_TYPE_Q5_1:
        return kern_q5_1_row(blocks, y, n);
    case GGUF_TYPE_Q8_0:
        return kern_q8_0_row(blocks, y, n);
    case GGUF_TYPE_Q2_K:
        return kern_q2_k_row(blocks, y, n);
    case GGUF_TYPE_Q3_K:
        return kern_q3_k_row(blocks, y, n);
    case GGUF_TYPE_Q4_K:
        return kern_q4_k_row(blocks, y, n);
    case GGUF_TYPE_Q5_K:
        return kern_q5_k_row(blocks, y, n);
    case GGUF_TYPE_Q6_K:
        return kern_q6_k_row(blocks, y, n);
    case GGUF_TYPE_IQ2_XXS:
        return kern_iq2_xxs_row(blocks, y, n);
    case GGUF_TYPE_IQ2_XS:
        return kern_iq2_xs_row(blocks, y, n);
    case GGUF_TYPE_IQ3_XXS:
        return kern_iq3_xxs_row(blocks, y, n);
    case GGUF_TYPE_IQ1_S:
        return kern_iq1_s_row(blocks, y, n);
    case GGUF_TYPE_IQ4_NL:
        return kern_iq4_nl_row(blocks, y, n);
    case GGUF_TYPE_IQ3_S:
        return kern_iq3_s_row(blocks, y, n);
    case GGUF_TYPE_IQ2_S:
        return kern_iq2_s_row(blocks, y, n);
    case GGUF_TYPE_IQ4_XS:
        return kern_iq4_xs_row(blocks, y, n);
    case GGUF_TYPE_IQ1_M:
        return kern_iq1_m_row(blocks, y, n);
    case GGUF_TYPE_TQ1_0:
        return kern_tq1_0_row(blocks, y, n);
    case GGUF_TYPE_TQ2_0:
        return kern_tq2_0_row(blocks, y, n);
    case GGUF_TYPE_MXFP4:
        return kern_mxfp4_row(blocks, y, n);
    case GGUF_TYPE_NVFP4:
        return kern_nvfp4_row(blocks, y, n);
    case GGUF_TYPE_Q1_0:
        return kern_q1_0_row(blocks, y, n);
    case GGUF_TYPE_Q2_0:
        return kern_q2_0_row(blocks, y, n);
    }
}

__global__ void decode_rows(int type, const unsigned char *blocks, size_t row_bytes, float *y,
                            size_t n_rows, size_t n_cols)
{
    size_t row = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (row < n_rows)
        decode_row(type, blocks + row * row_bytes, y + row * n_cols, n_cols);
}

} // namespace

int cuda_decode_n_devices(void)
{
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}

const char *cuda_decode_rows(int type, const void *blocks, size_t row_bytes, float *y,
                             size_t n_rows, size_t n_cols)
{
    unsigned char *device_blocks = nullptr;
    float *device_y = nullptr;
    size_t y_bytes = n_rows * n_cols * sizeof(float);
    cudaError_t error = cudaMalloc(&device_blocks, n_rows * row_bytes);
    if (error == cudaSuccess)
        error = cudaMalloc(&device_y, y_bytes);
    if (error == cudaSuccess)
        error = cudaMemcpy(device_blocks, blocks, n_rows * row_bytes, cudaMemcpyHostToDevice);
    if (error == cudaSuccess) {
        decode_rows<<<(unsigned)((n_rows + 63) / 64), 64>>>(type, device_blocks, row_bytes,
                                                            device_y, n_rows, n_cols);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess)
        error = cudaMemcpy(y, device_y, y_bytes, cudaMemcpyDeviceToHost);
    cudaFree(device_y);
    cudaFree(device_blocks);
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
