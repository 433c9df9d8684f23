/** NEON versions of the product kernels; the contracts are in kernels/cpu/kernels.h. */
#ifndef KERNELS_CPU_NEON_NEON_H
#define KERNELS_CPU_NEON_NEON_H

#include "kernels/cpu/kernels.h"

kern_fma_tile_fn kern_neon_fma_tile;
kern_panel_pack_fn kern_neon_panel_pack;
kern_panel_unpack_fn kern_neon_panel_unpack;
kern_panel_scale_fn kern_neon_panel_scale;

/** What integer_pack.c and the tiles are for each of the three sets. */
#define KERN_NEON_INTEGERS(set)                                                                    \
    kern_fma_tile_fn kern_##set##_int16_tile, kern_##set##_int8_tile;                              \
    kern_panel_pack_fn kern_##set##_int16_pack, kern_##set##_int8_pack;                            \
    kern_int16_row_fn kern_##set##_int16_row;                                                      \
    kern_int16_pack_lanes_fn kern_##set##_int16_pack_lanes;                                        \
    kern_int16_round_fn kern_##set##_int16_round;                                                  \
    kern_int8_row_fn kern_##set##_int8_row
KERN_NEON_INTEGERS(neon);
KERN_NEON_INTEGERS(dotprod);
KERN_NEON_INTEGERS(i8mm);

kern_op_score_top_fn kern_neon_score_top;
kern_op_decode_codes_fn kern_neon_decode_codes;
kern_op_encode_codes_fn kern_neon_encode_codes;

#endif
