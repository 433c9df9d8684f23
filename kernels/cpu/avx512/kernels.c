/* The kernels that have an AVX-512 version. This folder alone is compiled with -mavx512*. */
#include "kernels/cpu/avx2/gemm/gemm.h"
#include "kernels/cpu/avx512/gemm/gemm.h"
#include "kernels/cpu/avx512/straight_list.h"

#define STRAIGHT8(TYPE, name)  [GGUF_TYPE_##TYPE] = kern_avx512_straight8_##name,
#define STRAIGHT16(TYPE, name) [GGUF_TYPE_##TYPE] = kern_avx512_straight16_##name,
const struct kern_kernels kern_kernels_avx512 = {
    .straight8 = {KERN_AVX512_STRAIGHT(STRAIGHT8)},
    .straight16 = {KERN_AVX512_STRAIGHT(STRAIGHT16)},
    .fma_tile = kern_avx512_fma_tile,
    .bf16_pack_row = kern_avx512_bf16_pack_row,
    .bf16_pack_panel = kern_avx512_bf16_pack_panel,
    .bf16_pack_lanes = kern_avx512_bf16_pack_lanes,
    .int16_tile = kern_avx512_int16_tile,
    .int16_pack_lanes = kern_avx512_int16_pack_lanes,
};

const struct kern_kernels kern_kernels_avx512_vnni = {.int16_tile = kern_avx512_vnni_int16_tile,
                                                      .int8_tile = kern_avx512_vnni_int8_tile,
                                                      .int8_row = kern_avx2_int8_row,
                                                      .bytes_most = KERN_INTEGER_LIMIT};

const struct kern_kernels kern_kernels_avx512_pairs = {.int16_tile = kern_avx512_pairs_int16_tile,
                                                       .int16_row = kern_avx512_pairs_int16_row,
                                                       .int8_tile = kern_avx512_pairs_int8_tile,
                                                       .int8_row = kern_avx512_pairs_int8_row,
                                                       .bytes_most = KERN_INTEGER_LIMIT};
