/* The kernel int8_tile with AVX-512 VNNI. */
#include "kernels/cpu/avx512/gemm/gemm.h"
#include "kernels/cpu/avx512/vec.h"

#define TILE_FUNCTION void kern_avx512_vnni_int8_tile
#define TILE_DOT      _mm512_dpbusd_epi32
#define TILE_BYTES    1
enum { TILE_ROWS = 6 };

#include "kernels/cpu/simd/integer_tile.h"
