/* Activations and weights as 16-bit integers with AVX2; kernels/cpu/gemm/int16.h defines them. */
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cpu/avx2/gemm/gemm.h"
#include "kernels/cpu/avx2/gemm/transpose.h"

enum { WIDTH = 8, COLUMNS = KERN_INT16_COLUMNS };

/** The bits of the largest magnitude of n, a multiple of 8; with a NaN above those of infinity. */
static inline int32_t largest_bits(const float *x, size_t n)
{
    const __m256i magnitude = _mm256_set1_epi32(INT32_MAX);
    __m256i most = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += WIDTH) {
        __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(x + i));
        most = _mm256_max_epi32(most, _mm256_and_si256(bits, magnitude));
    }
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    __m128i two = _mm_max_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 1)));
}

/** Sixteen integers of two vectors of floats, in their order. */
static inline __m256i to_int16(__m256 first, __m256 last)
{
    __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(first), _mm256_cvtps_epi32(last));
    return _mm256_permute4x64_epi64(packed, 0xd8);
}

/** The scales of eight tokens, and what their integers are made with: x is masked, then
 * multiplied. */
struct factors {
    _Alignas(32) float mask[WIDTH], inverse[WIDTH];
    __m256 scale;
};

/** Sixteen columns of eight tokens. out: of pair i, lanes; returns the tokens' sums. */
static inline __m256i pack_half(const float *x, size_t x_stride, const struct factors *f,
                                int16_t (*out)[KERN_INT16_TOKENS / 2][2])
{
    __m256 m[WIDTH];
    for (size_t i = 0; i < WIDTH; i++, x += x_stride) {
        __m256 mask = _mm256_broadcast_ss(f->mask + i);
        __m256 inverse = _mm256_broadcast_ss(f->inverse + i);
        __m256 first = _mm256_and_ps(_mm256_loadu_ps(x), mask);
        __m256 last = _mm256_and_ps(_mm256_loadu_ps(x + WIDTH), mask);
        m[i] = _mm256_castsi256_ps(
            to_int16(_mm256_mul_ps(first, inverse), _mm256_mul_ps(last, inverse)));
    }
    transpose8(m);
    __m256i sum = _mm256_setzero_si256();
    for (size_t i = 0; i < WIDTH; i++) {
        __m256i pairs = _mm256_castps_si256(m[i]);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        _mm256_store_si256((__m256i *)(void *)out[i], pairs);
    }
    return sum;
}

/** The factors of a block of n columns. */
static inline struct factors choose_factors(const float *x, size_t x_stride, size_t n)
{
    const __m256 limit = _mm256_set1_ps(KERN_INT16_MAX);
    struct factors f;
    _Alignas(32) int32_t largest[WIDTH];
    for (size_t i = 0; i < WIDTH; i++)
        largest[i] = largest_bits(x + i * x_stride, n);
    __m256i bits = _mm256_load_si256((const __m256i *)(const void *)largest);
    __m256 most = _mm256_castsi256_ps(bits);
    __m256 nan = _mm256_castsi256_ps(_mm256_cmpgt_epi32(bits, _mm256_set1_epi32(0x7f7fffff)));
    __m256 counts = _mm256_cmp_ps(most, _mm256_set1_ps(KERN_INT16_LEAST), _CMP_GE_OQ);
    counts = _mm256_andnot_ps(nan, counts);
    _mm256_store_ps(f.mask, counts);
    _mm256_store_ps(f.inverse, _mm256_and_ps(counts, _mm256_div_ps(limit, most)));
    f.scale = _mm256_and_ps(counts, _mm256_div_ps(most, limit));
    f.scale = _mm256_blendv_ps(f.scale, _mm256_set1_ps(__builtin_nanf("")), nan);
    return f;
}

/** 32 columns of eight tokens, which are lanes lane .. lane + 7 of the chunk. */
static inline void pack_chunk(const float *x, size_t x_stride, const struct factors *f,
                              struct kern_int16_chunk *out, size_t lane)
{
    __m256i sums[3];
    for (size_t half = 0; half < 2; half++) {
        void *pairs = out->x[lane / 16][half * WIDTH][lane % 16];
        sums[half] = pack_half(x + half * 16, x_stride, f, pairs);
    }
    sums[2] = _mm256_add_epi32(sums[0], sums[1]);
    for (size_t i = 0; i < 3; i++)
        _mm256_store_ps(out->sum[i] + lane, _mm256_cvtepi32_ps(sums[i]));
    _mm256_store_ps(out->scale + lane, f->scale);
}

/** A block of n columns of eight tokens. */
static void pack_eight(const float *x, size_t x_stride, size_t n, struct kern_int16_chunk *out,
                       size_t lane)
{
    struct factors f = choose_factors(x, x_stride, n);
    for (size_t k = 0; k < n; k += COLUMNS)
        pack_chunk(x + k, x_stride, &f, out + k / COLUMNS, lane);
}

/** As pack_eight(), of fewer tokens, or of none. */
static void pack_rest(const struct kern_int16_panel *op, size_t k, size_t n, size_t lane)
{
    float rest[WIDTH][KERN_INT16_BLOCK];
    for (size_t i = 0; i < WIDTH; i++) {
        if (lane + i < op->n_lanes)
            memcpy(rest[i], op->x + (lane + i) * op->x_stride + k, n * sizeof(float));
        else
            memset(rest[i], 0, n * sizeof(float));
    }
    pack_eight(rest[0], KERN_INT16_BLOCK, n, op->out + k / COLUMNS, lane);
}

void kern_avx2_int16_pack(const struct kern_int16_panel *op)
{
    for (size_t k = 0; k < op->n_k; k += KERN_INT16_BLOCK) {
        size_t n = base_min(op->n_k - k, KERN_INT16_BLOCK), lane = 0;
        for (; lane + WIDTH <= op->n_lanes; lane += WIDTH)
            pack_eight(op->x + lane * op->x_stride + k, op->x_stride, n, op->out + k / COLUMNS,
                       lane);
        for (; lane < KERN_INT16_TOKENS; lane += WIDTH)
            pack_rest(op, k, n, lane);
    }
}

void kern_avx2_int16_row(const float *y, size_t n_k, int16_t *out)
{
    for (size_t k = 0; k < n_k; k += 2 * WIDTH) {
        __m256i integers = to_int16(_mm256_loadu_ps(y + k), _mm256_loadu_ps(y + k + WIDTH));
        _mm256_storeu_si256((__m256i *)(void *)(out + k), integers);
    }
}
