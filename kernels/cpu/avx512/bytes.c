/* Rows of some types straight to integers of 8 bits and scales, as kernels/quant/integers.h has
 * them: no neutral copy, no float32 on the way. */
#include "kernels/cpu/avx2/scales.h"
#include "kernels/cpu/avx2/unpack_iq.h"
#include "kernels/cpu/avx512/decode.h"
#include "kernels/cpu/avx512/expand.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"

/** Eight bytes at p: a mask of 64 bytes, or one of eight bytes. */
static inline uint64_t load_u64(const uint8_t *p)
{
    return kern_load_u32(p) | (uint64_t)kern_load_u32(p + 4) << 32;
}

static inline void store32(int8_t *out, __m256i bytes)
{
    _mm256_storeu_si256((__m256i *)(void *)out, bytes);
}

/** The bits of `mask` of each byte, moved down by `shift`. */
static inline __m256i field(__m256i bytes, int shift, char mask)
{
    return _mm256_and_si256(_mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift)),
                            _mm256_set1_epi8(mask));
}

void kern_avx512_bytes_q8_0(const void *blocks, size_t n, int8_t *integers, float *scales,
                            float *mins)
{
    (void)mins;
    const struct kern_block_q8_0 *block = blocks;
    for (const int8_t *end = integers + n; integers < end; integers += 32, block++) {
        store32(integers, load32(block->qs));
        *scales++ = _cvtsh_ss(kern_load_u16(block->d));
    }
}

/** The scales and minima of the eight groups of Q4_K and Q5_K. */
static inline void store_k_factors(float *scales, float *mins, const uint8_t *packed,
                                   const uint8_t *d, const uint8_t *dmin)
{
    struct kern_k_factors factors;
    kern_avx2_q4_k_factors(&factors, packed, d, dmin);
    _mm256_storeu_ps(scales, _mm256_loadu_ps(factors.scales));
    _mm256_storeu_ps(mins, _mm256_xor_ps(_mm256_loadu_ps(factors.mins), _mm256_set1_ps(-0.0f)));
}

void kern_avx512_bytes_q4_k(const void *blocks, size_t n, int8_t *integers, float *scales,
                            float *mins)
{
    const struct kern_block_q4_k *block = blocks;
    for (const int8_t *end = integers + n; integers < end; integers += 256, block++) {
        for (int i = 0; i < 4; i++) {
            __m256i q = load32(block->qs + 32 * i);
            store32(integers + 64 * i, field(q, 0, 15));
            store32(integers + 64 * i + 32, field(q, 4, 15));
        }
        store_k_factors(scales, mins, block->scales, block->d, block->dmin);
        scales += 8;
        mins += 8;
    }
}

void kern_avx512_bytes_q5_k(const void *blocks, size_t n, int8_t *integers, float *scales,
                            float *mins)
{
    const __m256i fifth = _mm256_set1_epi8(16);
    const struct kern_block_q5_k *block = blocks;
    for (const int8_t *end = integers + n; integers < end; integers += 256, block++) {
        __m256i high = load32(block->qh);
        for (int g = 0; g < 8; g++) {
            __m256i q = field(load32(block->qs + g / 2 * 32), g % 2 * 4, 15);
            __mmask32 bit = _mm256_test_epi8_mask(high, _mm256_set1_epi8((char)(1 << g)));
            store32(integers + 32 * g, _mm256_or_si256(q, _mm256_maskz_mov_epi8(bit, fifth)));
        }
        store_k_factors(scales, mins, block->scales, block->d, block->dmin);
        scales += 8;
        mins += 8;
    }
}

void kern_avx512_bytes_q6_k(const void *blocks, size_t n, int8_t *integers, float *scales,
                            float *mins)
{
    (void)mins;
    const struct kern_block_q6_k *block = blocks;
    for (const int8_t *end = integers + n; integers < end; integers += 256, block++) {
        for (int g = 0; g < 8; g++) {
            int half = g / 4, r = g % 4;
            __m256i low = field(load32(block->ql + 64 * half + r % 2 * 32), r / 2 * 4, 15);
            __m256i high = field(load32(block->qh + 32 * half), 2 * r, 3);
            __m256i q = _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
            store32(integers + 32 * g, _mm256_sub_epi8(q, _mm256_set1_epi8(32)));
        }
        kern_avx2_q6_k_scales(scales, block);
        scales += 16;
    }
}

/** Entries of a table of n numbers, 256 or 512, at 32 indices. */
static inline __attribute__((always_inline)) __m512i look_up_entries(const uint16_t *table,
                                                                     size_t n, __m512i indices)
{
    __m512i found[8];
    for (size_t i = 0; i < n / 64; i++, table += 64)
        found[i] = _mm512_permutex2var_epi16(_mm512_loadu_si512(table), indices,
                                             _mm512_loadu_si512(table + 32));
    for (size_t bit = 64; bit < n; bit *= 2) { /* half of them, by this bit of the indices */
        __mmask32 odd = _mm512_test_epi16_mask(indices, _mm512_set1_epi16((short)bit));
        for (size_t i = 0; i < n / bit / 2; i++)
            found[i] = _mm512_mask_mov_epi16(found[2 * i], odd, found[2 * i + 1]);
    }
    return found[0];
}

/** The codes of three bits of sixteen entries, a byte each. */
static inline __m512i iq3_codes(__m256i entries)
{
    __m512i codes = _mm512_cvtepu16_epi32(entries);
    codes = select_bits(_mm512_set1_epi32(0x3f), codes, _mm512_slli_epi32(codes, 10));
    codes = select_bits(_mm512_set1_epi16(7), codes, _mm512_slli_epi32(codes, 5));
    return _mm512_and_si512(codes, _mm512_set1_epi8(7));
}

/** 64 integers of sixteen entries; bit i of `signs` is set where integer i is negative. */
static inline void store_iq3(int8_t *integers, __m256i entries, __m512i values, uint64_t signs)
{
    __m512i bytes = _mm512_shuffle_epi8(values, iq3_codes(entries));
    bytes = _mm512_mask_sub_epi8(bytes, signs, _mm512_setzero_si512(), bytes);
    _mm512_storeu_si512(integers, bytes);
}

/** A block of a table of n entries; low, high: 64 bytes and a ninth bit of each index. */
static inline __attribute__((always_inline)) void
store_iq3_block(int8_t *integers, const uint8_t *low, uint64_t high, const uint16_t *table,
                size_t n, const uint8_t values[8], const uint8_t signs[32])
{
    const __m512i octets = _mm512_set1_epi64((long long)load_u64(values));
    for (int i = 0; i < 64; i += 32, integers += 128, signs += 16) {
        __m512i indices = _mm512_cvtepu8_epi16(load32(low + i));
        __mmask32 ninth = (__mmask32)(high >> i);
        indices = _mm512_or_si512(indices, _mm512_maskz_set1_epi16(ninth, 256));
        __m512i entries = look_up_entries(table, n, indices);
        store_iq3(integers, _mm512_castsi512_si256(entries), octets, load_u64(signs));
        store_iq3(integers + 64, _mm512_extracti64x4_epi64(entries, 1), octets,
                  load_u64(signs + 8));
    }
}

void kern_avx512_bytes_iq3_s(const void *blocks, size_t n, int8_t *integers, float *scales,
                             float *mins)
{
    (void)mins;
    const struct kern_block_iq3_s *block = blocks;
    for (const int8_t *end = integers + n; integers < end; integers += 256, block++, scales += 8) {
        store_iq3_block(integers, block->qs, load_u64(block->qh), kern_iq3_s_codes, 512,
                        kern_iq3_s_values, block->signs);
        _mm256_storeu_ps(scales, iq3_s_scales(block));
    }
}

void kern_avx512_bytes_iq3_xxs(const void *blocks, size_t n, int8_t *integers, float *scales,
                               float *mins)
{
    (void)mins;
    const struct kern_block_iq3_xxs *block = blocks;
    for (const int8_t *end = integers + n; integers < end; integers += 256, block++, scales += 8) {
        struct kern_iq_block b;
        unpack_iq3_xxs(&b, block);
        store_iq3_block(integers, block->qs, 0, kern_iq3_xxs_codes, 256, kern_iq3_xxs_values,
                        (const uint8_t *)b.signs);
        _mm256_storeu_ps(scales, _mm256_loadu_ps(b.scales));
    }
}
