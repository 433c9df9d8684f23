/* The kernel int8_tile of a set: compiled for NEON alone, for dotprod and for i8mm. */
#define TILE_BYTES    1
#define TILE_FUNCTION void INTEGER(int8_tile)
#include "kernels/cpu/neon/integer_tile.h"
