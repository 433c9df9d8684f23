/* The kernel words_tile with AVX2, where there is no VNNI; with AVX-512, too. */
#include "kernels/cpu/avx2/gemm/gemm.h"
#include "kernels/cpu/avx2/vec.h"

#define TILE_FUNCTION void kern_avx2_words_tile
#define TILE_BYTES    0
#define TILE_WORDS
enum { TILE_ROWS = 3 };

#include "kernels/cpu/simd/integer_tile.h"
