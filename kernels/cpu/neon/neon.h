/** NEON versions of the product kernels; the contracts are in kernels/cpu/kernels.h. */
#ifndef KERNELS_CPU_NEON_NEON_H
#define KERNELS_CPU_NEON_NEON_H

#include "kernels/cpu/kernels.h"

kern_fma_tile_fn kern_neon_fma_tile;
kern_panel_pack_fn kern_neon_panel_pack;
kern_panel_unpack_fn kern_neon_panel_unpack;
kern_panel_scale_fn kern_neon_panel_scale;
kern_op_score_top_fn kern_neon_score_top;
kern_op_decode_codes_fn kern_neon_decode_codes;
kern_op_encode_codes_fn kern_neon_encode_codes;

#endif
