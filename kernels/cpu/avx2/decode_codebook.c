/** Codes of 4 bits through a codebook of 16 signed bytes: IQ4_NL, IQ4_XS, MXFP4, NVFP4. */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/cpu/avx2/scales.h"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/mxfp4.h"
#include "kernels/quant/nvfp4.h"

/** The low nibbles of 16 bytes. */
static inline __m128i low_nibbles(__m128i q)
{
    return _mm_and_si128(q, _mm_set1_epi8(15));
}

static inline __m128i high_nibbles(__m128i q)
{
    return _mm_and_si128(_mm_srli_epi16(q, 4), _mm_set1_epi8(15));
}

static inline __m128i load_codebook(const int8_t *values)
{
    return _mm_loadu_si128((const __m128i *)values);
}

/** Sixteen bytes of two codes each: y[0..16) from the low nibbles, y[16..32) from the high. */
static inline void store_coded32(float *y, const uint8_t *qs, __m128i codebook, __m256 scale)
{
    __m128i q = load16(qs);
    store_scaled16(y, _mm_shuffle_epi8(codebook, low_nibbles(q)), scale);
    store_scaled16(y + 16, _mm_shuffle_epi8(codebook, high_nibbles(q)), scale);
}

void kern_avx2_decode_iq4_nl(const void *blocks, float *y, size_t n)
{
    const __m128i codebook = load_codebook(kern_iq4_values);
    const struct kern_block_iq4_nl *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++)
        store_coded32(y, block->qs, codebook, load_half8(block->d));
}

void kern_avx2_decode_iq4_xs(const void *blocks, float *y, size_t n)
{
    const __m128i codebook = load_codebook(kern_iq4_values);
    const struct kern_block_iq4_xs *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[8];
        kern_avx2_iq4_xs_scales(scales, block);
        for (int g = 0; g < 8; g++)
            store_coded32(y + 32 * g, block->qs + 16 * g, codebook, _mm256_set1_ps(scales[g]));
    }
}

void kern_avx2_decode_mxfp4(const void *blocks, float *y, size_t n)
{
    const __m128i codebook = load_codebook(kern_fp4_values);
    const struct kern_block_mxfp4 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++)
        store_coded32(y, block->qs, codebook, _mm256_set1_ps(kern_mxfp4_scale(block->e)));
}

void kern_avx2_decode_nvfp4(const void *blocks, float *y, size_t n)
{
    const __m128i codebook = load_codebook(kern_fp4_values);
    const struct kern_block_nvfp4 *block = blocks;
    for (const float *end = y + n; y < end; y += 64, block++) {
        float scales[4];
        nvfp4_scales(scales, block);
        for (int run = 0; run < 4; run++) {
            __m128i q = _mm_loadl_epi64((const __m128i *)(block->qs + 8 * run));
            __m128i codes = _mm_unpacklo_epi64(low_nibbles(q), high_nibbles(q));
            store_scaled16(y + 16 * run, _mm_shuffle_epi8(codebook, codes),
                           _mm256_set1_ps(scales[run]));
        }
    }
}
