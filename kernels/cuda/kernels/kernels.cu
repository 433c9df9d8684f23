/* The kernels but decoding: each a thin shell around the function that k_*.h define. */
#include "kernels/cuda/device/kernels.h"
#include "kernels/cuda/kernels/attention.h"
#include "kernels/cuda/kernels/flash.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/record.h"
#include "kernels/cuda/kernels/rows.h"
#include "kernels/cuda/kernels/score.h"

namespace
{

__global__ void __launch_bounds__(KERN_ROWS_THREADS) run_norm(struct kern_norm_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_norm_block(&args, blockIdx.x, shared);
}

__global__ void __launch_bounds__(KERN_ROWS_THREADS) run_rope(struct kern_rope_args args)
{
    kern_rope_block(&args, blockIdx.x, nullptr);
}

__global__ void __launch_bounds__(KERN_ROWS_THREADS) run_gate(struct kern_gate_args args)
{
    kern_gate_block(&args, blockIdx.x, nullptr);
}

__global__ void __launch_bounds__(KERN_ROWS_THREADS) run_gather(struct kern_gather_args args)
{
    kern_gather_block(&args, blockIdx.x, nullptr);
}

__global__ void __launch_bounds__(KERN_SPLIT_THREADS) run_split(struct kern_split_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_split_block(&args, blockIdx.x, shared);
}

__global__ void __launch_bounds__(KERN_FINISH_THREADS) run_finish(struct kern_finish_args args)
{
    kern_finish_block(&args, blockIdx.x, nullptr);
}

__global__ void __launch_bounds__(KERN_EXACT_THREADS) run_exact(struct kern_exact_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_exact_block(&args, blockIdx.x, shared);
}

__global__ void __launch_bounds__(KERN_FILL_THREADS) run_fill(struct kern_fill_args args)
{
    kern_fill_block(&args, blockIdx.x, nullptr);
}

__global__ void __launch_bounds__(KERN_FILL_THREADS) run_digest(struct kern_digest_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_digest_block(&args, blockIdx.x, shared);
}

__global__ void __launch_bounds__(KERN_ATTENTION_THREADS)
    run_attention(struct kern_attention_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_attend_block(&args, blockIdx.x, shared);
}

/* BLOCKS that a multiprocessor shall hold at a time bound a thread's registers, to 512 / BLOCKS. */
template <unsigned DIMS, unsigned PARTS, unsigned BLOCKS>
__global__ void __launch_bounds__(KERN_FLASH_THREADS, BLOCKS)
    run_flash(struct kern_attention_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_flash_attend(&args, blockIdx.x, shared, DIMS, PARTS);
}

__global__ void __launch_bounds__(KERN_SCORE_THREADS) run_fold(struct kern_fold_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_fold_block(&args, blockIdx.x, shared);
}

__global__ void __launch_bounds__(KERN_SCORE_THREADS) run_pair(struct kern_pair_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_pair_block_of(&args, blockIdx.x, shared);
}

__global__ void __launch_bounds__(KERN_SCORE_THREADS) run_js(struct kern_js_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_js_block(&args, blockIdx.x, shared);
}

__global__ void __launch_bounds__(KERN_TARGET_THREADS) run_target(struct kern_target_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_target_block(&args, blockIdx.x, shared);
}

__global__ void __launch_bounds__(KERN_TAKE_THREADS) run_take(struct kern_take_args args)
{
    kern_take_block(&args, blockIdx.x, nullptr);
}

__global__ void __launch_bounds__(KERN_CODES_THREADS) run_codes(struct kern_codes_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_codes_block(&args, blockIdx.x, shared);
}

__global__ void __launch_bounds__(KERN_LOWEST_THREADS) run_lowest(struct kern_lowest_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    kern_lowest_block(&args, blockIdx.x, shared);
}

} // namespace

const void *kern_cuda_function(enum kern_cuda_kernel kernel, enum gguf_type type)
{
    switch (kernel) {
    case KERN_CUDA_DECODE:
        return kern_cuda_decode_function(type);
    case KERN_CUDA_NORM:
        return (const void *)run_norm;
    case KERN_CUDA_ROPE:
        return (const void *)run_rope;
    case KERN_CUDA_GATE:
        return (const void *)run_gate;
    case KERN_CUDA_GATHER:
        return (const void *)run_gather;
    case KERN_CUDA_SPLIT:
        return (const void *)run_split;
    case KERN_CUDA_FINISH:
        return (const void *)run_finish;
    case KERN_CUDA_EXACT:
        return (const void *)run_exact;
    case KERN_CUDA_FILL:
        return (const void *)run_fill;
    case KERN_CUDA_DIGEST:
        return (const void *)run_digest;
    case KERN_CUDA_ATTENTION:
        return (const void *)run_attention;
    case KERN_CUDA_FLASH2_64:
        return (const void *)run_flash<64, 2, 3>;
    case KERN_CUDA_FLASH2_128:
        return (const void *)run_flash<128, 2, 3>;
    case KERN_CUDA_FLASH2_256:
        return (const void *)run_flash<256, 2, 2>;
    case KERN_CUDA_FLASH3_64:
        return (const void *)run_flash<64, 3, 2>;
    case KERN_CUDA_FLASH3_128:
        return (const void *)run_flash<128, 3, 2>;
    case KERN_CUDA_FLASH3_256:
        return (const void *)run_flash<256, 3, 1>;
    case KERN_CUDA_FOLD:
        return (const void *)run_fold;
    case KERN_CUDA_PAIR:
        return (const void *)run_pair;
    case KERN_CUDA_JS:
        return (const void *)run_js;
    case KERN_CUDA_TARGET:
        return (const void *)run_target;
    case KERN_CUDA_TAKE:
        return (const void *)run_take;
    case KERN_CUDA_CODES:
        return (const void *)run_codes;
    case KERN_CUDA_LOWEST:
        return (const void *)run_lowest;
    case KERN_CUDA_N_KERNELS:
        break;
    }
    return nullptr;
}
