/* The kernels that have a version with NEON, with dotprod and with i8mm. */
#include "kernels/cpu/neon/decode.h"
#include "kernels/cpu/neon/neon.h"

#define INTEGERS(set)                                                                              \
    .int16_tile = kern_##set##_int16_tile, .int16_pack = kern_##set##_int16_pack,                  \
    .int16_row = kern_##set##_int16_row, .int8_tile = kern_##set##_int8_tile,                      \
    .int8_pack = kern_##set##_int8_pack, .int8_row = kern_##set##_int8_row,                        \
    .bytes_most = KERN_INTEGER_LIMIT, .int16_pack_lanes = kern_##set##_int16_pack_lanes,           \
    .int16_round = kern_##set##_int16_round

#define DECODE(TYPE, name, ...)     [GGUF_TYPE_##TYPE] = kern_neon_decode_##name,
#define STRAIGHT8(TYPE, name, ...)  [GGUF_TYPE_##TYPE] = kern_neon_straight8_##name,
#define STRAIGHT16(TYPE, name, ...) [GGUF_TYPE_##TYPE] = kern_neon_straight16_##name,

const struct kern_kernels kern_kernels_neon = {
    .decode = {DECODE(F16, f16) DECODE(F8_E4M3, f8_e4m3) DECODE(F8_E5M2, f8_e5m2)
                   KERN_INTEGER_FORMATS(DECODE, DECODE)},
    .straight8 = {KERN_INTEGER_FORMATS(STRAIGHT8, STRAIGHT8)},
    .straight16 = {KERN_INTEGER_FORMATS(STRAIGHT16, STRAIGHT16)},
    .fma_tile = kern_neon_fma_tile,
    .panel_pack = kern_neon_panel_pack,
    .panel_unpack = kern_neon_panel_unpack,
    .panel_scale = kern_neon_panel_scale,
    INTEGERS(neon),
};

const struct kern_kernels kern_kernels_dotprod = {INTEGERS(dotprod)};
const struct kern_kernels kern_kernels_i8mm = {INTEGERS(i8mm)};
