#include "kernels/cuda/device/kernels.h"

#include "kernels/cuda/device/all.h"
#include "kernels/quant/registry.h"

#define INFO(id, kernel_name, args_tag, n_threads, n_resident, n_bytes, call)                      \
    [KERN_CUDA_##id] = {kernel_name, n_threads, sizeof(struct args_tag), n_bytes},

static const struct kern_cuda_kernel_info kernels[] = {KERN_CUDA_KERNELS(INFO, INFO)};

const struct kern_cuda_kernel_info *kern_cuda_kernel_info(enum kern_cuda_kernel kernel)
{
    return &kernels[kernel];
}

size_t kern_cuda_decode_shared(enum gguf_type type)
{
    size_t bytes = kern_quant_bytes(kern_quant_find(type), KERN_DECODE_ELEMS);
    return KERN_DECODE_THREADS * KERN_DECODE_PITCH * sizeof(float) + (bytes + 15) / 16 * 16;
}

size_t kern_cuda_attention_shared(size_t head_size)
{
    size_t n = head_size <= KERN_ATTENTION_MOST ? head_size : KERN_ATTENTION_DIMS;
    return sizeof(struct kern_attention_shared) + n * KERN_ATTENTION_Q_PITCH * sizeof(float);
}

size_t kern_cuda_flash_shared(size_t dims, size_t parts, size_t tiles)
{
    size_t n_rows = KERN_FLASH_WARPS * KERN_MMA_ROWS * tiles;
    size_t n_keys = KERN_FLASH_KEYS * (kern_flash_is_double((unsigned)dims) ? 2 : 1);
    return sizeof(struct kern_flash_shared) + (n_rows + n_keys) * dims * parts * sizeof(uint16_t);
}

size_t kern_cuda_recur_shared(size_t k_size, bool by_channel)
{
    size_t n_floats = k_size * KERN_RECUR_LANES + 2 * KERN_CHUNK * (k_size + 1);
    n_floats += by_channel ? KERN_CHUNK * k_size : 0;
    return sizeof(struct kern_recur_shared) + n_floats * sizeof(float);
}
