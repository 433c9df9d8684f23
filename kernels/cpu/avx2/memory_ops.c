/* The most likely tokens, and recorded rows to and from lanes, with AVX2. */
#include "kernels/cpu/avx2/memory_ops.h"

#include <immintrin.h>

#include "base/arithmetic.h"
#include "kernels/numerics/ops_scalar.h"

/* Whether some lane has a logit beyond the least of its list, in n rows. */
static bool beats_last(const struct kern_top_lanes *state, const float *logits, size_t stride,
                       size_t n)
{
    __m256 last[2] = {_mm256_loadu_ps(state->logit[KERN_TOP_MAX - 1]),
                      _mm256_loadu_ps(state->logit[KERN_TOP_MAX - 1] + 8)};
    __m256 max[2] = {last[0], last[1]};
    for (size_t i = 0; i < n; i++) { /* max keeps its second operand where the first is NaN */
        max[0] = _mm256_max_ps(_mm256_loadu_ps(logits + i * stride), max[0]);
        max[1] = _mm256_max_ps(_mm256_loadu_ps(logits + i * stride + 8), max[1]);
    }
    __m256 more = _mm256_or_ps(_mm256_cmp_ps(max[0], last[0], _CMP_GT_OQ),
                               _mm256_cmp_ps(max[1], last[1], _CMP_GT_OQ));
    return _mm256_movemask_ps(more) != 0;
}

/* Blocks that change nothing are passed over: soon nearly all of them. */
void kern_avx2_score_top(struct kern_top_lanes *state, const struct kern_logit_tile *tile)
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

/* r[i][j] to r[j][i], 16-bit numbers. */
static inline void transpose(__m128i r[SQUARE])
{
    __m128i a[SQUARE], b[SQUARE];
    for (size_t i = 0; i < 4; i++) { /* pairs of rows i and i + 4, token by token */
        a[2 * i] = _mm_unpacklo_epi16(r[i], r[i + 4]);
        a[2 * i + 1] = _mm_unpackhi_epi16(r[i], r[i + 4]);
    }
    for (size_t i = 0; i < 4; i++) {
        b[2 * i] = _mm_unpacklo_epi16(a[i], a[i + 4]);
        b[2 * i + 1] = _mm_unpackhi_epi16(a[i], a[i + 4]);
    }
    for (size_t i = 0; i < 4; i++) {
        r[2 * i] = _mm_unpacklo_epi16(b[i], b[i + 4]);
        r[2 * i + 1] = _mm_unpackhi_epi16(b[i], b[i + 4]);
    }
}

static void decode_square(const struct kern_code_rows *rows, const struct kern_decoded *out,
                          size_t row, size_t lane)
{
    __m256 scale = _mm256_loadu_ps(rows->scale + lane);
    __m256 floor = _mm256_loadu_ps(rows->floor + lane);
    __m128i codes[SQUARE];
    for (size_t i = 0; i < SQUARE; i++) {
        const uint16_t *from = rows->codes[lane + i] + out->first_row + row;
        codes[i] = _mm_loadu_si128((const __m128i *)from);
    }
    transpose(codes);
    for (size_t i = 0; i < SQUARE; i++) {
        __m256 code = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(codes[i]));
        _mm256_storeu_ps(out->logits + (row + i) * out->stride + lane,
                         _mm256_fmadd_ps(scale, code, floor));
    }
}

void kern_avx2_decode_codes(const struct kern_code_rows *rows, const struct kern_decoded *out)
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
static __m128i encode(__m128 logit, __m128 floor, __m128 scale)
{
    __m128 coded = _mm_and_ps(_mm_cmp_ps(logit, floor, _CMP_GT_OQ),
                              _mm_cmp_ps(scale, _mm_setzero_ps(), _CMP_NEQ_UQ));
    __m256d code = _mm256_sub_pd(_mm256_cvtps_pd(logit), _mm256_cvtps_pd(floor));
    code = _mm256_div_pd(code, _mm256_cvtps_pd(scale));
    code = _mm256_min_pd(code, _mm256_set1_pd(KERN_CODE_MAX)); /* the latter for a NaN */
    return _mm_and_si128(_mm_castps_si128(coded), _mm256_cvtpd_epi32(code));
}

static void encode_square(const struct kern_encoded_rows *rows, const struct kern_logit_tile *tile,
                          size_t row, size_t lane)
{
    __m128i codes[SQUARE];
    for (size_t i = 0; i < SQUARE; i++) {
        const float *logits = tile->logits + (row + i) * tile->stride + lane;
        __m128i half[2];
        for (size_t h = 0; h < 2; h++)
            half[h] = encode(_mm_loadu_ps(logits + 4 * h), _mm_loadu_ps(rows->floor + lane + 4 * h),
                             _mm_loadu_ps(rows->scale + lane + 4 * h));
        codes[i] = _mm_packus_epi32(half[0], half[1]);
    }
    transpose(codes);
    for (size_t i = 0; i < SQUARE && lane + i < rows->n_lanes; i++) {
        uint16_t *to = rows->codes[lane + i] + (size_t)tile->first_row + row;
        _mm_storeu_si128((__m128i *)to, codes[i]);
    }
}

void kern_avx2_encode_codes(const struct kern_encoded_rows *rows,
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
