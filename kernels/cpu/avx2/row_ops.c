/* RMSNorm, rotary embedding, gate and scaled addition with AVX2; kernels/numerics/ops.h. */
#include <immintrin.h>
#include <string.h>

#include "kernels/cpu/avx2/fmath.h"
#include "kernels/cpu/avx2/ops_avx2.h"

/* A mask for the first n of 8 lanes. */
static __m256i first_lanes(size_t n)
{
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), index);
}

/* Add the squares of 16 elements: element i to lane i % 4 of sum[i / 4]. */
static void add_squares(__m256d sum[4], const float *x)
{
    for (int j = 0; j < 4; j++) {
        __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + 4 * j));
        sum[j] = _mm256_fmadd_pd(v, v, sum[j]);
    }
}

static double sum_of_squares(const float *x, size_t n)
{
    __m256d sum[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                      _mm256_setzero_pd()};
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        add_squares(sum, x + i);
    }
    if (i < n) {
        float tail[16] = {0}; /* a square of 0 changes no lane */
        memcpy(tail, x + i, (n - i) * sizeof *x);
        add_squares(sum, tail);
    }
    sum[0] = _mm256_add_pd(sum[0], sum[2]);
    sum[1] = _mm256_add_pd(sum[1], sum[3]);
    sum[0] = _mm256_add_pd(sum[0], sum[1]);
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(sum[0]), _mm256_extractf128_pd(sum[0], 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

void kern_avx2_rmsnorm(float *y, const float *x, const float *gain, float eps, size_t n)
{
    float inv = (float)(1.0 / sqrt(sum_of_squares(x, n) / (double)n + (double)eps));
    const __m256 inverse = _mm256_set1_ps(inv);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), inverse);
        _mm256_storeu_ps(y + i, _mm256_mul_ps(scaled, _mm256_loadu_ps(gain + i)));
    }
    for (; i < n; i++) {
        y[i] = (x[i] * inv) * gain[i];
    }
}

void kern_avx2_rope_adjacent(float *x, const float *angles, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i += 4) {
        /* a b a b ..., cos sin cos sin ... */
        __m256i lanes = first_lanes(n_pairs - i < 4 ? 2 * (n_pairs - i) : 8);
        __m256 ab = _mm256_maskload_ps(x + 2 * i, lanes);
        __m256 angle = _mm256_maskload_ps(angles + 2 * i, lanes);
        __m256 ba = _mm256_permute_ps(ab, 0xb1);
        __m256 cross = _mm256_mul_ps(ba, _mm256_movehdup_ps(angle));
        _mm256_maskstore_ps(x + 2 * i, lanes,
                            _mm256_fmaddsub_ps(ab, _mm256_moveldup_ps(angle), cross));
    }
}

void kern_avx2_rope_halves(float *x, const float *angles, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i += 8) {
        size_t n = n_pairs - i < 8 ? n_pairs - i : 8;
        __m256i lanes = first_lanes(n);
        __m256 a = _mm256_maskload_ps(x + i, lanes);
        __m256 b = _mm256_maskload_ps(x + n_pairs + i, lanes);
        __m256 low = _mm256_maskload_ps(angles + 2 * i, first_lanes(2 * n));
        __m256 high = _mm256_maskload_ps(angles + 2 * i + 8, first_lanes(n > 4 ? 2 * n - 8 : 0));
        /* The shuffles leave pairs 0 1 4 5 2 3 6 7. */
        __m256d cosines = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0x88));
        __m256d sines = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0xdd));
        __m256 c = _mm256_castpd_ps(_mm256_permute4x64_pd(cosines, 0xd8));
        __m256 s = _mm256_castpd_ps(_mm256_permute4x64_pd(sines, 0xd8));
        _mm256_maskstore_ps(x + i, lanes, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        _mm256_maskstore_ps(x + n_pairs + i, lanes, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
    }
}

void kern_avx2_gate(float *gate, const float *up, size_t n)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const __m256 one = _mm256_set1_ps(1.0f);
    for (size_t i = 0; i < n; i += 8) {
        __m256i lanes = first_lanes(n - i < 8 ? n - i : 8);
        __m256 z = _mm256_maskload_ps(gate + i, lanes);
        __m256 e = fmath_exp_8xf32(_mm256_xor_ps(z, sign));
        __m256 silu = _mm256_div_ps(z, _mm256_add_ps(one, e));
        _mm256_maskstore_ps(gate + i, lanes,
                            _mm256_mul_ps(silu, _mm256_maskload_ps(up + i, lanes)));
    }
}

void kern_avx2_add_scaled(float *y, const float *x, float share, size_t n)
{
    const __m256 factor = _mm256_set1_ps(share);
    for (size_t i = 0; i < n; i += 8) {
        __m256i lanes = first_lanes(n - i < 8 ? n - i : 8);
        __m256 sum = _mm256_fmadd_ps(factor, _mm256_maskload_ps(x + i, lanes),
                                     _mm256_maskload_ps(y + i, lanes));
        _mm256_maskstore_ps(y + i, lanes, sum);
    }
}
