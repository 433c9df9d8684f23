/* The kernel int8_tile with AVX-512 VNNI. */
#include "kernels/cpu/avx512/gemm/gemm.h"
#include "kernels/cpu/avx512/vec.h"

#define TILE_BYTES 1
enum { TILE_ROWS = 6 };

static inline vec_i dot(vec_i sums, vec_i x, vec_i w)
{
    return _mm512_dpbusd_epi32(sums, x, w);
}

#include "kernels/cpu/simd/integer_tile.h"

void kern_avx512_vnni_int8_tile(const struct kern_fma_tile *op)
{
    integer_tile(op);
}
