/* Codes of 4 or 5 bits straight to integers. */
#include "kernels/cpu/avx2/scales.h"
#include "kernels/cpu/avx512/straight.h"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/mxfp4.h"
#include "kernels/quant/nvfp4.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"

/** Sixteen bytes of two codes each: first the low nibbles, then the high. */
static inline __m256i nibbles32(const uint8_t *qs)
{
    __m128i q = load16(qs);
    __m256i both = _mm256_set_m128i(_mm_srli_epi16(q, 4), q);
    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

/** 32 codes, with bit j of qh as the fifth bit of code j. */
static inline __m256i codes32(const uint8_t *qs, const uint8_t *qh)
{
    const __m256i fifth = _mm256_set1_epi8(16);
    return _mm256_or_si256(nibbles32(qs), _mm256_maskz_mov_epi8(kern_load_u32(qh), fifth));
}

/** What codes of 4 bits stand for, of sixteen values. */
static inline __m256i look_up_bytes(const int8_t values[16], __m256i codes)
{
    const __m128i table = load16((const uint8_t *)values);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes);
}

/** A type of blocks of 32 with a scale: the codes, what they stand for, the scale. */
#define BLOCKS_OF_32(name, integers_of, scale_of)                                                  \
    STRAIGHT_INLINE void name(const void *blocks, size_t n, void *integers, float *scales,         \
                              float *mins, unsigned bits)                                          \
    {                                                                                              \
        (void)mins;                                                                                \
        const struct kern_block_##name *block = blocks;                                            \
        for (size_t i = 0; i < n; i += 32, block++) {                                              \
            store32(integers, i, integers_of, bits, 1);                                            \
            *scales++ = scale_of;                                                                  \
        }                                                                                          \
    }
#define HALF _cvtsh_ss(kern_load_u16(block->d))

BLOCKS_OF_32(q4_0, _mm256_sub_epi8(nibbles32(block->qs), _mm256_set1_epi8(8)), HALF)
BLOCKS_OF_32(q5_0, _mm256_sub_epi8(codes32(block->qs, block->qh), _mm256_set1_epi8(16)), HALF)
BLOCKS_OF_32(iq4_nl, look_up_bytes(kern_iq4_values, nibbles32(block->qs)), HALF)
BLOCKS_OF_32(mxfp4, look_up_bytes(kern_fp4_values, nibbles32(block->qs)),
             kern_mxfp4_scale(block->e))

STRAIGHT_INLINE void q4_1(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                          unsigned bits)
{
    const struct kern_block_q4_1 *block = blocks;
    for (size_t i = 0; i < n; i += 32, block++) {
        store32(integers, i, nibbles32(block->qs), bits, 1);
        *scales++ = HALF;
        *mins++ = _cvtsh_ss(kern_load_u16(block->m));
    }
}

STRAIGHT_INLINE void q5_1(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                          unsigned bits)
{
    const struct kern_block_q5_1 *block = blocks;
    for (size_t i = 0; i < n; i += 32, block++) {
        store32(integers, i, codes32(block->qs, block->qh), bits, 1);
        *scales++ = HALF;
        *mins++ = _cvtsh_ss(kern_load_u16(block->m));
    }
}

STRAIGHT_INLINE void iq4_xs(const void *blocks, size_t n, void *integers, float *scales,
                            float *mins, unsigned bits)
{
    (void)mins;
    const struct kern_block_iq4_xs *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++) {
        for (unsigned g = 0; g < 8; g++)
            store32(integers, i + 32 * g,
                    look_up_bytes(kern_iq4_values, nibbles32(block->qs + 16 * g)), bits,
                    kern_iq4_xs_scale(block, g));
        if (bits == 8)
            kern_avx2_iq4_xs_scales(scales, block);
        else
            store_block_scale(scales, kern_iq4_xs_block_scale(block));
        scales += bits == 8 ? 8 : 4;
    }
}

STRAIGHT_INLINE void nvfp4(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                           unsigned bits)
{
    (void)mins;
    const struct kern_block_nvfp4 *block = blocks;
    for (size_t i = 0; i < n; i += 64, block++, scales += 4) {
        for (size_t half = 0; half < 2; half++) { /* two runs: eight low nibbles, eight high */
            __m256i q = _mm256_permute4x64_epi64(nibbles32(block->qs + 16 * half), 0xd8);
            store32(integers, i + 32 * half, look_up_bytes(kern_fp4_values, q), bits, 1);
        }
        nvfp4_scales(scales, block);
    }
}

KERN_AVX512_STRAIGHT_4BIT(KERN_STRAIGHT)
