/*
 * Activations and weights as signed bytes, for products in integers: compiled for NEON alone, for
 * dotprod and for i8mm. kernels/cpu/gemm/rounded.h defines the integers; one of 16 bits is
 * 256 high + 128 + low here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cpu/neon/integer_words.h"

enum {
    COLUMNS = KERN_ROUNDED_COLUMNS,
    HALF = COLUMNS / 2,
    TOKENS = KERN_ROUNDED_TOKENS,
    PLANE = COLUMNS * TOKENS /* bytes of a chunk */
};

struct factors {
    float scale, inverse;
};

/** Of n columns, a multiple of 16. The bits of infinity and NaN are above those of numbers. */
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
    return vcombine_s8(vshrn_n_s16(x[0], 8), vshrn_n_s16(x[1], 8));
}

/** Half a chunk of four tokens. bytes: out, of the first plane. */
static inline void pack_half(const float *const x[4], const struct factors f[4], bool wide,
                             int8_t *bytes, float *sums)
{
    int8x16_t first[4], low[4];
    for (size_t t = 0; t < 4; t++) {
        int16x8_t integers[2];
        sums[t] = (float)round_half(x[t], f[t].inverse, integers);
        first[t] = wide ? high_bytes(integers) : low_bytes(integers);
        low[t] = veorq_s8(low_bytes(integers), vdupq_n_s8(INT8_MIN));
    }
    lay_tokens(bytes, first);
    if (wide)
        lay_tokens(bytes + PLANE, low);
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
    for (size_t end = k + n; k < end; k += COLUMNS) {
        void *chunk =
            (char *)op->out +
            k / COLUMNS * (wide ? sizeof(struct kern_int16_chunk) : sizeof(struct kern_int8_chunk));
        struct kern_rounded_factors *of =
            wide ? &((struct kern_int16_chunk *)chunk)->of : &((struct kern_int8_chunk *)chunk)->of;
        for (size_t half = 0; half < 2; half++) {
            int8_t *bytes = (int8_t *)chunk + half * PLANE / 2 + lane * HALF;
            pack_half(x, f, wide, bytes, of->sum[half] + lane);
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

/** The largest number that divides n integers; 1 if all are 0. */
static int common_factor(const int16_t *integers, size_t n)
{
    int factor = 0;
    for (size_t i = 0; i < n && factor != 1; i++) {
        int rest = factor ? abs(integers[i]) % factor : abs(integers[i]);
        while (rest != 0) {
            int next = factor % rest;
            factor = rest;
            rest = next;
        }
    }
    return factor ? factor : 1;
}

/** Eight integers, divided by what divides them; inverse: its reciprocal. The quotient is off by
 * less than 2^-15 before it is rounded. */
static inline int16x8_t divide(int16x8_t w, float inverse)
{
    float32x4_t a = vcvtq_f32_s32(vmovl_s16(vget_low_s16(w))), b = vcvtq_f32_s32(vmovl_high_s16(w));
    return vcombine_s16(vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(a, inverse))),
                        vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(b, inverse))));
}

/** The bytes of a row, the factors of each 16 columns if it is wide, and 128 times the sum of each
 * run. */
void INTEGER(int16_row)(const int16_t *integers, size_t n_k, const struct kern_integers *format,
                        float *out)
{
    int8_t *bytes = (void *)out;
    int32_t *factors = (void *)(bytes + n_k), *begins = (void *)(out + n_k / 2);
    size_t factor_run = word_factor_run(format->min_run);
    float inverse = 1.0f;
    memset(begins, 0, n_k / format->run * sizeof *begins);
    for (size_t k = 0; k < n_k; k += HALF) {
        int16x8_t w[2] = {vld1q_s16(integers + k), vld1q_s16(integers + k + 8)};
        begins[k / format->run] += 128 * (vaddlvq_s16(w[0]) + vaddlvq_s16(w[1]));
        if (word_wide(format) && k % factor_run == 0) {
            factors[k / HALF] = common_factor(integers + k, factor_run);
            inverse = 1.0f / (float)factors[k / HALF];
        }
        for (size_t i = 0; i < 2 && inverse != 1.0f; i++)
            w[i] = divide(w[i], inverse);
        vst1q_s8(bytes + k, low_bytes(w));
    }
}
