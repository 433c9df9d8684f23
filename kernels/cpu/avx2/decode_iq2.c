/** IQ2_XXS, IQ2_XS and IQ2_S: entries of eight magnitudes out of {8, 25, 43}, with signs. */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/cpu/avx2/indices.h"
#include "kernels/cpu/avx2/signs.h"
#include "kernels/quant/iq2_s.h"
#include "kernels/quant/iq2_xs.h"
#include "kernels/quant/iq2_xxs.h"

/** scale * magnitude of the codes 0..3, in each half of the register. */
static inline __m256 iq2_products(float scale)
{
    return _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_setr_ps(8, 25, 43, 0, 8, 25, 43, 0));
}

/** Octet l of a group: its entry through the products, with bits 8l .. 8l + 7 of signs. */
static inline void store_iq2_octet(float *y, int l, uint16_t entry, __m256 products, __m256i signs)
{
    const __m256i shift = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    __m256i codes = _mm256_srlv_epi32(_mm256_set1_epi16((short)entry), shift);
    __m256 magnitudes = _mm256_permutevar_ps(products, codes);
    _mm256_storeu_ps(y + 8 * l, flip_signs(magnitudes, sign_bits(signs, l)));
}

void kern_avx2_decode_iq2_xxs(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq2_xxs *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[8];
        uint32_t signs[8];
        /* the odd words hold signs and scales: collect those of the eight groups */
        __m256 first = _mm256_loadu_ps((const float *)block->qs);
        __m256 second = _mm256_loadu_ps((const float *)(block->qs + 32));
        __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xdd));
        __m256i words = _mm256_permute4x64_epi64(odd, 0xd8);
        _mm256_storeu_si256((__m256i *)signs, unpack_signs(words));
        _mm256_storeu_ps(
            scales, half_step_scales(load_half8(block->d), _mm256_srli_epi32(words, 28), 0.25f));
        for (int g = 0; g < 8; g++) {
            const uint8_t *indices = block->qs + 8 * g;
            __m256 products = iq2_products(scales[g]);
            __m256i sign_word = load_word8(signs + g);
            for (int l = 0; l < 4; l++)
                store_iq2_octet(y + 32 * g, l, kern_iq2_xxs_codes[indices[l]], products, sign_word);
        }
    }
}

/** The sixteen scales of IQ2_XS and IQ2_S: nibbles, the low one first. */
static inline void iq2_run_scales(float scales[16], const uint8_t *packed, __m256 d)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)packed);
    __m128i nibbles =
        _mm_and_si128(_mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4)), _mm_set1_epi8(15));
    __m256i low = _mm256_cvtepu8_epi32(nibbles);
    __m256i high = _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(nibbles, nibbles));
    _mm256_storeu_ps(scales, half_step_scales(d, low, 0.25f));
    _mm256_storeu_ps(scales + 8, half_step_scales(d, high, 0.25f));
}

/** A block of IQ2_XS or IQ2_S, unpacked: 32 indices, 8 words of signs, 16 scales. */
struct iq2_block {
    uint16_t indices[32];
    uint32_t signs[8];
    float scales[16];
};

static inline void store_iq2_block(float *y, const struct iq2_block *b, const uint16_t *codes)
{
    for (int g = 0; g < 8; g++) {
        const uint16_t *indices = b->indices + 4 * g;
        __m256i sign_word = load_word8(b->signs + g);
        __m256 products = iq2_products(b->scales[2 * g]);
        store_iq2_octet(y + 32 * g, 0, codes[indices[0]], products, sign_word);
        store_iq2_octet(y + 32 * g, 1, codes[indices[1]], products, sign_word);
        products = iq2_products(b->scales[2 * g + 1]);
        store_iq2_octet(y + 32 * g, 2, codes[indices[2]], products, sign_word);
        store_iq2_octet(y + 32 * g, 3, codes[indices[3]], products, sign_word);
    }
}

void kern_avx2_decode_iq2_xs(const void *blocks, float *y, size_t n)
{
    const __m256i index_bits = _mm256_set1_epi16(511);
    const struct kern_block_iq2_xs *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        struct iq2_block b;
        __m256i first = load32(block->qs), second = load32(block->qs + 32);
        _mm256_storeu_si256((__m256i *)b.indices, _mm256_and_si256(first, index_bits));
        _mm256_storeu_si256((__m256i *)(b.indices + 16), _mm256_and_si256(second, index_bits));
        /* packing works within each half of the registers; the permutation restores the order */
        __m256i packed =
            _mm256_packus_epi16(_mm256_srli_epi16(first, 9), _mm256_srli_epi16(second, 9));
        __m256i signs = complete_sign_bytes(_mm256_permute4x64_epi64(packed, 0xd8));
        _mm256_storeu_si256((__m256i *)b.signs, signs);
        iq2_run_scales(b.scales, block->scales, load_half8(block->d));
        store_iq2_block(y, &b, kern_iq2_xs_codes);
    }
}

void kern_avx2_decode_iq2_s(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq2_s *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        struct iq2_block b;
        /* four fields of two bits of each byte of qh to four bytes */
        __m256i h = load_octet(block->qh);
        h = _mm256_or_si256(h, _mm256_slli_epi32(h, 12));
        h = _mm256_or_si256(h, _mm256_slli_epi32(h, 6));
        h = _mm256_and_si256(h, _mm256_set1_epi8(3));
        join_indices(b.indices, load32(block->qs), h);
        _mm256_storeu_si256((__m256i *)b.signs, load32(block->signs));
        iq2_run_scales(b.scales, block->scales, load_half8(block->d));
        store_iq2_block(y, &b, kern_iq2_s_codes);
    }
}
