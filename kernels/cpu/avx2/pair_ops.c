/* Two models' logits and the most likely tokens with AVX2; kernels/numerics/pair_lanes.h. */
#include <assert.h>
#include <immintrin.h>

#include "kernels/cpu/avx2/fmath.h"
#include "kernels/cpu/avx2/ops_avx2.h"
#include "kernels/numerics/ops_scalar.h"

enum { GROUP = 4 }; /* lanes that a vector of doubles holds */

static __m256d load_logits(const struct kern_logit_tile *tile, size_t row, size_t lane)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(tile->logits + row * tile->stride + lane));
}

static void fold(double *state, __m256d rescale, __m256d sum)
{
    _mm256_storeu_pd(state, _mm256_fmadd_pd(_mm256_loadu_pd(state), rescale, sum));
}

static void pair_group(struct kern_pair_lanes *state, const struct kern_pair_block *block,
                       size_t lane)
{
    const __m256d minus_infinity = _mm256_set1_pd(-(double)INFINITY);
    const __m256d cut = _mm256_set1_pd(block->cut);
    __m256d cross = _mm256_setzero_pd(), mass = cross, reverse = cross;
    for (size_t i = 0; i < block->base->n_rows; i++) {
        __m256d a = load_logits(block->base, i, lane);
        __m256d b = load_logits(block->other, i, lane);
        __m256d gap = _mm256_sub_pd(a, b);
        __m256d is_cut = _mm256_cmp_pd(a, cut, _CMP_LE_OQ);
        __m256d e = _mm256_andnot_pd(is_cut, _mm256_loadu_pd(&block->base_exps->exps[i][lane]));
        mass = _mm256_add_pd(mass, e);
        cross = _mm256_fmadd_pd(e, _mm256_andnot_pd(is_cut, gap), cross);
        gap = _mm256_andnot_pd(_mm256_cmp_pd(b, minus_infinity, _CMP_EQ_OQ), gap);
        e = _mm256_loadu_pd(&block->other_exps->exps[i][lane]);
        reverse = _mm256_fmadd_pd(e, gap, reverse);
    }
    __m256d rescale = _mm256_loadu_pd(block->base_exps->rescale + lane);
    fold(state->cross + lane, rescale, cross);
    fold(state->mass + lane, rescale, mass);
    fold(state->reverse + lane, _mm256_loadu_pd(block->other_exps->rescale + lane), reverse);
}

void kern_avx2_score_pair(struct kern_pair_lanes *state, const struct kern_pair_block *block)
{
    assert(block->base->n_rows == block->other->n_rows);
    for (size_t lane = 0; lane < KERN_LANES; lane += GROUP)
        pair_group(state, block, lane);
}

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
        size_t left = tile->n_rows - row;
        struct kern_logit_tile block = {.logits = tile->logits + row * tile->stride,
                                        .stride = tile->stride,
                                        .n_rows = left < KERN_SCORE_BLOCK ? left : KERN_SCORE_BLOCK,
                                        .first_row = tile->first_row + (int32_t)row};
        if (beats_last(state, block.logits, block.stride, block.n_rows))
            kern_scalar_score_top(state, &block);
    }
}

static __m256d log_prob(__m256d logit, __m256d shift)
{
    __m256d x = _mm256_sub_pd(logit, shift);
    x = _mm256_max_pd(_mm256_set1_pd(KERN_LOWEST_DIFFERENCE), x); /* a NaN stays */
    return _mm256_min_pd(_mm256_set1_pd(KERN_HIGHEST_LOG_PROB), x);
}

static __m256d js_term(__m256d log_p, __m256d log_q)
{
    const __m256d sign = _mm256_set1_pd(-0.0), one = _mm256_set1_pd(1.0);
    const __m256d half = _mm256_set1_pd(0.5);
    __m256d minus_d = _mm256_or_pd(sign, _mm256_sub_pd(log_p, log_q));
    __m256d x = fmath_exp_4xf64(minus_d);
    __m256d r = _mm256_div_pd(one, _mm256_add_pd(one, x));
    __m256d t = _mm256_mul_pd(_mm256_sub_pd(one, x), r);
    __m256d mean = _mm256_add_pd(half, _mm256_mul_pd(half, x));
    mean = _mm256_mul_pd(mean, fmath_exp_4xf64(_mm256_max_pd(log_p, log_q)));
    __m256d far = _mm256_cmp_pd(t, _mm256_set1_pd(KERN_JS_FAR), _CMP_GT_OQ);
    __m256d minus_square = _mm256_xor_pd(sign, _mm256_mul_pd(t, t));
    __m256d log = fmath_log_near_one_4xf64(
        _mm256_blendv_pd(minus_square, _mm256_fmsub_pd(t, half, half), far));
    __m256d near_f = _mm256_fnmadd_pd(t, minus_d, log);
    __m256d far_f =
        _mm256_mul_pd(_mm256_set1_pd(2.0), _mm256_add_pd(log, _mm256_set1_pd(FMATH_LN2_HIGH_F64)));
    far_f = _mm256_fmadd_pd(minus_d, _mm256_mul_pd(_mm256_add_pd(x, x), r), far_f);
    return _mm256_mul_pd(mean, _mm256_blendv_pd(near_f, far_f, far));
}

void kern_avx2_score_js(struct kern_js_lanes *state, const struct kern_logit_tile *base,
                        const struct kern_logit_tile *other)
{
    assert(base->n_rows == other->n_rows);
    for (size_t lane = 0; lane < KERN_LANES; lane += GROUP) {
        __m256d base_shift = _mm256_loadu_pd(state->base_shift + lane);
        __m256d other_shift = _mm256_loadu_pd(state->other_shift + lane);
        __m256d sum = _mm256_loadu_pd(state->sum + lane);
        for (size_t i = 0; i < base->n_rows; i++) {
            __m256d log_p = log_prob(load_logits(base, i, lane), base_shift);
            __m256d log_q = log_prob(load_logits(other, i, lane), other_shift);
            sum = _mm256_add_pd(sum, js_term(log_p, log_q));
        }
        _mm256_storeu_pd(state->sum + lane, sum);
    }
}
