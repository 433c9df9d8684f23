/**
 * The IQ types with codebooks. An entry's codes are looked up among the products of the scale
 * with the few values that entries are made of.
 */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/cpu/avx2/unpack_iq.h"
#include "kernels/quant/ik/iq1_r4.h"

/** The eight codes of 2 bits of an entry, in the low bits of the lanes. */
static inline __m256i entry_codes(uint16_t entry)
{
    const __m256i shift = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    return _mm256_srlv_epi32(_mm256_set1_epi16((short)entry), shift);
}

/** value + delta by code, for delta = 1/8 and -1/8. */
static const float iq1_values[2][4] = {{-0.875f, 0.125f, 1.125f, 0.0f},
                                       {-1.125f, -0.125f, 0.875f, 0.0f}};

static inline void store_iq1_octet(float *y, uint16_t entry, __m256 scale, const float values[4])
{
    __m256 products = _mm256_mul_ps(scale, _mm256_broadcast_ps((const __m128 *)values));
    _mm256_storeu_ps(y, _mm256_permutevar_ps(products, entry_codes(entry)));
}

static inline void store_iq1_block(float *y, const struct kern_iq_block *b, const uint16_t *codes)
{
    for (int i = 0; i < 16; i++, y += 16) {
        __m256 scale = _mm256_set1_ps(b->scales[i]);
        store_iq1_octet(y, codes[b->indices[2 * i]], scale, iq1_values[b->deltas[i] & 1]);
        store_iq1_octet(y + 8, codes[b->indices[2 * i + 1]], scale, iq1_values[b->deltas[i] >> 1]);
    }
}

void kern_avx2_decode_iq1_s_r4(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq1_s_r4 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        uint32_t high = kern_load_u16(block->qh);
        __m256 d = load_half8(block->d);
        __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps((float)(2 * (high >> 12 & 7) + 1)));
        for (unsigned l = 0; l < 4; l++)
            store_iq1_octet(y + 8 * l, kern_iq1_codes[block->qs[l] | (high >> 3 * l & 7) << 8],
                            scale, iq1_values[high >> 15]);
    }
}

void kern_avx2_decode_iq1_m_r4(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq1_m_r4 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m256 d = load_half8(block->d);
        for (unsigned l = 0; l < 4; l++) {
            unsigned high = kern_load_nibble(block->qh, l);
            __m256 code = _mm256_set1_ps((float)(block->scale >> l / 2 * 4 & 15));
            store_iq1_octet(y + 8 * l, kern_iq1_codes[block->qs[l] | (high & 7) << 8],
                            _mm256_mul_ps(d, code), iq1_values[high >> 3]);
        }
    }
}

/** The signs of a group of 32 in all lanes. */
static inline __m256i load_signs(const uint16_t signs[2])
{
    return _mm256_set1_epi32((int)(signs[0] | (uint32_t)signs[1] << 16));
}

/** Octet l of a group: its entry through the products, with bits 8l .. 8l + 7 of signs. */
static inline void store_iq2_octet(float *y, int l, uint16_t entry, __m256 products, __m256i signs)
{
    __m256 magnitudes = _mm256_permutevar_ps(products, entry_codes(entry));
    _mm256_storeu_ps(y + 8 * l, flip_signs(magnitudes, sign_bits(signs, l)));
}

static inline void store_iq2_block(float *y, const struct kern_iq_block *b, const uint16_t *codes)
{
    const __m256 values = _mm256_setr_ps(8, 25, 43, 0, 8, 25, 43, 0);
    for (int g = 0; g < 8; g++, y += 32) {
        const uint16_t *indices = b->indices + 4 * g;
        __m256i signs = load_signs(b->signs + 2 * g);
        __m256 low = _mm256_mul_ps(_mm256_set1_ps(b->scales[2 * g]), values);
        __m256 high = _mm256_mul_ps(_mm256_set1_ps(b->scales[2 * g + 1]), values);
        store_iq2_octet(y, 0, codes[indices[0]], low, signs);
        store_iq2_octet(y, 1, codes[indices[1]], low, signs);
        store_iq2_octet(y, 2, codes[indices[2]], high, signs);
        store_iq2_octet(y, 3, codes[indices[3]], high, signs);
    }
}

/** Blocks of 64 entries of four codes of 3 bits; two entries make an octet. */
static inline void store_iq3_block(float *y, const struct kern_iq_block *b, const uint16_t *codes,
                                   const uint8_t eight[8])
{
    const __m256 values = _mm256_cvtepi32_ps(load_octet(eight));
    const __m256i shift = _mm256_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21);
    for (int g = 0; g < 8; g++, y += 32) {
        __m256 products = _mm256_mul_ps(_mm256_set1_ps(b->scales[g]), values);
        __m256i signs = load_signs(b->signs + 2 * g);
        for (int l = 0; l < 4; l++) {
            const uint16_t *indices = b->indices + 8 * g + 2 * l;
            uint32_t entries = codes[indices[0]] | (uint32_t)codes[indices[1]] << 12;
            __m256i lanes = _mm256_srlv_epi32(_mm256_set1_epi32((int)entries), shift);
            __m256 magnitudes = _mm256_permutevar8x32_ps(products, lanes);
            _mm256_storeu_ps(y + 8 * l, flip_signs(magnitudes, sign_bits(signs, l)));
        }
    }
}

KERN_IQ_DECODER(avx2, iq1_s, store_iq1_block, kern_iq1_codes)
KERN_IQ_DECODER(avx2, iq1_m, store_iq1_block, kern_iq1_codes)
KERN_IQ_DECODER(avx2, iq2_xxs, store_iq2_block, kern_iq2_xxs_codes)
KERN_IQ_DECODER(avx2, iq2_xs, store_iq2_block, kern_iq2_xs_codes)
KERN_IQ_DECODER(avx2, iq2_s, store_iq2_block, kern_iq2_s_codes)
KERN_IQ_DECODER(avx2, iq3_xxs, store_iq3_block, kern_iq3_xxs_codes, kern_iq3_xxs_values)
KERN_IQ_DECODER(avx2, iq3_s, store_iq3_block, kern_iq3_s_codes, kern_iq3_s_values)
