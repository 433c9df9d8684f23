/* The kernel int16_tile with AVX-512 VNNI, for processors that add more than they multiply. */
#include "kernels/cpu/avx512/gemm/gemm.h"
#include "kernels/cpu/avx512/vec.h"

#define TILE_BYTES 0
#define TILE_PAIRS
enum { TILE_ROWS = 4 };

static inline vec_i dot(vec_i sums, vec_i a, vec_i b)
{
    return _mm512_dpwssd_epi32(sums, a, b);
}

static inline vec_i add_cells(vec_i x, vec_i w)
{
    return _mm512_add_epi16(x, w);
}

#include "kernels/cpu/simd/integer_tile.h"

void kern_avx512_pairs_int16_tile(const struct kern_fma_tile *op)
{
    integer_tile(op);
}
