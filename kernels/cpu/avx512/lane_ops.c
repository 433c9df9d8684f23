/* Attention's softmax and the reductions over the vocabulary with AVX-512;
 * kernels/numerics/lanes.h. */
#include <assert.h>
#include <immintrin.h>

#include "kernels/cpu/avx512/fmath.h"
#include "kernels/cpu/avx512/ops_avx512.h"

static_assert(KERN_LANES == 16, "one vector of floats holds the lanes");

/* Which of the lanes see key j. */
static __mmask16 visible_lanes(__m512i begin, __m512i end, size_t j)
{
    __m512i key = _mm512_set1_epi32((int)j);
    return _mm512_mask_cmpgt_epi32_mask(_mm512_cmple_epi32_mask(begin, key), end, key);
}

/* `masked` is a constant at both calls. */
static inline __attribute__((always_inline)) void
softmax_lanes(const struct kern_softmax_block *block, __m512i begin, __m512i end, bool masked)
{
    const __m512 scale = _mm512_set1_ps(block->scale);
    const __m512 minus_infinity = _mm512_set1_ps(-INFINITY);
    __m512 old_max = _mm512_loadu_ps(block->max);
    __m512 max = old_max;
    for (size_t j = 0; j < block->n_keys; j++) {
        float *s = block->s + j * block->stride;
        __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(s), scale);
        _mm512_storeu_ps(s, scaled);
        __mmask16 seen = masked ? visible_lanes(begin, end, j) : (__mmask16)0xffff;
        max = _mm512_mask_max_ps(max, seen, scaled, max); /* keeps max where scaled is NaN */
    }
    __mmask16 something = _mm512_cmp_ps_mask(max, minus_infinity, _CMP_NEQ_UQ);
    __m512 reference = _mm512_maskz_mov_ps(something, max);
    __m512 sum = _mm512_setzero_ps();
    for (size_t j = 0; j < block->n_keys; j++) {
        float *s = block->s + j * block->stride;
        __m512 p = fmath_exp_16xf32(_mm512_sub_ps(_mm512_loadu_ps(s), reference));
        if (masked) {
            p = _mm512_maskz_mov_ps(visible_lanes(begin, end, j), p);
        }
        _mm512_storeu_ps(s, p);
        sum = _mm512_add_ps(sum, p);
    }
    __mmask16 first = _mm512_cmp_ps_mask(old_max, minus_infinity, _CMP_EQ_OQ);
    __m512 rescale = fmath_exp_16xf32(_mm512_sub_ps(old_max, max));
    rescale = _mm512_mask_mov_ps(rescale, first, _mm512_set1_ps(1.0f));
    _mm512_storeu_ps(block->rescale, rescale);
    _mm512_storeu_ps(block->sum, _mm512_fmadd_ps(_mm512_loadu_ps(block->sum), rescale, sum));
    _mm512_storeu_ps(block->max, max);
}

void kern_avx512_softmax_block(const struct kern_softmax_block *block)
{
    __m512i begin = _mm512_loadu_si512(block->begin);
    __m512i end = _mm512_loadu_si512(block->end);
    __mmask16 late = _mm512_cmpgt_epi32_mask(begin, _mm512_setzero_si512());
    __mmask16 early = _mm512_cmplt_epi32_mask(end, _mm512_set1_epi32((int)block->n_keys));
    if (late == 0 && early == 0) {
        softmax_lanes(block, begin, end, false);
    } else {
        softmax_lanes(block, begin, end, true);
    }
}

/* One block of vocabulary rows. */
struct block {
    const float *logits;
    size_t stride;
    size_t n_rows;
};

static struct block block_of(const struct kern_logit_tile *tile, size_t row)
{
    size_t left = tile->n_rows - row;
    return (struct block){tile->logits + row * tile->stride, tile->stride,
                          left < KERN_SCORE_BLOCK ? left : KERN_SCORE_BLOCK};
}

static __m512 block_max(const struct block *b, __m512 max)
{
    for (size_t i = 0; i < b->n_rows; i++) {
        max = _mm512_max_ps(_mm512_loadu_ps(b->logits + i * b->stride), max);
    }
    return max;
}

static __m512d low_half(__m512 x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}

static __m512d high_half(__m512 x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

/* What exponents are taken against, as two vectors of doubles, before and after a block. */
struct references {
    __m512d now[2];
    __m512d rise[2];
};

static struct references references_of(__m512 old_max, __m512 max)
{
    const __m512 minus_infinity = _mm512_set1_ps(-INFINITY);
    __m512 now = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(max, minus_infinity, _CMP_NEQ_UQ), max);
    __mmask16 first = _mm512_cmp_ps_mask(old_max, minus_infinity, _CMP_EQ_OQ);
    __m512 old = _mm512_mask_mov_ps(old_max, first, now);
    struct references r = {{low_half(now), high_half(now)}, {low_half(old), high_half(old)}};
    r.rise[0] = _mm512_sub_pd(r.now[0], r.rise[0]);
    r.rise[1] = _mm512_sub_pd(r.now[1], r.rise[1]);
    return r;
}

static __m512d negated(__m512d x)
{
    return _mm512_xor_pd(x, _mm512_set1_pd(-0.0));
}

/* logit - reference, but not below the lowest; a NaN stays. */
static __m512d difference(__m512d logit, __m512d reference)
{
    return _mm512_max_pd(_mm512_set1_pd(KERN_LOWEST_DIFFERENCE), _mm512_sub_pd(logit, reference));
}

/* Where the maximum rose, the first row of the block that holds it. */
static void update_argmax(int32_t *argmax, const struct block *b, __m512 old_max, __m512 max,
                          int32_t first_row)
{
    __mmask16 missing = _mm512_cmp_ps_mask(max, old_max, _CMP_GT_OQ);
    if (missing == 0) {
        return;
    }
    __m512i found = _mm512_loadu_si512(argmax);
    for (size_t i = 0; i < b->n_rows && missing != 0; i++) {
        __mmask16 here = _mm512_mask_cmp_ps_mask(
            missing, _mm512_loadu_ps(b->logits + i * b->stride), max, _CMP_EQ_OQ);
        found = _mm512_mask_mov_epi32(found, here, _mm512_set1_epi32(first_row + (int32_t)i));
        missing = (__mmask16)(missing & ~here);
    }
    _mm512_storeu_si512(argmax, found);
}

/* exps may be NULL. */
static void update_block(struct kern_score_lanes *state, const struct block *b, int32_t first_row,
                         struct kern_block_exps *exps)
{
    __m512 old_max = _mm512_loadu_ps(state->max);
    __m512 max = block_max(b, old_max);
    update_argmax(state->argmax, b, old_max, max, first_row);
    _mm512_storeu_ps(state->max, max);
    struct references reference = references_of(old_max, max);

    __m512d sum[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
    __m512d moment[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
    for (size_t i = 0; i < b->n_rows; i++) {
        __m512 logit = _mm512_loadu_ps(b->logits + i * b->stride);
        __m512d d0 = difference(low_half(logit), reference.now[0]);
        __m512d d1 = difference(high_half(logit), reference.now[1]);
        __m512d e0 = fmath_exp_8xf64(d0);
        __m512d e1 = fmath_exp_8xf64(d1);
        sum[0] = _mm512_add_pd(sum[0], e0);
        sum[1] = _mm512_add_pd(sum[1], e1);
        moment[0] = _mm512_fmadd_pd(e0, d0, moment[0]);
        moment[1] = _mm512_fmadd_pd(e1, d1, moment[1]);
        if (exps) {
            _mm512_storeu_pd(&exps->exps[i][0], e0);
            _mm512_storeu_pd(&exps->exps[i][8], e1);
        }
    }
    for (size_t h = 0; h < 2; h++) {
        double *to_sum = state->sum + 8 * h;
        double *to_moment = state->moment + 8 * h;
        __m512d rise = reference.rise[h];
        __m512d rescale = fmath_exp_8xf64(negated(rise));
        __m512d old_sum = _mm512_loadu_pd(to_sum);
        __m512d old_moment = _mm512_fnmadd_pd(rise, old_sum, _mm512_loadu_pd(to_moment));
        _mm512_storeu_pd(to_moment, _mm512_fmadd_pd(old_moment, rescale, moment[h]));
        _mm512_storeu_pd(to_sum, _mm512_fmadd_pd(old_sum, rescale, sum[h]));
        if (exps) {
            _mm512_storeu_pd(&exps->rescale[8 * h], rescale);
        }
    }
}

void kern_avx512_score_update(struct kern_score_lanes *state, const struct kern_logit_tile *tile,
                              struct kern_block_exps *exps)
{
    assert(!exps || tile->n_rows <= KERN_SCORE_BLOCK);
    for (size_t row = 0; row < tile->n_rows; row += KERN_SCORE_BLOCK) {
        struct block b = block_of(tile, row);
        update_block(state, &b, tile->first_row + (int32_t)row, exps);
    }
}

void kern_avx512_score_rank(struct kern_rank_lanes *state, const struct kern_logit_tile *tile)
{
    const __m512i one = _mm512_set1_epi32(1);
    __m512 target = _mm512_loadu_ps(state->logit);
    __m512i token = _mm512_loadu_si512(state->token);
    __m512i above = _mm512_loadu_si512(state->above);
    for (size_t i = 0; i < tile->n_rows; i++) {
        __m512 l = _mm512_loadu_ps(tile->logits + i * tile->stride);
        __m512i row = _mm512_set1_epi32(tile->first_row + (int32_t)i);
        __mmask16 more = _mm512_cmp_ps_mask(l, target, _CMP_GT_OQ);
        __mmask16 equal = _mm512_cmp_ps_mask(l, target, _CMP_EQ_OQ);
        __mmask16 counts = more | _mm512_mask_cmplt_epi32_mask(equal, row, token);
        above = _mm512_mask_add_epi32(above, counts, above, one);
    }
    _mm512_storeu_si512(state->above, above);
}
