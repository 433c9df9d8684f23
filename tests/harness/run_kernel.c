#include "tests/harness/run_kernel.h"

#include "kernels/cuda/kernels/attention.h"
#include "kernels/cuda/kernels/decode.h"
#include "kernels/cuda/kernels/flash.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/record.h"
#include "kernels/cuda/kernels/rows.h"
#include "kernels/cuda/kernels/score.h"

void run_kernel_block(const struct kern_cuda_launch *launch, size_t block, void *shared)
{
    const void *args = launch->args;
    switch (launch->kernel) {
    case KERN_CUDA_DECODE:
        kern_decode_block(launch->type, args, block, shared);
        return;
    case KERN_CUDA_NORM:
        kern_norm_block(args, block, shared);
        return;
    case KERN_CUDA_ROPE:
        kern_rope_block(args, block, shared);
        return;
    case KERN_CUDA_GATE:
        kern_gate_block(args, block, shared);
        return;
    case KERN_CUDA_GATHER:
        kern_gather_block(args, block, shared);
        return;
    case KERN_CUDA_SPLIT:
        kern_split_block(args, block, shared);
        return;
    case KERN_CUDA_FINISH:
        kern_finish_block(args, block, shared);
        return;
    case KERN_CUDA_EXACT:
        kern_exact_block(args, block, shared);
        return;
    case KERN_CUDA_DIGEST:
        kern_digest_block(args, block, shared);
        return;
    case KERN_CUDA_FILL:
        kern_fill_block(args, block, shared);
        return;
    case KERN_CUDA_ATTENTION:
        kern_attend_block(args, block, shared);
        return;
    case KERN_CUDA_FLASH2_64:
        kern_flash_attend(args, block, shared, 64, 2);
        return;
    case KERN_CUDA_FLASH2_128:
        kern_flash_attend(args, block, shared, 128, 2);
        return;
    case KERN_CUDA_FLASH2_256:
        kern_flash_attend(args, block, shared, 256, 2);
        return;
    case KERN_CUDA_FLASH3_64:
        kern_flash_attend(args, block, shared, 64, 3);
        return;
    case KERN_CUDA_FLASH3_128:
        kern_flash_attend(args, block, shared, 128, 3);
        return;
    case KERN_CUDA_FLASH3_256:
        kern_flash_attend(args, block, shared, 256, 3);
        return;
    case KERN_CUDA_FOLD:
        kern_fold_block(args, block, shared);
        return;
    case KERN_CUDA_PAIR:
        kern_pair_block_of(args, block, shared);
        return;
    case KERN_CUDA_JS:
        kern_js_block(args, block, shared);
        return;
    case KERN_CUDA_TARGET:
        kern_target_block(args, block, shared);
        return;
    case KERN_CUDA_TAKE:
        kern_take_block(args, block, shared);
        return;
    case KERN_CUDA_CODES:
        kern_codes_block(args, block, shared);
        return;
    case KERN_CUDA_LOWEST:
        kern_lowest_block(args, block, shared);
        return;
    case KERN_CUDA_N_KERNELS:
        return;
    }
}
