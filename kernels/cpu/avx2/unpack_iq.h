/**
 * Unpacking the indices, signs and scales of a whole IQ block into arrays, which the decoders
 * then walk; also for the wider ISAs above AVX2.
 */
#ifndef KERNELS_CPU_AVX2_UNPACK_IQ_H
#define KERNELS_CPU_AVX2_UNPACK_IQ_H

#include "kernels/cpu/avx2/expand.h"
#include "kernels/quant/iq1_m.h"
#include "kernels/quant/iq1_s.h"
#include "kernels/quant/iq2_s.h"
#include "kernels/quant/iq2_xs.h"
#include "kernels/quant/iq2_xxs.h"
#include "kernels/quant/iq3_s.h"
#include "kernels/quant/iq3_xxs.h"

/** A block, unpacked: indices and scales; deltas for IQ1, signs for the others. */
struct kern_iq_block {
    _Alignas(64) uint16_t indices[64]; /* of codebook entries: 32 of 8 elements, or 64 of 4 */
    uint16_t signs[16];                /* of the 16 elements of a run */
    uint8_t deltas[16]; /* bits 0 and 1 are set where delta is -1/8 in the octets of a run */
    float scales[16];   /* of the runs; IQ3: of the groups of 32, in the first eight */
};

/** indices[i] = low byte i | high byte i << 8, for 32 bytes. */
static inline void join_indices(uint16_t indices[32], __m256i low, __m256i high)
{
    /* unpacking works in each half: bytes 0..7 and 16..23 first, then 8..15 and 24..31 */
    __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high);
    _mm256_storeu_si256((__m256i *)indices, _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256((__m256i *)(indices + 16), _mm256_permute2x128_si256(first, second, 0x31));
}

/** Bytes of 7-bit sign indices to sign bytes: the top bit makes the parity even. */
static inline __m256i complete_sign_bytes(__m256i indices)
{
    const char odd = (char)0x80; /* the numbers below 16 with an odd number of bits */
    const __m256i parity = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, odd, odd, 0, odd, 0, 0, odd, odd, 0, 0, odd, 0, odd, odd, 0));
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i low = _mm256_shuffle_epi8(parity, _mm256_and_si256(indices, nibble));
    __m256i high =
        _mm256_shuffle_epi8(parity, _mm256_and_si256(_mm256_srli_epi16(indices, 4), nibble));
    return _mm256_or_si256(indices, _mm256_xor_si256(low, high));
}

/** Eight words of four 7-bit sign indices each (bits 0..27) to the signs of eight groups. */
static inline void unpack_signs(uint16_t signs[16], __m256i words)
{
    __m256i a = _mm256_and_si256(words, _mm256_set1_epi32(0x7f));
    __m256i b = _mm256_and_si256(_mm256_slli_epi32(words, 1), _mm256_set1_epi32(0x7f00));
    __m256i c = _mm256_and_si256(_mm256_slli_epi32(words, 2), _mm256_set1_epi32(0x7f0000));
    __m256i d = _mm256_and_si256(_mm256_slli_epi32(words, 3), _mm256_set1_epi32(0x7f000000));
    __m256i indices = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
    _mm256_storeu_si256((__m256i *)signs, complete_sign_bytes(indices));
}

/** d * (0.5 + s) * factor. */
static inline __m256 half_step_scales(__m256 d, __m256i s, float factor)
{
    __m256 step = _mm256_add_ps(_mm256_set1_ps(0.5f), _mm256_cvtepi32_ps(s));
    return _mm256_mul_ps(_mm256_mul_ps(d, step), _mm256_set1_ps(factor));
}

/** d * (2 s + 1). */
static inline __m256 odd_scales(__m256 d, __m256i s)
{
    s = _mm256_add_epi32(_mm256_slli_epi32(s, 1), _mm256_set1_epi32(1));
    return _mm256_mul_ps(d, _mm256_cvtepi32_ps(s));
}

/** Each of eight numbers twice in a row. */
static inline void store_twice(float out[16], __m256 x)
{
    __m256 low = _mm256_unpacklo_ps(x, x), high = _mm256_unpackhi_ps(x, x);
    _mm256_storeu_ps(out, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(out + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

static inline void unpack_iq2_xxs(struct kern_iq_block *out, const struct kern_block_iq2_xxs *block)
{
    /* the even words hold four indices of a byte, the odd ones signs and scale */
    __m256 first = _mm256_castsi256_ps(load32(block->qs));
    __m256 second = _mm256_castsi256_ps(load32(block->qs + 32));
    __m256i even = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0x88));
    __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xdd));
    join_indices(out->indices, _mm256_permute4x64_epi64(even, 0xd8), _mm256_setzero_si256());
    __m256i words = _mm256_permute4x64_epi64(odd, 0xd8);
    unpack_signs(out->signs, words);
    __m256 scales = half_step_scales(load_half8(block->d), _mm256_srli_epi32(words, 28), 0.25f);
    store_twice(out->scales, scales);
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

static inline void unpack_iq2_xs(struct kern_iq_block *out, const struct kern_block_iq2_xs *block)
{
    const __m256i index_bits = _mm256_set1_epi16(511);
    __m256i first = load32(block->qs), second = load32(block->qs + 32);
    _mm256_storeu_si256((__m256i *)out->indices, _mm256_and_si256(first, index_bits));
    _mm256_storeu_si256((__m256i *)(out->indices + 16), _mm256_and_si256(second, index_bits));
    /* packing works in each half of the registers; the permutation restores the order */
    __m256i packed = _mm256_packus_epi16(_mm256_srli_epi16(first, 9), _mm256_srli_epi16(second, 9));
    __m256i signs = complete_sign_bytes(_mm256_permute4x64_epi64(packed, 0xd8));
    _mm256_storeu_si256((__m256i *)out->signs, signs);
    iq2_run_scales(out->scales, block->scales, load_half8(block->d));
}

static inline void unpack_iq2_s(struct kern_iq_block *out, const struct kern_block_iq2_s *block)
{
    /* four fields of two bits of each byte of qh to four bytes */
    __m256i h = load_octet(block->qh);
    h = _mm256_or_si256(h, _mm256_slli_epi32(h, 12));
    h = _mm256_or_si256(h, _mm256_slli_epi32(h, 6));
    join_indices(out->indices, load32(block->qs), _mm256_and_si256(h, _mm256_set1_epi8(3)));
    _mm256_storeu_si256((__m256i *)out->signs, load32(block->signs));
    iq2_run_scales(out->scales, block->scales, load_half8(block->d));
}

static inline void unpack_iq3_xxs(struct kern_iq_block *out, const struct kern_block_iq3_xxs *block)
{
    join_indices(out->indices, load32(block->qs), _mm256_setzero_si256());
    join_indices(out->indices + 32, load32(block->qs + 32), _mm256_setzero_si256());
    __m256i words = load32(block->signs_scale);
    unpack_signs(out->signs, words);
    _mm256_storeu_ps(out->scales,
                     half_step_scales(load_half8(block->d), _mm256_srli_epi32(words, 28), 0.5f));
}

/** The scales of the eight groups. */
static inline __m256 iq3_s_scales(const struct kern_block_iq3_s *block)
{
    __m256i s = _mm256_set1_epi32((int)kern_load_u32(block->scales));
    s = _mm256_srlv_epi32(s, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    return odd_scales(load_half8(block->d), _mm256_and_si256(s, _mm256_set1_epi32(15)));
}

static inline void unpack_iq3_s(struct kern_iq_block *out, const struct kern_block_iq3_s *block)
{
    /* multiplying moves bit l of qh to bit 8 of lane l */
    const __m256i to_bit8 =
        _mm256_setr_epi16(256, 128, 64, 32, 16, 8, 4, 2, 256, 128, 64, 32, 16, 8, 4, 2);
    for (int g = 0; g < 8; g += 2) {
        __m256i high =
            _mm256_set_m128i(_mm_set1_epi16(block->qh[g + 1]), _mm_set1_epi16(block->qh[g]));
        high = _mm256_and_si256(_mm256_mullo_epi16(high, to_bit8), _mm256_set1_epi16(256));
        __m256i low = _mm256_cvtepu8_epi16(load16(block->qs + 8 * g));
        _mm256_storeu_si256((__m256i *)(out->indices + 8 * g), _mm256_or_si256(low, high));
    }
    _mm256_storeu_si256((__m256i *)out->signs, load32(block->signs));
    _mm256_storeu_ps(out->scales, iq3_s_scales(block));
}

static inline void unpack_iq1_s(struct kern_iq_block *out, const struct kern_block_iq1_s *block)
{
    __m256i h = _mm256_cvtepu16_epi32(load16(block->qh));
    __m256i s = _mm256_and_si256(_mm256_srli_epi32(h, 12), _mm256_set1_epi32(7));
    store_twice(out->scales, odd_scales(load_half8(block->d), s));
    /* bit 15 to both bytes of a run: 3 or 0 */
    __m256i delta = _mm256_srai_epi32(_mm256_slli_epi32(h, 16), 31);
    delta = _mm256_and_si256(delta, _mm256_set1_epi32(0x0303));
    __m128i deltas =
        _mm_packus_epi32(_mm256_castsi256_si128(delta), _mm256_extracti128_si256(delta, 1));
    _mm_storeu_si128((__m128i *)out->deltas, deltas);
    /* the four fields of three bits to the low bits of four bytes */
    __m256i a = _mm256_and_si256(h, _mm256_set1_epi32(7));
    __m256i b = _mm256_and_si256(_mm256_slli_epi32(h, 5), _mm256_set1_epi32(7 << 8));
    __m256i c = _mm256_and_si256(_mm256_slli_epi32(h, 10), _mm256_set1_epi32(7 << 16));
    __m256i d = _mm256_and_si256(_mm256_slli_epi32(h, 15), _mm256_set1_epi32(7 << 24));
    __m256i high = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
    join_indices(out->indices, load32(block->qs), high);
}

static inline void unpack_iq1_m(struct kern_iq_block *out, const struct kern_block_iq1_m *block)
{
    /* two of the four 16-bit numbers, each in four lanes, one field of three bits per lane */
    const __m128i four_times = _mm_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3);
    const __m256i shift = _mm256_setr_epi32(0, 3, 6, 9, 0, 3, 6, 9);
    __m256 d = _mm256_set1_ps(kern_iq1_m_scale(block->scales));
    __m128i packed = _mm_loadl_epi64((const __m128i *)block->scales);
    for (int half = 0; half < 2; half++) {
        __m256i s = _mm256_cvtepu16_epi32(_mm_shuffle_epi8(packed, four_times));
        s = _mm256_and_si256(_mm256_srlv_epi32(s, shift), _mm256_set1_epi32(7));
        _mm256_storeu_ps(out->scales + 8 * half, odd_scales(d, s));
        packed = _mm_srli_epi64(packed, 32);
    }
    /* a nibble of qh is three bits of an index and a delta */
    __m128i qh = load16(block->qh);
    __m128i even = _mm_and_si128(_mm_srli_epi16(qh, 3), _mm_set1_epi8(1));
    __m128i odd = _mm_and_si128(_mm_srli_epi16(qh, 6), _mm_set1_epi8(2));
    _mm_storeu_si128((__m128i *)out->deltas, _mm_or_si128(even, odd));
    __m256i h = _mm256_cvtepu8_epi16(qh);
    h = _mm256_or_si256(h, _mm256_slli_epi16(h, 4)); /* the 32 nibbles in order */
    join_indices(out->indices, load32(block->qs), _mm256_and_si256(h, _mm256_set1_epi8(7)));
}

/** A decoder: blocks are unpacked, and store(y, &unpacked, ...) writes the elements of each. */
#define KERN_IQ_DECODER(isa, name, store, ...)                                                     \
    void kern_##isa##_decode_##name(const void *blocks, float *y, size_t n)                        \
    {                                                                                              \
        const struct kern_block_##name *block = blocks;                                            \
        for (const float *end = y + n; y < end; y += 256, block++) {                               \
            struct kern_iq_block b;                                                                \
            unpack_##name(&b, block);                                                              \
            store(y, &b, __VA_ARGS__);                                                             \
        }                                                                                          \
    }

#endif
