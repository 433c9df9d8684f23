/**
 * Products of bytes, for the kernels of integers in each of the three sets: by smmla (i8mm), by
 * sdot (dotprod), or by multiplications of bytes. Where bytes of tokens lie follows from it: 16
 * columns of four tokens are 64 bytes, in cells of WORD_COLUMNS of a token.
 */
#ifndef KERNELS_CPU_NEON_INTEGER_WORDS_H
#define KERNELS_CPU_NEON_INTEGER_WORDS_H

#include <arm_neon.h>

#include "kernels/cpu/neon/neon.h"

#define WORD_INLINE static inline __attribute__((always_inline, unused))

/** Whether weights are beyond a byte: then they lie as bytes, and a factor of 16 or 32 columns. */
WORD_INLINE bool word_wide(const struct kern_integers *format)
{
    return format->run == 64 && format->largest > INT8_MAX;
}

/** Columns that share a factor. */
WORD_INLINE size_t word_factor_run(size_t min_run)
{
    return min_run == 32 ? 32 : 16;
}

#if defined __ARM_FEATURE_MATMUL_INT8
#define INTEGER(name) kern_i8mm_##name
enum { WORD_COLUMNS = 8 };

/** 16 columns of two rows, as products take them. */
WORD_INLINE void load_rows(int8x16_t w[2], const int8_t *row0, const int8_t *row1)
{
    int64x2_t a = (int64x2_t)vld1q_s8(row0), b = (int64x2_t)vld1q_s8(row1);
    w[0] = (int8x16_t)vzip1q_s64(a, b);
    w[1] = (int8x16_t)vzip2q_s64(a, b);
}

/** 16 columns of two rows and four tokens onto the sums of all eight. */
WORD_INLINE void add_products(int32x4_t sums[2], const int8x16_t w[2], const int8x16_t x[4])
{
    for (size_t i = 0; i < 4; i++)
        sums[i % 2] = vmmlaq_s32(sums[i % 2], w[i / 2], x[i]);
}

/** The sums of each row, of the tokens in their order. */
WORD_INLINE void part_rows(int32x4_t sums[2])
{
    int64x2_t a = (int64x2_t)sums[0], b = (int64x2_t)sums[1];
    sums[0] = (int32x4_t)vzip1q_s64(a, b);
    sums[1] = (int32x4_t)vzip2q_s64(a, b);
}

/** Sums of rows 0 and 1, times a number of each row, onto totals. */
WORD_INLINE void add_times(int32x4_t totals[2], const int32x4_t sums[2], int32_t row0, int32_t row1)
{
    int32x4_t factors = vcombine_s32(vdup_n_s32(row0), vdup_n_s32(row1));
    totals[0] = vmlaq_s32(totals[0], sums[0], factors);
    totals[1] = vmlaq_s32(totals[1], sums[1], factors);
}

/** 16 columns of each of four tokens to where products look for them. */
WORD_INLINE void lay_tokens(int8_t *out, const int8x16_t of_token[4])
{
    for (size_t i = 0; i < 4; i += 2) {
        int64x2_t a = (int64x2_t)of_token[i], b = (int64x2_t)of_token[i + 1];
        vst1q_s8(out + 16 * (i / 2), (int8x16_t)vzip1q_s64(a, b));
        vst1q_s8(out + 16 * (i / 2) + 32, (int8x16_t)vzip2q_s64(a, b));
    }
}
#else
enum { WORD_COLUMNS = 4 };

WORD_INLINE void load_rows(int8x16_t w[2], const int8_t *row0, const int8_t *row1)
{
    w[0] = vld1q_s8(row0);
    w[1] = vld1q_s8(row1);
}

#if defined __ARM_FEATURE_DOTPROD
#define INTEGER(name)              kern_dotprod_##name
#define WORD_DOT(sums, x, w, lane) vdotq_laneq_s32(sums, x, w, lane)
#else
#define INTEGER(name)              kern_neon_##name
#define WORD_DOT(sums, x, w, lane) word_dot(sums, x, vdupq_laneq_s32((int32x4_t)(w), lane))

/** What sdot does. */
WORD_INLINE int32x4_t word_dot(int32x4_t sums, int8x16_t x, int32x4_t cells)
{
    int8x16_t w = (int8x16_t)cells;
    int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(w)), high = vmull_high_s8(x, w);
    return vaddq_s32(sums, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
}
#endif

WORD_INLINE void add_products(int32x4_t sums[2], const int8x16_t w[2], const int8x16_t x[4])
{
    for (size_t r = 0; r < 2; r++) {
        sums[r] = WORD_DOT(sums[r], x[0], w[r], 0);
        sums[r] = WORD_DOT(sums[r], x[1], w[r], 1);
        sums[r] = WORD_DOT(sums[r], x[2], w[r], 2);
        sums[r] = WORD_DOT(sums[r], x[3], w[r], 3);
    }
}

WORD_INLINE void add_times(int32x4_t totals[2], const int32x4_t sums[2], int32_t row0, int32_t row1)
{
    totals[0] = vmlaq_n_s32(totals[0], sums[0], row0);
    totals[1] = vmlaq_n_s32(totals[1], sums[1], row1);
}

WORD_INLINE void part_rows(int32x4_t sums[2])
{
    (void)sums;
}

WORD_INLINE void lay_tokens(int8_t *out, const int8x16_t of_token[4])
{
    int32x4x4_t cells;
    for (size_t i = 0; i < 4; i++)
        cells.val[i] = (int32x4_t)of_token[i];
    vst4q_s32((int32_t *)(void *)out, cells);
}
#endif

#endif
