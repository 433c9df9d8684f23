/** IQ1_S and IQ1_M: entries of eight values out of {-1, 0, 1}, plus or minus an eighth. */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/quant/iq1_m.h"
#include "kernels/quant/iq1_s.h"

/** scale * (value + delta): four products for delta = 1/8, then four for -1/8. */
static inline __m256 iq1_products(float scale)
{
    const __m256 values =
        _mm256_setr_ps(-0.875f, 0.125f, 1.125f, 0.0f, -1.125f, -0.125f, 0.875f, 0.0f);
    return _mm256_mul_ps(_mm256_set1_ps(scale), values);
}

/** Eight codes of an entry through the four products at `products`. */
static inline void store_iq1_octet(float *y, uint32_t index, const float *products)
{
    const __m256i shift = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    __m256i codes = _mm256_srlv_epi32(_mm256_set1_epi16((short)kern_iq1_codes[index]), shift);
    __m256 table = _mm256_broadcast_ps((const __m128 *)products);
    _mm256_storeu_ps(y, _mm256_permutevar_ps(table, codes));
}

void kern_avx2_decode_iq1_s(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq1_s *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float d = kern_load_half(block->d);
        for (int g = 0; g < 8; g++) {
            uint32_t high = kern_load_u16(block->qh + 2 * g);
            float products[8];
            _mm256_storeu_ps(products, iq1_products(d * (float)(2 * (high >> 12 & 7) + 1)));
            const float *table = products + 4 * (high >> 15);
            for (int l = 0; l < 4; l++)
                store_iq1_octet(y + 32 * g + 8 * l, block->qs[4 * g + l] | (high >> 3 * l & 7) << 8,
                                table);
        }
    }
}

void kern_avx2_decode_iq1_m(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq1_m *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float d = kern_iq1_m_scale(block->scales);
        for (int i = 0; i < 16; i++) { /* runs of 16 elements */
            uint32_t scale = kern_load_u16(block->scales + 2 * (i / 4)) >> 3 * (i % 4) & 7;
            float products[8];
            _mm256_storeu_ps(products, iq1_products(d * (float)(2 * scale + 1)));
            uint32_t high = block->qh[i];
            store_iq1_octet(y + 16 * i, block->qs[2 * i] | (high & 7) << 8,
                            products + 4 * (high >> 3 & 1));
            store_iq1_octet(y + 16 * i + 8, block->qs[2 * i + 1] | (high >> 4 & 7) << 8,
                            products + 4 * (high >> 7));
        }
    }
}
