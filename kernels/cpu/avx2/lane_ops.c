/* Attention's softmax and the reductions over the vocabulary with AVX2; kernels/numerics/lanes.h.
 */
#include <assert.h>
#include <immintrin.h>

#include "kernels/cpu/avx2/fmath.h"
#include "kernels/cpu/avx2/ops_avx2.h"

enum { GROUP = 8 }; /* lanes that a vector of floats holds */

/* Which of the lanes see key j; used only where some lane does not see all keys. */
static __m256 visible_lanes(__m256i begin, __m256i end, size_t j)
{
    __m256i key = _mm256_set1_epi32((int)j);
    __m256i before = _mm256_cmpgt_epi32(begin, key);
    return _mm256_castsi256_ps(_mm256_andnot_si256(before, _mm256_cmpgt_epi32(end, key)));
}

/* `masked` is a constant at both calls. */
static inline __attribute__((always_inline)) void
softmax_group(const struct kern_softmax_block *block, size_t lane, bool masked)
{
    const __m256 scale = _mm256_set1_ps(block->scale);
    const __m256 minus_infinity = _mm256_set1_ps(-INFINITY);
    __m256i begin = _mm256_loadu_si256((const __m256i *)(block->begin + lane));
    __m256i end = _mm256_loadu_si256((const __m256i *)(block->end + lane));
    __m256 old_max = _mm256_loadu_ps(block->max + lane);
    __m256 max = old_max;
    for (size_t j = 0; j < block->n_keys; j++) {
        float *s = block->s + j * block->stride + lane;
        __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(s), scale);
        _mm256_storeu_ps(s, scaled);
        if (masked) {
            scaled = _mm256_blendv_ps(minus_infinity, scaled, visible_lanes(begin, end, j));
        }
        max = _mm256_max_ps(scaled, max); /* keeps max where scaled is NaN */
    }
    __m256 nothing = _mm256_cmp_ps(max, minus_infinity, _CMP_EQ_OQ);
    __m256 reference = _mm256_andnot_ps(nothing, max);
    __m256 sum = _mm256_setzero_ps();
    for (size_t j = 0; j < block->n_keys; j++) {
        float *s = block->s + j * block->stride + lane;
        __m256 p = fmath_exp_8xf32(_mm256_sub_ps(_mm256_loadu_ps(s), reference));
        if (masked) {
            p = _mm256_and_ps(p, visible_lanes(begin, end, j));
        }
        _mm256_storeu_ps(s, p);
        sum = _mm256_add_ps(sum, p);
    }
    __m256 first = _mm256_cmp_ps(old_max, minus_infinity, _CMP_EQ_OQ);
    __m256 rescale = fmath_exp_8xf32(_mm256_sub_ps(old_max, max));
    rescale = _mm256_blendv_ps(rescale, _mm256_set1_ps(1.0f), first);
    _mm256_storeu_ps(block->rescale + lane, rescale);
    sum = _mm256_fmadd_ps(_mm256_loadu_ps(block->sum + lane), rescale, sum);
    _mm256_storeu_ps(block->sum + lane, sum);
    _mm256_storeu_ps(block->max + lane, max);
}

static bool sees_all(const struct kern_softmax_block *block, size_t lane)
{
    __m256i begin = _mm256_loadu_si256((const __m256i *)(block->begin + lane));
    __m256i end = _mm256_loadu_si256((const __m256i *)(block->end + lane));
    __m256i late = _mm256_cmpgt_epi32(begin, _mm256_setzero_si256());
    __m256i early = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)block->n_keys), end);
    __m256i hidden = _mm256_or_si256(late, early);
    return _mm256_testz_si256(hidden, hidden) != 0;
}

void kern_avx2_softmax_block(const struct kern_softmax_block *block)
{
    for (size_t lane = 0; lane < KERN_LANES; lane += GROUP) {
        if (sees_all(block, lane)) {
            softmax_group(block, lane, false);
        } else {
            softmax_group(block, lane, true);
        }
    }
}

/* One block of vocabulary rows for 8 lanes. */
struct block {
    const float *logits;
    size_t stride;
    size_t n_rows;
};

static struct block block_of(const struct kern_logit_tile *tile, size_t row, size_t lane)
{
    size_t left = tile->n_rows - row;
    return (struct block){tile->logits + row * tile->stride + lane, tile->stride,
                          left < KERN_SCORE_BLOCK ? left : KERN_SCORE_BLOCK};
}

static __m256 block_max(const struct block *b, __m256 max)
{
    for (size_t i = 0; i < b->n_rows; i++) {
        max = _mm256_max_ps(_mm256_loadu_ps(b->logits + i * b->stride), max);
    }
    return max;
}

/* What exponents are taken against, as two vectors of doubles, before and after a block. */
struct references {
    __m256d now[2];
    __m256d rise[2];
};

static struct references references_of(__m256 old_max, __m256 max)
{
    const __m256 minus_infinity = _mm256_set1_ps(-INFINITY);
    __m256 now = _mm256_andnot_ps(_mm256_cmp_ps(max, minus_infinity, _CMP_EQ_OQ), max);
    __m256 old = _mm256_blendv_ps(old_max, now, _mm256_cmp_ps(old_max, minus_infinity, _CMP_EQ_OQ));
    struct references r;
    r.now[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(now));
    r.now[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(now, 1));
    r.rise[0] = _mm256_sub_pd(r.now[0], _mm256_cvtps_pd(_mm256_castps256_ps128(old)));
    r.rise[1] = _mm256_sub_pd(r.now[1], _mm256_cvtps_pd(_mm256_extractf128_ps(old, 1)));
    return r;
}

static __m256d negated(__m256d x)
{
    return _mm256_xor_pd(x, _mm256_set1_pd(-0.0));
}

/* logit - reference, but not below LOWEST; a NaN stays. */
static __m256d difference(__m128 logit, __m256d reference)
{
    __m256d d = _mm256_sub_pd(_mm256_cvtps_pd(logit), reference);
    return _mm256_max_pd(_mm256_set1_pd(KERN_LOWEST_DIFFERENCE), d);
}

/* Where the maximum rose, the first row of the block that holds it. */
static void update_argmax(int32_t *argmax, const struct block *b, __m256 old_max, __m256 max,
                          int32_t first_row)
{
    __m256 missing = _mm256_cmp_ps(max, old_max, _CMP_GT_OQ);
    if (_mm256_movemask_ps(missing) == 0) {
        return;
    }
    __m256 found = _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)argmax));
    for (size_t i = 0; i < b->n_rows && _mm256_movemask_ps(missing) != 0; i++) {
        __m256 equal = _mm256_cmp_ps(_mm256_loadu_ps(b->logits + i * b->stride), max, _CMP_EQ_OQ);
        __m256 row = _mm256_castsi256_ps(_mm256_set1_epi32(first_row + (int32_t)i));
        found = _mm256_blendv_ps(found, row, _mm256_and_ps(equal, missing));
        missing = _mm256_andnot_ps(equal, missing);
    }
    _mm256_storeu_si256((__m256i *)argmax, _mm256_castps_si256(found));
}

/* exps may be NULL. */
static void update_block(struct kern_score_lanes *state, size_t lane, const struct block *b,
                         int32_t first_row, struct kern_block_exps *exps)
{
    __m256 old_max = _mm256_loadu_ps(state->max + lane);
    __m256 max = block_max(b, old_max);
    update_argmax(state->argmax + lane, b, old_max, max, first_row);
    _mm256_storeu_ps(state->max + lane, max);
    struct references reference = references_of(old_max, max);

    __m256d sum[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    __m256d moment[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    for (size_t i = 0; i < b->n_rows; i++) {
        const float *logit = b->logits + i * b->stride;
        for (size_t h = 0; h < 2; h++) {
            __m256d d = difference(_mm_loadu_ps(logit + 4 * h), reference.now[h]);
            __m256d e = fmath_exp_4xf64(d);
            sum[h] = _mm256_add_pd(sum[h], e);
            moment[h] = _mm256_fmadd_pd(e, d, moment[h]);
            if (exps) {
                _mm256_storeu_pd(&exps->exps[i][lane + 4 * h], e);
            }
        }
    }
    for (size_t h = 0; h < 2; h++) {
        double *to_sum = state->sum + lane + 4 * h;
        double *to_moment = state->moment + lane + 4 * h;
        __m256d rise = reference.rise[h];
        __m256d rescale = fmath_exp_4xf64(negated(rise));
        __m256d old_sum = _mm256_loadu_pd(to_sum);
        __m256d old_moment = _mm256_fnmadd_pd(rise, old_sum, _mm256_loadu_pd(to_moment));
        _mm256_storeu_pd(to_moment, _mm256_fmadd_pd(old_moment, rescale, moment[h]));
        _mm256_storeu_pd(to_sum, _mm256_fmadd_pd(old_sum, rescale, sum[h]));
        if (exps) {
            _mm256_storeu_pd(&exps->rescale[lane + 4 * h], rescale);
        }
    }
}

void kern_avx2_score_update(struct kern_score_lanes *state, const struct kern_logit_tile *tile,
                            struct kern_block_exps *exps)
{
    assert(!exps || tile->n_rows <= KERN_SCORE_BLOCK);
    for (size_t row = 0; row < tile->n_rows; row += KERN_SCORE_BLOCK) {
        for (size_t lane = 0; lane < KERN_LANES; lane += GROUP) {
            struct block b = block_of(tile, row, lane);
            update_block(state, lane, &b, tile->first_row + (int32_t)row, exps);
        }
    }
}

void kern_avx2_score_rank(struct kern_rank_lanes *state, const struct kern_logit_tile *tile)
{
    for (size_t lane = 0; lane < KERN_LANES; lane += GROUP) {
        __m256 target = _mm256_loadu_ps(state->logit + lane);
        __m256i token = _mm256_loadu_si256((const __m256i *)(state->token + lane));
        __m256i above = _mm256_loadu_si256((const __m256i *)(state->above + lane));
        for (size_t i = 0; i < tile->n_rows; i++) {
            __m256 l = _mm256_loadu_ps(tile->logits + i * tile->stride + lane);
            __m256i row = _mm256_set1_epi32(tile->first_row + (int32_t)i);
            __m256 more = _mm256_cmp_ps(l, target, _CMP_GT_OQ);
            __m256 equal = _mm256_cmp_ps(l, target, _CMP_EQ_OQ);
            __m256 lower = _mm256_castsi256_ps(_mm256_cmpgt_epi32(token, row));
            __m256 counts = _mm256_or_ps(more, _mm256_and_ps(equal, lower));
            above = _mm256_sub_epi32(above, _mm256_castps_si256(counts)); /* true is -1 */
        }
        _mm256_storeu_si256((__m256i *)(state->above + lane), above);
    }
}
