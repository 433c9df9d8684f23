/* The kernels that have an AVX2 version. This folder alone is compiled with -mavx2 -mfma -mf16c. */
#include "kernels/cpu/kernels.h"

#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/gemm/gemm.h"

#define ENTRY(TYPE, name) [GGUF_TYPE_##TYPE] = kern_avx2_decode_##name,
const struct kern_kernels kern_kernels_avx2 = {
    .decode = {KERN_AVX2_DECODERS(ENTRY)},
    .fma_tile = kern_avx2_fma_tile,
    .panel_pack = kern_avx2_panel_pack,
    .panel_unpack = kern_avx2_panel_unpack,
    .panel_scale = kern_avx2_panel_scale,
    .int16_tile = kern_avx2_int16_tile,
    .int16_pack = kern_avx2_int16_pack,
    .to_int16 = kern_avx2_to_int16,
    .int16_pack_lanes = kern_avx2_int16_pack_lanes,
    .int16_round = kern_avx2_int16_round,
    .int16_turn = kern_avx2_int16_turn,
    .int8_tile = kern_avx2_int8_tile,
    .int8_pack = kern_avx2_int8_pack,
    .to_int8 = kern_avx2_to_int8,
    .int8_row = kern_avx2_int8_row,
    .words_tile = kern_avx2_words_tile,
    .words_pack = kern_avx2_words_pack,
    .bytes_most = KERN_AVX2_BYTES_MOST,
};

const struct kern_kernels kern_kernels_avx2_vnni = {.int16_tile = kern_avx2_vnni_int16_tile,
                                                    .int8_tile = kern_avx2_vnni_int8_tile,
                                                    .int8_row = kern_avx2_int8_row,
                                                    .bytes_most = KERN_INTEGER_LIMIT};
