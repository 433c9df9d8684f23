/**
 * The block formats' headers, compiled for a GPU: one thread decodes one row. Only correctness
 * matters here; the backend's kernels share the headers, not this code.
 */
#include "tests/kernels/cuda_decode.h"

#include <cuda_runtime.h>

#include "gguf/type.h"
#include "kernels/cuda/kernels/decode.h"

#define DECODE_ROW(TYPE, name, ...)                                                                \
    case GGUF_TYPE_##TYPE:                                                                         \
        return kern_##name##_row(blocks, y, n);

namespace
{

__device__ void decode_row(int type, const void *blocks, float *y, size_t n)
{
    switch (type) {
        KERN_DECODE_FLOATS(DECODE_ROW)
        KERN_DECODE_BLOCKS(DECODE_ROW)
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
