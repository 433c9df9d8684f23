/* The kernels int16_tile and int16_row with AVX-512 VNNI, for processors that add more than they
 * multiply. */
#include "kernels/cpu/avx512/gemm/gemm.h"
#include "kernels/cpu/avx512/vec.h"

#define TILE_FUNCTION void kern_avx512_pairs_int16_tile
#define TILE_DOT      _mm512_dpwssd_epi32
#define TILE_BYTES    0
#define TILE_PAIRS
enum { TILE_ROWS = 4 };

static inline vec_i add_cells(vec_i x, vec_i w)
{
    return _mm512_add_epi16(x, w);
}

#include "kernels/cpu/simd/integer_tile.h"

/** The sum of eight numbers of 32 bits. */
static inline int32_t add_eight(__m256i x)
{
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    four = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 1)));
}

void kern_avx512_pairs_int16_row(const int16_t *integers, size_t n_k,
                                 const struct kern_integers *format, float *out)
{
    enum { FIRST_CELLS = 0x1515 }; /* of each pair, 0, 2 and 4 of eight */
    int32_t *begins = (int32_t *)(void *)(out + n_k / TILE_CELL);
    for (size_t k = 0; k < n_k; k += TILE_COLUMNS, out += TILE_COLUMNS / TILE_CELL) {
        vec_i cells = load_i(integers + k);
        _mm512_storeu_si512(out, cells);
        vec_i pairs = _mm512_madd_epi16(cells, _mm512_shuffle_epi32(cells, _MM_PERM_CDAB));
        pairs = _mm512_maskz_mov_epi32(FIRST_CELLS, pairs);
        __m256i first = _mm512_castsi512_si256(pairs), last = _mm512_extracti64x4_epi64(pairs, 1);
        if (format->run < TILE_COLUMNS) {
            *begins++ = -add_eight(first);
            *begins++ = -add_eight(last);
            continue;
        }
        int32_t begin = -add_eight(_mm256_add_epi32(first, last));
        if (k % format->run == 0)
            *begins++ = begin;
        else
            begins[-1] += begin;
    }
}
