/**
 * Products of bytes, for the kernels of integers in each of the three sets: by smmla (i8mm), by
 * sdot (dotprod), or by multiplications of bytes.
 *
 * A group is three pairs of rows times eight tokens. Its sums are four vectors for each pair.
 * Vector i is of half i % 2 of the tokens and of row i / 2, or with smmla of both rows of pair i /
 * 4, of tokens 0 and 1 or 2 and 3 of the half, i % 4 / 2. Operands lie as products take them, in
 * cells of WORD_COLUMNS columns: of each 16 columns all rows are WORD_W bytes, and all tokens are
 * WORD_X bytes.
 */
#ifndef KERNELS_CPU_NEON_INTEGER_WORDS_H
#define KERNELS_CPU_NEON_INTEGER_WORDS_H

#include <arm_neon.h>

#include "kernels/cpu/neon/neon.h"

#define WORD_INLINE static inline __attribute__((always_inline, unused))

enum {
    WORD_PAIRS = 3,
    WORD_ROWS = 2 * WORD_PAIRS,
    WORD_VECTORS = 4 * WORD_PAIRS,
    WORD_LANES = 8,
    WORD_W = 16 * WORD_ROWS,
    WORD_X = 16 * WORD_LANES,
    WORD_CHUNK = 2 * WORD_X /* bytes of a plane of a chunk of eight tokens */
};

/** Attention's integers, which are of no type, lie as 256 high + low: all low bytes of a row, then
 * the high ones. */
WORD_INLINE bool word_in_planes(const struct kern_integers *format)
{
    return format->type == GGUF_TYPE_F32;
}

/** Columns that share a factor where weights are beyond a byte: they lie as bytes, and a factor of
 * each 16 or 32 columns. 0: they are not. */
WORD_INLINE size_t word_factor_run(const struct kern_integers *format)
{
    bool wide = format->run == 64 && format->largest > INT8_MAX && !word_in_planes(format);
    return wide ? kern_integers_find(format->type, 8)->run : 0;
}

/** A vector of zeros that is not kept in a register for later ones. */
WORD_INLINE float32x4_t word_zero(void)
{
    float32x4_t zeros;
    __asm__ volatile("movi %0.2d, #0" : "=w"(zeros));
    return zeros;
}

/** Have a pointer moved where this is, and by the instruction that has loaded from it. */
WORD_INLINE void word_move(const int8_t **bytes, size_t n)
{
    *bytes += n;
    __asm__ volatile("" : "+r"(*bytes));
}

#if defined __ARM_FEATURE_MATMUL_INT8
#define INTEGER(name) kern_i8mm_##name
enum {
    WORD_COLUMNS = 8,
    WORD_TIMES = 2,   /* that a number of a row is beside itself */
    WORD_NUMBERS = 12 /* of all rows */
};

/** What vector i is multiplied with: numbers of its rows, of its tokens. */
WORD_INLINE float32x4_t of_rows(const float *numbers, size_t i)
{
    return vld1q_f32(numbers + i / 4 * 4);
}

WORD_INLINE float32x4_t of_tokens(const float *numbers, size_t i)
{
    float64x2_t four = (float64x2_t)vld1q_f32(numbers + i % 2 * 4);
    return (float32x4_t)(i % 4 < 2 ? vdupq_laneq_f64(four, 0) : vdupq_laneq_f64(four, 1));
}

/** 16 columns of a pair of rows to where products look for them. */
WORD_INLINE void lay_rows(int8_t *out, size_t pair, const int8_t *row0, const int8_t *row1)
{
    int64x2_t a = (int64x2_t)vld1q_s8(row0), b = (int64x2_t)vld1q_s8(row1);
    vst1q_s8(out + 16 * pair, (int8x16_t)vzip1q_s64(a, b));
    vst1q_s8(out + 16 * pair + WORD_W / 2, (int8x16_t)vzip2q_s64(a, b));
}

/** 16 columns of each of four tokens to where products look for them. */
WORD_INLINE void lay_tokens(int8_t *out, const int8x16_t of_token[4])
{
    for (size_t i = 0; i < 4; i += 2) {
        int64x2_t a = (int64x2_t)of_token[i], b = (int64x2_t)of_token[i + 1];
        vst1q_s8(out + 16 * (i / 2), (int8x16_t)vzip1q_s64(a, b));
        vst1q_s8(out + 16 * (i / 2) + WORD_X / 2, (int8x16_t)vzip2q_s64(a, b));
    }
}

/** 16 columns onto the sums, from where w and x are, which then are past them. */
WORD_INLINE void add_products(int32x4_t *sums, const int8_t **w, const int8_t **x)
{
    for (size_t cell = 0; cell < 2; cell++) {
        int8x16x4_t tokens = vld1q_s8_x4(*x);
        word_move(x, WORD_X / 2);
        int8x16x3_t rows = vld1q_s8_x3(*w);
        word_move(w, WORD_W / 2);
        for (size_t i = 0; i < WORD_VECTORS; i++)
            sums[i] = vmmlaq_s32(sums[i], rows.val[i / 4], tokens.val[i % 2 * 2 + i % 4 / 2]);
    }
}

/** The vectors of a pair, from or to: row 0, tokens 0 to 3 and 4 to 7, row 1 likewise. */
WORD_INLINE void part_rows(float32x4_t v[4])
{
    for (size_t i = 0; i < 2; i++) {
        float64x2_t a = (float64x2_t)v[i], b = (float64x2_t)v[i + 2];
        v[i] = (float32x4_t)vzip1q_f64(a, b);
        v[i + 2] = (float32x4_t)vzip2q_f64(a, b);
    }
}
#else
enum { WORD_COLUMNS = 4, WORD_TIMES = 1, WORD_NUMBERS = 8 };

WORD_INLINE float32x4_t of_rows(const float *numbers, size_t i)
{
    return vdupq_n_f32(vld1q_f32(numbers + i / 8 * 4)[i / 2 % 4]);
}

WORD_INLINE float32x4_t of_tokens(const float *numbers, size_t i)
{
    return vld1q_f32(numbers + i % 2 * 4);
}

WORD_INLINE void lay_rows(int8_t *out, size_t pair, const int8_t *row0, const int8_t *row1)
{
    vst1q_s8(out + 32 * pair, vld1q_s8(row0));
    vst1q_s8(out + 32 * pair + 16, vld1q_s8(row1));
}

WORD_INLINE void lay_tokens(int8_t *out, const int8x16_t of_token[4])
{
    for (size_t i = 0; i < 2; i++) {
        const int32x4_t *t = (const int32x4_t *)of_token;
        int64x2_t a = (int64x2_t)(i ? vtrn2q_s32(t[0], t[1]) : vtrn1q_s32(t[0], t[1]));
        int64x2_t b = (int64x2_t)(i ? vtrn2q_s32(t[2], t[3]) : vtrn1q_s32(t[2], t[3]));
        vst1q_s8(out + 32 * i, (int8x16_t)vzip1q_s64(a, b));
        vst1q_s8(out + 32 * i + 64, (int8x16_t)vzip2q_s64(a, b));
    }
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

#define WORD_STEP(lane)                                                                            \
    tokens = vld1q_s8_x2(*x);                                                                      \
    word_move(x, WORD_X / 4);                                                                      \
    for (size_t i = 0; i < WORD_VECTORS; i++)                                                      \
    sums[i] = WORD_DOT(sums[i], tokens.val[i % 2], rows[i / 2], lane)

WORD_INLINE void add_products(int32x4_t *sums, const int8_t **w, const int8_t **x)
{
    int8x16x3_t first = vld1q_s8_x3(*w);
    word_move(w, WORD_W / 2);
    int8x16x3_t last = vld1q_s8_x3(*w);
    word_move(w, WORD_W / 2);
    const int8x16_t rows[] = {first.val[0], first.val[1], first.val[2],
                              last.val[0],  last.val[1],  last.val[2]};
    int8x16x2_t tokens;
    WORD_STEP(0);
    WORD_STEP(1);
    WORD_STEP(2);
    WORD_STEP(3);
}

WORD_INLINE void part_rows(float32x4_t v[4])
{
    (void)v;
}
#endif

#endif
