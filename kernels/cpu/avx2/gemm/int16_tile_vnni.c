/* The kernel int16_tile with AVX-VNNI. */
#include "kernels/cpu/avx2/gemm/gemm.h"
#include "kernels/cpu/avx2/vec.h"

#define TILE_FUNCTION void kern_avx2_vnni_int16_tile
#define TILE_DOT      _mm256_dpwssd_avx_epi32
#define TILE_BYTES    0
enum { TILE_ROWS = 6 };

#include "kernels/cpu/simd/integer_tile.h"
