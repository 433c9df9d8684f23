/* The kernel int16_tile with AVX-512, where there is no VNNI. */
#include "kernels/cpu/avx512/gemm/gemm.h"
#include "kernels/cpu/avx512/vec.h"

#define TILE_FUNCTION void kern_avx512_int16_tile
#define TILE_BYTES    0
enum { TILE_ROWS = 6 };

#include "kernels/cpu/simd/integer_tile.h"
