/**
 * ik_llama.cpp's other types: the KT types, whose numbers a generator makes; those for BitNet;
 * plain codes.
 */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/quant/ik/formats.h"

/** Eight powers of the factor, mod 2^32: x times them are the next eight of x. */
#define POWER(a, b) ((uint32_t)((a) * (b)))
#define F1          KERN_TRELLIS_FACTOR
#define F2          POWER(F1, F1)
#define F3          POWER(F2, F1)
#define F4          POWER(F2, F2)
static inline __m256i powers8(void)
{
    return _mm256_setr_epi32((int)F1, (int)F2, (int)F3, (int)F4, (int)POWER(F4, F1),
                             (int)POWER(F4, F2), (int)POWER(F4, F3), (int)POWER(F4, F4));
}

static inline __m256i powers4(void)
{
    return _mm256_broadcastsi128_si256(_mm_setr_epi32((int)F1, (int)F2, (int)F3, (int)F4));
}

/** kern_trellis_number() of each lane of x. */
static inline __m256i trellis_numbers(__m256i x)
{
    __m256i bytes = _mm256_and_si256(x, _mm256_set1_epi32(0x3f3f3f3f));
    __m256i pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1));
    __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    return _mm256_sub_epi32(sums, _mm256_set1_epi32(126));
}

/** The eight numbers of the run that begins after x. */
static inline __m256i trellis8(uint32_t x)
{
    return trellis_numbers(_mm256_mullo_epi32(_mm256_set1_epi32((int)x), powers8()));
}

static inline void store_numbers(float *y, __m256i numbers, float scale)
{
    _mm256_storeu_ps(y, _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(numbers)));
}

/** Nibbles of the indices of eight runs: runs k .. k + 7 of 2 * n, of n bytes the low ones first.
 */
static inline __m256i load_high(const uint8_t *qh, int k, int n)
{
    __m256i nibbles = _mm256_srli_epi32(load_octet(qh + k % n), 4 * (k / n));
    return _mm256_slli_epi32(_mm256_and_si256(nibbles, _mm256_set1_epi32(15)), 8);
}

void kern_avx2_decode_iq1_kt(const void *blocks, float *y, size_t n)
{
    const __m256i shift = _mm256_setr_epi32(8, 7, 6, 5, 8, 7, 6, 5);
    const struct kern_block_iq1_kt *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[8];
        kern_iq1_kt_scales(block, scales);
        for (int k = 0; k < 32; k += 8) { /* the runs of two groups */
            __m256i sh = _mm256_set_m128i(_mm_set1_epi32(block->sh[k / 4 + 1]),
                                          _mm_set1_epi32(block->sh[k / 4]));
            sh = _mm256_and_si256(_mm256_sllv_epi32(sh, shift), _mm256_set1_epi32(1 << 12));
            __m256i index = _mm256_or_si256(load_octet(block->ql + k), load_high(block->qh, k, 16));
            uint32_t starts[8];
            _mm256_storeu_si256((__m256i *)starts,
                                _mm256_add_epi32(_mm256_or_si256(index, sh),
                                                 _mm256_set1_epi32(KERN_TRELLIS_START)));
            for (int i = 0; i < 8; i++)
                store_numbers(y + 8 * (k + i), trellis8(starts[i]), scales[(k + i) / 4]);
        }
    }
}

void kern_avx2_decode_iq2_kt(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq2_kt *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[8];
        kern_iq2_kt_scales(block, scales);
        for (unsigned k = 0; k < 32; k++)
            store_numbers(y + 8 * k,
                          trellis8(kern_load_u16(block->ql + 2 * k) + KERN_TRELLIS_START),
                          scales[k / 4]);
    }
}

void kern_avx2_decode_iq3_kt(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq3_kt *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[8];
        kern_iq3_kt_scales(block, scales);
        for (unsigned k = 0; k < 32; k++) {
            __m256i numbers = trellis8(kern_load_u16(block->ql + 2 * k) + KERN_TRELLIS_START);
            __m256 scale = _mm256_set1_ps(scales[k / 4]);
            __m256 magnitude = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_abs_epi32(numbers)));
            __m256i signs = _mm256_sllv_epi32(load_octet(block->qh + 8 * (k % 4)),
                                              _mm256_set1_epi32(31 - (int)k / 4));
            signs = _mm256_and_si256(signs, _mm256_set1_epi32(INT32_MIN));
            _mm256_storeu_ps(y + 8 * k, flip_signs(magnitude, signs));
        }
    }
}

void kern_avx2_decode_iq4_kt(const void *blocks, float *y, size_t n)
{
    const __m256i shift = _mm256_setr_epi32(8, 11, 14, 17, 20, 23, 26, 29);
    const struct kern_block_iq4_kt *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[8];
        kern_iq4_kt_scales(block, scales);
        for (int g = 0; g < 8; g++) {
            uint32_t s = kern_load_u32(block->s + 4 * g);
            __m256i top = _mm256_srlv_epi32(_mm256_set1_epi32((int)s), shift);
            top = _mm256_slli_epi32(_mm256_and_si256(top, _mm256_set1_epi32(7)), 12);
            __m256i index =
                _mm256_or_si256(load_octet(block->ql + 8 * g), load_high(block->qh, 8 * g, 32));
            uint32_t start = KERN_TRELLIS_START + ((s & 1) << 15);
            __m256i starts =
                _mm256_add_epi32(_mm256_or_si256(index, top), _mm256_set1_epi32((int)start));
            for (int r = 0; r < 8; r += 2) { /* two runs of four */
                __m256i lanes = _mm256_setr_epi32(r, r, r, r, r + 1, r + 1, r + 1, r + 1);
                __m256i x = _mm256_permutevar8x32_epi32(starts, lanes);
                store_numbers(y + 32 * g + 4 * r, trellis_numbers(_mm256_mullo_epi32(x, powers4())),
                              scales[g]);
            }
        }
    }
}

void kern_avx2_decode_iq2_bn(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq2_bn *block = blocks;
    for (const float *end = y + n; y < end; y += 64, block++) {
        __m256 products = _mm256_mul_ps(_mm256_set1_ps(kern_load_float(block->d)),
                                        _mm256_setr_ps(-1, 0, 1, 2, -1, 0, 1, 2));
        for (int j = 0; j < 16; j += 8) {
            __m256i q = load_octet(block->qs + j);
            for (int m = 0; m < 4; m++, q = _mm256_srli_epi32(q, 2))
                _mm256_storeu_ps(y + 16 * m + j, _mm256_permutevar_ps(products, q));
        }
    }
}

void kern_avx2_decode_i2_s(const void *blocks, float *y, size_t n)
{
    const struct kern_block_i2_s *block = blocks;
    for (const float *end = y + n; y < end; y += 128, block++) {
        __m256 products = _mm256_mul_ps(_mm256_set1_ps(kern_load_float(block->d)),
                                        _mm256_setr_ps(-1, 0, 1, 2, -1, 0, 1, 2));
        for (int j = 0; j < 32; j += 8) {
            __m256i q = load_octet(block->qs + j);
            for (int m = 3; m >= 0; m--, q = _mm256_srli_epi32(q, 2))
                _mm256_storeu_ps(y + 32 * m + j, _mm256_permutevar_ps(products, q));
        }
    }
}

void kern_avx2_decode_iq1_bn(const void *blocks, float *y, size_t n)
{
    /* The byte of each element of a run, and the power of 3 that makes its digit the highest. */
    const __m128i byte = _mm_setr_epi8(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 12);
    const __m128i but_last = _mm_srli_si128(_mm_set1_epi8(-1), 1);
    static const int16_t powers[4] = {81, 27, 9, 3}; /* of the last element of a run */
    const struct kern_block_iq1_bn *block = blocks;
    for (const float *end = y + n; y < end; y += 64, block++) {
        uint8_t bytes[16] = {0};
        memcpy(bytes, block->ql, 13);
        for (int a = 0; a < 4; a++) {
            __m128i at = _mm_add_epi8(byte, _mm_and_si128(_mm_set1_epi8((char)(3 * a)), but_last));
            __m128i own = _mm_shuffle_epi8(load16(bytes), at);
            __m256i power =
                _mm256_setr_epi16(81, 27, 9, 3, 1, 81, 27, 9, 3, 1, 81, 27, 9, 3, 1, powers[a]);
            __m256i v = _mm256_and_si256(_mm256_mullo_epi16(_mm256_cvtepu8_epi16(own), power),
                                         _mm256_set1_epi16(255));
            v = _mm256_srli_epi16(_mm256_add_epi16(v, _mm256_srli_epi16(v, 1)), 7);
            v = _mm256_sub_epi16(v, _mm256_set1_epi16(1));
            store_scaled16(
                y + 16 * a,
                _mm_packs_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)),
                load_half8(block->d));
        }
    }
}

void kern_avx2_decode_q6_0(const void *blocks, float *y, size_t n)
{
    const __m128i nibble = _mm_set1_epi8(15), two_bits = _mm_set1_epi8(48);
    const struct kern_block_q6_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m256 d = load_half8(block->d);
        __m128i q = load16(block->qs), h = _mm_loadl_epi64((const __m128i *)block->qh);
        /* bits 4, 5: of elements 0..7 and 8..15, then of the 16 after them */
        __m128i low = _mm_unpacklo_epi64(_mm_slli_epi16(h, 4), h);
        __m128i high = _mm_unpacklo_epi64(_mm_slli_epi16(h, 2), _mm_srli_epi16(h, 2));
        __m128i a = _mm_or_si128(_mm_and_si128(q, nibble), _mm_and_si128(low, two_bits));
        __m128i b = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(q, 4), nibble),
                                 _mm_and_si128(high, two_bits));
        store_scaled16(y, _mm_sub_epi8(a, _mm_set1_epi8(32)), d);
        store_scaled16(y + 16, _mm_sub_epi8(b, _mm_set1_epi8(32)), d);
    }
}

void kern_avx2_decode_q8_kv(const void *blocks, float *y, size_t n)
{
    const struct kern_block_q8_kv *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++)
        for (int j = 0; j < 32; j += 16)
            store_scaled16(y + j, load16(block->qs + j), _mm256_set1_ps(kern_load_float(block->d)));
}

void kern_avx2_decode_q8_k_r8(const void *blocks, float *y, size_t n)
{
    const struct kern_block_q8_k_r8 *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++)
        for (int j = 0; j < 256; j += 16)
            store_scaled16(y + j, load16(block->qs + j), load_half8(block->d));
}

/** `other`, and its -0 become 0; a piece at a time, which the cache still has. */
#define POSITIVE_ZERO(name, other)                                                                 \
    void kern_avx2_decode_##name(const void *blocks, float *y, size_t n)                           \
    {                                                                                              \
        kern_avx2_decode_##other(blocks, y, n);                                                    \
        for (size_t i = 0; i < n; i += 8)                                                          \
            _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(y + i), _mm256_setzero_ps()));   \
    }
POSITIVE_ZERO(q5_0_r4, q5_0)
POSITIVE_ZERO(q6_0_r4, q6_0)
POSITIVE_ZERO(q8_k_r16, q8_k_r8)
