/** The plain C version of every row of kern_table; the contracts are in table.h. */
#ifndef KERNELS_CPU_SCALAR_H
#define KERNELS_CPU_SCALAR_H

#include "kernels/cpu/table.h"

kern_fma_tile_fn kern_scalar_fma_tile;
kern_lanes_pack_fn kern_scalar_lanes_pack;
kern_lanes_unpack_fn kern_scalar_lanes_unpack;
kern_rank_update_fn kern_scalar_rank_update;

#endif
