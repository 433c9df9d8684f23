/* The kernel int16_tile of a set: compiled for NEON alone, for dotprod and for i8mm. */
#define TILE_BYTES    0
#define TILE_FUNCTION void INTEGER(int16_tile)
#include "kernels/cpu/neon/integer_tile.h"
