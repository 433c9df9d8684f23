/** The plain C versions of the product kernels; the contracts are in table.h. */
#ifndef KERNELS_CPU_GEMM_PANEL_SCALAR_H
#define KERNELS_CPU_GEMM_PANEL_SCALAR_H

#include "kernels/cpu/table.h"

kern_fma_tile_fn kern_scalar_fma_tile;
kern_panel_pack_fn kern_scalar_panel_pack;
kern_panel_unpack_fn kern_scalar_panel_unpack;
kern_panel_scale_fn kern_scalar_panel_scale;

#endif
