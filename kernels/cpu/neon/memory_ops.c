/* The most likely tokens, and recorded rows to and from lanes, with NEON. */
#include "base/arithmetic.h"
#include "kernels/cpu/neon/neon.h"
#include "kernels/cpu/neon/vec.h"
#include "kernels/numerics/ops_scalar.h"

/* Whether some lane has a logit beyond the least of its list, in n rows. */
static bool beats_last(const struct kern_top_lanes *state, const float *logits, size_t stride,
                       size_t n)
{
    enum { N = KERN_LANES / VEC_FLOATS };
    const float *last = state->logit[KERN_TOP_MAX - 1];
    vec_f max[N];
    lanes_f more = vdupq_n_u32(0);
    for (size_t v = 0; v < N; v++)
        max[v] = vld1q_f32(last + v * VEC_FLOATS);
    for (size_t i = 0; i < n; i++) /* max keeps its second operand where the first is NaN */
        for (size_t v = 0; v < N; v++)
            max[v] = V(max_ps)(vld1q_f32(logits + i * stride + v * VEC_FLOATS), max[v]);
    for (size_t v = 0; v < N; v++)
        more |= vcgtq_f32(max[v], vld1q_f32(last + v * VEC_FLOATS));
    return any_lane(more);
}

/* Blocks that change nothing are passed over: soon nearly all of them. */
void kern_neon_score_top(struct kern_top_lanes *state, const struct kern_logit_tile *tile)
{
    for (size_t row = 0; row < tile->n_rows; row += KERN_SCORE_BLOCK) {
        struct kern_logit_tile block = {.logits = tile->logits + row * tile->stride,
                                        .stride = tile->stride,
                                        .n_rows = base_min(tile->n_rows - row, KERN_SCORE_BLOCK),
                                        .first_row = tile->first_row + (int32_t)row};
        if (beats_last(state, block.logits, block.stride, block.n_rows))
            kern_scalar_score_top(state, &block);
    }
}

enum { SQUARE = 8 }; /* rows and tokens at a time */

/* r[i][j] to r[j][i]: three times the first half and the last, element by element. */
static inline void transpose(uint16x8_t r[SQUARE])
{
    for (size_t round = 0; round < 3; round++) {
        uint16x8_t a[SQUARE];
        for (size_t i = 0; i < 4; i++) {
            a[2 * i] = vzip1q_u16(r[i], r[i + 4]);
            a[2 * i + 1] = vzip2q_u16(r[i], r[i + 4]);
        }
        memcpy(r, a, sizeof a);
    }
}

/* Four codes of the lanes from `lane` on: scale * code + floor. */
static inline void decode_four(const struct kern_code_rows *rows, size_t lane, uint16x4_t codes,
                               float *out)
{
    vec_f code = vcvtq_f32_u32(vmovl_u16(codes));
    vst1q_f32(out, vfmaq_f32(vld1q_f32(rows->floor + lane), vld1q_f32(rows->scale + lane), code));
}

static void decode_square(const struct kern_code_rows *rows, const struct kern_decoded *out,
                          size_t row, size_t lane)
{
    uint16x8_t codes[SQUARE];
    for (size_t i = 0; i < SQUARE; i++)
        codes[i] = vld1q_u16(rows->codes[lane + i] + out->first_row + row);
    transpose(codes);
    for (size_t i = 0; i < SQUARE; i++) {
        float *to = out->logits + (row + i) * out->stride + lane;
        decode_four(rows, lane, vget_low_u16(codes[i]), to);
        decode_four(rows, lane + 4, vget_high_u16(codes[i]), to + 4);
    }
}

void kern_neon_decode_codes(const struct kern_code_rows *rows, const struct kern_decoded *out)
{
    size_t row = 0;
    for (; row + SQUARE <= out->n_rows; row += SQUARE)
        for (size_t lane = 0; lane < KERN_LANES; lane += SQUARE)
            decode_square(rows, out, row, lane);
    if (row < out->n_rows)
        kern_scalar_decode_codes(rows,
                                 &(struct kern_decoded){.logits = out->logits + row * out->stride,
                                                        .stride = out->stride,
                                                        .n_rows = out->n_rows - row,
                                                        .first_row = out->first_row + row});
}

/* The codes of 4 lanes. */
static inline uint16x4_t encode(vec_f logit, vec_f floor, vec_f scale)
{
    vec_d x[2], low[2], step[2];
    widen(logit, x);
    widen(floor, low);
    widen(scale, step);
    int32x2_t codes[2];
    for (size_t j = 0; j < 2; j++) {
        vec_d code = vdivq_f64(vsubq_f64(x[j], low[j]), step[j]);
        code = V(min_pd)(code, V(set1_pd)(KERN_CODE_MAX)); /* the latter for a NaN */
        codes[j] = vmovn_s64(vcvtnq_s64_f64(code));
    }
    lanes_f coded = vcgtq_f32(logit, floor) & ~vceqq_f32(scale, vdupq_n_f32(0.0f));
    return vmovn_u32(coded & (lanes_f)vcombine_s32(codes[0], codes[1]));
}

static void encode_square(const struct kern_encoded_rows *rows, const struct kern_logit_tile *tile,
                          size_t row, size_t lane)
{
    uint16x8_t codes[SQUARE];
    for (size_t i = 0; i < SQUARE; i++) {
        const float *logits = tile->logits + (row + i) * tile->stride + lane;
        uint16x4_t half[2];
        for (size_t h = 0; h < 2; h++)
            half[h] = encode(vld1q_f32(logits + 4 * h), vld1q_f32(rows->floor + lane + 4 * h),
                             vld1q_f32(rows->scale + lane + 4 * h));
        codes[i] = vcombine_u16(half[0], half[1]);
    }
    transpose(codes);
    for (size_t i = 0; i < SQUARE && lane + i < rows->n_lanes; i++)
        vst1q_u16(rows->codes[lane + i] + (size_t)tile->first_row + row, codes[i]);
}

void kern_neon_encode_codes(const struct kern_encoded_rows *rows,
                            const struct kern_logit_tile *tile)
{
    size_t row = 0;
    for (; row + SQUARE <= tile->n_rows; row += SQUARE)
        for (size_t lane = 0; lane < rows->n_lanes; lane += SQUARE)
            encode_square(rows, tile, row, lane);
    if (row < tile->n_rows)
        kern_scalar_encode_codes(
            rows, &(struct kern_logit_tile){.logits = tile->logits + row * tile->stride,
                                            .stride = tile->stride,
                                            .n_rows = tile->n_rows - row,
                                            .first_row = tile->first_row + (int32_t)row});
}
