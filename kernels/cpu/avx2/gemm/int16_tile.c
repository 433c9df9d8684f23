/* The kernel int16_tile with AVX2, where there is no VNNI. */
#include "kernels/cpu/avx2/gemm/gemm.h"
#include "kernels/cpu/avx2/vec.h"

#define TILE_BYTES 0
enum { TILE_ROWS = 3 };

/** An empty instruction keeps the compiler from adding up many products before it adds the sums,
 * for which there are no registers. */
static inline vec_i dot(vec_i sums, vec_i x, vec_i w)
{
    sums = V(add_epi32)(sums, V(madd_epi16)(x, w));
    __asm__("" : "+x"(sums));
    return sums;
}

#include "kernels/cpu/simd/integer_tile.h"

void kern_avx2_int16_tile(const struct kern_fma_tile *op)
{
    integer_tile(op);
}
