#include "kernels/cpu/avx2/scales.h"

#include "kernels/cpu/avx2/expand.h"

void kern_avx2_q2_k_factors(struct kern_k_factors *factors, const struct kern_block_q2_k *block)
{
    const __m128i nibble = _mm_set1_epi8(15);
    __m128i packed = load16(block->scales);
    __m128i mins = _mm_and_si128(_mm_srli_epi16(packed, 4), nibble);
    store_scaled16(factors->scales, _mm_and_si128(packed, nibble), load_half8(block->d));
    store_scaled16(factors->mins, mins, load_half8(block->dmin));
}

void kern_avx2_q3_k_scales(float scales[16], const struct kern_block_q3_k *block)
{
    store_scaled16(scales, q3_k_scales(block), load_half8(block->d));
}

void kern_avx2_q4_k_factors(struct kern_k_factors *factors, const uint8_t *packed, const uint8_t *d,
                            const uint8_t *dmin)
{
    uint32_t a = kern_load_u32(packed);
    uint32_t b = kern_load_u32(packed + 4);
    uint32_t c = kern_load_u32(packed + 8);
    uint32_t scales_high = (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4;
    uint32_t mins_high = (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4;
    __m128i bytes = _mm_setr_epi32((int)(a & 0x3f3f3f3f), (int)scales_high, (int)(b & 0x3f3f3f3f),
                                   (int)mins_high);
    __m256 scales = _mm256_mul_ps(load_half8(d), low_octet_float(bytes));
    __m256 mins = _mm256_mul_ps(load_half8(dmin), high_octet_float(bytes));
    _mm256_storeu_ps(factors->scales, scales);
    _mm256_storeu_ps(factors->mins, mins);
}

void kern_avx2_q6_k_scales(float scales[16], const struct kern_block_q6_k *block)
{
    store_scaled16(scales, load16(block->scales), load_half8(block->d));
}

void kern_avx2_iq4_xs_scales(float scales[8], const struct kern_block_iq4_xs *block)
{
    __m256i low = _mm256_set1_epi32((int)kern_load_u32(block->scales_l));
    __m256i high = _mm256_set1_epi32((int)(kern_load_u16(block->scales_h) << 4));
    low = _mm256_srlv_epi32(low, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    high = _mm256_srlv_epi32(high, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    low = _mm256_and_si256(low, _mm256_set1_epi32(15));
    high = _mm256_and_si256(high, _mm256_set1_epi32(48));
    __m256i scale = _mm256_sub_epi32(_mm256_or_si256(low, high), _mm256_set1_epi32(32));
    _mm256_storeu_ps(scales, _mm256_mul_ps(load_half8(block->d), _mm256_cvtepi32_ps(scale)));
}
