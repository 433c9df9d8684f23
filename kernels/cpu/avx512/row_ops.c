/* RMSNorm, rotary embedding, gate and scaled addition with AVX-512; kernels/numerics/ops.h. */
#include <immintrin.h>

#include "kernels/cpu/avx512/fmath.h"
#include "kernels/cpu/avx512/ops_avx512.h"

/* A mask for the first n of 16 lanes; all of them if n is larger. */
static __mmask16 first_lanes(size_t n)
{
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1u);
}

static double sum_of_squares(const float *x, size_t n)
{
    __m512d low = _mm512_setzero_pd();
    __m512d high = _mm512_setzero_pd();
    for (size_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_maskz_loadu_ps(first_lanes(n - i), x + i);
        __m512d v_low = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
        __m512d v_high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
        low = _mm512_fmadd_pd(v_low, v_low, low);
        high = _mm512_fmadd_pd(v_high, v_high, high);
    }
    __m512d eight = _mm512_add_pd(low, high);
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

void kern_avx512_rmsnorm(float *y, const float *x, const float *gain, float eps, size_t n)
{
    float inv = (float)(1.0 / sqrt(sum_of_squares(x, n) / (double)n + (double)eps));
    const __m512 inverse = _mm512_set1_ps(inv);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = first_lanes(n - i);
        __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), inverse);
        scaled = _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(lanes, gain + i));
        _mm512_mask_storeu_ps(y + i, lanes, scaled);
    }
}

void kern_avx512_rope_adjacent(float *x, const float *angles, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i += 8) {
        /* a b a b ..., cos sin cos sin ... */
        __mmask16 lanes = first_lanes(2 * (n_pairs - i));
        __m512 ab = _mm512_maskz_loadu_ps(lanes, x + 2 * i);
        __m512 angle = _mm512_maskz_loadu_ps(lanes, angles + 2 * i);
        __m512 cross = _mm512_mul_ps(_mm512_permute_ps(ab, 0xb1), _mm512_movehdup_ps(angle));
        ab = _mm512_fmaddsub_ps(ab, _mm512_moveldup_ps(angle), cross);
        _mm512_mask_storeu_ps(x + 2 * i, lanes, ab);
    }
}

void kern_avx512_rope_halves(float *x, const float *angles, size_t n_pairs)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    for (size_t i = 0; i < n_pairs; i += 16) {
        size_t n = n_pairs - i;
        __mmask16 lanes = first_lanes(n);
        __m512 a = _mm512_maskz_loadu_ps(lanes, x + i);
        __m512 b = _mm512_maskz_loadu_ps(lanes, x + n_pairs + i);
        __m512 low = _mm512_maskz_loadu_ps(first_lanes(2 * n), angles + 2 * i);
        __m512 high =
            _mm512_maskz_loadu_ps(first_lanes(n > 8 ? 2 * n - 16 : 0), angles + 2 * i + 16);
        __m512 c = _mm512_permutex2var_ps(low, even, high);
        __m512 s = _mm512_permutex2var_ps(low, odd, high);
        _mm512_mask_storeu_ps(x + i, lanes, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(x + n_pairs + i, lanes, _mm512_fmadd_ps(b, c, _mm512_mul_ps(a, s)));
    }
}

void kern_avx512_gate(float *gate, const float *up, size_t n)
{
    const __m512 sign = _mm512_set1_ps(-0.0f);
    const __m512 one = _mm512_set1_ps(1.0f);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = first_lanes(n - i);
        __m512 z = _mm512_maskz_loadu_ps(lanes, gate + i);
        __m512 e = fmath_exp_16xf32(_mm512_xor_ps(z, sign));
        __m512 silu = _mm512_div_ps(z, _mm512_add_ps(one, e));
        silu = _mm512_mul_ps(silu, _mm512_maskz_loadu_ps(lanes, up + i));
        _mm512_mask_storeu_ps(gate + i, lanes, silu);
    }
}

void kern_avx512_add_scaled(float *y, const float *x, float share, size_t n)
{
    const __m512 factor = _mm512_set1_ps(share);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = first_lanes(n - i);
        __m512 sum = _mm512_fmadd_ps(factor, _mm512_maskz_loadu_ps(lanes, x + i),
                                     _mm512_maskz_loadu_ps(lanes, y + i));
        _mm512_mask_storeu_ps(y + i, lanes, sum);
    }
}
