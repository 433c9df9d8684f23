/*
 * Activations and weights as signed bytes, for products in integers: compiled for NEON alone, for
 * dotprod and for i8mm. kernels/cpu/gemm/rounded.h defines the integers; one of 16 bits is
 * 256 high + low here, and the high one at most 124.
 */
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cpu/neon/integer_words.h"

enum { COLUMNS = KERN_ROUNDED_COLUMNS, HALF = COLUMNS / 2, TOKENS = KERN_ROUNDED_TOKENS };

struct factors {
    float scale, inverse;
};

/** n: columns, a multiple of 16. The bits of infinity and NaN are above those of numbers. */
static inline struct factors choose_factors(const float *x, size_t n, float limit)
{
    uint32x4_t most = vdupq_n_u32(0);
    for (size_t i = 0; i < n; i += 4)
        most = vmaxq_u32(most, (uint32x4_t)vabsq_f32(vld1q_f32(x + i)));
    uint32_t bits = vmaxvq_u32(most);
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    if (bits > 0x7f7fffff)
        return (struct factors){.scale = __builtin_nanf("")};
    if (largest < KERN_ROUNDED_LEAST)
        return (struct factors){0};
    return (struct factors){.scale = largest / limit, .inverse = limit / largest};
}

/** Sixteen columns as integers; what is no number becomes 0. Returns their sum. */
static inline int32_t round_half(const float *x, float inverse, int16x8_t out[2])
{
    for (size_t i = 0; i < 2; i++) {
        int32x4_t a = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 8 * i), inverse));
        int32x4_t b = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 8 * i + 4), inverse));
        out[i] = vcombine_s16(vmovn_s32(a), vmovn_s32(b));
    }
    return vaddlvq_s16(out[0]) + vaddlvq_s16(out[1]);
}

static inline int8x16_t low_bytes(const int16x8_t x[2])
{
    return vcombine_s8(vmovn_s16(x[0]), vmovn_s16(x[1]));
}

static inline int8x16_t high_bytes(const int16x8_t x[2])
{
    return vcombine_s8(vrshrn_n_s16(x[0], 8), vrshrn_n_s16(x[1], 8));
}

static inline float sum_of_squares(const int16x8_t x[2])
{
    float32x4_t sum = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < 2; i++) {
        int32x4_t low = vmull_s16(vget_low_s16(x[i]), vget_low_s16(x[i]));
        int32x4_t high = vmull_high_s16(x[i], x[i]);
        sum = vaddq_f32(sum, vaddq_f32(vcvtq_f32_s32(low), vcvtq_f32_s32(high)));
    }
    return vaddvq_f32(sum);
}

/** Half a chunk of four tokens. bytes: out, of the first plane. squares: what sums of squares come
 * on top of, or NULL. */
static inline void pack_half(const float *const x[4], const struct factors f[4], bool wide,
                             int8_t *bytes, float *sums, float *squares)
{
    int8x16_t first[4], low[4];
    for (size_t t = 0; t < 4; t++) {
        int16x8_t integers[2];
        sums[t] = (float)round_half(x[t], f[t].inverse, integers);
        first[t] = wide ? high_bytes(integers) : low_bytes(integers);
        low[t] = low_bytes(integers);
        if (squares)
            squares[t] += sum_of_squares(integers);
    }
    lay_tokens(bytes, first);
    if (wide)
        lay_tokens(bytes + WORD_CHUNK, low);
}

/** Columns of a block of four tokens, those from `lane` on. chunk: out, whose bytes come first. */
static inline void pack_block(const struct kern_panel_pack *op, size_t k, size_t n, size_t lane,
                              bool wide)
{
    static const float zeros[KERN_INT16_BLOCK];
    const float *x[4];
    struct factors f[4];
    for (size_t t = 0; t < 4; t++) {
        x[t] = lane + t < op->n_lanes ? op->x + (lane + t) * op->x_stride + k : zeros;
        f[t] = choose_factors(x[t], n, (float)op->largest);
    }
    float *squares = NULL;
    if (wide && op->largest == KERN_INT16_LONG_MAX) {
        squares = ((struct kern_int16_chunk *)op->out)[k / COLUMNS].squares + lane;
        memset(squares, 0, 4 * sizeof *squares);
    }
    for (size_t end = k + n; k < end; k += COLUMNS) {
        void *chunk =
            (char *)op->out +
            k / COLUMNS * (wide ? sizeof(struct kern_int16_chunk) : sizeof(struct kern_int8_chunk));
        struct kern_rounded_factors *of =
            wide ? &((struct kern_int16_chunk *)chunk)->of : &((struct kern_int8_chunk *)chunk)->of;
        for (size_t half = 0; half < 2; half++) {
            int8_t *bytes = (int8_t *)chunk + lane / WORD_LANES * WORD_CHUNK * (wide ? 2 : 1) +
                            half * WORD_X + lane % WORD_LANES * WORD_COLUMNS;
            pack_half(x, f, wide, bytes, of->sum[half] + lane, squares);
            for (size_t t = 0; t < 4; t++)
                x[t] += HALF;
        }
        for (size_t t = 0; t < 4; t++) {
            of->sum[2][lane + t] = of->sum[0][lane + t] + of->sum[1][lane + t];
            of->scale[lane + t] = f[t].scale;
        }
    }
}

void INTEGER(int16_pack)(const struct kern_panel_pack *op)
{
    for (size_t k = 0; k < op->n_k; k += KERN_INT16_BLOCK)
        for (size_t lane = 0; lane < TOKENS; lane += 4)
            pack_block(op, k, base_min(op->n_k - k, KERN_INT16_BLOCK), lane, true);
}

void INTEGER(int8_pack)(const struct kern_panel_pack *op)
{
    for (size_t k = 0; k < op->n_k; k += KERN_INT8_BLOCK)
        for (size_t lane = 0; lane < TOKENS; lane += 4)
            pack_block(op, k, KERN_INT8_BLOCK, lane, false);
}

void INTEGER(int16_pack_lanes)(const struct kern_lanes_pack *op)
{
    kern_pack_turned(op, INTEGER(int16_pack));
}

float INTEGER(int16_round)(const float *x, size_t n, int largest, int16_t *integers)
{
    struct factors f = choose_factors(x, n, (float)largest);
    for (size_t i = 0; i < n; i += HALF) {
        int16x8_t rounded[2];
        (void)round_half(x + i, f.inverse, rounded);
        vst1q_s16(integers + i, rounded[0]);
        vst1q_s16(integers + i + 8, rounded[1]);
    }
    return f.scale;
}

/** Magnitudes less 1, so that of 0 it is the largest number. */
static inline uint16x8_t less_one(int16x8_t x)
{
    return vsubq_u16((uint16x8_t)vabsq_s16(x), vdupq_n_u16(1));
}

/**
 * n integers, 16 or 32, as bytes times a factor, which it returns: 1 if they fit, else what
 * Euclid's algorithm finds, with all of them at a time. Quotients are products with a reciprocal of
 * 15 bits, rounded: off by at most 4096 / 2^16 before, so that whole ones are right, and each rest
 * that is not 0 is a smaller factor.
 */
static inline int divide_run(const int16_t *integers, size_t n, int8_t *bytes)
{
    uint16x8_t most = vdupq_n_u16(0), least = vdupq_n_u16(UINT16_MAX);
    for (size_t i = 0; i < n; i += 8) {
        int16x8_t w = vld1q_s16(integers + i);
        most = vmaxq_u16(most, (uint16x8_t)vabsq_s16(w));
        least = vminq_u16(least, less_one(w));
    }
    bool fit = vmaxvq_u16(most) <= INT8_MAX;
    for (int factor = fit ? 1 : vminvq_u16(least) + 1, rest;; factor = rest + 1) {
        int16_t inverse = (int16_t)base_min((size_t)((32768 + factor / 2) / factor), INT16_MAX);
        least = vdupq_n_u16(UINT16_MAX);
        for (size_t i = 0; i < n; i += 8) {
            int16x8_t w = vld1q_s16(integers + i), quotients = vqrdmulhq_n_s16(w, inverse);
            least = vminq_u16(least, less_one(vmlsq_n_s16(w, quotients, (int16_t)factor)));
            vst1_s8(bytes + i, vmovn_s16(quotients));
        }
        rest = vminvq_u16(least);
        if (rest == UINT16_MAX)
            return factor;
    }
}

/** The bytes of a row, then the factors of its runs if it has any, or the high bytes. */
void INTEGER(int16_row)(const int16_t *integers, size_t n_k, const struct kern_integers *format,
                        float *out)
{
    int8_t *bytes = (void *)out;
    int32_t *factors = (void *)(bytes + n_k);
    for (size_t k = 0; k < n_k && word_in_planes(format); k += 8)
        vst1_s8(bytes + n_k + k, vrshrn_n_s16(vld1q_s16(integers + k), 8));
    size_t factor_run = word_factor_run(format);
    for (size_t k = 0; k < n_k && factor_run == 0; k += 8)
        vst1_s8(bytes + k, vmovn_s16(vld1q_s16(integers + k)));
    for (size_t k = 0; k < n_k && factor_run > 0; k += factor_run)
        *factors++ = factor_run == 16 ? divide_run(integers + k, 16, bytes + k)
                                      : divide_run(integers + k, 32, bytes + k);
}

/** Bytes as they are: nothing else of a row is read. */
void INTEGER(int8_row)(const int8_t *integers, size_t n_k, const struct kern_integers *format,
                       float *out)
{
    (void)format;
    memcpy(out, integers, n_k);
}
