/** AVX-512 versions of the product kernels; the contracts are in kernels/cpu/kernels.h. */
#ifndef KERNELS_CPU_AVX512_GEMM_H
#define KERNELS_CPU_AVX512_GEMM_H

#include "kernels/cpu/kernels.h"

kern_fma_tile_fn kern_avx512_fma_tile;
kern_bf16_pack_row_fn kern_avx512_bf16_pack_row;
kern_bf16_pack_panel_fn kern_avx512_bf16_pack_panel;
kern_bf16_pack_lanes_fn kern_avx512_bf16_pack_lanes;
kern_fma_tile_fn kern_avx512_int16_tile, kern_avx512_vnni_int16_tile, kern_avx512_pairs_int16_tile;
kern_fma_tile_fn kern_avx512_vnni_int8_tile, kern_avx512_pairs_int8_tile;
kern_int16_pack_lanes_fn kern_avx512_int16_pack_lanes;
kern_int16_row_fn kern_avx512_pairs_int16_row;
kern_int8_row_fn kern_avx512_pairs_int8_row;

#endif
