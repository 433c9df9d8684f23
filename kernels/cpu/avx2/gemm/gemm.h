/** AVX2 versions of the product kernels; the contracts are in kernels/cpu/kernels.h. */
#ifndef KERNELS_CPU_AVX2_GEMM_H
#define KERNELS_CPU_AVX2_GEMM_H

#include "kernels/cpu/kernels.h"

kern_fma_tile_fn kern_avx2_fma_tile;
kern_panel_pack_fn kern_avx2_panel_pack;
kern_panel_unpack_fn kern_avx2_panel_unpack;
kern_panel_scale_fn kern_avx2_panel_scale;
kern_fma_tile_fn kern_avx2_int16_tile, kern_avx2_vnni_int16_tile;
kern_fma_tile_fn kern_avx2_int8_tile, kern_avx2_vnni_int8_tile;
kern_fma_tile_fn kern_avx2_words_tile;
kern_int16_pack_lanes_fn kern_avx2_int16_pack_lanes;
kern_int16_round_fn kern_avx2_int16_round;
kern_int16_turn_fn kern_avx2_int16_turn;
kern_panel_pack_fn kern_avx2_int16_pack, kern_avx2_int8_pack, kern_avx2_words_pack;
kern_to_int16_fn kern_avx2_to_int16;
kern_to_int8_fn kern_avx2_to_int8;
kern_int8_row_fn kern_avx2_int8_row;
/** The largest integer of which two products with bytes of 255 fit 16 bits: what int8_tile takes
 * without VNNI. */
enum { KERN_AVX2_BYTES_MOST = 32767 / (2 * 255) };

#endif
