/** Decoding on a CUDA device with the block formats' own headers, for test_cuda_decode.c. */
#ifndef TESTS_KERNELS_CUDA_DECODE_H
#define TESTS_KERNELS_CUDA_DECODE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Devices that can be used here; 0 where there is none or no driver. */
int cuda_decode_n_devices(void);

/**
 * Decode n_rows rows of n_cols elements of a type (an enum gguf_type) on device 0.
 * blocks, y: host. Returns NULL, or what went wrong (static storage).
 */
const char *cuda_decode_rows(int type, const void *blocks, size_t row_bytes, float *y,
                             size_t n_rows, size_t n_cols);

#ifdef __cplusplus
}
#endif

#endif
