/* The kernels int8_tile and int8_row with AVX-512 VNNI, for processors that add more than they
 * multiply. Formats without room are multiplied as elsewhere. */
#include "kernels/cpu/avx2/gemm/gemm.h"
#include "kernels/cpu/avx512/gemm/gemm.h"
#include "kernels/cpu/avx512/vec.h"

#define TILE_FUNCTION static void multiply_tile
#define TILE_DOT      _mm512_dpbusd_epi32
#define TILE_BYTES    1
#define TILE_PAIRS
enum { TILE_ROWS = 6 };

static inline vec_i add_cells(vec_i x, vec_i w)
{
    return _mm512_add_epi8(x, w);
}

#include "kernels/cpu/simd/integer_tile.h"

void kern_avx512_pairs_int8_tile(const struct kern_fma_tile *op)
{
    if (op->format->room > 0)
        multiply_tile(op);
    else
        kern_avx512_vnni_int8_tile(op);
}

/** The first cell of a pair lies as integer - 128 modulo 256: what it is added to lies as integer
 * + 128. */
void kern_avx512_pairs_int8_row(const int8_t *integers, size_t n_k,
                                const struct kern_integers *format, float *out)
{
    if (format->room == 0) {
        kern_avx2_int8_row(integers, n_k, format, out);
        return;
    }
    enum { OFFSETS = -0x7f7f7f80 };
    const __m256i first_cells = _mm256_setr_epi32(-1, 0, -1, 0, -1, 0, 0, 0);
    const __m256i singles = _mm256_setr_epi32(0, 0, 0, 0, 0, 0, OFFSETS, OFFSETS);
    const __m256i offset = _mm256_and_si256(first_cells, _mm256_set1_epi32(OFFSETS));
    const __m256i ones = _mm256_set1_epi16(1);
    int32_t *begins = (int32_t *)(void *)(out + n_k / TILE_CELL);
    for (size_t k = 0; k < n_k; k += TILE_COLUMNS, out += TILE_COLUMNS / TILE_CELL) {
        __m256i cells = _mm256_loadu_si256((const __m256i *)(const void *)(integers + k));
        /* what each cell is multiplied with in -begin: w1 + 128, nothing, or 128 */
        __m256i other = _mm256_xor_si256(_mm256_srli_epi64(cells, 32), offset);
        other = _mm256_or_si256(_mm256_and_si256(other, first_cells), singles);
        __m256i pairs = _mm256_madd_epi16(_mm256_maddubs_epi16(other, cells), ones);
        pairs = _mm256_add_epi32(pairs, _mm256_shuffle_epi32(pairs, 0x4e));
        pairs = _mm256_add_epi32(pairs, _mm256_shuffle_epi32(pairs, 0xb1));
        int32_t first = _mm_cvtsi128_si32(_mm256_castsi256_si128(pairs));
        int32_t last = _mm_cvtsi128_si32(_mm256_extracti128_si256(pairs, 1));
        if (format->run == TILE_COLUMNS) {
            *begins++ = -(first + last);
        } else {
            *begins++ = -first;
            *begins++ = -last;
        }
        _mm256_storeu_si256((__m256i *)(void *)out, _mm256_xor_si256(cells, offset));
    }
}
