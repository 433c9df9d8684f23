/** Steps that the straight decoders share (kern_straight_fn): integers and scales without a neutral
 * copy, no float32 on the way. */
#ifndef KERNELS_CPU_AVX512_STRAIGHT_H
#define KERNELS_CPU_AVX512_STRAIGHT_H

#include <string.h>

#include "kernels/cpu/avx2/expand.h"
#include "kernels/cpu/avx512/straight_list.h"

/** The functions of types are these, with `bits` after them, which is constant then: 8 or 16. */
#define STRAIGHT_INLINE static inline __attribute__((always_inline))

/** Eight bytes at p: a mask of 64 bytes, or one of eight bytes. Copied at once: bytes that are
 * still in a register would be shuffled out one by one. */
static inline uint64_t load_u64(const void *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/** 32 integers from number i on; of 16 bits they are times `sub`. */
STRAIGHT_INLINE void store32(void *integers, size_t i, __m256i bytes, unsigned bits, int sub)
{
    if (bits == 8) {
        _mm256_storeu_si256((__m256i *)(void *)((int8_t *)integers + i), bytes);
        return;
    }
    __m512i words = _mm512_cvtepi8_epi16(bytes);
    if (sub != 1)
        words = _mm512_mullo_epi16(words, _mm512_set1_epi16((short)sub));
    _mm512_storeu_si512((int16_t *)integers + i, words);
}

/** store32 with a sub-scale for each sixteen. */
STRAIGHT_INLINE void store16x2(void *integers, size_t i, __m256i bytes, unsigned bits, int first,
                               int second)
{
    if (bits == 8) {
        store32(integers, i, bytes, bits, 1);
        return;
    }
    __m512i subs =
        _mm512_mask_set1_epi16(_mm512_set1_epi16((short)first), 0xffff0000u, (short)second);
    _mm512_storeu_si512((int16_t *)integers + i,
                        _mm512_mullo_epi16(_mm512_cvtepi8_epi16(bytes), subs));
}

/** The bits of `mask` of each byte, moved down by `shift`. */
static inline __m256i field(__m256i bytes, int shift, char mask)
{
    return _mm256_and_si256(_mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift)),
                            _mm256_set1_epi8(mask));
}

/** The scale of a block of 256 for each of its four runs of 64. */
static inline void store_block_scale(float *scales, float scale)
{
    _mm_storeu_ps(scales, _mm_set1_ps(scale));
}

/** Both functions of a type, for a list of types. */
#define KERN_STRAIGHT(TYPE, name)                                                                  \
    void kern_avx512_straight8_##name(const void *blocks, size_t n, void *integers, float *scales, \
                                      float *mins)                                                 \
    {                                                                                              \
        name(blocks, n, integers, scales, mins, 8);                                                \
    }                                                                                              \
    void kern_avx512_straight16_##name(const void *blocks, size_t n, void *integers,               \
                                       float *scales, float *mins)                                 \
    {                                                                                              \
        name(blocks, n, integers, scales, mins, 16);                                               \
    }

#endif
