/** The K types: 256 elements with scales of their own per 16 or 32. */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"

/** factors[i] = d * byte i, unsigned. */
static inline void store_factors16(float factors[16], __m128i bytes, __m256 d)
{
    __m256i low = _mm256_cvtepu8_epi32(bytes);
    __m256i high = _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes));
    _mm256_storeu_ps(factors, _mm256_mul_ps(d, _mm256_cvtepi32_ps(low)));
    _mm256_storeu_ps(factors + 8, _mm256_mul_ps(d, _mm256_cvtepi32_ps(high)));
}

void kern_avx2_decode_q2_k(const void *blocks, float *y, size_t n)
{
    const __m256 digits = _mm256_setr_ps(0, 1, 2, 3, 0, 1, 2, 3);
    const __m128i low_nibble = _mm_set1_epi8(15);
    const struct kern_block_q2_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[16], mins[16];
        __m128i packed = load16(block->scales);
        store_factors16(scales, _mm_and_si128(packed, low_nibble), load_half8(block->d));
        store_factors16(mins, _mm_and_si128(_mm_srli_epi16(packed, 4), low_nibble),
                        load_half8(block->dmin));
        for (int i = 0; i < 64; i += 16) { /* 16 bytes of qs: half i / 32, 16 columns */
            __m256i q0 = load_octet(block->qs + i), q1 = load_octet(block->qs + i + 8);
            float *out = y + 128 * (i / 32) + i % 32;
            int run = 8 * (i / 32) + i % 32 / 16;
            for (int s = 0; s < 4; s++, out += 32, run += 2) {
                __m256 products = _mm256_sub_ps(_mm256_mul_ps(_mm256_set1_ps(scales[run]), digits),
                                                _mm256_set1_ps(mins[run]));
                _mm256_storeu_ps(out, _mm256_permutevar_ps(products, q0));
                _mm256_storeu_ps(out + 8, _mm256_permutevar_ps(products, q1));
                q0 = _mm256_srli_epi32(q0, 2);
                q1 = _mm256_srli_epi32(q1, 2);
            }
        }
    }
}

/** d * (scale - 32) of the sixteen runs. */
static inline void q3_k_scales(float scales[16], const struct kern_block_q3_k *block)
{
    __m128i low = _mm_loadl_epi64((const __m128i *)block->scales);
    low = _mm_unpacklo_epi64(low, _mm_srli_epi16(low, 4));
    __m128i high = _mm_set1_epi32((int)kern_load_u32(block->scales + 8));
    high = _mm_srlv_epi32(high, _mm_setr_epi32(0, 2, 4, 6));
    low = _mm_and_si128(low, _mm_set1_epi8(15));
    high = _mm_slli_epi16(_mm_and_si128(high, _mm_set1_epi8(3)), 4);
    __m128i scale = _mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32));
    __m256 d = load_half8(block->d);
    store_scaled16(scales, scale, d);
}

void kern_avx2_decode_q3_k(const void *blocks, float *y, size_t n)
{
    const __m256 values = _mm256_setr_ps(-4, -3, -2, -1, 0, 1, 2, 3);
    const __m256i two_bits = _mm256_set1_epi32(3), third_bit = _mm256_set1_epi32(4);
    const struct kern_block_q3_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[16];
        q3_k_scales(scales, block);
        for (int i = 0; i < 32; i += 8) { /* eight columns of both halves */
            __m256i low = load_octet(block->qs + i);
            __m256i high = _mm256_slli_epi32(load_octet(block->hmask + i), 2);
            float *out = y + i;
            for (int g = 0; g < 8; g++, out += 32) {
                __m256 products = _mm256_mul_ps(_mm256_set1_ps(scales[2 * g + i / 16]), values);
                __m256i q = _mm256_or_si256(_mm256_and_si256(low, two_bits),
                                            _mm256_and_si256(high, third_bit));
                _mm256_storeu_ps(out, _mm256_permutevar8x32_ps(products, q));
                low = g == 3 ? load_octet(block->qs + 32 + i) : _mm256_srli_epi32(low, 2);
                high = _mm256_srli_epi32(high, 1);
            }
        }
    }
}

/** The scales and minima of Q4_K and Q5_K, times d and dmin. */
struct k_factors {
    float scales[8];
    float mins[8];
};

static inline struct k_factors load_k_factors(const uint8_t *packed, __m256 d, __m256 dmin)
{
    uint32_t a = kern_load_u32(packed);
    uint32_t b = kern_load_u32(packed + 4);
    uint32_t c = kern_load_u32(packed + 8);
    uint32_t scales_high = (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4;
    uint32_t mins_high = (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4;
    __m128i bytes = _mm_setr_epi32((int)(a & 0x3f3f3f3f), (int)scales_high, (int)(b & 0x3f3f3f3f),
                                   (int)mins_high);
    struct k_factors factors;
    _mm256_storeu_ps(factors.scales, _mm256_mul_ps(d, low_octet_float(bytes)));
    _mm256_storeu_ps(factors.mins, _mm256_mul_ps(dmin, high_octet_float(bytes)));
    return factors;
}

/** y[0..8) = scale * q - min, rounded twice. */
static inline void store_k_octet(float *y, __m256i q, const struct k_factors *factors, int group)
{
    __m256 product = _mm256_mul_ps(_mm256_set1_ps(factors->scales[group]), _mm256_cvtepi32_ps(q));
    _mm256_storeu_ps(y, _mm256_sub_ps(product, _mm256_set1_ps(factors->mins[group])));
}

void kern_avx2_decode_q4_k(const void *blocks, float *y, size_t n)
{
    const __m256i low = _mm256_set1_epi32(15);
    const struct kern_block_q4_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        struct k_factors factors =
            load_k_factors(block->scales, load_half8(block->d), load_half8(block->dmin));
        for (int g = 0; g < 8; g += 2)
            for (int j = 0; j < 32; j += 8) {
                __m256i q = load_octet(block->qs + 16 * g + j);
                store_k_octet(y + 32 * g + j, _mm256_and_si256(q, low), &factors, g);
                store_k_octet(y + 32 * g + 32 + j, _mm256_srli_epi32(q, 4), &factors, g + 1);
            }
    }
}

void kern_avx2_decode_q5_k(const void *blocks, float *y, size_t n)
{
    const __m256i low = _mm256_set1_epi32(15), fifth = _mm256_set1_epi32(16);
    const struct kern_block_q5_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        struct k_factors factors =
            load_k_factors(block->scales, load_half8(block->d), load_half8(block->dmin));
        for (int j = 0; j < 32; j += 8) {
            __m256i high = _mm256_slli_epi32(load_octet(block->qh + j), 4);
            for (int g = 0; g < 8; g += 2) {
                __m256i q = load_octet(block->qs + 16 * g + j);
                __m256i even =
                    _mm256_or_si256(_mm256_and_si256(q, low), _mm256_and_si256(high, fifth));
                high = _mm256_srli_epi32(high, 1);
                __m256i odd =
                    _mm256_or_si256(_mm256_srli_epi32(q, 4), _mm256_and_si256(high, fifth));
                high = _mm256_srli_epi32(high, 1);
                store_k_octet(y + 32 * g + j, even, &factors, g);
                store_k_octet(y + 32 * g + 32 + j, odd, &factors, g + 1);
            }
        }
    }
}

/** y[0..8) = scale * (q - 32), q in two parts without common bits. */
static inline void store_q6_octet(float *y, __m256i low, __m256i high, float scale)
{
    __m256i q = _mm256_sub_epi32(_mm256_or_si256(low, high), _mm256_set1_epi32(32));
    _mm256_storeu_ps(y, _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(q)));
}

void kern_avx2_decode_q6_k(const void *blocks, float *y, size_t n)
{
    const __m256i low = _mm256_set1_epi32(15), two_bits = _mm256_set1_epi32(48);
    const struct kern_block_q6_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[16];
        store_scaled16(scales, load16(block->scales), load_half8(block->d));
        for (int i = 0; i < 64; i += 8) { /* eight columns of half i / 32 */
            const uint8_t *ql = block->ql + 64 * (i / 32) + i % 32;
            __m256i a = load_octet(ql), b = load_octet(ql + 32);
            __m256i h = load_octet(block->qh + i);
            __m256i h0 = _mm256_and_si256(_mm256_slli_epi32(h, 4), two_bits);
            __m256i h1 = _mm256_and_si256(_mm256_slli_epi32(h, 2), two_bits);
            __m256i h2 = _mm256_and_si256(h, two_bits);
            __m256i h3 = _mm256_and_si256(_mm256_srli_epi32(h, 2), two_bits);
            const float *scale = scales + 8 * (i / 32) + i % 32 / 16;
            float *out = y + 128 * (i / 32) + i % 32;
            store_q6_octet(out, _mm256_and_si256(a, low), h0, scale[0]);
            store_q6_octet(out + 32, _mm256_and_si256(b, low), h1, scale[2]);
            store_q6_octet(out + 64, _mm256_srli_epi32(a, 4), h2, scale[4]);
            store_q6_octet(out + 96, _mm256_srli_epi32(b, 4), h3, scale[6]);
        }
    }
}
