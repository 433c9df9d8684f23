/* Splitting into bfloat16 and packing for tile instructions; kernels/numerics/bf16.h defines it. */
#include <immintrin.h>

#include "kernels/cpu/avx512/gemm/gemm.h"

enum { WIDTH = 16, LINES = KERN_BF16_TILE_LINES, CHUNK = KERN_BF16_CHUNK_K };

/** Lanes whose magnitude rounds to infinity, is infinite or NaN; few have any. */
static inline __mmask16 special_lanes(__m512i bits)
{
    const __m512i first = _mm512_set1_epi32((int)(2 * 0x7f7f8000u));
    return _mm512_cmpge_epu32_mask(_mm512_add_epi32(bits, bits), first);
}

/** kern_bf16_round() of 16 numbers, each in the upper half of its lane; the lower half is
 * undefined. */
static inline __m512i round_lanes(__m512 x)
{
    __m512i bits = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    __mmask16 special = special_lanes(bits);
    if (__builtin_expect(special != 0, 0)) {
        __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
        rounded = _mm512_mask_mov_epi32(rounded, special, bits); /* towards zero, infinity */
        rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x00400000));
    }
    return rounded;
}

/** kern_bf16_rest() of 16 numbers. */
static inline __m512i rest_lanes(__m512 x, __m512i hi)
{
    __m512i bits = _mm512_and_si512(hi, _mm512_set1_epi32((int)0xffff0000u));
    __m512 rest = _mm512_sub_ps(x, _mm512_castsi512_ps(bits));
    const __m512i infinity = _mm512_set1_epi32(0x7f800000);
    __mmask16 finite = _mm512_cmpneq_epi32_mask(_mm512_and_si512(bits, infinity), infinity);
    return round_lanes(_mm512_maskz_mov_ps(finite, rest));
}

/** 32 successive numbers as bfloat16. */
struct parts {
    __m512i hi, lo;
};

static inline struct parts split(__m512 first, __m512 last, unsigned n_parts)
{
    /* The upper halves of the lanes of two vectors. */
    const __m512i upper =
        _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                         25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    __m512i hi[2] = {round_lanes(first), round_lanes(last)};
    struct parts p = {.hi = _mm512_permutex2var_epi16(hi[0], upper, hi[1])};
    p.lo = n_parts > 1
               ? _mm512_permutex2var_epi16(rest_lanes(first, hi[0]), upper, rest_lanes(last, hi[1]))
               : _mm512_setzero_si512();
    return p;
}

/** Columns k .. k + 31 of a row; those past n_k are 0. */
static inline struct parts split_columns(const float *x, size_t k, size_t n_k, unsigned n_parts)
{
    if (n_k - k >= CHUNK)
        return split(_mm512_loadu_ps(x + k), _mm512_loadu_ps(x + k + WIDTH), n_parts);
    uint32_t mask = (1u << (n_k - k)) - 1;
    return split(_mm512_maskz_loadu_ps((__mmask16)mask, x + k),
                 _mm512_maskz_loadu_ps((__mmask16)(mask >> WIDTH), x + k + WIDTH), n_parts);
}

void kern_avx512_bf16_pack_row(const float *w, size_t n_k, unsigned n_parts, size_t row,
                               uint16_t *out)
{
    uint16_t *line = out + row / LINES * KERN_BF16_TILE + row % LINES * CHUNK;
    for (size_t k = 0; k < n_k; k += CHUNK) {
        struct parts p = split_columns(w, k, n_k, n_parts);
        _mm512_store_si512(line, p.hi);
        if (n_parts > 1)
            _mm512_store_si512(line + 2 * KERN_BF16_TILE, p.lo);
        line += 2 * n_parts * KERN_BF16_TILE;
    }
}

/** m[i] lane j becomes m[j] lane i. */
static inline __attribute__((always_inline)) void transpose(__m512i m[LINES])
{
    __m512i t[LINES];
    for (size_t i = 0; i < LINES; i += 2) {
        t[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
    }
    for (size_t i = 0; i < LINES; i += 4) {
        m[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        m[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        m[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        m[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* Now m[4 q + i] holds, in its quarter s, lane 4 s + i of rows 4 q to 4 q + 3. */
    for (size_t i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(m[i], m[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(m[i], m[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(m[i + 8], m[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(m[i + 8], m[i + 12], 0xdd);
    }
    for (size_t i = 0; i < 4; i++) {
        m[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        m[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
        m[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        m[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

static inline void store_tile(__m512i m[LINES], uint16_t *tile)
{
    transpose(m);
    for (size_t i = 0; i < LINES; i++)
        _mm512_store_si512(tile + i * CHUNK, m[i]);
}

/** Columns k .. k + 31 of 16 lanes from `lane` on, into the tiles at `tile`. */
static void pack_tiles(const struct kern_panel_pack *op, size_t k, size_t lane, uint16_t *tile)
{
    __m512i hi[LINES], lo[LINES];
    for (size_t i = 0; i < LINES; i++) {
        hi[i] = lo[i] = _mm512_setzero_si512();
        if (lane + i >= op->n_lanes)
            continue;
        struct parts p = split_columns(op->x + (lane + i) * op->x_stride, k, op->n_k, op->n_parts);
        hi[i] = p.hi;
        lo[i] = p.lo;
    }
    store_tile(hi, tile);
    if (op->n_parts > 1)
        store_tile(lo, tile + 2 * KERN_BF16_TILE);
}

void kern_avx512_bf16_pack_panel(const struct kern_panel_pack *op)
{
    uint16_t *chunk = op->out;
    for (size_t k = 0; k < op->n_k; k += CHUNK) {
        pack_tiles(op, k, 0, chunk);
        pack_tiles(op, k, LINES, chunk + KERN_BF16_TILE);
        chunk += 2 * op->n_parts * KERN_BF16_TILE;
    }
}

/** Two rows of 16 lanes as pairs: a line of a tile of activations. */
static inline __m512i pairs(__m512i even, __m512i odd)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(even, 16), odd);
}

/** Columns k and k + 1 of 16 lanes, x being the first; columns from n_k on are 0. */
static inline void pack_pair(const float *x, size_t k, size_t n_k, unsigned n_parts, uint16_t *line)
{
    __m512 even = k < n_k ? _mm512_load_ps(x) : _mm512_setzero_ps();
    __m512 odd = k + 1 < n_k ? _mm512_load_ps(x + KERN_PANEL) : _mm512_setzero_ps();
    __m512i hi[2] = {round_lanes(even), round_lanes(odd)};
    _mm512_store_si512(line, pairs(hi[0], hi[1]));
    if (n_parts > 1)
        _mm512_store_si512(line + 2 * KERN_BF16_TILE,
                           pairs(rest_lanes(even, hi[0]), rest_lanes(odd, hi[1])));
}

void kern_avx512_bf16_pack_lanes(const float *x, size_t n_k, unsigned n_parts, uint16_t *out)
{
    for (size_t k = 0; k < n_k; k += CHUNK) {
        for (size_t i = 0; i < CHUNK; i += 2) {
            const float *row = x + (k + i) * KERN_PANEL;
            uint16_t *line = out + i / 2 * CHUNK;
            pack_pair(row, k + i, n_k, n_parts, line);
            pack_pair(row + LINES, k + i, n_k, n_parts, line + KERN_BF16_TILE);
        }
        out += 2 * n_parts * KERN_BF16_TILE;
    }
}
