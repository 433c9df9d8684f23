/* Two models' logits with AVX-512; kernels/numerics/pair_lanes.h. */
#include <assert.h>
#include <immintrin.h>

#include "kernels/cpu/avx512/fmath.h"
#include "kernels/cpu/avx512/ops_avx512.h"

enum { GROUP = 8 }; /* lanes that a vector of doubles holds */

static __m512d load_logits(const struct kern_logit_tile *tile, size_t row, size_t lane)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(tile->logits + row * tile->stride + lane));
}

static void fold(double *state, __m512d rescale, __m512d sum)
{
    _mm512_storeu_pd(state, _mm512_fmadd_pd(_mm512_loadu_pd(state), rescale, sum));
}

static void pair_group(struct kern_pair_lanes *state, const struct kern_pair_block *block,
                       size_t lane)
{
    const __m512d minus_infinity = _mm512_set1_pd(-(double)INFINITY);
    const __m512d cut = _mm512_set1_pd(block->cut);
    __m512d cross = _mm512_setzero_pd(), mass = cross, reverse = cross;
    for (size_t i = 0; i < block->base->n_rows; i++) {
        __m512d a = load_logits(block->base, i, lane);
        __m512d b = load_logits(block->other, i, lane);
        __m512d gap = _mm512_sub_pd(a, b);
        __mmask8 kept = _mm512_cmp_pd_mask(a, cut, _CMP_NLE_UQ);
        __m512d e = _mm512_maskz_loadu_pd(kept, &block->base_exps->exps[i][lane]);
        mass = _mm512_add_pd(mass, e);
        cross = _mm512_fmadd_pd(e, _mm512_maskz_mov_pd(kept, gap), cross);
        gap = _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(b, minus_infinity, _CMP_NEQ_UQ), gap);
        e = _mm512_loadu_pd(&block->other_exps->exps[i][lane]);
        reverse = _mm512_fmadd_pd(e, gap, reverse);
    }
    __m512d rescale = _mm512_loadu_pd(block->base_exps->rescale + lane);
    fold(state->cross + lane, rescale, cross);
    fold(state->mass + lane, rescale, mass);
    fold(state->reverse + lane, _mm512_loadu_pd(block->other_exps->rescale + lane), reverse);
}

void kern_avx512_score_pair(struct kern_pair_lanes *state, const struct kern_pair_block *block)
{
    assert(block->base->n_rows == block->other->n_rows);
    for (size_t lane = 0; lane < KERN_LANES; lane += GROUP)
        pair_group(state, block, lane);
}

static __m512d log_prob(__m512d logit, __m512d shift)
{
    __m512d x = _mm512_sub_pd(logit, shift);
    x = _mm512_max_pd(_mm512_set1_pd(KERN_LOWEST_DIFFERENCE), x); /* a NaN stays */
    return _mm512_min_pd(_mm512_set1_pd(KERN_HIGHEST_LOG_PROB), x);
}

static __m512d js_term(__m512d log_p, __m512d log_q)
{
    const __m512d sign = _mm512_set1_pd(-0.0), one = _mm512_set1_pd(1.0);
    const __m512d half = _mm512_set1_pd(0.5);
    __m512d minus_d = _mm512_or_pd(sign, _mm512_sub_pd(log_p, log_q));
    __m512d x = fmath_exp_8xf64(minus_d);
    __m512d r = _mm512_div_pd(one, _mm512_add_pd(one, x));
    __m512d t = _mm512_mul_pd(_mm512_sub_pd(one, x), r);
    __m512d mean = _mm512_add_pd(half, _mm512_mul_pd(half, x));
    mean = _mm512_mul_pd(mean, fmath_exp_8xf64(_mm512_max_pd(log_p, log_q)));
    __mmask8 far = _mm512_cmp_pd_mask(t, _mm512_set1_pd(KERN_JS_FAR), _CMP_GT_OQ);
    __m512d minus_square = _mm512_xor_pd(sign, _mm512_mul_pd(t, t));
    __m512d log = fmath_log_near_one_8xf64(
        _mm512_mask_blend_pd(far, minus_square, _mm512_fmsub_pd(t, half, half)));
    __m512d near_f = _mm512_fnmadd_pd(t, minus_d, log);
    __m512d far_f =
        _mm512_mul_pd(_mm512_set1_pd(2.0), _mm512_add_pd(log, _mm512_set1_pd(FMATH_LN2_HIGH_F64)));
    far_f = _mm512_fmadd_pd(minus_d, _mm512_mul_pd(_mm512_add_pd(x, x), r), far_f);
    return _mm512_mul_pd(mean, _mm512_mask_blend_pd(far, near_f, far_f));
}

void kern_avx512_score_js(struct kern_js_lanes *state, const struct kern_logit_tile *base,
                          const struct kern_logit_tile *other)
{
    assert(base->n_rows == other->n_rows);
    for (size_t lane = 0; lane < KERN_LANES; lane += GROUP) {
        __m512d base_shift = _mm512_loadu_pd(state->base_shift + lane);
        __m512d other_shift = _mm512_loadu_pd(state->other_shift + lane);
        __m512d sum = _mm512_loadu_pd(state->sum + lane);
        for (size_t i = 0; i < base->n_rows; i++) {
            __m512d log_p = log_prob(load_logits(base, i, lane), base_shift);
            __m512d log_q = log_prob(load_logits(other, i, lane), other_shift);
            sum = _mm512_add_pd(sum, js_term(log_p, log_q));
        }
        _mm512_storeu_pd(state->sum + lane, sum);
    }
}
