/* Activations and weights as integers with AVX2; kernels/cpu/gemm/rounded.h defines them. */
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cpu/avx2/gemm/gemm.h"
#include "kernels/cpu/avx2/gemm/transpose.h"

enum { WIDTH = 8, COLUMNS = KERN_ROUNDED_COLUMNS, SPAN = 256 };

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

/** 32 integers of four vectors of floats, in their order. */
static inline __m256i to_int8(__m256 a, __m256 b, __m256 c, __m256 d)
{
    __m256i first = _mm256_packs_epi32(_mm256_cvtps_epi32(a), _mm256_cvtps_epi32(b));
    __m256i last = _mm256_packs_epi32(_mm256_cvtps_epi32(c), _mm256_cvtps_epi32(d));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(first, last), order);
}

/** The scales of eight tokens, and what their integers are made with: x is masked, then
 * multiplied. */
struct factors {
    _Alignas(32) float mask[WIDTH], inverse[WIDTH];
    __m256 scale;
};

/** A number of eight tokens at a column, to be rounded. */
static inline __m256 scaled(const float *x, const struct factors *f, size_t token)
{
    __m256 masked = _mm256_and_ps(_mm256_loadu_ps(x), _mm256_broadcast_ss(f->mask + token));
    return _mm256_mul_ps(masked, _mm256_broadcast_ss(f->inverse + token));
}

/** Cells of eight tokens side by side; out: of the first cell, lanes. */
static inline void store_cells(__m256 m[WIDTH], void *out)
{
    transpose8(m);
    for (size_t i = 0; i < WIDTH; i++)
        _mm256_store_ps((float *)out + i * KERN_ROUNDED_TOKENS / 2, m[i]);
}

/** Sixteen columns of eight tokens in 16 bits; returns the tokens' sums. begins: out, of eight.
 * squares: their sums come on top, where it is not NULL. */
static inline __m256i pack_half(const float *x, size_t x_stride, const struct factors *f, void *out,
                                int32_t *begins, __m256 *squares)
{
    __m256 m[WIDTH];
    for (size_t i = 0; i < WIDTH; i++, x += x_stride)
        m[i] = _mm256_castsi256_ps(to_int16(scaled(x, f, i), scaled(x + WIDTH, f, i)));
    store_cells(m, out);
    __m256i sum = _mm256_setzero_si256(), begin = _mm256_setzero_si256();
    for (size_t i = 0; i < WIDTH; i += 2) {
        __m256i a = _mm256_castps_si256(m[i]), b = _mm256_castps_si256(m[i + 1]);
        const __m256i ones = _mm256_set1_epi16(1);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a, ones));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(b, ones));
        if (i < KERN_ROUNDED_PAIRED)
            begin = _mm256_sub_epi32(begin, _mm256_madd_epi16(a, b));
        if (squares) {
            __m256 first = _mm256_cvtepi32_ps(_mm256_madd_epi16(a, a));
            __m256 second = _mm256_cvtepi32_ps(_mm256_madd_epi16(b, b));
            *squares = _mm256_add_ps(*squares, _mm256_add_ps(first, second));
        }
    }
    _mm256_store_si256((__m256i *)(void *)begins, begin);
    return sum;
}

/** The sums of the products of four pairs of bytes of eight tokens; `a` has no byte below 0. */
static inline __m256i multiply_bytes(__m256i a, __m256i b)
{
    __m256i low = _mm256_madd_epi16(_mm256_and_si256(a, _mm256_set1_epi16(0xff)),
                                    _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
    __m256i high = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
    return _mm256_add_epi32(low, high);
}

/** 32 columns of eight tokens in 8 bits. sums: out, of columns 0 to 15 and of the others. */
static inline void pack_bytes(const float *x, size_t x_stride, const struct factors *f,
                              struct kern_int8_chunk *out, size_t lane, __m256i sums[2])
{
    __m256 m[WIDTH];
    for (size_t i = 0; i < WIDTH; i++, x += x_stride)
        m[i] =
            _mm256_castsi256_ps(to_int8(scaled(x, f, i), scaled(x + WIDTH, f, i),
                                        scaled(x + 2 * WIDTH, f, i), scaled(x + 3 * WIDTH, f, i)));
    transpose8(m);
    for (size_t i = 0; i < 2; i++)
        sums[i] = _mm256_setzero_si256();
    __m256i begins[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()}, before = begins[0];
    for (size_t i = 0; i < WIDTH; i++) {
        __m256i four = _mm256_castps_si256(m[i]);
        __m256i two = _mm256_maddubs_epi16(_mm256_set1_epi8(1), four);
        sums[i / 4] = _mm256_add_epi32(sums[i / 4], _mm256_madd_epi16(two, _mm256_set1_epi16(1)));
        if (i % 2 && i < KERN_ROUNDED_PAIRED)
            begins[i / 4] = _mm256_sub_epi32(begins[i / 4], multiply_bytes(before, four));
        before = _mm256_xor_si256(four, _mm256_set1_epi8((char)KERN_INT8_OFFSET));
        _mm256_store_si256((__m256i *)(void *)out->x[lane / 16][i][lane % 16], before);
    }
    for (size_t i = 0; i < 2; i++)
        _mm256_store_si256((__m256i *)(void *)(out->begins[i] + lane), begins[i]);
}

/** The factors of blocks of eight tokens whose largest magnitudes have these bits. */
static inline struct factors choose_factors(const int32_t *largest, float most_integer)
{
    const __m256 limit = _mm256_set1_ps(most_integer);
    struct factors f;
    __m256i bits = _mm256_load_si256((const __m256i *)(const void *)largest);
    __m256 most = _mm256_castsi256_ps(bits);
    __m256 nan = _mm256_castsi256_ps(_mm256_cmpgt_epi32(bits, _mm256_set1_epi32(0x7f7fffff)));
    __m256 counts = _mm256_cmp_ps(most, _mm256_set1_ps(KERN_ROUNDED_LEAST), _CMP_GE_OQ);
    counts = _mm256_andnot_ps(nan, counts);
    _mm256_store_ps(f.mask, counts);
    _mm256_store_ps(f.inverse, _mm256_and_ps(counts, _mm256_div_ps(limit, most)));
    f.scale = _mm256_and_ps(counts, _mm256_div_ps(most, limit));
    f.scale = _mm256_blendv_ps(f.scale, _mm256_set1_ps(__builtin_nanf("")), nan);
    return f;
}

/** What comes with the integers of eight tokens of a chunk; sums: of its halves. */
static inline void store_factors(struct kern_rounded_factors *out, size_t lane,
                                 const struct factors *f, const __m256i sums[2])
{
    const __m256i all[3] = {sums[0], sums[1], _mm256_add_epi32(sums[0], sums[1])};
    for (size_t i = 0; i < 3; i++)
        _mm256_store_ps(out->sum[i] + lane, _mm256_cvtepi32_ps(all[i]));
    _mm256_store_ps(out->scale + lane, f->scale);
}

/** A block of n columns of eight tokens, which are lanes lane .. lane + 7 of chunk `index`. */
typedef void pack_eight_fn(const float *x, size_t x_stride, size_t n, const struct factors *f,
                           void *chunks, size_t index, size_t lane);

static inline __attribute__((always_inline)) void pack_words(const float *x, size_t x_stride,
                                                             size_t n, const struct factors *f,
                                                             struct kern_int16_chunk *out,
                                                             size_t lane, bool squared)
{
    struct kern_int16_chunk *first = out;
    __m256 squares = _mm256_setzero_ps();
    for (size_t k = 0; k < n; k += COLUMNS, out++) {
        __m256i sums[2];
        for (size_t half = 0; half < 2; half++)
            sums[half] = pack_half(x + k + half * 16, x_stride, f,
                                   out->x[lane / 16][half * WIDTH][lane % 16],
                                   out->begins[half] + lane, squared ? &squares : NULL);
        store_factors(&out->of, lane, f, sums);
    }
    if (squared)
        _mm256_store_ps(first->squares + lane, squares);
}

static inline void pack_eight_int16(const float *x, size_t x_stride, size_t n,
                                    const struct factors *f, void *chunks, size_t index,
                                    size_t lane)
{
    pack_words(x, x_stride, n, f, (struct kern_int16_chunk *)chunks + index, lane, false);
}

static inline void pack_eight_long(const float *x, size_t x_stride, size_t n,
                                   const struct factors *f, void *chunks, size_t index, size_t lane)
{
    pack_words(x, x_stride, n, f, (struct kern_int16_chunk *)chunks + index, lane, true);
}

static inline void pack_eight_int8(const float *x, size_t x_stride, size_t n,
                                   const struct factors *f, void *chunks, size_t index, size_t lane)
{
    (void)n;
    struct kern_int8_chunk *out = (struct kern_int8_chunk *)chunks + index;
    __m256i sums[2];
    pack_bytes(x, x_stride, f, out, lane, sums);
    store_factors(&out->of, lane, f, sums);
}

/** Eight tokens as pack_eight takes them, some of which may be absent. */
static inline void pack_rest(const struct kern_panel_pack *op, size_t k, size_t n, size_t lane,
                             const struct factors *f, pack_eight_fn *pack_eight)
{
    float rest[WIDTH][KERN_INT16_BLOCK];
    for (size_t i = 0; i < WIDTH; i++)
        if (lane + i < op->n_lanes)
            memcpy(rest[i], op->x + (lane + i) * op->x_stride + k, n * sizeof(float));
        else
            memset(rest[i], 0, n * sizeof(float));
    pack_eight(rest[0], KERN_INT16_BLOCK, n, f, op->out, k / COLUMNS, lane);
}

/** The bits of the largest magnitudes of each block, of tokens side by side. */
struct largest {
    _Alignas(32) int32_t of_block[SPAN / COLUMNS][KERN_ROUNDED_TOKENS];
};

/** The largest of the blocks of columns [begin, end) of all tokens; where there is no token they
 * stay. */
static inline void find_largest(const struct kern_panel_pack *op, size_t begin, size_t end,
                                size_t block, struct largest *out)
{
    for (size_t lane = 0; lane < op->n_lanes; lane++)
        for (size_t k = begin; k < end; k += block)
            out->of_block[(k - begin) / block][lane] =
                largest_bits(op->x + lane * op->x_stride + k, base_min(end - k, block));
}

/** A token's columns are read first a span at a time: in their order, as the processor expects. */
static inline __attribute__((always_inline)) void pack(const struct kern_panel_pack *op,
                                                       size_t block, pack_eight_fn *pack_eight)
{
    struct largest largest = {0};
    for (size_t k = 0; k < op->n_k; k += block) {
        if (k % SPAN == 0)
            find_largest(op, k, base_min(op->n_k, k + SPAN), block, &largest);
        size_t n = base_min(op->n_k - k, block);
        for (size_t lane = 0; lane < KERN_ROUNDED_TOKENS; lane += WIDTH) {
            const int32_t *bits = largest.of_block[k % SPAN / block] + lane;
            struct factors f = choose_factors(bits, (float)op->largest);
            if (lane + WIDTH <= op->n_lanes)
                pack_eight(op->x + lane * op->x_stride + k, op->x_stride, n, &f, op->out,
                           k / COLUMNS, lane);
            else
                pack_rest(op, k, n, lane, &f, pack_eight);
        }
    }
}

void kern_avx2_int16_pack(const struct kern_panel_pack *op)
{
    if (op->largest == KERN_INT16_LONG_MAX)
        pack(op, KERN_INT16_BLOCK, pack_eight_long);
    else
        pack(op, KERN_INT16_BLOCK, pack_eight_int16);
}

void kern_avx2_int8_pack(const struct kern_panel_pack *op)
{
    pack(op, KERN_INT8_BLOCK, pack_eight_int8);
}

void kern_avx2_words_pack(const struct kern_panel_pack *op)
{
    pack(op, KERN_INT8_BLOCK, pack_eight_int16);
}

/** The sum of four numbers of 32 bits. */
static inline int32_t add_four(__m128i x)
{
    x = _mm_add_epi32(x, _mm_unpackhi_epi64(x, x));
    return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 1)));
}

void kern_avx2_to_int16(const float *y, size_t n, int16_t *integers)
{
    for (size_t i = 0; i < n; i += 2 * WIDTH) {
        __m256i sixteen = to_int16(_mm256_loadu_ps(y + i), _mm256_loadu_ps(y + i + WIDTH));
        _mm256_storeu_si256((__m256i *)(void *)(integers + i), sixteen);
    }
}

void kern_avx2_to_int8(const float *y, size_t n, int8_t *integers)
{
    for (const float *end = y + n; y < end; y += COLUMNS, integers += COLUMNS) {
        __m256i bytes = to_int8(_mm256_loadu_ps(y), _mm256_loadu_ps(y + WIDTH),
                                _mm256_loadu_ps(y + 2 * WIDTH), _mm256_loadu_ps(y + 3 * WIDTH));
        _mm256_storeu_si256((__m256i *)(void *)integers, bytes);
    }
}

void kern_avx2_int8_row(const int8_t *integers, size_t n_k, const struct kern_integers *format,
                        float *out)
{
    int32_t *begins = (int32_t *)(void *)(out + n_k / 4);
    for (size_t k = 0; k < n_k; k += COLUMNS, integers += COLUMNS, out += WIDTH) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)integers);
        _mm256_storeu_si256((__m256i *)(void *)out, bytes);
        __m256i two = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
        __m256i four = _mm256_madd_epi16(two, _mm256_set1_epi16(-KERN_INT8_OFFSET));
        __m128i first = _mm256_castsi256_si128(four), last = _mm256_extracti128_si256(four, 1);
        if (format->run == COLUMNS) {
            *begins++ = add_four(_mm_add_epi32(first, last));
        } else {
            *begins++ = add_four(first);
            *begins++ = add_four(last);
        }
    }
}

float kern_avx2_int16_round(const float *x, size_t n, int largest, int16_t *integers)
{
    _Alignas(32) int32_t bits[WIDTH] = {largest_bits(x, n)};
    struct factors f = choose_factors(bits, (float)largest);
    for (size_t i = 0; i < n; i += 2 * WIDTH) {
        __m256i sixteen = to_int16(scaled(x + i, &f, 0), scaled(x + i + WIDTH, &f, 0));
        _mm256_storeu_si256((__m256i *)(void *)(integers + i), sixteen);
    }
    return _mm256_cvtss_f32(f.scale);
}

/** Eight columns of two rows: a column's two numbers side by side. */
static inline __m256 pair_rows(const int16_t *x, size_t stride)
{
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)x);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(x + stride));
    return _mm256_castsi256_ps(
        _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b)));
}

void kern_avx2_int16_turn(const int16_t *x, size_t n_rows, size_t n_cols, int16_t *out)
{
    for (size_t r = 0; r < n_rows; r += 2 * WIDTH) {
        for (size_t c = 0; c < n_cols; c += WIDTH) {
            __m256 m[WIDTH];
            for (size_t i = 0; i < WIDTH; i++)
                m[i] = pair_rows(x + (r + 2 * i) * n_cols + c, n_cols);
            transpose8(m);
            for (size_t i = 0; i < WIDTH; i++)
                _mm256_storeu_ps((float *)(void *)(out + (c + i) * n_rows + r), m[i]);
        }
    }
}
