/* The same products by the software model of tile instructions, for tests. */
#include "kernels/cpu/amx/amx.h"
#include "kernels/cpu/amx/tile_emulated.h"

#include "kernels/cpu/amx/microkernel.h"

const struct kern_amx_products kern_amx_emulated = {multiply_one, multiply_triple};
