/** Decoders with NEON: of halves and floats of a byte, and of all types that are integers. */
#ifndef KERNELS_CPU_NEON_DECODE_H
#define KERNELS_CPU_NEON_DECODE_H

#include "kernels/quant/integer_list.h"
#include "kernels/quant/integers.h"

kern_decode_fn kern_neon_decode_f16, kern_neon_decode_f8_e4m3, kern_neon_decode_f8_e5m2;
#define KERN_NEON_DECODER(TYPE, name, id, elems, bytes, prefix, rows, run, most)                   \
    kern_decode_fn kern_neon_decode_##name;                                                        \
    kern_straight_fn kern_neon_straight8_##name, kern_neon_straight16_##name;
KERN_INTEGER_FORMATS(KERN_NEON_DECODER, KERN_NEON_DECODER)

#endif
