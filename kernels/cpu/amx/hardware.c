/* Products by tile instructions. Only processors with AMX may come here. */
#include "kernels/cpu/amx/amx.h"
#include "kernels/cpu/amx/tile_hardware.h"

#include "kernels/cpu/amx/microkernel.h"

const struct kern_amx_products kern_amx_hardware = {multiply_one, multiply_triple};
