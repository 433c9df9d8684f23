/**
 * NVFP4: 64 elements in 36 bytes, 4.5 bits per weight. y = scale / 2 * kern_fp4_values[q]; these
 * values are doubled. Four runs of 16 elements, each with a scale and 8 bytes of qs: low
 * nibbles are elements 0..7 of the run, high nibbles 8..15.
 * Tensors of this type come with a scale of their own, which is not applied here.
 */
#ifndef KERNELS_QUANT_NVFP4_H
#define KERNELS_QUANT_NVFP4_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_4bit.h"

struct kern_block_nvfp4 {
    uint8_t d[4]; /* scales, unsigned E4M3 in the low seven bits; 0xff does not occur */
    uint8_t qs[32];
};

/**
 * Half of an unsigned E4M3 number (bias 7, subnormals; 0x7f counts as 0). E4M3 shifted up by 7
 * bits is a half with bias 15, that is 2^-8 of the number.
 */
KERN_INLINE float kern_nvfp4_scale(uint8_t code)
{
    uint32_t magnitude = code & 0x7f;
    return magnitude == 0x7f ? 0.0f : kern_half_to_float(magnitude << 7) * 0x1p7f;
}

/** Decode elements 32 * group .. + 31; group is 0..1. */
KERN_INLINE void kern_nvfp4_group(const struct kern_block_nvfp4 *block, unsigned group, float *y)
{
    for (unsigned run = 2 * group; run < 2 * group + 2; run++, y += 16) {
        float scale = kern_nvfp4_scale(block->d[run]);
        for (unsigned j = 0; j < 8; j++) {
            uint8_t pair = block->qs[8 * run + j];
            y[j] = scale * (float)kern_fp4_values[pair & 15];
            y[j + 8] = scale * (float)kern_fp4_values[pair >> 4];
        }
    }
}

/** The scale of each run of 16 elements. */
KERN_INLINE void kern_nvfp4_scales(const struct kern_block_nvfp4 *block, float *scales)
{
    for (int run = 0; run < 4; run++)
        scales[run] = kern_nvfp4_scale(block->d[run]);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_nvfp4_neutralise(struct kern_block_nvfp4 *block)
{
    memset(block->d, 0x40, sizeof block->d); /* 2 in E4M3 */
}

KERN_FORMAT_ROW(nvfp4, 64)

/** The index of the first block with a scale of 0xff, which the format does not have; else
 * n_blocks. */
KERN_INLINE size_t kern_nvfp4_find_invalid(const void *blocks, size_t n_blocks)
{
    const struct kern_block_nvfp4 *block = (const struct kern_block_nvfp4 *)blocks;
    for (size_t i = 0; i < n_blocks; i++)
        for (int run = 0; run < 4; run++)
            if (block[i].d[run] == 0xff)
                return i;
    return n_blocks;
}

#endif
