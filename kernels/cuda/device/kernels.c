#include "kernels/cuda/device/kernels.h"

#include "kernels/cuda/kernels/attention.h"
#include "kernels/cuda/kernels/decode.h"
#include "kernels/cuda/kernels/flash.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/record.h"
#include "kernels/cuda/kernels/rows.h"
#include "kernels/cuda/kernels/score.h"

static const struct kern_cuda_kernel_info kernels[KERN_CUDA_N_KERNELS] = {
    [KERN_CUDA_DECODE] = {"decode", KERN_DECODE_THREADS, sizeof(struct kern_decode_args)},
    [KERN_CUDA_NORM] = {"rmsnorm", KERN_ROWS_THREADS, sizeof(struct kern_norm_args)},
    [KERN_CUDA_ROPE] = {"rope", KERN_ROWS_THREADS, sizeof(struct kern_rope_args)},
    [KERN_CUDA_GATE] = {"gate", KERN_ROWS_THREADS, sizeof(struct kern_gate_args)},
    [KERN_CUDA_GATHER] = {"gather", KERN_ROWS_THREADS, sizeof(struct kern_gather_args)},
    [KERN_CUDA_SPLIT] = {"split", KERN_SPLIT_THREADS, sizeof(struct kern_split_args)},
    [KERN_CUDA_FINISH] = {"finish", KERN_FINISH_THREADS, sizeof(struct kern_finish_args)},
    [KERN_CUDA_EXACT] = {"exact", KERN_EXACT_THREADS, sizeof(struct kern_exact_args)},
    [KERN_CUDA_FILL] = {"fill", KERN_FILL_THREADS, sizeof(struct kern_fill_args)},
    [KERN_CUDA_DIGEST] = {"digest", KERN_FILL_THREADS, sizeof(struct kern_digest_args)},
    [KERN_CUDA_ATTENTION] = {"attention", KERN_ATTENTION_THREADS,
                             sizeof(struct kern_attention_args)},
    [KERN_CUDA_FLASH2_64] = {"attention", KERN_FLASH_THREADS, sizeof(struct kern_attention_args)},
    [KERN_CUDA_FLASH2_128] = {"attention", KERN_FLASH_THREADS, sizeof(struct kern_attention_args)},
    [KERN_CUDA_FLASH2_256] = {"attention", KERN_FLASH_THREADS, sizeof(struct kern_attention_args)},
    [KERN_CUDA_FLASH3_64] = {"attention", KERN_FLASH_THREADS, sizeof(struct kern_attention_args)},
    [KERN_CUDA_FLASH3_128] = {"attention", KERN_FLASH_THREADS, sizeof(struct kern_attention_args)},
    [KERN_CUDA_FLASH3_256] = {"attention", KERN_FLASH_THREADS, sizeof(struct kern_attention_args)},
    [KERN_CUDA_FOLD] = {"fold", KERN_SCORE_THREADS, sizeof(struct kern_fold_args)},
    [KERN_CUDA_PAIR] = {"pair", KERN_SCORE_THREADS, sizeof(struct kern_pair_args)},
    [KERN_CUDA_JS] = {"js", KERN_SCORE_THREADS, sizeof(struct kern_js_args)},
    [KERN_CUDA_TARGET] = {"target", KERN_TARGET_THREADS, sizeof(struct kern_target_args)},
    [KERN_CUDA_TAKE] = {"take", KERN_TAKE_THREADS, sizeof(struct kern_take_args)},
    [KERN_CUDA_CODES] = {"codes", KERN_CODES_THREADS, sizeof(struct kern_codes_args)},
    [KERN_CUDA_LOWEST] = {"lowest", KERN_LOWEST_THREADS, sizeof(struct kern_lowest_args)},
};

const struct kern_cuda_kernel_info *kern_cuda_kernel_info(enum kern_cuda_kernel kernel)
{
    return &kernels[kernel];
}

size_t kern_cuda_decode_shared(enum gguf_type type)
{
    const struct gguf_type_info *info = gguf_type_info((uint32_t)type);
    size_t bytes = (size_t)KERN_DECODE_ELEMS / info->block_elems * info->block_bytes;
    return KERN_DECODE_THREADS * KERN_DECODE_PITCH * sizeof(float) + (bytes + 15) / 16 * 16;
}

size_t kern_cuda_attention_shared(size_t head_size)
{
    return sizeof(struct kern_attention_shared) +
           head_size * KERN_ATTENTION_Q_PITCH * sizeof(float);
}

size_t kern_cuda_flash_shared(size_t dims, size_t parts)
{
    size_t numbers = dims * (kern_flash_keys((unsigned)dims) + KERN_FLASH_QUERIES) * parts;
    return sizeof(struct kern_flash_shared) + numbers * sizeof(uint16_t);
}
